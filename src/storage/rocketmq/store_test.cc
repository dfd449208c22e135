#include "storage/rocketmq/store.h"

#include <gtest/gtest.h>

#include "format/rocketmq/names.h"
#include "format/rocketmq/properties.h"
#include "storage/filelog/sidecar_codec.h"
#include "storage/rocketmq/store_rig.h"

namespace polylog::storage::rocketmq {
namespace {

namespace stored = format::rocketmq;
using Strings = StoreRig::Strings;

class RocketmqStoreTest : public ::testing::Test, protected StoreRig {
 protected:
  void SetUp() override { open(); }

  Strings put_numbers(int from, int to, const std::string& topic = "a") {
    Strings all;
    for (int i = from; i < to; ++i) {
      all.push_back(topic + std::to_string(i) + std::string(100, '.'));
      put(all.back(), topic);
    }
    return all;
  }
};

TEST_F(RocketmqStoreTest, records_of_several_queues_share_one_log_and_come_back_apart) {
  put("1", "a");
  put("x", "b");
  put("2", "a");
  EXPECT_EQ(read("a"), (Strings{"1", "2"}));
  EXPECT_EQ(read("b"), (Strings{"x"}));
  EXPECT_EQ(queue("a")->log(), queue("b")->log());
}

TEST_F(RocketmqStoreTest, the_log_rolls_with_a_blank_record_and_reads_on) {
  const Strings all = put_numbers(0, 100);
  EXPECT_EQ(read("a"), all);
  EXPECT_EQ(read("a", 500), all);
  EXPECT_TRUE(fs::exists(*disk, "/data/rocketmq/commitlog/00000000000000004096"));
}

TEST_F(RocketmqStoreTest, a_record_fills_a_file_up_to_the_eight_bytes_of_the_blank_record) {
  put("first");
  const std::size_t fixed = message("", "a").bytes.size();
  for (const std::size_t left : {std::size_t{7}, std::size_t{8}, std::size_t{9}}) {
    const std::string topic = "t" + std::to_string(left);
    const auto before = store->shared_log()->end().value();
    const std::int64_t room = 4096 - before % 4096;
    const std::size_t body = static_cast<std::size_t>(room) - fixed - 1 - left;
    put(std::string(body, 'b'), topic);
    const bool rolled = left < 8;
    const auto after = store->shared_log()->end().value();
    EXPECT_EQ(after / 4096 != before / 4096, rolled) << left;
    put("next", topic);
    EXPECT_EQ(read(topic).size(), 2U);
  }
}

TEST_F(RocketmqStoreTest, everything_is_there_after_a_clean_stop_and_nothing_was_scanned) {
  const Strings a = put_numbers(0, 60, "a"), b = put_numbers(0, 30, "b");
  sync();
  const Recovery report = reopen();
  EXPECT_TRUE(report.clean);
  EXPECT_EQ(report.bytes_scanned, 0U);
  EXPECT_EQ(read("a"), a);
  EXPECT_EQ(read("b"), b);
  EXPECT_FALSE(store->shared_log()->unclean());
}

TEST_F(RocketmqStoreTest, a_kill_loses_nothing_that_was_written) {
  const Strings a = put_numbers(0, 60, "a");
  const Recovery report = kill();
  EXPECT_FALSE(report.clean);
  EXPECT_EQ(read("a"), a);
  EXPECT_EQ(queue("a")->offsets(), (OffsetRange{Offset(0), Offset(60)}));
}

TEST_F(RocketmqStoreTest, a_power_cut_loses_what_no_sync_has_covered) {
  Strings a = put_numbers(0, 45, "a");
  sync();
  put_numbers(45, 60, "a");
  power_cut();
  EXPECT_EQ(read("a"), a);
  put("after", "a");
  a.push_back("after");
  sync();
  power_cut();
  EXPECT_EQ(read("a"), a);
}

TEST_F(RocketmqStoreTest, a_start_reads_what_lies_beyond_the_last_checkpoint_only) {
  const Strings a = put_numbers(0, 200, "a");
  ASSERT_TRUE(store->checkpoint());
  const auto at = store->shared_log()->end().value();
  Strings all = a;
  const Strings more = put_numbers(200, 210, "a");
  all.insert(all.end(), more.begin(), more.end());
  const auto written = store->shared_log()->end().value() - at;
  const Recovery report = kill();
  EXPECT_EQ(read("a"), all);
  EXPECT_LE(report.bytes_scanned, static_cast<std::uint64_t>(written) + 64);
}

TEST_F(RocketmqStoreTest, queue_files_hold_the_entries_and_follow_at_the_next_flush) {
  put_numbers(0, 25, "a");
  ASSERT_TRUE(store->tend(clock.now()));
  const auto bytes =
      fs::read_file(*disk, "/data/rocketmq/consumequeue/a/0/00000000000000000400", 1 << 20);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->size(), 200U);
  const auto entry = stored::decode_entry(bytes->data() + 4 * 20);
  EXPECT_TRUE(entry.valid());
  EXPECT_EQ(stored::decode_entry(bytes->data() + 5 * 20).size, 0);
}

TEST_F(RocketmqStoreTest, lost_queue_files_are_built_again_from_the_log) {
  const Strings a = put_numbers(0, 60, "a"), b = put_numbers(0, 15, "b");
  sync();
  ASSERT_TRUE(store->close());
  store.reset();
  ASSERT_TRUE(fs::remove_tree(*disk, "/data/rocketmq/consumequeue/a"));
  ASSERT_TRUE(fs::remove_tree(*disk, "/data/sidecar"));
  open();
  EXPECT_EQ(read("a"), a);
  EXPECT_EQ(read("b"), b);
}

// RocketMQ's issues 405, 467, 1434 and 7355: the last file's queue behind the log.
TEST_F(RocketmqStoreTest, a_queue_that_lost_its_last_file_is_filled_to_the_end_of_the_log) {
  const Strings a = put_numbers(0, 60, "a"), b = put_numbers(0, 60, "b");
  sync();
  ASSERT_TRUE(store->close());
  store.reset();
  ASSERT_TRUE(disk->remove("/data/rocketmq/consumequeue/a/0/00000000000000001000"));
  ASSERT_TRUE(fs::remove_tree(*disk, "/data/sidecar"));
  open();
  EXPECT_EQ(read("a"), a);
  EXPECT_EQ(read("b"), b);
  EXPECT_EQ(queue("a")->offsets().end, Offset(60));
}

TEST_F(RocketmqStoreTest, a_queue_that_lost_a_file_in_its_middle_is_filled_from_there) {
  const Strings a = put_numbers(0, 60, "a"), b = put_numbers(0, 60, "b");
  sync();
  ASSERT_TRUE(store->close());
  store.reset();
  ASSERT_TRUE(disk->remove("/data/rocketmq/consumequeue/a/0/00000000000000000400"));
  open();
  EXPECT_EQ(read("a"), a);
  EXPECT_EQ(read("b"), b);
  ASSERT_TRUE(disk->remove("/data/rocketmq/consumequeue/b/0/00000000000000000200"));
  kill();
  EXPECT_EQ(read("a"), a);
  EXPECT_EQ(read("b"), b);
}

TEST_F(RocketmqStoreTest, a_deleted_topic_does_not_come_back_from_the_log) {
  put_numbers(0, 30, "a");
  put_numbers(0, 3, "b");
  sync();
  ASSERT_TRUE(store->remove({"a", 0}));
  kill();
  EXPECT_EQ(store->find({"a", 0}), nullptr);
  const Strings fresh = put_numbers(0, 2, "a");
  EXPECT_EQ(read("a"), fresh);
  sync();
  ASSERT_TRUE(fs::remove_tree(*disk, "/data/rocketmq/consumequeue"));
  kill();
  EXPECT_EQ(read("a"), fresh);
  EXPECT_EQ(read("b").size(), 3U);
}

TEST_F(RocketmqStoreTest, keys_and_ids_find_their_messages_and_no_others) {
  put("one", "AaTopic",
      "KEYS\x01"
      "Aa\x02"
      "UNIQ_KEY\x01"
      "id-1\x02");
  put("two", "BBTopic",
      "KEYS\x01"
      "BB other\x02"
      "UNIQ_KEY\x01"
      "id-2\x02");
  put("three", "AaTopic",
      "KEYS\x01"
      "Aa\x02");
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(find("AaTopic", "Aa"), (Strings{"three", "one"}));
    EXPECT_EQ(find("BBTopic", "BB"), (Strings{"two"}));
    EXPECT_EQ(find("BBTopic", "other"), (Strings{"two"}));
    EXPECT_EQ(find("AaTopic", "id-1"), (Strings{"one"}));
    EXPECT_EQ(find("AaTopic", "BB"), (Strings{}));
    EXPECT_EQ(find("BBTopic", "Aa"), (Strings{}));
    EXPECT_EQ(find("AaTopic", "Aa", 1), (Strings{"three"}));
    round == 0 ? kill() : reopen();
  }
}

TEST_F(RocketmqStoreTest, the_key_index_survives_crashes_whole) {
  Strings expected;
  for (int i = 0; i < 40; ++i) {
    put("m" + std::to_string(i), "a", "KEYS\x01k" + std::to_string(i % 5) + "\x02");
    if (i % 7 == 3) sync();
    if (i % 11 == 5) {
      ASSERT_TRUE(store->checkpoint());
    }
    if (i % 9 == 8) {
      sync();
      i % 2 == 0 ? kill() : power_cut();
    }
    const Strings found = find("a", "k" + std::to_string(i % 5));
    Strings wanted;
    for (int j = i; j >= 0; j -= 5) wanted.push_back("m" + std::to_string(j));
    ASSERT_EQ(found, wanted) << i;
  }
}

TEST_F(RocketmqStoreTest, times_find_the_first_record_born_then_or_later) {
  for (int i = 0; i < 20; ++i) {
    clock.advance_ms(10);
    put(std::to_string(i));
  }
  const auto log = queue();
  const auto first = clock.now() - 190;
  EXPECT_EQ((*log->offset_for_time(first))->offset, Offset(0));
  EXPECT_EQ((*log->offset_for_time(first + 1))->offset, Offset(1));
  EXPECT_FALSE(*log->offset_for_time(clock.now() + 1));
  EXPECT_EQ((*log->offset_of_max_timestamp())->offset, Offset(19));
}

// RocketMQ's issues 2661, 4070, 5445 and 7961.
TEST_F(RocketmqStoreTest, store_times_have_a_lower_and_an_upper_bound) {
  std::int64_t now = 0;
  const auto base = clock.now().value();
  for (const std::int64_t at : {10, 20, 20, 20, 30}) {
    clock.advance_ms(at - now);
    now = at;
    put("m");
  }
  const auto log = store->find_queue("a", 0);
  const std::vector<std::int64_t> asked{5, 10, 15, 20, 25, 30, 35};
  const std::vector<std::int64_t> lower{0, 0, 1, 1, 4, 4, 5}, upper{0, 0, 0, 3, 3, 4, 4};
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const Timestamp at(base + asked[i]);
    EXPECT_EQ(*log->offset_by_store_time(at, Queue::Bound::lower), Offset(lower[i])) << asked[i];
    EXPECT_EQ(*log->offset_by_store_time(at, Queue::Bound::upper), Offset(upper[i])) << asked[i];
  }
}

TEST_F(RocketmqStoreTest, damage_below_the_durable_end_is_stepped_over_and_never_cut) {
  const Strings a = put_numbers(0, 60, "a");
  sync();
  const auto file =
      *disk->open("/data/rocketmq/commitlog/00000000000000004096", fs::OpenMode::write);
  const std::uint8_t wrong = 0xff;
  ASSERT_TRUE(file->write(700, ByteView(&wrong, 1)));  // files here are smaller than a block
  const Recovery report = kill();
  const Strings found = read("a");
  EXPECT_LT(found.size(), a.size());
  EXPECT_EQ(found.front(), a.front());
  EXPECT_EQ(found.back(), a.back());
  EXPECT_EQ(queue("a")->offsets(), (OffsetRange{Offset(0), Offset(60)}));
  EXPECT_FALSE(report.notes.empty());
}

TEST_F(RocketmqStoreTest, a_cut_log_does_not_show_what_stood_behind_the_cut) {
  put("keep");
  const auto cut = store->shared_log()->end();
  put("gone");
  put("gone too");
  sync();
  ASSERT_TRUE(store->shared_log()->truncate(cut));
  EXPECT_EQ(read(), (Strings{"keep"}));
  put("here");  // as long as what stood there
  kill();
  EXPECT_EQ(read(), (Strings{"keep", "here"}));
}

TEST_F(RocketmqStoreTest, old_files_go_at_the_hour_and_the_queues_follow) {
  config.shared.delete_hours.clear();
  for (int hour = 0; hour < 24; ++hour) config.shared.delete_hours.push_back(hour);
  config.shared.reserved_ms = 1000;
  kill();
  put_numbers(0, 100, "a");
  sync();
  clock.advance_ms(10'000'000);
  ASSERT_TRUE(store->tend(clock.now() + 1'000'000'000'000));
  const OffsetRange range = queue("a")->offsets();
  EXPECT_GT(range.start, Offset(0));
  EXPECT_EQ(range.end, Offset(100));
  EXPECT_EQ(read("a").size(), static_cast<std::size_t>(100 - range.start.value()));
  EXPECT_FALSE(fs::exists(*disk, "/data/rocketmq/commitlog/00000000000000000000"));
  kill();
  EXPECT_EQ(queue("a")->offsets(), range);
}

// The body's checksum covers neither the queue offset nor the topic.
TEST_F(RocketmqStoreTest, a_record_with_a_damaged_queue_offset_is_passed_over) {
  const Strings a = put_numbers(10, 15, "a");
  const std::size_t record = message(a.front()).bytes.size();
  sync();
  ASSERT_TRUE(store->close());
  store.reset();
  ASSERT_TRUE(fs::remove_tree(*disk, "/data/sidecar"));
  ASSERT_TRUE(fs::remove_tree(*disk, "/data/rocketmq/consumequeue"));
  disk->flip_bit("/data/rocketmq/commitlog/00000000000000000000",
                 2 * record + stored::message_at::queue_offset, 5);
  const Recovery report = open();
  EXPECT_EQ(read("a"), (Strings{a[0], a[1], a[3], a[4]}));
  EXPECT_EQ(queue("a")->offsets(), (OffsetRange{Offset(0), Offset(5)}));
  EXPECT_FALSE(report.notes.empty());
}

TEST_F(RocketmqStoreTest, a_record_with_a_damaged_topic_makes_no_queue_and_no_directory) {
  const Strings a = put_numbers(10, 15, "a");
  const std::size_t record = message(a.front()).bytes.size();
  const std::size_t topic = stored::message_fields.back().at + a.front().size() + 1;
  for (const char wrong : {'.', '/', ','}) {
    sync();
    ASSERT_TRUE(store->close());
    store.reset();
    ASSERT_TRUE(fs::remove_tree(*disk, "/data/sidecar"));
    ASSERT_TRUE(fs::remove_tree(*disk, "/data/rocketmq/consumequeue"));
    const auto byte = static_cast<std::uint8_t>(wrong);
    disk->corrupt("/data/rocketmq/commitlog/00000000000000000000", 2 * record + topic,
                  ByteView(&byte, 1));
    open();
    EXPECT_EQ(store->partitions(), (std::vector<TopicPartition>{{"a", 0}})) << wrong;
    EXPECT_EQ(read("a"), (Strings{a[0], a[1], a[3], a[4]})) << wrong;
    EXPECT_EQ(disk->list("/data/rocketmq/consumequeue")->size(), 1U) << wrong;
    reopen();
    EXPECT_EQ(read("a"), (Strings{a[0], a[1], a[3], a[4]})) << wrong;
  }
}

TEST_F(RocketmqStoreTest, a_queue_file_of_any_length_behind_a_short_one_is_made_anew) {
  const Strings a = put_numbers(0, 25, "a");
  sync();
  ASSERT_TRUE(store->close());
  store.reset();
  const std::string queue_files = "/data/rocketmq/consumequeue/a/0/";
  disk->truncate_raw(queue_files + "00000000000000000000", 71);
  // One that will be written again, and one where no message of the queue is.
  disk->append_raw(queue_files + "00000000000000000200", std::vector<std::uint8_t>(33, 1));
  ASSERT_TRUE(disk->open(queue_files + "00000000000000000600", fs::OpenMode::create));
  disk->append_raw(queue_files + "00000000000000000600", std::vector<std::uint8_t>(233, 1));
  open();
  EXPECT_EQ(read("a"), a);
  reopen();
  EXPECT_EQ(read("a"), a);
}

TEST_F(RocketmqStoreTest, a_directory_that_is_no_topics_is_left_alone) {
  const Strings a = put_numbers(0, 3, "a");
  sync();
  ASSERT_TRUE(fs::create_directories(*disk, "/data/rocketmq/consumequeue/not a topic/0"));
  for (int round = 0; round < 2; ++round) {
    reopen();
    EXPECT_EQ(store->partitions(), (std::vector<TopicPartition>{{"a", 0}}));
    EXPECT_EQ(read("a"), a);
  }
  EXPECT_TRUE(fs::exists(*disk, "/data/rocketmq/consumequeue/not a topic/0"));
}

TEST_F(RocketmqStoreTest, a_foreign_directory_is_refused_and_nothing_is_changed) {
  put("there");
  ASSERT_TRUE(store->close());
  store.reset();
  config.shared.commit_log_file_bytes = 8192;
  const auto opened = RocketmqStore::open(*disk, clock, config);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::invalid);
  EXPECT_FALSE(fs::exists(*disk, "/data/rocketmq/abort"));
}

TEST_F(RocketmqStoreTest, records_behind_a_damaged_one_are_read_whatever_came_before) {
  config.shared.commit_log_file_bytes = 1 << 20;
  disk = std::make_unique<fs::SimFileSystem>();
  open();
  for (int i = 0; i < 9; ++i) {
    put("m" + std::to_string(i));
    if (i == 2 || i == 7) put("between", "b");  // three runs of neighbours
  }
  sync();
  const auto entries = *store->find_queue("a", 0)->entries(0, 9, true);
  const std::uint8_t wrong = 0xff;
  const auto body = static_cast<std::uint64_t>(entries[5].end()) - 4;
  disk->corrupt("/data/rocketmq/commitlog/00000000000000000000", body, ByteView(&wrong, 1));
  EXPECT_EQ(read("a"), (Strings{"m0", "m1", "m2", "m3", "m4", "m6", "m7", "m8"}));
}

TEST_F(RocketmqStoreTest, the_next_file_is_made_ready_and_never_in_the_way_of_one_in_use) {
  put_numbers(0, 15, "a");  // more than half a file
  ASSERT_TRUE(store->tend(clock.now()));
  EXPECT_TRUE(fs::exists(*disk, "/data/rocketmq/commitlog/00000000000000004096"));
  put_numbers(15, 60, "a");
  EXPECT_EQ(read("a").size(), 60U);
  // Made for a place that the log has taken meanwhile: it goes.
  CommitLog log(*disk, "/other", 4096);
  ASSERT_TRUE(fs::create_directories(*disk, "/other"));
  ASSERT_TRUE(log.add_file(0));
  auto next = log.prepare("/next");
  ASSERT_TRUE(next);
  ASSERT_TRUE(log.add_file(4096));
  const std::uint8_t byte = 1;
  ASSERT_TRUE(log.active().file->write(0, ByteView(&byte, 1)));
  ASSERT_TRUE(log.prepare("/next"));
  std::array<std::uint8_t, 1> read_back{};
  ASSERT_TRUE(log.active().file->read(0, read_back));
  EXPECT_EQ(read_back[0], byte);
  const auto adopted = log.adopt_next(std::move(*next));
  ASSERT_TRUE(adopted);
  EXPECT_TRUE(*adopted);  // for the place after the one that was taken
}

TEST_F(RocketmqStoreTest, keys_of_a_deleted_topic_are_not_found_in_a_new_one_of_its_name) {
  put("old", "a",
      "KEYS\x01"
      "k\x02");
  sync();
  ASSERT_TRUE(store->remove({"a", 0}));
  EXPECT_EQ(find("a", "k"), (Strings{}));
  put("new", "a",
      "KEYS\x01"
      "k\x02");
  EXPECT_EQ(find("a", "k"), (Strings{"new"}));
}

TEST_F(RocketmqStoreTest, a_removal_that_fails_to_write_does_not_pass_for_anothers_success) {
  queue("a");
  queue("b");
  sync();
  ASSERT_TRUE(queue("b")->append(message("staged", "b")));
  disk->fail_path("commitlog", fs::Fault::no_space);
  EXPECT_FALSE(store->remove({"a", 0}));
  disk->clear_faults();
  ASSERT_TRUE(queue("b")->append(message("staged", "b")));  // gets the same place
  EXPECT_FALSE(store->shared_log()->write_staged());
  EXPECT_EQ(queue("b")->offsets().end, Offset(0));
  put("good", "b");
  EXPECT_EQ(read("b"), (Strings{"good"}));
}

TEST_F(RocketmqStoreTest, a_point_whose_queue_states_do_not_read_costs_a_longer_scan_only) {
  const Strings a = put_numbers(0, 30, "a");
  sync();
  SidecarState state;
  const auto bytes = *fs::read_file(*disk, "/data/sidecar/rocketmq.sidecar", 1 << 20);
  ASSERT_GT(decode_sidecar(bytes, state), 0U);
  RecoveryPoint point = *state.logs.at("commitlog").recovery;
  point.producers = {0xff};
  store.reset();
  auto sidecar = *Sidecar::open(*disk, "/data/sidecar/rocketmq.sidecar", state);
  sidecar->recovery_point(state.logs.at("commitlog").id, point);
  sidecar.reset();
  kill();
  EXPECT_EQ(read("a"), a);
}

// A batch of an idempotent producer of one message, as the Kafka protocol's mapping stores it.
std::string from_producer(int sequence) {
  stored::ProducerPart part;
  part.id = ProducerId(7);
  part.epoch = 0;
  part.base_sequence = sequence;
  return std::string(stored::property::kafka_producer) + '\x01' + stored::to_text(part) + '\x02';
}

BatchInfo producers_batch(int sequence) {
  BatchInfo info;
  info.producer = {ProducerId(7), 0, sequence, sequence};
  return info;
}

TEST_F(RocketmqStoreTest, what_was_truncated_is_forgotten_by_producers_and_keys) {
  const auto put_one = [&](const std::string& body, int sequence) {
    Batch batch = message(body, "a", from_producer(sequence) + "KEYS\x01k\x02");
    batch.info.producer = producers_batch(sequence).producer;
    put(batch, "a");
  };
  put_one("keep", 0);
  const auto cut = store->shared_log()->end();
  put_one("one", 1);
  put_one("two", 2);
  EXPECT_EQ(find("a", "k"), (Strings{"two", "one", "keep"}));
  ASSERT_TRUE(store->shared_log()->truncate(cut));
  EXPECT_EQ(find("a", "k"), (Strings{"keep"}));
  using Verdict = ProducerState::Verdict;
  EXPECT_EQ(queue("a")->check_producer(producers_batch(1)).verdict, Verdict::accept);
  EXPECT_EQ(queue("a")->check_producer(producers_batch(0)).verdict, Verdict::duplicate);
  put_one("new", 1);  // each where one of those stood that are gone
  put_one("ner", 2);
  EXPECT_EQ(find("a", "k"), (Strings{"ner", "new", "keep"}));
  sync();
  power_cut();
  EXPECT_EQ(read("a"), (Strings{"keep", "new", "ner"}));
  EXPECT_EQ(find("a", "k"), (Strings{"ner", "new", "keep"}));
}

TEST_F(RocketmqStoreTest, a_new_topic_does_not_inherit_the_producers_of_one_of_its_name) {
  Batch batch = message("old", "a", from_producer(0));
  batch.info.producer = producers_batch(0).producer;
  put(batch, "a");
  ASSERT_TRUE(store->checkpoint());
  ASSERT_TRUE(store->remove({"a", 0}));
  queue("a");
  sync();
  kill();
  EXPECT_EQ(queue("a")->check_producer(producers_batch(0)).verdict, ProducerState::Verdict::accept);
}

TEST_F(RocketmqStoreTest, a_topic_made_behind_messages_that_a_power_cut_took_keeps_its_own) {
  put("acknowledged", "a");
  sync();
  put_numbers(0, 10, "a");
  queue("b");
  ASSERT_TRUE(queue("a")->advance_start(Offset(1)));  // syncs the sidecar, and the log not
  power_cut();
  ASSERT_NE(store->find({"b", 0}), nullptr);
  put("kept", "b");
  sync();
  power_cut();
  EXPECT_EQ(read("b"), (Strings{"kept"}));
}

TEST_F(RocketmqStoreTest, nothing_is_noted_behind_a_sync_that_failed) {
  put("one", "a");
  queue("b");
  disk->fail_path("rocketmq.sidecar", fs::Fault::eio);
  const auto dirty = store->shared_log()->dirty();
  ASSERT_TRUE(dirty);
  store->shared_log()->settled(**dirty, false);
  disk->clear_faults();
  EXPECT_EQ(store->remove({"b", 0}).error().code, Errc::unavailable);
  EXPECT_EQ(queue("a")->advance_start(Offset(1)).error().code, Errc::unavailable);
}

// The rounds of a full file that come after it are not known then, the point in the next one is.
TEST_F(RocketmqStoreTest, a_round_that_is_lost_in_the_sidecar_takes_no_records_of_a_full_file) {
  const std::string sidecar = "/data/sidecar/rocketmq.sidecar";
  Strings all;
  for (int i = 0; i < 60; i += 3) {
    const Strings more = put_numbers(i, i + 3);
    all.insert(all.end(), more.begin(), more.end());
    sync();
  }
  ASSERT_GT(store->shared_log()->end().value(), 2 * 4096);
  ASSERT_TRUE(store->checkpoint());
  const auto bytes = *fs::read_file(*disk, sidecar, 1 << 20);
  const auto whole = disk->crash_state({.mode = fs::CrashChoice::Mode::kill});
  SidecarReader reader(bytes);
  int rounds = 0;
  while (const auto record = reader.next()) {
    if (record->type != sidecar_type::round) continue;
    SCOPED_TRACE(++rounds);
    store.reset();
    disk = whole->crash_state({.mode = fs::CrashChoice::Mode::kill});
    disk->flip_bit(sidecar, record->position + 24, 0);
    open();
    EXPECT_EQ(read(), all);
    kill();
    EXPECT_EQ(read(), all);
  }
  EXPECT_GT(rounds, 20);
}

}  // namespace
}  // namespace polylog::storage::rocketmq
