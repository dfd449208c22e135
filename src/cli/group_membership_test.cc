#include "cli/group_membership.h"

#include <gtest/gtest.h>

namespace polylog::cli {
namespace {

using Shares = std::map<std::string, std::vector<TopicPartition>>;

TEST(RangeAssignor, the_first_members_get_one_more) {
  const Shares shares =
      assign_ranges({{"b", {}, {"t"}}, {"a", {}, {"t"}}, {"c", {}, {"t"}}}, {{"t", 4}});
  EXPECT_EQ(shares.at("a"), (std::vector<TopicPartition>{{"t", 0}, {"t", 1}}));
  EXPECT_EQ(shares.at("b"), (std::vector<TopicPartition>{{"t", 2}}));
  EXPECT_EQ(shares.at("c"), (std::vector<TopicPartition>{{"t", 3}}));
}

TEST(RangeAssignor, static_members_come_first_by_instance) {
  const Shares shares =
      assign_ranges({{"a", {}, {"t"}}, {"y", "2", {"t"}}, {"z", "1", {"t"}}}, {{"t", 3}});
  EXPECT_EQ(shares.at("z"), (std::vector<TopicPartition>{{"t", 0}}));
  EXPECT_EQ(shares.at("y"), (std::vector<TopicPartition>{{"t", 1}}));
  EXPECT_EQ(shares.at("a"), (std::vector<TopicPartition>{{"t", 2}}));
}

TEST(RangeAssignor, more_members_than_partitions_and_other_topics) {
  const Shares shares =
      assign_ranges({{"a", {}, {"t"}}, {"b", {}, {"t", "u"}}, {"c", {}, {}}}, {{"t", 1}, {"u", 2}});
  EXPECT_EQ(shares.at("a"), (std::vector<TopicPartition>{{"t", 0}}));
  EXPECT_EQ(shares.at("b"), (std::vector<TopicPartition>{{"u", 0}, {"u", 1}}));
  EXPECT_TRUE(shares.at("c").empty());
}

TEST(GroupMember, assignments_and_subscriptions_survive_the_wire) {
  const std::vector<TopicPartition> partitions = {{"a", 0}, {"a", 3}, {"b", 1}};
  EXPECT_EQ(decode_assignment(encode_assignment(partitions)), partitions);
  const std::vector<std::string> topics = {"x", "", "longer"};
  EXPECT_EQ(decode_subscription(encode_subscription(topics)), topics);
}

TEST(GroupMember, assignments_that_claim_more_than_they_have_are_refused) {
  std::vector<std::uint8_t> bytes = encode_assignment({{"a", 0}});
  bytes[5] = 0x7f;  // some two billion topics
  bytes[2] = 0x7f;
  EXPECT_FALSE(decode_assignment(bytes));
  for (std::size_t size = 0; size < 12; ++size) {
    EXPECT_FALSE(decode_assignment(ByteView(encode_assignment({{"a", 0}})).first(size))) << size;
  }
  EXPECT_FALSE(decode_subscription(ByteView(encode_subscription({"topic"})).first(9)));
}

}  // namespace
}  // namespace polylog::cli
