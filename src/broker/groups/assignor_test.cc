#include "broker/groups/assignor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace polylog::broker::groups {
namespace {

Uuid topic(int number) {
  Uuid id;
  id.bytes[0] = 1;
  id.bytes[15] = static_cast<std::uint8_t>(number);
  return id;
}

std::string member(int number) { return "m" + std::to_string(number); }

std::size_t size_of(const PartitionSet& partitions) {
  std::size_t size = 0;
  for (const auto& [id, mine] : partitions) size += mine.size();
  return size;
}

void expect_complete(const AssignorInput& input, const TargetAssignment& target) {
  ASSERT_EQ(target.size(), input.members.size());
  std::map<Uuid, std::set<std::int32_t>> given;
  for (const auto& [id, partitions] : target) {
    const AssignorMember& owner = input.members.at(id);
    for (const auto& [name, mine] : partitions) {
      EXPECT_FALSE(mine.empty());
      EXPECT_TRUE(owner.topics.contains(name)) << id << " is not subscribed";
      for (const std::int32_t partition : mine) {
        EXPECT_GE(partition, 0);
        EXPECT_LT(partition, input.partitions.at(name));
        EXPECT_TRUE(given[name].insert(partition).second) << "given twice";
      }
    }
  }
  for (const auto& [id, owner] : input.members) {
    for (const Uuid& name : owner.topics) {
      EXPECT_EQ(given[name].size(), static_cast<std::size_t>(input.partitions.at(name)));
    }
  }
}

void expect_even(const TargetAssignment& target) {
  std::size_t least = SIZE_MAX, most = 0;
  for (const auto& [id, partitions] : target) {
    least = std::min(least, size_of(partitions));
    most = std::max(most, size_of(partitions));
  }
  EXPECT_LE(most - least, 1U);
}

std::size_t moved(const TargetAssignment& before, const TargetAssignment& after) {
  std::size_t count = 0;
  for (const auto& [id, partitions] : before) {
    for (const auto& [name, mine] : partitions) {
      for (const std::int32_t partition : mine) {
        const auto now = after.find(id);
        const bool kept = now != after.end() && now->second.contains(name) &&
                          now->second.at(name).contains(partition);
        if (!kept) ++count;
      }
    }
  }
  return count;
}

AssignorInput same_topics(int members, std::vector<std::int32_t> partitions) {
  AssignorInput input;
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    input.partitions[topic(static_cast<int>(i))] = partitions[i];
  }
  for (int i = 0; i < members; ++i) {
    AssignorMember& one = input.members[member(i)];
    for (const auto& [id, count] : input.partitions) one.topics.insert(id);
  }
  return input;
}

void keep(AssignorInput& input, const TargetAssignment& target) {
  for (auto& [id, one] : input.members) {
    const auto mine = target.find(id);
    one.current = mine == target.end() ? PartitionSet{} : mine->second;
  }
}

TEST(UniformAssignor, nobody_gets_nothing) {
  EXPECT_TRUE(assign_uniform({}).empty());
  EXPECT_TRUE(assign_range({}).empty());
}

TEST(UniformAssignor, members_without_topics_have_an_empty_entry) {
  AssignorInput input;
  input.members[member(0)];
  EXPECT_EQ(assign_uniform(input), (TargetAssignment{{member(0), {}}}));
  EXPECT_EQ(assign_range(input), (TargetAssignment{{member(0), {}}}));
}

TEST(UniformAssignor, a_newcomer_takes_its_share_and_nothing_else_moves) {
  AssignorInput input = same_topics(2, {6});
  const TargetAssignment before = assign_uniform(input);
  expect_even(before);
  keep(input, before);
  input.members[member(2)].topics = {topic(0)};
  const TargetAssignment after = assign_uniform(input);
  expect_complete(input, after);
  expect_even(after);
  EXPECT_EQ(moved(before, after), 2U);
}

TEST(UniformAssignor, the_partitions_of_a_leaver_are_all_that_moves) {
  AssignorInput input = same_topics(3, {7, 5});
  const TargetAssignment before = assign_uniform(input);
  keep(input, before);
  input.members.erase(member(1));
  const TargetAssignment after = assign_uniform(input);
  expect_complete(input, after);
  expect_even(after);
  EXPECT_EQ(moved(before, after), size_of(before.at(member(1))));
}

TEST(UniformAssignor, nothing_moves_when_nothing_changed) {
  AssignorInput input = same_topics(4, {3, 9, 1});
  const TargetAssignment before = assign_uniform(input);
  keep(input, before);
  EXPECT_EQ(assign_uniform(input), before);
}

TEST(UniformAssignor, what_does_not_exist_any_more_is_given_to_nobody) {
  AssignorInput input = same_topics(2, {2});
  input.members[member(0)].current = {{topic(0), {0, 1, 2, 3}}, {topic(9), {0}}};
  expect_complete(input, assign_uniform(input));
}

TEST(UniformAssignor, one_partition_claimed_by_two_is_given_once) {
  AssignorInput input = same_topics(2, {2});
  for (auto& [id, one] : input.members) one.current = {{topic(0), {0, 1}}};
  const TargetAssignment target = assign_uniform(input);
  expect_complete(input, target);
  expect_even(target);
}

TEST(UniformAssignor, different_subscriptions_are_evened_out_as_far_as_they_allow) {
  AssignorInput input = same_topics(3, {6});
  input.partitions[topic(1)] = 3;
  input.members[member(2)].topics = {topic(0), topic(1)};
  const TargetAssignment target = assign_uniform(input);
  expect_complete(input, target);
  expect_even(target);  // 3 each: the third has all of its own topic
}

TEST(UniformAssignor, random_groups_are_complete_even_and_sticky) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto pick = [&random](int from, int to) {
      return std::uniform_int_distribution<int>(from, to)(random);
    };
    AssignorInput input =
        same_topics(pick(1, 9), std::vector<std::int32_t>(static_cast<std::size_t>(pick(1, 5)), 0));
    for (auto& [id, count] : input.partitions) count = pick(1, 12);
    TargetAssignment before = assign_uniform(input);
    for (int round = 0; round < 6; ++round) {
      keep(input, before);
      const int joining = pick(0, 2), leaving = pick(0, 2);
      for (int i = 0; i < joining; ++i) {
        AssignorMember& one = input.members["n" + std::to_string(round * 10 + i)];
        for (const auto& [id, count] : input.partitions) one.topics.insert(id);
      }
      std::size_t lost = 0;
      for (int i = 0; i < leaving && input.members.size() > 1; ++i) {
        lost += size_of(input.members.begin()->second.current);
        input.members.erase(input.members.begin());
      }
      const TargetAssignment after = assign_uniform(input);
      expect_complete(input, after);
      expect_even(after);
      // Only what leavers had, and what is above the new share, may move.
      std::size_t above = 0, total = 0;
      for (const auto& [id, count] : input.partitions) total += static_cast<std::size_t>(count);
      std::size_t extra = total % input.members.size();
      const std::size_t share = total / input.members.size();
      for (const auto& [id, one] : input.members) {
        const std::size_t has = size_of(one.current);
        if (has > share && extra > 0) {
          --extra;
          above += has - share - 1;
        } else if (has > share) {
          above += has - share;
        }
      }
      EXPECT_EQ(moved(before, after), lost + above);
      before = after;
    }
  }
}

TEST(UniformAssignor, random_subscriptions_are_complete_and_no_single_move_is_left) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto pick = [&random](int from, int to) {
      return std::uniform_int_distribution<int>(from, to)(random);
    };
    AssignorInput input;
    const int topics = pick(1, 5);
    for (int i = 0; i < topics; ++i) input.partitions[topic(i)] = pick(1, 10);
    const int members = pick(1, 7);
    for (int i = 0; i < members; ++i) {
      AssignorMember& one = input.members[member(i)];
      for (int t = 0; t < topics; ++t) {
        if (pick(0, 1) == 1) one.topics.insert(topic(t));
      }
    }
    const TargetAssignment target = assign_uniform(input);
    expect_complete(input, target);
    for (const auto& [from, mine] : target) {
      for (const auto& [name, partitions] : mine) {
        for (const auto& [to, other] : input.members) {
          if (!other.topics.contains(name)) continue;
          EXPECT_LE(size_of(mine), size_of(target.at(to)) + 1) << from << " could give to " << to;
        }
      }
    }
    keep(input, target);
    EXPECT_EQ(assign_uniform(input), target);
  }
}

TEST(RangeAssignor, topics_with_as_many_partitions_are_cut_alike) {
  AssignorInput input = same_topics(2, {3, 3});
  const TargetAssignment target = assign_range(input);
  expect_complete(input, target);
  EXPECT_EQ(target.at(member(0)), (PartitionSet{{topic(0), {0, 1}}, {topic(1), {0, 1}}}));
  EXPECT_EQ(target.at(member(1)), (PartitionSet{{topic(0), {2}}, {topic(1), {2}}}));
}

TEST(RangeAssignor, instance_ids_keep_their_ranges_whatever_the_member_ids) {
  AssignorInput input;
  input.partitions[topic(0)] = 4;
  input.members["zz"] = {"a", {topic(0)}, {}};
  input.members["aa"] = {"b", {topic(0)}, {}};
  input.members["00"] = {std::nullopt, {topic(0)}, {}};
  const TargetAssignment target = assign_range(input);
  EXPECT_EQ(target.at("zz"), (PartitionSet{{topic(0), {0, 1}}}));
  EXPECT_EQ(target.at("aa"), (PartitionSet{{topic(0), {2}}}));
  EXPECT_EQ(target.at("00"), (PartitionSet{{topic(0), {3}}}));
}

TEST(RangeAssignor, each_topic_is_cut_among_its_own_subscribers) {
  AssignorInput input = same_topics(3, {2});
  input.partitions[topic(1)] = 4;
  input.members[member(1)].topics.insert(topic(1));
  input.members[member(2)].topics.insert(topic(1));
  const TargetAssignment target = assign_range(input);
  expect_complete(input, target);
  EXPECT_EQ(target.at(member(1)), (PartitionSet{{topic(0), {1}}, {topic(1), {0, 1}}}));
  EXPECT_EQ(target.at(member(2)), (PartitionSet{{topic(1), {2, 3}}}));
}

TEST(Assignors, are_known_by_name) {
  EXPECT_EQ(find_assignor("uniform"), &assign_uniform);
  EXPECT_EQ(find_assignor("range"), &assign_range);
  EXPECT_EQ(find_assignor("sticky"), nullptr);
}

}  // namespace
}  // namespace polylog::broker::groups
