#include "broker/groups/replay.h"

#include <gtest/gtest.h>

namespace polylog::broker::groups {
namespace {

namespace stored = format::kafka;
using Entry = LogPortion::Entry;

Entry offset_record(const std::string& group, std::int32_t partition,
                    std::optional<std::int64_t> offset, std::int64_t transaction = -1) {
  Entry entry;
  entry.transaction = ProducerId(transaction);
  entry.key = *stored::encode_offset_commit_key({group, {"t", partition}});
  if (offset) {
    stored::OffsetCommit commit;
    commit.offset = *offset;
    entry.value = *stored::encode_offset_commit(commit);
  }
  return entry;
}

Entry group_record(const std::string& group, std::optional<std::int32_t> generation) {
  Entry entry;
  entry.key = *stored::encode_group_metadata_key(group);
  if (generation) {
    stored::GroupMetadata metadata;
    metadata.protocol_type = "consumer";
    metadata.generation = *generation;
    entry.value = *stored::encode_group_metadata(metadata);
  }
  return entry;
}

Entry marker(std::int64_t transaction, LogPortion::Kind kind) {
  Entry entry;
  entry.kind = kind;
  entry.transaction = ProducerId(transaction);
  return entry;
}

struct Fixture : testing::Test {
  ConsumerLimits limits;
  Replay replay{limits, nullptr};
  std::vector<std::string> take(std::vector<Entry> entries) {
    LogPortion portion;
    portion.entries = std::move(entries);
    return replay.take(std::move(portion));
  }
  static std::int64_t offset_in(const Replay::Groups& groups, const std::string& group,
                                std::int32_t partition) {
    const auto its = groups.find(group);
    const CommittedOffset* const offset =
        its == groups.end() ? nullptr : its->second.offsets.find("t", partition);
    return offset == nullptr ? -1 : offset->offset;
  }
};
using ReplayTest = Fixture;

TEST_F(ReplayTest, the_last_record_of_a_key_counts_and_one_without_a_value_deletes) {
  EXPECT_TRUE(take({offset_record("g", 0, 5), offset_record("g", 0, 7), offset_record("g", 1, 1),
                    offset_record("g", 1, std::nullopt), group_record("g", 3),
                    group_record("gone", 1), group_record("gone", std::nullopt)})
                  .empty());
  const Replay::Groups groups = replay.finish();
  EXPECT_EQ(groups.size(), 1U);
  EXPECT_EQ(offset_in(groups, "g", 0), 7);
  EXPECT_EQ(offset_in(groups, "g", 1), -1);
  EXPECT_EQ(groups.at("g").classic->generation, 3);
}

TEST_F(ReplayTest, offsets_of_a_transaction_count_when_it_commits) {
  take({offset_record("g", 0, 1), offset_record("g", 0, 2, 9), offset_record("g", 1, 5, 8),
        offset_record("g", 2, 6, 7)});
  take({marker(9, LogPortion::Kind::commit), marker(8, LogPortion::Kind::abort)});
  EXPECT_EQ(replay.open_transactions(), 1U);
  const Replay::Groups groups = replay.finish();
  EXPECT_EQ(offset_in(groups, "g", 0), 2);
  EXPECT_EQ(offset_in(groups, "g", 1), -1);
  EXPECT_EQ(offset_in(groups, "g", 2), -1);
}

TEST_F(ReplayTest, a_transaction_counts_at_the_place_of_its_marker) {
  take(
      {offset_record("g", 0, 2, 9), offset_record("g", 0, 3), marker(9, LogPortion::Kind::commit)});
  EXPECT_EQ(offset_in(replay.finish(), "g", 0), 2);
}

TEST_F(ReplayTest, unknown_keys_are_passed_over_and_what_does_not_read_is_named) {
  Entry unknown;
  unknown.key = {0, 99, 1, 2, 3};
  unknown.value = Bytes{1};
  EXPECT_TRUE(take({unknown, offset_record("g", 0, 4)}).empty());
  Entry damaged = offset_record("g", 1, 4);
  damaged.value->pop_back();
  Entry cut = offset_record("g", 2, 4);
  cut.key.pop_back();
  Entry later = group_record("g", 1);
  (*later.value)[1] = 77;
  Entry nothing;
  EXPECT_EQ(take({damaged, cut, later, nothing, offset_record("g", 3, 5)}).size(), 4U);
  const Replay::Groups groups = replay.finish();
  EXPECT_EQ(offset_in(groups, "g", 0), 4);
  EXPECT_EQ(offset_in(groups, "g", 3), 5);
  EXPECT_EQ(groups.size(), 1U);
}

}  // namespace
}  // namespace polylog::broker::groups
