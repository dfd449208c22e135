#include "broker/groups/offsets.h"

#include <gtest/gtest.h>

#include "broker/groups/offsets_topic.h"
#include "format/kafka/group_records.h"

namespace polylog::broker::groups {
namespace {

constexpr std::int64_t day_ms = 86'400'000;
constexpr std::int64_t retention_ms = 7 * day_ms;

CommittedOffset at(std::int64_t offset, std::int64_t committed_ms = 0) {
  CommittedOffset committed;
  committed.offset = offset;
  committed.committed_ms = committed_ms;
  return committed;
}

bool no_topic(std::string_view) { return false; }

TEST(GroupOffsets, every_change_is_a_record) {
  GroupOffsets offsets("g");
  GroupRecords records;
  offsets.commit("t", 3, at(42), records);
  ASSERT_EQ(records.size(), 1U);
  const auto key = format::kafka::decode_offset_commit_key(records[0].key);
  EXPECT_EQ(*key, (format::kafka::OffsetCommitKey{"g", {"t", 3}}));
  EXPECT_EQ(format::kafka::decode_offset_commit(*records[0].value)->offset, 42);
  EXPECT_EQ(offsets.find("t", 3)->offset, 42);
  EXPECT_EQ(offsets.find("t", 4), nullptr);

  EXPECT_FALSE(offsets.erase("t", 4, records));
  EXPECT_TRUE(offsets.erase("t", 3, records));
  ASSERT_EQ(records.size(), 2U);
  EXPECT_FALSE(records[1].value);
  EXPECT_TRUE(offsets.empty());
}

TEST(GroupOffsets, a_topic_goes_with_all_its_partitions) {
  GroupOffsets offsets("g");
  GroupRecords records;
  for (const std::int32_t partition : {0, 1, 2}) offsets.commit("t", partition, at(1), records);
  offsets.commit("u", 0, at(1), records);
  EXPECT_EQ(offsets.size(), 4U);
  records.clear();
  EXPECT_EQ(offsets.erase_topic("t", records), 3U);
  EXPECT_EQ(records.size(), 3U);
  EXPECT_EQ(offsets.size(), 1U);
  records.clear();
  offsets.snapshot(records);
  EXPECT_EQ(records.size(), 1U);
  offsets.erase_all(records);
  EXPECT_TRUE(offsets.empty());
}

TEST(GroupOffsets, they_expire_after_the_group_became_empty_or_their_commit_when_that_was_later) {
  GroupOffsets offsets("g");
  GroupRecords records;
  offsets.commit("t", 0, at(1, 1 * day_ms), records);
  offsets.commit("t", 1, at(1, 12 * day_ms), records);
  const OffsetExpiry rule{OffsetExpiry::Rule::by_emptiness, 10 * day_ms};
  EXPECT_EQ(offsets.expire(rule, retention_ms, 17 * day_ms - 1, no_topic, records), 0U);
  EXPECT_EQ(offsets.expire(rule, retention_ms, 17 * day_ms, no_topic, records), 1U);
  EXPECT_NE(offsets.find("t", 1), nullptr);
  EXPECT_EQ(offsets.expire(rule, retention_ms, 19 * day_ms, no_topic, records), 1U);
}

TEST(GroupOffsets, those_of_topics_that_are_read_stay) {
  GroupOffsets offsets("g");
  GroupRecords records;
  offsets.commit("read", 0, at(1), records);
  offsets.commit("unread", 0, at(1), records);
  const OffsetExpiry rule{OffsetExpiry::Rule::by_commit, -1};
  const auto subscribed = [](std::string_view topic) { return topic == "read"; };
  EXPECT_EQ(offsets.expire(rule, retention_ms, 30 * day_ms, subscribed, records), 1U);
  EXPECT_NE(offsets.find("read", 0), nullptr);
  EXPECT_EQ(offsets.expire({}, retention_ms, 30 * day_ms, no_topic, records), 0U) << "never";
}

TEST(GroupOffsets, an_expiry_of_their_own_counts_alone) {
  GroupOffsets offsets("g");
  GroupRecords records;
  CommittedOffset committed = at(1, day_ms);
  committed.expires_ms = 2 * day_ms;
  offsets.commit("t", 0, committed, records);
  const OffsetExpiry rule{OffsetExpiry::Rule::by_emptiness, 10 * day_ms};
  EXPECT_EQ(offsets.expire(rule, retention_ms, 2 * day_ms - 1, no_topic, records), 0U);
  EXPECT_EQ(offsets.expire(rule, retention_ms, 2 * day_ms, no_topic, records), 1U);
}

TEST(GroupOffsets, an_endless_retention_never_ends) {
  GroupOffsets offsets("g");
  GroupRecords records;
  offsets.commit("t", 0, at(1, day_ms), records);
  const OffsetExpiry rule{OffsetExpiry::Rule::by_commit, -1};
  EXPECT_EQ(offsets.expire(rule, INT64_MAX, 30 * day_ms, no_topic, records), 0U);
}

TEST(OffsetsTopic, groups_go_where_kafka_looks_for_them) {
  EXPECT_EQ(partition_of_group("my-group", 50), 12);
  EXPECT_EQ(partition_of_group("console-consumer-1", 50), 24);
  EXPECT_EQ(partition_of_group("", 50), 0);
  EXPECT_EQ(partition_of_group("polygenelubricants", 50), 0);  // its hash is -2^31
}

}  // namespace
}  // namespace polylog::broker::groups
