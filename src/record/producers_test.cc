#include "record/producers.h"

#include <gtest/gtest.h>

#include <limits>

namespace polylog {
namespace {

using Verdict = ProducerState::Verdict;

constexpr ProducerId producer{4000};
constexpr std::int32_t sequence_max = std::numeric_limits<std::int32_t>::max();

// A partition with one producer: offsets and acknowledgement positions follow from what was
// appended before.
class Producers : public testing::Test {
 protected:
  BatchInfo batch(std::int32_t sequence, std::int32_t records, std::int16_t epoch = 0) const {
    BatchInfo info;
    info.first = next_;
    info.last = next_ + (records - 1);
    info.records = records;
    info.max_timestamp = Timestamp(1000 + next_.value());
    info.producer = {producer, epoch, sequence, sequence_plus(sequence, records - 1)};
    return info;
  }

  BatchInfo transactional(std::int32_t sequence, std::int32_t records, ProducerId id = producer) {
    BatchInfo info = batch(sequence, records);
    info.transactional = true;
    info.producer.id = id;
    return info;
  }

  BatchInfo marker(ProducerId id = producer, std::int16_t epoch = 0) const {
    BatchInfo info;
    info.first = info.last = next_;
    info.records = 1;
    info.max_timestamp = Timestamp(1000 + next_.value());
    info.producer = {id, epoch, -1, -1};
    info.transactional = info.control = true;
    return info;
  }

  ProducerState::Undo append(const BatchInfo& info) {
    next_ = info.last + 1;
    return state_.update(info, LogPosition(next_.value() * 10));
  }

  void send(std::int32_t sequence, std::int32_t records) {
    const BatchInfo info = batch(sequence, records);
    ASSERT_EQ(state_.check(info).verdict, Verdict::accept) << sequence << " x " << records;
    append(info);
  }

  std::optional<AbortedTransaction> end(const BatchInfo& info, bool commit) {
    next_ = info.last + 1;
    return state_.end_transaction(info, commit, 0);
  }

  Verdict verdict(std::int32_t sequence, std::int32_t records, std::int16_t epoch = 0) const {
    return state_.check(batch(sequence, records, epoch)).verdict;
  }

  ProducerState state_;
  Offset next_{100};
};

TEST(SequencePlus, wraps_from_the_greatest_to_zero) {
  EXPECT_EQ(sequence_plus(0, 0), 0);
  EXPECT_EQ(sequence_plus(sequence_max, 0), sequence_max);
  EXPECT_EQ(sequence_plus(sequence_max, 1), 0);
  EXPECT_EQ(sequence_plus(sequence_max - 1, 2), 0);
  EXPECT_EQ(sequence_plus(sequence_max, sequence_max), sequence_max - 1);
  EXPECT_EQ(sequence_plus(-1, 1), 0);
}

TEST_F(Producers, batches_without_a_producer_are_always_accepted_and_leave_no_trace) {
  BatchInfo info = batch(0, 1);
  info.producer = {};
  EXPECT_EQ(state_.check(info).verdict, Verdict::accept);
  append(info);
  EXPECT_TRUE(state_.entries().empty());
}

TEST_F(Producers, an_unknown_producer_may_start_anywhere) {
  EXPECT_EQ(verdict(77, 2), Verdict::accept);
}

TEST_F(Producers, a_known_producer_must_go_on_where_it_stopped) {
  send(0, 3);
  EXPECT_EQ(verdict(3, 1), Verdict::accept);
  EXPECT_EQ(verdict(4, 1), Verdict::out_of_order_sequence);
  EXPECT_EQ(verdict(2, 1), Verdict::out_of_order_sequence);
  EXPECT_EQ(verdict(1, 2), Verdict::out_of_order_sequence);
}

TEST_F(Producers, a_resent_batch_is_a_duplicate_with_its_original_place) {
  send(0, 3);
  send(3, 2);
  const auto check = state_.check(batch(0, 3));
  EXPECT_EQ(check.verdict, Verdict::duplicate);
  EXPECT_EQ(check.original, (OffsetRange{Offset(100), Offset(103)}));
  EXPECT_EQ(check.original_timestamp, Timestamp(1100));
  EXPECT_EQ(check.original_end, LogPosition(1030));
}

TEST_F(Producers, half_of_an_earlier_batch_is_not_a_duplicate) {
  send(0, 4);
  EXPECT_EQ(verdict(0, 2), Verdict::out_of_order_sequence);
}

TEST_F(Producers, five_batches_are_remembered_and_the_sixth_displaces_the_oldest) {
  for (std::int32_t i = 0; i < 5; ++i) send(i * 2, 2);
  for (std::int32_t i = 0; i < 5; ++i) EXPECT_EQ(verdict(i * 2, 2), Verdict::duplicate) << i;
  send(10, 2);
  EXPECT_EQ(verdict(0, 2), Verdict::out_of_order_sequence);
  EXPECT_EQ(verdict(2, 2), Verdict::duplicate);
  EXPECT_EQ(state_.entries().at(producer).batches.size(), ProducerState::batches_kept);
}

TEST_F(Producers, sequences_wrap_between_batches) {
  send(sequence_max - 1, 2);
  send(0, 2);
  const auto first = state_.check(batch(sequence_max - 1, 2));
  EXPECT_EQ(first.verdict, Verdict::duplicate);
  EXPECT_EQ(first.original.start, Offset(100));
  const auto second = state_.check(batch(0, 2));
  EXPECT_EQ(second.verdict, Verdict::duplicate);
  EXPECT_EQ(second.original.start, Offset(102));
}

TEST_F(Producers, sequences_wrap_inside_a_batch) {
  send(sequence_max - 1, 3);
  EXPECT_EQ(verdict(0, 1), Verdict::out_of_order_sequence);
  send(1, 1);
  const auto first = state_.check(batch(sequence_max - 1, 3));
  EXPECT_EQ(first.verdict, Verdict::duplicate);
  EXPECT_EQ(first.original, (OffsetRange{Offset(100), Offset(103)}));
  EXPECT_EQ(verdict(1, 1), Verdict::duplicate);
}

TEST_F(Producers, an_older_epoch_is_refused) {
  append(batch(0, 1, 3));
  EXPECT_EQ(verdict(1, 1, 2), Verdict::invalid_producer_epoch);
  EXPECT_EQ(verdict(0, 1, 2), Verdict::invalid_producer_epoch);
}

TEST_F(Producers, a_newer_epoch_starts_at_zero_and_forgets_the_batches_before_it) {
  append(batch(0, 1, 3));
  EXPECT_EQ(verdict(1, 1, 4), Verdict::out_of_order_sequence);
  EXPECT_EQ(verdict(0, 1, 4), Verdict::accept);
  append(batch(0, 1, 4));
  EXPECT_EQ(state_.entries().at(producer).batches.size(), 1U);
  EXPECT_EQ(state_.check(batch(0, 1, 4)).original.start, Offset(101));
}

TEST_F(Producers, a_producer_whose_epoch_is_not_known_may_start_anywhere) {
  state_.load(producer, {});
  EXPECT_EQ(verdict(50, 1, 0), Verdict::accept);
}

TEST_F(Producers, a_producer_known_from_markers_only_starts_at_zero) {
  end(marker(), true);
  EXPECT_EQ(verdict(5, 1), Verdict::out_of_order_sequence);
  EXPECT_EQ(verdict(0, 1), Verdict::accept);
}

TEST_F(Producers, the_last_batch_of_a_snapshot_still_recognises_its_duplicate) {
  ProducerState::Entry entry;
  entry.epoch = 0;
  entry.batches = {{4, 9, Offset(99), 5, Timestamp(1), LogPosition(0)}};
  state_.load(producer, entry);
  const auto check = state_.check(batch(4, 6));
  EXPECT_EQ(check.verdict, Verdict::duplicate);
  EXPECT_EQ(check.original, (OffsetRange{Offset(94), Offset(100)}));
  EXPECT_EQ(verdict(10, 1), Verdict::accept);
}

TEST_F(Producers, a_change_is_taken_back_exactly) {
  auto undo_first = append(batch(0, 1));
  for (std::int32_t i = 1; i < 5; ++i) append(batch(i, 1));
  auto undo_sixth = append(batch(5, 1));
  EXPECT_EQ(verdict(0, 1), Verdict::out_of_order_sequence);
  state_.restore(std::move(undo_sixth));
  EXPECT_EQ(verdict(0, 1), Verdict::duplicate);
  EXPECT_EQ(verdict(5, 1), Verdict::accept);
  state_.restore(std::move(undo_first));
  EXPECT_TRUE(state_.entries().empty());
  state_.restore({});
  EXPECT_TRUE(state_.entries().empty());
}

TEST_F(Producers, taking_back_the_first_batch_of_a_transaction_closes_it) {
  auto undo = append(transactional(0, 2));
  EXPECT_EQ(state_.first_open(), Offset(100));
  state_.restore(std::move(undo));
  EXPECT_EQ(state_.first_open(), std::nullopt);
}

TEST_F(Producers, an_open_transaction_refuses_batches_outside_it) {
  append(transactional(0, 2));
  EXPECT_EQ(verdict(2, 1), Verdict::invalid_transaction_state);
  EXPECT_EQ(state_.check(transactional(2, 1)).verdict, Verdict::accept);
  end(marker(), true);
  EXPECT_EQ(verdict(2, 1), Verdict::accept);
}

TEST_F(Producers, a_transaction_is_open_from_its_first_batch_to_its_marker) {
  append(transactional(0, 2));
  append(transactional(2, 2));
  EXPECT_EQ(state_.first_open(), Offset(100));
  EXPECT_EQ(end(marker(), true), std::nullopt);
  EXPECT_EQ(state_.first_open(), std::nullopt);
}

TEST_F(Producers, an_abort_names_the_range_and_the_stable_end_after_it) {
  append(transactional(0, 2));
  const auto aborted = end(marker(), false);
  EXPECT_EQ(aborted, (AbortedTransaction{producer, Offset(100), Offset(102), Offset(103)}));
}

TEST_F(Producers, an_abort_leaves_the_stable_end_at_the_earliest_transaction_still_open) {
  const ProducerId other{5000};
  append(transactional(0, 2));
  append(transactional(0, 2, other));
  const auto aborted = end(marker(), false);
  EXPECT_EQ(aborted, (AbortedTransaction{producer, Offset(100), Offset(104), Offset(102)}));
  EXPECT_EQ(state_.first_open(), Offset(102));
}

TEST_F(Producers, an_abort_without_data_here_aborts_nothing) {
  EXPECT_EQ(end(marker(), false), std::nullopt);
}

TEST_F(Producers, a_marker_of_a_newer_epoch_fences_the_old_one) {
  append(transactional(0, 1));
  end(marker(producer, 1), false);
  EXPECT_EQ(state_.check(transactional(1, 1)).verdict, Verdict::invalid_producer_epoch);
}

TEST_F(Producers, only_producers_without_an_open_transaction_expire) {
  const ProducerId other{5000};
  append(batch(0, 1));                 // timestamp 1100
  append(transactional(0, 1, other));  // timestamp 1101
  state_.expire(Timestamp(1100));
  EXPECT_EQ(state_.entries().size(), 2U);
  state_.expire(Timestamp(5000));
  EXPECT_EQ(state_.entries().count(producer), 0U);
  EXPECT_EQ(state_.entries().count(other), 1U);
}

TEST_F(Producers, replay_of_the_same_batches_gives_the_same_state) {
  for (std::int32_t i = 0; i < 8; ++i) send(i, 1);
  ProducerState rebuilt;
  for (std::int32_t i = 0; i < 8; ++i) {
    BatchInfo info = batch(i, 1);
    info.first = info.last = Offset(100 + i);
    rebuilt.update(info, LogPosition(0));
  }
  for (std::int32_t i = 0; i < 9; ++i) {
    EXPECT_EQ(rebuilt.check(batch(i, 1)).verdict, state_.check(batch(i, 1)).verdict) << i;
    EXPECT_EQ(rebuilt.check(batch(i, 1)).original, state_.check(batch(i, 1)).original) << i;
  }
}

}  // namespace
}  // namespace polylog
