#include "record/epochs.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>

namespace polylog {
namespace {

using Pairs = std::vector<std::pair<std::int32_t, std::int64_t>>;

EpochList list_of(const Pairs& pairs) {
  std::vector<EpochList::Entry> entries;
  for (const auto& [epoch, start] : pairs) {
    entries.push_back({LeaderEpoch(epoch), LogPosition(start)});
  }
  return EpochList(std::move(entries));
}

Pairs pairs_of(const EpochList& list) {
  Pairs pairs;
  for (const EpochList::Entry& entry : list.entries()) {
    pairs.emplace_back(entry.epoch.value(), entry.start.value());
  }
  return pairs;
}

EpochEnd end_of(const EpochList& list, std::int32_t epoch, std::int64_t log_end) {
  return list.end_of(LeaderEpoch(epoch), LogPosition(log_end));
}

EpochEnd answer(std::int32_t epoch, std::int64_t end) {
  return {LeaderEpoch(epoch), LogPosition(end)};
}

TEST(EpochList, has_no_latest_epoch_when_empty) {
  EXPECT_EQ(EpochList().latest(), no_epoch);
  EXPECT_EQ(list_of({{3, 0}, {5, 10}}).latest(), LeaderEpoch(5));
}

TEST(EpochList, assigning_the_same_epoch_further_on_changes_nothing) {
  EpochList list = list_of({{1, 0}, {2, 10}});
  EXPECT_FALSE(list.assign(LeaderEpoch(2), LogPosition(10)));
  EXPECT_FALSE(list.assign(LeaderEpoch(2), LogPosition(99)));
  EXPECT_EQ(pairs_of(list), (Pairs{{1, 0}, {2, 10}}));
}

TEST(EpochList, assigning_a_later_epoch_appends) {
  EpochList list;
  EXPECT_TRUE(list.assign(LeaderEpoch(0), LogPosition(0)));
  EXPECT_TRUE(list.assign(LeaderEpoch(4), LogPosition(20)));
  EXPECT_EQ(pairs_of(list), (Pairs{{0, 0}, {4, 20}}));
}

TEST(EpochList, an_epoch_that_wrote_nothing_is_replaced_by_the_next) {
  EpochList list = list_of({{1, 0}, {2, 10}});
  EXPECT_TRUE(list.assign(LeaderEpoch(3), LogPosition(10)));
  EXPECT_EQ(pairs_of(list), (Pairs{{1, 0}, {3, 10}}));
}

TEST(EpochList, assigning_an_earlier_epoch_or_position_removes_what_contradicts_it) {
  EpochList list = list_of({{1, 0}, {2, 10}, {5, 30}});
  EXPECT_TRUE(list.assign(LeaderEpoch(2), LogPosition(5)));
  EXPECT_EQ(pairs_of(list), (Pairs{{1, 0}, {2, 5}}));
  EXPECT_TRUE(list.assign(LeaderEpoch(9), LogPosition(0)));
  EXPECT_EQ(pairs_of(list), (Pairs{{9, 0}}));
}

TEST(EpochList, truncating_the_end_drops_epochs_that_start_there_or_later) {
  EpochList list = list_of({{1, 0}, {2, 10}, {3, 20}});
  EXPECT_FALSE(list.truncate_end(LogPosition(21)));
  EXPECT_TRUE(list.truncate_end(LogPosition(20)));
  EXPECT_EQ(pairs_of(list), (Pairs{{1, 0}, {2, 10}}));
  EXPECT_TRUE(list.truncate_end(LogPosition(0)));
  EXPECT_EQ(pairs_of(list), Pairs{});
}

TEST(EpochList, truncating_the_start_keeps_the_epoch_of_the_first_record_left) {
  EpochList list = list_of({{1, 0}, {2, 10}, {3, 20}});
  EXPECT_TRUE(list.truncate_start(LogPosition(15)));
  EXPECT_EQ(pairs_of(list), (Pairs{{2, 15}, {3, 20}}));
  EXPECT_FALSE(list.truncate_start(LogPosition(15)));
  EXPECT_TRUE(list.truncate_start(LogPosition(20)));
  EXPECT_EQ(pairs_of(list), (Pairs{{3, 20}}));
  EXPECT_TRUE(list.truncate_start(LogPosition(1000)));
  EXPECT_EQ(pairs_of(list), (Pairs{{3, 1000}}));
}

TEST(EpochList, truncating_the_start_before_the_first_entry_changes_nothing) {
  EpochList list = list_of({{1, 10}});
  EXPECT_FALSE(list.truncate_start(LogPosition(5)));
  EXPECT_EQ(pairs_of(list), (Pairs{{1, 10}}));
  EpochList empty;
  EXPECT_FALSE(empty.truncate_start(LogPosition(5)));
}

// Kafka log format, leader-epoch cache: endOffsetFor, one expectation per rule.
TEST(EpochList, end_of_an_unknown_epoch_is_undefined) {
  const EpochList list = list_of({{2, 10}, {5, 30}});
  EXPECT_EQ(end_of(list, -1, 50), EpochEnd{});
  EXPECT_EQ(end_of(list, 6, 50), EpochEnd{});
  EXPECT_EQ(end_of(EpochList(), 0, 50), EpochEnd{});
}

TEST(EpochList, end_of_the_latest_epoch_is_the_log_end) {
  EXPECT_EQ(end_of(list_of({{2, 10}, {5, 30}}), 5, 50), answer(5, 50));
}

TEST(EpochList, end_of_an_earlier_epoch_is_where_the_next_one_starts) {
  const EpochList list = list_of({{2, 10}, {5, 30}, {9, 40}});
  EXPECT_EQ(end_of(list, 2, 50), answer(2, 30));
  EXPECT_EQ(end_of(list, 5, 50), answer(5, 40));
}

TEST(EpochList, end_of_an_epoch_in_a_gap_answers_for_the_one_before_it) {
  EXPECT_EQ(end_of(list_of({{2, 10}, {5, 30}}), 4, 50), answer(2, 30));
}

TEST(EpochList, end_of_an_epoch_before_the_first_is_the_start_of_the_first) {
  EXPECT_EQ(end_of(list_of({{2, 10}, {5, 30}}), 0, 50), answer(0, 10));
}

TEST(EpochList, a_position_belongs_to_the_last_epoch_that_started_at_or_before_it) {
  const EpochList list = list_of({{2, 10}, {5, 30}});
  EXPECT_EQ(list.at(LogPosition(9)), no_epoch);
  EXPECT_EQ(list.at(LogPosition(10)), LeaderEpoch(2));
  EXPECT_EQ(list.at(LogPosition(29)), LeaderEpoch(2));
  EXPECT_EQ(list.at(LogPosition(30)), LeaderEpoch(5));
  EXPECT_EQ(EpochList().at(LogPosition(0)), no_epoch);
}

TEST(EpochList, stays_strictly_rising_whatever_is_done_to_it) {
  std::mt19937 random(11);
  EpochList list;
  for (int i = 0; i < 20'000; ++i) {
    const auto position = LogPosition(static_cast<std::int64_t>(random() % 50));
    switch (random() % 6) {
      case 0: list.truncate_end(position); break;
      case 1: list.truncate_start(position); break;
      default: list.assign(LeaderEpoch(static_cast<std::int32_t>(random() % 20)), position);
    }
    const EpochList copy(list.entries());  // the constructor asserts the order
    ASSERT_EQ(copy.latest(), list.latest());
  }
}

TEST(EpochListDeathTest, entries_out_of_order_are_our_own_mistake) {
  EXPECT_DEATH(list_of({{2, 0}, {1, 10}}), "assertion failed");
  EXPECT_DEATH(list_of({{1, 10}, {2, 10}}), "assertion failed");
}

}  // namespace
}  // namespace polylog
