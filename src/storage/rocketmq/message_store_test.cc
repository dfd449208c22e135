#include "storage/rocketmq/message_store.h"

#include <gtest/gtest.h>

#include <array>

#include "format/rocketmq/consume_queue.h"
#include "format/rocketmq/names.h"
#include "storage/rocketmq/store_rig.h"

namespace polylog::storage::rocketmq {
namespace {

namespace stored = format::rocketmq;
using Strings = StoreRig::Strings;
using Message = stored::Message;

constexpr std::int32_t prepared = stored::sys_flag::transaction_prepared;

class RocketmqMessages : public ::testing::Test, protected StoreRig {
 protected:
  void SetUp() override {
    config.shared.commit_log_file_bytes = 128 * 1024;
    start();
    queue("orders");
  }
  void start() {
    open();
    messages.emplace(*store, clock, config.shared);
    EXPECT_TRUE(messages->load_delay_offsets());
  }
  void restart() {
    EXPECT_TRUE(messages->save_delay_offsets());
    messages.reset();
    EXPECT_TRUE(store->close());
    store.reset();
    start();
  }

  Message make(std::string_view body, std::string_view properties = "",
               std::string_view topic = "orders") {
    Message message;
    message.topic = topic;
    message.body = as_bytes(body);
    message.properties = properties;
    message.born_timestamp = clock.now().value();
    return message;
  }
  PutResult put(std::string_view body, std::string_view properties = "") {
    return messages->put(make(body, properties));
  }
  Strings get(std::string_view topic, std::string_view tags = "", std::int64_t from = 0) {
    const auto got = messages->get(topic, 0, from, 32, 1 << 20, TagFilter(tags));
    EXPECT_TRUE(got);
    Strings bodies;
    for (const Slice& record : got->messages) {
      bodies.emplace_back(as_text(stored::parse(record.view())->body));
    }
    return bodies;
  }
  GetResult status(std::int64_t from, std::string_view tags = "") {
    return *messages->get("orders", 0, from, 32, 1 << 20, TagFilter(tags));
  }

  std::optional<MessageStore> messages;
};

TEST_F(RocketmqMessages, limits_are_exact_at_the_boundary) {
  const auto body_max = static_cast<std::size_t>(config.shared.body_bytes_max = 1000);
  messages.emplace(*store, clock, config.shared);
  EXPECT_EQ(put(std::string(body_max, 'b')).status, PutStatus::put_ok);
  EXPECT_EQ(put(std::string(body_max + 1, 'b')).status, PutStatus::message_size_exceeded);
  const std::string fits = "n\x01" + std::string(32'767 - 3, 'v') + "\x02";
  EXPECT_EQ(fits.size(), 32'767U);
  EXPECT_EQ(put("", fits).status, PutStatus::put_ok);
  EXPECT_EQ(put("", fits + "v").status, PutStatus::properties_size_exceeded);
  const std::string longest(127, 't');
  queue(longest);
  EXPECT_EQ(messages->put(make("", "", longest)).status, PutStatus::put_ok);
  EXPECT_EQ(messages->put(make("", "", longest + "t")).status, PutStatus::message_illegal);
  const std::string retry = "%RETRY%" + std::string(248, 'g');
  EXPECT_EQ(messages->put(make("", "", retry)).status, PutStatus::put_ok);
  EXPECT_EQ(messages->put(make("", "", retry + "g")).status, PutStatus::message_illegal);
  EXPECT_EQ(messages->put(make("", "", "a b")).status, PutStatus::message_illegal);
  EXPECT_EQ(messages->put(make("", "", "nowhere")).status, PutStatus::message_illegal);
}

TEST_F(RocketmqMessages, a_store_that_was_closed_takes_nothing) {
  ASSERT_TRUE(store->close());
  EXPECT_EQ(put("late").status, PutStatus::service_not_available);
}

TEST_F(RocketmqMessages, tags_are_compared_by_hash_and_then_by_text) {
  put("one",
      "TAGS\x01"
      "Aa\x02");
  put("two",
      "TAGS\x01"
      "BB\x02");  // the same hash
  put("three", "TAGS\x01\xe6\x94\xaf\xe4\xbb\x98\x02");
  put("four");
  EXPECT_EQ(get("orders", "Aa"), (Strings{"one"}));
  EXPECT_EQ(get("orders", "BB || Aa"), (Strings{"one", "two"}));
  EXPECT_EQ(get("orders", "\xe6\x94\xaf\xe4\xbb\x98"), (Strings{"three"}));
  EXPECT_EQ(get("orders", "*"), (Strings{"one", "two", "three", "four"}));
  EXPECT_EQ(status(0, "none").status, GetStatus::no_matched_message);
  EXPECT_EQ(status(0, "none").next_offset, 4);
}

TEST_F(RocketmqMessages, a_get_outside_the_queue_says_where_to_go_on) {
  EXPECT_EQ(status(0).status, GetStatus::no_message_in_queue);
  put("one");
  put("two");
  EXPECT_EQ(status(2).status, GetStatus::offset_overflow_one);
  EXPECT_EQ(status(9).status, GetStatus::offset_overflow_badly);
  EXPECT_EQ(status(9).next_offset, 2);
  sync();
  ASSERT_TRUE(queue("orders")->advance_start(Offset(1)));
  EXPECT_EQ(status(0).status, GetStatus::offset_too_small);
  EXPECT_EQ(status(0).next_offset, 1);
  EXPECT_EQ(messages->get("nowhere", 0, 0, 1, 1, TagFilter())->status,
            GetStatus::no_matched_logic_queue);
}

TEST_F(RocketmqMessages, an_entry_that_leads_elsewhere_gives_its_own_message_all_the_same) {
  queue("other");
  const std::string body(200, 'x');
  Strings expected;
  for (int i = 0; i < 8; ++i) {
    expected.push_back(std::to_string(i) + body);
    put(expected.back());
    EXPECT_EQ(messages->put(make(std::to_string(i), "", "other")).status, PutStatus::put_ok);
  }
  ASSERT_TRUE(store->shared_log()->flush_entries());
  const auto others = store->find_queue("other", 0)->entries(0, 8, true);
  for (std::size_t i = 0; i < 8; ++i) {
    // To the message of another queue with the same offset, and into the middle of nowhere.
    std::array<std::uint8_t, stored::queue_entry_bytes> bytes{};
    stored::encode_entry((*others)[i], bytes.data());
    for (const std::size_t byte : {std::size_t{7}, std::size_t{6}, std::size_t{0}}) {
      const std::string file = "/data/rocketmq/consumequeue/orders/0/00000000000000000000";
      const auto before = *fs::read_file(*disk, file, 1 << 20);
      disk->corrupt(file, i * bytes.size(), ByteView(bytes).first(12));
      EXPECT_EQ(get("orders"), expected) << i;
      disk->corrupt(file, 0, before);
      disk->flip_bit(file, i * bytes.size() + byte, 2);
      EXPECT_EQ(get("orders"), expected) << i << " byte " << byte;
      disk->flip_bit(file, i * bytes.size() + byte, 2);
    }
  }
}

TEST_F(RocketmqMessages, an_id_finds_its_message) {
  put("one");
  const PutResult two = put("two");
  const auto found = *messages->find_by_id(two.offset_message_id);
  ASSERT_TRUE(found);
  EXPECT_EQ(as_text(stored::parse(found->view())->body), "two");
}

TEST_F(RocketmqMessages, a_delayed_message_is_seen_when_it_is_due_and_not_before) {
  put("soon",
      "DELAY\x01"
      "1\x02");
  put("later",
      "DELAY\x01"
      "99\x02");  // above the last level: the last one
  put("now");
  EXPECT_EQ(get("orders"), (Strings{"now"}));
  clock.advance_ms(999);
  EXPECT_EQ(*messages->deliver_due(clock.now()), 0U);
  clock.advance_ms(1);
  restart();
  EXPECT_EQ(*messages->deliver_due(clock.now()), 1U);
  EXPECT_EQ(get("orders"), (Strings{"now", "soon"}));
  restart();
  EXPECT_EQ(*messages->deliver_due(clock.now()), 0U);
  clock.advance_ms(2 * 3600 * 1000);
  EXPECT_EQ(*messages->deliver_due(clock.now()), 1U);
  EXPECT_EQ(get("orders"), (Strings{"now", "soon", "later"}));
}

// RobustMQ's issue 1671: what can't be delivered when it is due must not be lost.
TEST_F(RocketmqMessages, what_is_due_for_a_missing_topic_is_kept_and_holds_up_nobody) {
  queue("gone");
  messages->put(make("early",
                     "DELAY\x01"
                     "1\x02",
                     "gone"));
  put("other",
      "DELAY\x01"
      "1\x02");
  ASSERT_TRUE(store->remove({"gone", 0}));
  clock.advance_ms(1000);
  ASSERT_TRUE(messages->deliver_due(clock.now()));
  EXPECT_EQ(get("orders"), (Strings{"other"}));
  restart();
  queue("gone");
  clock.advance_ms(1000);
  ASSERT_TRUE(messages->deliver_due(clock.now()));
  EXPECT_EQ(get("gone"), (Strings{"early"}));
}

TEST_F(RocketmqMessages, what_the_log_refuses_when_it_is_due_is_delivered_later) {
  bool full = false;
  messages.emplace(*store, clock, config.shared, [&full](Queue& queue, Batch batch) {
    if (full) return Result<Staged>(fail(Errc::no_space, "full"));
    auto staged = queue.append(std::move(batch));
    EXPECT_TRUE(queue.log()->write_staged());
    return staged;
  });
  put("one",
      "DELAY\x01"
      "1\x02");
  put("two",
      "DELAY\x01"
      "1\x02");
  clock.advance_ms(1000);
  full = true;
  EXPECT_EQ(*messages->deliver_due(clock.now()), 0U);
  full = false;
  EXPECT_EQ(*messages->deliver_due(clock.now()), 2U);
  EXPECT_EQ(get("orders"), (Strings{"one", "two"}));
}

TEST_F(RocketmqMessages, a_half_message_is_seen_when_it_is_committed_and_never_when_not) {
  Message half = make("paid", "UNIQ_KEY\x01id-1\x02TAGS\x01t\x02");
  half.sys_flag = prepared;
  messages->put(half);
  half = make("cancelled", "UNIQ_KEY\x01id-2\x02");
  half.sys_flag = prepared;
  messages->put(half);
  EXPECT_EQ(get("orders"), (Strings{}));
  restart();
  const auto open = *messages->open_transactions(10);
  ASSERT_EQ(open.size(), 2U);
  const Message first = *stored::parse(open[0].view());
  EXPECT_EQ(first.sys_flag & stored::sys_flag::transaction_mask, 0);
  EXPECT_EQ(*stored::find_property(first.properties, "__transactionId__"), "id-1");
  EXPECT_EQ(messages->commit(first).status, PutStatus::put_ok);
  EXPECT_EQ(messages->roll_back(*stored::parse(open[1].view())).status, PutStatus::put_ok);
  EXPECT_EQ(get("orders", "t"), (Strings{"paid"}));
  EXPECT_TRUE(messages->open_transactions(10)->empty());
  const auto got = messages->get("orders", 0, 0, 1, 1 << 20, TagFilter());
  const Message committed = *stored::parse(got->messages.front().view());
  EXPECT_EQ(committed.prepared_transaction_offset, first.physical_offset);
  EXPECT_EQ(committed.sys_flag & stored::sys_flag::transaction_mask,
            stored::sys_flag::transaction_commit);
}

TEST_F(RocketmqMessages, what_a_consumer_sends_back_comes_again_later_and_at_last_as_dead_letter) {
  put("job");
  std::int64_t from = 0;
  std::string topic = "orders";
  for (std::int32_t attempt = 0; attempt < 3; ++attempt) {
    const auto got = messages->get(topic, 0, from, 1, 1 << 20, TagFilter());
    ASSERT_EQ(got->status, GetStatus::found) << attempt;
    const Message message = *stored::parse(got->messages.front().view());
    EXPECT_EQ(message.reconsume_times, attempt);
    ASSERT_EQ(messages->send_back(message, "group", 0, 2).status, PutStatus::put_ok);
    if (topic != "orders") ++from;
    topic = "%RETRY%group";
    clock.advance_ms(60'000);
    ASSERT_TRUE(messages->deliver_due(clock.now()));
  }
  EXPECT_EQ(get("%DLQ%group"), (Strings{"job"}));
}

}  // namespace
}  // namespace polylog::storage::rocketmq
