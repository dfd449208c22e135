#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "format/rocketmq/property_crc.h"
#include "storage/rocketmq/store_rig.h"

// Records that come with offsets of their own: whole chunks of another store's log, or of a
// conversion.
namespace polylog::storage::rocketmq {
namespace {

namespace stored = format::rocketmq;
using Range = std::pair<std::int64_t, std::int64_t>;

class RocketmqChunkTest : public testing::Test, protected StoreRig {
 protected:
  void SetUp() override { open(); }

  // With a checksum over the whole record, as ours have, or without.
  std::vector<std::uint8_t> placed(const std::string& body, std::int64_t offset, bool summed = true,
                                   const std::string& topic = "a") {
    std::string room;
    if (summed) stored::append_property_crc_room(room);
    std::vector<std::uint8_t> bytes = to_vector(message(body, topic, room).bytes.view());
    stored::patch_placement(bytes, {offset, store->shared_log()->end().value(), 1});
    if (summed) stored::patch_property_crc(bytes);
    return bytes;
  }
  Result<LogPosition> bring(std::vector<std::uint8_t> bytes) {
    LogChunk chunk;
    chunk.start = store->shared_log()->end();
    chunk.end = chunk.start + static_cast<std::int64_t>(bytes.size());
    chunk.bytes = Slice::of(std::move(bytes));
    return store->shared_log()->append_chunk(chunk);
  }
  Range range() {
    const OffsetRange offsets = queue()->offsets();
    return {offsets.start.value(), offsets.end.value()};
  }
  Queue& own_queue() { return dynamic_cast<Queue&>(*queue()); }
  // Another program has run here: the sidecar counts for nothing, the log tells everything.
  void forget_sidecar() {
    ASSERT_TRUE(store->close());
    store.reset();
    ASSERT_TRUE(fs::remove_tree(*disk, config.sidecar_directory));
    open();
  }
};

TEST_F(RocketmqChunkTest, a_queue_that_is_new_begins_where_its_first_record_is) {
  ASSERT_TRUE(bring(placed("x", 1000)));
  ASSERT_TRUE(bring(placed("y", 1001)));
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(range(), Range(1000, 1002)) << i;
    EXPECT_EQ(read(), (Strings{"x", "y"}));
    if (i == 0) reopen();
    if (i == 1) kill();
    if (i == 2) forget_sidecar();
  }
}

TEST_F(RocketmqChunkTest, offsets_between_two_records_stay_without_one) {
  ASSERT_TRUE(bring(placed("x", 0)));
  ASSERT_TRUE(bring(placed("y", 500)));
  put("z");
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(range(), Range(0, 502)) << i;
    EXPECT_EQ(read(), (Strings{"x", "y", "z"}));
    EXPECT_EQ(queue()->offset_for_time(Timestamp(0))->value().offset, Offset(0));
    if (i == 0) reopen();
    if (i == 1) kill();
    if (i == 2) forget_sidecar();
  }
}

TEST_F(RocketmqChunkTest, a_queue_can_be_told_where_it_begins_and_ends) {
  ASSERT_TRUE(own_queue().advance_end(Offset(25)));
  EXPECT_EQ(range(), Range(25, 25));
  ASSERT_TRUE(bring(placed("x", 30)));
  EXPECT_EQ(range(), Range(25, 31));
  ASSERT_TRUE(own_queue().advance_end(Offset(400)));
  EXPECT_EQ(own_queue().advance_end(Offset(399)).error().code, Errc::out_of_range);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(range(), Range(25, 400)) << i;
    EXPECT_EQ(read(), (Strings{"x"}));
    reopen();
  }
  put("y");
  EXPECT_EQ(range(), Range(25, 401));
  EXPECT_EQ(read(), (Strings{"x", "y"}));
}

TEST_F(RocketmqChunkTest, an_empty_queue_keeps_its_end) {
  for (const std::int64_t end : {7, 10, 20, 33}) {  // ten entries make a file
    const std::string topic = "t" + std::to_string(end);
    ASSERT_TRUE(dynamic_cast<Queue&>(*queue(topic)).advance_end(Offset(end)));
  }
  for (int i = 0; i < 3; ++i) {
    for (const std::int64_t end : {7, 10, 20, 33}) {
      const OffsetRange offsets = queue("t" + std::to_string(end))->offsets();
      EXPECT_EQ(offsets, (OffsetRange{Offset(end), Offset(end)})) << i;
    }
    reopen();
  }
  put("x", "t20");
  EXPECT_EQ(read("t20"), (Strings{"x"}));
  EXPECT_EQ(queue("t20")->offsets(), (OffsetRange{Offset(20), Offset(21)}));
}

TEST_F(RocketmqChunkTest, what_does_not_fit_is_refused_whole) {
  ASSERT_TRUE(bring(placed("x", 5)));
  const LogPosition end = store->shared_log()->end();
  EXPECT_EQ(bring(placed("y", 5)).error().code, Errc::invalid);
  EXPECT_EQ(bring(placed("y", 6 + SharedLog::gap_entries_max + 1)).error().code, Errc::too_large);
  EXPECT_EQ(bring(placed(std::string(4000, 'y'), 6)).error().code, Errc::invalid);
  std::vector<std::uint8_t> torn = placed("y", 6);
  torn.pop_back();
  EXPECT_EQ(bring(torn).error().code, Errc::corrupt);
  EXPECT_EQ(store->shared_log()->end(), end);
  EXPECT_EQ(read(), (Strings{"x"}));
}

// The body's checksum does not cover the offset: one that can't be is a flipped bit. An offset of
// the queue it was all the same, and none is given out twice.
TEST_F(RocketmqChunkTest, an_offset_is_believed_where_a_checksum_covers_it) {
  ASSERT_TRUE(bring(placed("x", 0, false)));
  ASSERT_TRUE(bring(placed("y", 5'000, false)));
  ASSERT_TRUE(store->close());
  store.reset();
  ASSERT_TRUE(fs::remove_tree(*disk, config.sidecar_directory));
  ASSERT_TRUE(fs::remove_tree(*disk, "/data/rocketmq/consumequeue"));
  open();
  EXPECT_EQ(range(), Range(0, 2));
  EXPECT_EQ(read(), (Strings{"x"}));
}

TEST_F(RocketmqChunkTest, an_offset_that_the_queues_own_entry_has_too_is_not_given_again) {
  ASSERT_TRUE(bring(placed("x", 0, false)));
  ASSERT_TRUE(bring(placed("y", 5'000, false)));
  forget_sidecar();
  EXPECT_EQ(range(), Range(0, 5'001));
  EXPECT_EQ(read(), (Strings{"x"}));
}

TEST_F(RocketmqChunkTest, the_producers_of_what_was_brought_are_known) {
  const std::string text = "__KPS\x01" "77:0:0:0:1\x02";
  std::vector<std::uint8_t> bytes = to_vector(message("x", "a", text).bytes.view());
  stored::patch_placement(bytes, {0, store->shared_log()->end().value(), 1});
  ASSERT_TRUE(bring(bytes));
  BatchInfo again;
  again.records = 1;
  again.producer = {ProducerId(77), 0, 0, 0};
  EXPECT_EQ(queue()->check_producer(again).verdict, ProducerState::Verdict::duplicate);
  reopen();
  EXPECT_EQ(queue()->check_producer(again).verdict, ProducerState::Verdict::duplicate);
}

}  // namespace
}  // namespace polylog::storage::rocketmq
