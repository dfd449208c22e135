#include "storage/rocketmq/queue_states.h"

#include <gtest/gtest.h>

namespace polylog::storage::rocketmq {
namespace {

ProducerState one_producer() {
  ProducerState::Entry entry;
  entry.epoch = 3;
  entry.transaction_first = Offset(40);
  entry.last_timestamp = Timestamp(1'700'000'000'000);
  entry.batches.push_back({.first_sequence = 5,
                           .last_sequence = 7,
                           .last = Offset(42),
                           .offset_delta = 2,
                           .max_timestamp = Timestamp(1'700'000'000'000)});
  ProducerState producers;
  producers.load(ProducerId(9), entry);
  return producers;
}

std::vector<std::uint8_t> two_queues() {
  ByteWriter writer;
  encode_queue_state(writer, {"orders", 0}, 43, one_producer());
  encode_queue_state(writer, {"", 7}, std::int64_t{1} << 40, ProducerState());
  return writer.take_bytes();
}

TEST(QueueStates, come_back_as_they_were_written) {
  const auto states = decode_queue_states(two_queues());
  ASSERT_TRUE(states);
  ASSERT_EQ(states->size(), 2U);
  EXPECT_EQ(states->at(0).id, (TopicPartition{"orders", 0}));
  EXPECT_EQ(states->at(0).end, 43);
  const auto& producers = states->at(0).producers.entries();
  ASSERT_EQ(producers.size(), 1U);
  const ProducerState::Entry& entry = producers.at(ProducerId(9));
  EXPECT_EQ(entry.epoch, 3);
  EXPECT_EQ(entry.transaction_first, Offset(40));
  ASSERT_EQ(entry.batches.size(), 1U);
  EXPECT_EQ(entry.batches[0].last_sequence, 7);
  EXPECT_EQ(states->at(1).id, (TopicPartition{"", 7}));
  EXPECT_EQ(states->at(1).end, std::int64_t{1} << 40);
  EXPECT_TRUE(states->at(1).producers.entries().empty());
}

TEST(QueueStates, none_are_an_empty_list) {
  const auto states = decode_queue_states({});
  ASSERT_TRUE(states);
  EXPECT_TRUE(states->empty());
}

TEST(QueueStates, cut_anywhere_but_between_two_do_not_read) {
  const std::vector<std::uint8_t> whole = two_queues();
  ByteWriter first;
  encode_queue_state(first, {"orders", 0}, 43, one_producer());
  for (std::size_t size = 1; size < whole.size(); ++size) {
    const auto states = decode_queue_states(ByteView(whole).first(size));
    EXPECT_EQ(states.has_value(), size == first.own_bytes().size()) << size;
    if (!states) {
      EXPECT_EQ(states.error().code, Errc::corrupt) << size;
    }
  }
}

TEST(QueueStates, lengths_beyond_the_end_do_not_read) {
  const std::vector<std::uint8_t> whole = two_queues();
  constexpr std::size_t producers_bytes_at = 2 + 6 + 4 + 8, producers_count_at = 24;
  for (const std::size_t at : {std::size_t{0}, producers_bytes_at, producers_count_at}) {
    std::vector<std::uint8_t> bytes = whole;
    bytes[at] = 0xff;
    const auto states = decode_queue_states(bytes);
    ASSERT_FALSE(states) << at;
    EXPECT_EQ(states.error().code, Errc::corrupt);
  }
}

TEST(QueueStates, more_batches_than_a_producer_can_have_do_not_read) {
  std::vector<std::uint8_t> bytes = two_queues();
  constexpr std::size_t batches_at = 24 + 4 + 8 + 2 + 4 + 8 + 8;
  ASSERT_EQ(bytes[batches_at], 1);
  bytes[batches_at] = ProducerState::batches_kept + 1;
  EXPECT_FALSE(decode_queue_states(bytes));
}

}  // namespace
}  // namespace polylog::storage::rocketmq
