#include "broker/groups/consumer_group.h"

#include <gtest/gtest.h>

#include "broker/groups/consumer_rig.h"

namespace polylog::broker::groups {
namespace {

class ConsumerGroupTest : public testing::Test, protected ConsumerRig {
 protected:
  void SetUp() override {
    limits.assignment_interval_ms = 0;
    topics.add("a", 4);
  }
  PartitionSet of_a(std::set<std::int32_t> partitions) const {
    return {{topics.id("a"), std::move(partitions)}};
  }
  void expect_same_after_load() const {
    const auto copy = loaded(log);
    ASSERT_NE(copy, nullptr);
    EXPECT_EQ(snapshot_of(*copy), snapshot_of(*group));
    const auto from_snapshot = loaded(snapshot_of(*group));
    ASSERT_NE(from_snapshot, nullptr);
    EXPECT_EQ(snapshot_of(*from_snapshot), snapshot_of(*group));
  }
};

TEST_F(ConsumerGroupTest, the_first_member_gets_everything_at_once) {
  const auto joined = join("m1", {"a"});
  EXPECT_EQ(joined.error, GroupError::none);
  EXPECT_EQ(joined.member_id, "m1");
  EXPECT_EQ(joined.member_epoch, 1);
  EXPECT_EQ(joined.heartbeat_interval_ms, 5'000);
  EXPECT_EQ(joined.assignment, of_a({0, 1, 2, 3}));
  EXPECT_EQ(group->state_name(), "Stable");
  expect_same_after_load();
}

TEST_F(ConsumerGroupTest, a_heartbeat_without_news_has_no_assignment_and_writes_nothing) {
  join("m1", {"a"});
  beat("m1", 1);  // the topics are looked at once more
  log.clear();
  const auto again = beat("m1", 1);
  EXPECT_EQ(again.member_epoch, 1);
  EXPECT_FALSE(again.assignment.has_value());
  EXPECT_TRUE(log.empty());
}

TEST_F(ConsumerGroupTest, a_partition_is_given_on_only_after_it_was_given_up) {
  join("m1", {"a"});
  const auto second = join("m2", {"a"});
  EXPECT_EQ(second.member_epoch, 2);
  EXPECT_EQ(second.assignment, PartitionSet{});
  EXPECT_EQ(group->state_name(), "Reconciling");

  // Told to give up two, it stays at its epoch until it says that it has.
  const auto told = beat("m1", 1);
  EXPECT_EQ(told.member_epoch, 1);
  ASSERT_TRUE(told.assignment.has_value());
  const PartitionSet kept = *told.assignment;
  EXPECT_EQ(kept.begin()->second.size(), 2U);
  EXPECT_FALSE(beat("m2", 2).assignment.has_value());
  EXPECT_EQ(beat("m1", 1, of_a({0, 1, 2, 3})).member_epoch, 1);
  EXPECT_FALSE(beat("m2", 2).assignment.has_value());

  EXPECT_EQ(beat("m1", 1, kept).member_epoch, 2);
  const auto got = beat("m2", 2);
  ASSERT_TRUE(got.assignment.has_value());
  EXPECT_EQ(got.assignment->begin()->second.size(), 2U);
  EXPECT_EQ(group->state_name(), "Stable");
  expect_same_after_load();
}

TEST_F(ConsumerGroupTest, who_does_not_give_up_in_time_is_fenced) {
  auto request = join_of("m1", {"a"});
  request.rebalance_timeout_ms = 10'000;
  send(request);
  join("m2", {"a"});
  beat("m1", 1);
  advance(9'999);
  EXPECT_EQ(beat("m1", 1).error, GroupError::none);
  EXPECT_FALSE(beat("m2", 2).assignment.has_value());
  advance(1);
  EXPECT_EQ(beat("m1", 1).error, GroupError::unknown_member_id);
  EXPECT_EQ(beat("m2", 2).assignment, of_a({0, 1, 2, 3}));
}

TEST_F(ConsumerGroupTest, a_silent_member_is_removed_when_its_session_ends) {
  join("m1", {"a"});
  advance(44'999);
  EXPECT_EQ(group->members().size(), 1U);
  advance(1);
  EXPECT_TRUE(group->members().empty());
  EXPECT_EQ(group->state_name(), "Empty");
  EXPECT_EQ(group->epoch(), 2);
  EXPECT_EQ(beat("m1", 1).error, GroupError::unknown_member_id);
  expect_same_after_load();
}

TEST_F(ConsumerGroupTest, a_lost_answer_is_made_up_for) {
  join("m1", {"a"});
  join("m2", {"a"});
  const PartitionSet kept = *beat("m1", 1).assignment;
  beat("m1", 1, kept);  // answered with epoch 2, and the answer is lost
  const auto again = beat("m1", 1, kept);
  EXPECT_EQ(again.error, GroupError::none);
  EXPECT_EQ(again.member_epoch, 2);
  EXPECT_EQ(again.assignment, kept);
  // The previous epoch with more partitions than it was left with, or none named, is not.
  EXPECT_EQ(beat("m1", 1, of_a({0, 1, 2, 3})).error, GroupError::fenced_member_epoch);
  EXPECT_EQ(beat("m1", 1).error, GroupError::fenced_member_epoch);
  EXPECT_EQ(beat("m1", 3).error, GroupError::fenced_member_epoch);
}

TEST_F(ConsumerGroupTest, joining_again_keeps_member_and_epoch) {
  join("m1", {"a"});
  const auto again = join("m1", {"a"});
  EXPECT_EQ(again.member_epoch, 1);
  EXPECT_EQ(again.assignment, of_a({0, 1, 2, 3}));
  EXPECT_EQ(group->epoch(), 1);
}

TEST_F(ConsumerGroupTest, leaving_gives_everything_to_those_who_stay) {
  join("m1", {"a"});
  join("m2", {"a"});
  EXPECT_EQ(beat("m1", -1).error, GroupError::none);
  const auto rest = beat("m2", 2);
  EXPECT_EQ(rest.member_epoch, 3);
  EXPECT_EQ(rest.assignment, of_a({0, 1, 2, 3}));
  EXPECT_EQ(beat("m1", -1).error, GroupError::unknown_member_id);
  expect_same_after_load();
}

TEST_F(ConsumerGroupTest, bad_requests_are_told_what_is_wrong) {
  const auto refused = [this](auto&& change) {
    ConsumerHeartbeat request = join_of("m1", {"a"});
    change(request);
    return send(request).error;
  };
  using R = ConsumerHeartbeat;
  EXPECT_EQ(refused([](R& r) { r.group = ""; }), GroupError::invalid_request);
  EXPECT_EQ(refused([](R& r) { r.member_id = ""; }), GroupError::invalid_request);
  EXPECT_EQ(refused([](R& r) { r.instance_id = ""; }), GroupError::invalid_request);
  EXPECT_EQ(refused([](R& r) { r.rack_id = ""; }), GroupError::invalid_request);
  EXPECT_EQ(refused([](R& r) { r.rebalance_timeout_ms = -1; }), GroupError::invalid_request);
  EXPECT_EQ(refused([](R& r) { r.owned.reset(); }), GroupError::invalid_request);
  EXPECT_EQ(refused([this](R& r) { r.owned = of_a({0}); }), GroupError::invalid_request);
  EXPECT_EQ(refused([](R& r) { r.topics.reset(); }), GroupError::invalid_request);
  EXPECT_EQ(refused([](R& r) { r.member_epoch = -3; }), GroupError::invalid_request);
  EXPECT_EQ(refused([](R& r) { r.member_epoch = -2; }), GroupError::invalid_request);
  EXPECT_EQ(refused([](R& r) { r.member_id = std::string(40'000, 'x'); }),
            GroupError::invalid_request);
  EXPECT_EQ(refused([](R& r) { r.assignor = "sticky"; }), GroupError::unsupported_assignor);
  EXPECT_EQ(refused([](R& r) { r.expression = "("; }), GroupError::invalid_regular_expression);
  EXPECT_EQ(refused([](R& r) { r.member_epoch = 5; }), GroupError::unknown_member_id);
  EXPECT_TRUE(group->members().empty());
  EXPECT_TRUE(log.empty());
}

TEST_F(ConsumerGroupTest, version_0_members_are_named_by_the_broker) {
  ConsumerHeartbeat request = join_of("", {"a"});
  request.names_itself = false;
  const auto joined = send(request);
  EXPECT_EQ(joined.error, GroupError::none);
  EXPECT_EQ(joined.member_id.size(), 22U);
  EXPECT_EQ(beat(joined.member_id, 1).error, GroupError::none);
}

TEST_F(ConsumerGroupTest, a_full_group_takes_nobody_in) {
  limits.members_max = 1;
  join("m1", {"a"});
  EXPECT_EQ(join("m2", {"a"}).error, GroupError::group_max_size_reached);
  EXPECT_EQ(join("m1", {"a"}).error, GroupError::none);
}

TEST_F(ConsumerGroupTest, a_static_member_that_left_for_a_while_is_replaced_without_a_rebalance) {
  ConsumerHeartbeat request = join_of("m1", {"a"});
  request.instance_id = "i1";
  send(request);
  ConsumerHeartbeat other = join_of("m2", {"a"});
  other.instance_id = "i1";
  EXPECT_EQ(send(other).error, GroupError::unreleased_instance_id);

  ConsumerHeartbeat leaving = beat_of("m1", -2);
  leaving.instance_id = "i1";
  EXPECT_EQ(send(leaving).member_epoch, -2);
  EXPECT_EQ(group->members().at("m1").epoch, -2);
  expect_same_after_load();

  const auto back = send(other);
  EXPECT_EQ(back.error, GroupError::none);
  EXPECT_EQ(back.member_epoch, 1);
  EXPECT_EQ(back.assignment, of_a({0, 1, 2, 3}));
  EXPECT_EQ(group->epoch(), 1);
  EXPECT_EQ(group->members().size(), 1U);
  expect_same_after_load();
  ConsumerHeartbeat zombie = beat_of("m1", 1);
  zombie.instance_id = "i1";
  EXPECT_EQ(send(zombie).error, GroupError::fenced_instance_id);
  zombie.instance_id = "i2";
  EXPECT_EQ(send(zombie).error, GroupError::unknown_member_id);
}

TEST_F(ConsumerGroupTest, a_static_member_that_does_not_come_back_loses_its_partitions) {
  ConsumerHeartbeat request = join_of("m1", {"a"});
  request.instance_id = "i1";
  send(request);
  join("m2", {"a"});
  ConsumerHeartbeat leaving = beat_of("m1", -2);
  leaving.instance_id = "i1";
  send(leaving);
  advance(40'000);
  EXPECT_FALSE(beat("m2", 2).assignment.has_value());
  advance(10'000);
  EXPECT_EQ(beat("m2", 2).assignment, of_a({0, 1, 2, 3}));
}

TEST_F(ConsumerGroupTest, a_static_member_whose_join_was_not_answered_may_repeat_it) {
  ConsumerHeartbeat request = join_of("m1", {"a"});
  request.instance_id = "i1";
  send(request);
  const auto again = send(request);
  EXPECT_EQ(again.error, GroupError::none);
  EXPECT_EQ(again.assignment, of_a({0, 1, 2, 3}));
}

TEST_F(ConsumerGroupTest, a_topic_that_grows_or_appears_begins_an_epoch) {
  join("m1", {"a", "later"});
  beat("m1", 1);
  topics.grow("a", 6);
  topics_changed();
  const auto grown = beat("m1", 1);
  EXPECT_EQ(grown.member_epoch, 2);
  EXPECT_EQ(grown.assignment, of_a({0, 1, 2, 3, 4, 5}));

  topics.add("unrelated", 1);
  topics_changed();
  EXPECT_EQ(beat("m1", 2).member_epoch, 2);

  topics.add("later", 1);
  topics_changed();
  const auto more = beat("m1", 2);
  EXPECT_EQ(more.member_epoch, 3);
  EXPECT_EQ(more.assignment->size(), 2U);

  const Uuid gone = topics.id("later");
  topics.remove("later");
  topics_changed();
  const auto fewer = beat("m1", 3);
  EXPECT_EQ(fewer.member_epoch, 3);
  EXPECT_FALSE(fewer.assignment->contains(gone));
  EXPECT_EQ(beat("m1", 3, fewer.assignment).member_epoch, 4);
  expect_same_after_load();
}

TEST_F(ConsumerGroupTest, regular_expressions_follow_the_topics) {
  topics.add("b-1", 1);
  ConsumerHeartbeat request = join_of("m1", {});
  request.expression = "b-.*";
  const auto joined = send(request);
  EXPECT_EQ(joined.assignment, (PartitionSet{{topics.id("b-1"), {0}}}));
  EXPECT_TRUE(group->subscribed("b-1"));
  EXPECT_FALSE(group->subscribed("a"));

  advance(2'000);
  topics.add("b-2", 1);
  topics_changed();
  EXPECT_EQ(beat("m1", 1).assignment->size(), 2U);
  expect_same_after_load();

  // Another one makes the first go, and its record with it.
  request = beat_of("m1", 2, PartitionSet{});
  request.expression = "a";
  const auto other = send(request);
  EXPECT_EQ(other.assignment, of_a({0, 1, 2, 3}));
  EXPECT_FALSE(group->subscribed("b-1"));
  expect_same_after_load();
}

TEST_F(ConsumerGroupTest, a_changed_subscription_takes_effect_at_once) {
  limits.assignment_interval_ms = 60'000;
  topics.add("b", 1);
  join("m1", {"a"});
  ConsumerHeartbeat request = beat_of("m1", 1, of_a({0, 1, 2, 3}));
  request.topics = std::vector<std::string>{"b"};
  const auto changed = send(request);
  EXPECT_EQ(changed.assignment, PartitionSet{});  // none of the old ones, the new ones later
  EXPECT_EQ(group->state_name(), "Assigning");
  EXPECT_EQ(beat("m1", 1, PartitionSet{}).error, GroupError::none);
  advance(30'000);
  beat("m1", group->members().at("m1").epoch);
  advance(30'000);
  const auto later = beat("m1", group->members().at("m1").epoch);
  EXPECT_EQ(later.assignment, (PartitionSet{{topics.id("b"), {0}}}));
}

TEST_F(ConsumerGroupTest, targets_are_not_computed_more_often_than_asked_for) {
  limits.assignment_interval_ms = 1'000;
  join("m1", {"a"});
  const auto second = join("m2", {"a"});
  EXPECT_EQ(second.member_epoch, 1);
  EXPECT_EQ(second.assignment, PartitionSet{});
  EXPECT_EQ(group->epoch(), 2);
  EXPECT_EQ(group->assignment_epoch(), 1);
  advance(1'000);
  EXPECT_EQ(beat("m2", 1).member_epoch, 2);
  EXPECT_EQ(group->assignment_epoch(), 2);
}

TEST_F(ConsumerGroupTest, a_group_may_have_times_of_its_own) {
  group->set_timing({60'000, 10'000});
  EXPECT_EQ(join("m1", {"a"}).heartbeat_interval_ms, 10'000);
  advance(59'999);
  EXPECT_EQ(group->members().size(), 1U);
  advance(1);
  EXPECT_TRUE(group->members().empty());
}

TEST_F(ConsumerGroupTest, most_votes_choose_the_assignor) {
  EXPECT_EQ(group->consumer_describe(topics).assignor, "uniform");
  for (const char* id : {"m1", "m2", "m3"}) {
    ConsumerHeartbeat request = join_of(id, {"a"});
    request.assignor = std::string(id) == "m1" ? "uniform" : "range";
    send(request);
  }
  EXPECT_EQ(group->consumer_describe(topics).assignor, "range");
}

TEST_F(ConsumerGroupTest, commits_are_checked_against_epochs) {
  join("m1", {"a"});
  join("m2", {"a"});
  const PartitionSet kept = *beat("m1", 1).assignment;
  beat("m1", 1, kept);
  CommitRequest request;
  request.member_id = "m1";
  request.knows_epochs = true;
  request.generation = 2;
  EXPECT_EQ(group->check_commit(request, event()), GroupError::none);
  request.generation = 3;
  EXPECT_EQ(group->check_commit(request, event()), GroupError::stale_member_epoch);
  // An earlier epoch counts for what it has had since then.
  request.generation = 1;
  const std::int32_t mine = *kept.begin()->second.begin();
  EXPECT_EQ(group->check_commit(request, event()), GroupError::none);
  EXPECT_EQ(group->check_commit_partition(request, topics.id("a"), mine), GroupError::none);
  request.generation = 0;
  EXPECT_EQ(group->check_commit_partition(request, topics.id("a"), mine),
            GroupError::stale_member_epoch);
  beat("m2", 2);
  CommitRequest newer;
  newer.member_id = "m2";
  newer.knows_epochs = true;
  newer.generation = 1;
  const auto& other = group->members().at("m2").assigned.begin()->second;
  EXPECT_EQ(group->check_commit_partition(newer, topics.id("a"), other.begin()->first),
            GroupError::stale_member_epoch);
  newer.member_id = "m3";
  EXPECT_EQ(group->check_commit(newer, event()), GroupError::unknown_member_id);
  newer.member_id = "";
  newer.generation = -1;
  EXPECT_EQ(group->check_commit(newer, event()), GroupError::unknown_member_id);
}

TEST_F(ConsumerGroupTest, standalone_commits_are_for_empty_groups) {
  CommitRequest request;
  EXPECT_EQ(group->check_commit(request, event()), GroupError::none);
  EXPECT_EQ(group->check_delete(), GroupError::none);
  join("m1", {"a"});
  EXPECT_EQ(group->check_commit(request, event()), GroupError::unknown_member_id);
  EXPECT_EQ(group->check_delete(), GroupError::non_empty_group);
}

// Kafka counts from the commit, so that who read a quiet topic for long loses its place by leaving.
TEST_F(ConsumerGroupTest, offsets_count_from_when_the_last_member_left) {
  EXPECT_EQ(group->expiry().rule, OffsetExpiry::Rule::by_commit) << "nobody was ever in it";
  join("m1", {"a"});
  advance(20'000);
  EXPECT_EQ(group->expiry().rule, OffsetExpiry::Rule::by_commit);
  beat("m1", leave_epoch);
  const std::int64_t then = now.wall_ms;
  advance(1'000'000);
  const auto counts_from_then = [&](const ConsumerGroup& its) {
    EXPECT_EQ(its.expiry().rule, OffsetExpiry::Rule::by_emptiness);
    EXPECT_EQ(its.expiry().empty_since_ms, then);
  };
  counts_from_then(*group);
  counts_from_then(*loaded(log));
  counts_from_then(*loaded(snapshot_of(*group)));
}

TEST_F(ConsumerGroupTest, a_subscription_that_fits_into_no_record_is_refused) {
  limits.subscription_bytes_max = 10;
  EXPECT_EQ(join("m1", {"a", "0123456789"}).error, GroupError::invalid_request);
  EXPECT_EQ(join("m1", {"a", "012345678"}).error, GroupError::none);
}

TEST_F(ConsumerGroupTest, fetches_are_checked_against_the_epoch) {
  join("m1", {"a"});
  FetchOffsetsRequest request;
  EXPECT_EQ(group->check_fetch(request), GroupError::none);
  request.member_id = "m1";
  request.member_epoch = 1;
  EXPECT_EQ(group->check_fetch(request), GroupError::none);
  request.member_epoch = 0;
  EXPECT_EQ(group->check_fetch(request), GroupError::stale_member_epoch);
  request.member_id = "m2";
  EXPECT_EQ(group->check_fetch(request), GroupError::unknown_member_id);
}

TEST_F(ConsumerGroupTest, members_go_on_after_a_load_with_the_epochs_they_have) {
  join("m1", {"a"});
  join("m2", {"a"});
  const PartitionSet kept = *beat("m1", 1).assignment;
  group = loaded(log);
  EXPECT_EQ(group->state_name(), "Reconciling");
  EXPECT_EQ(beat("m1", 1, kept).member_epoch, 2);
  EXPECT_EQ(beat("m2", 2).assignment->begin()->second.size(), 2U);
  EXPECT_EQ(group->epoch(), 2);
  advance(45'000);
  EXPECT_TRUE(group->members().empty());
}

TEST_F(ConsumerGroupTest, a_member_in_a_state_of_a_later_broker_is_fenced_until_it_has_nothing) {
  join("m1", {"a"});
  format::kafka::CurrentAssignmentValue value = assignment_value(group->members().at("m1"));
  value.state = 17;
  const format::kafka::ConsumerGroupKey key{format::kafka::ConsumerGroupRecord::current_assignment,
                                            "orders", "m1"};
  log.push_back({format::kafka::encode_key(key), format::kafka::encode(value)});
  group = loaded(log);
  EXPECT_EQ(beat("m1", 1).error, GroupError::fenced_member_epoch);
  EXPECT_EQ(join("m1", {"a"}).assignment, of_a({0, 1, 2, 3}));
  EXPECT_EQ(group->state_name(), "Stable");
}

TEST_F(ConsumerGroupTest, the_old_record_of_partitions_is_deleted_with_the_next_epoch) {
  const format::kafka::ConsumerGroupKey key{format::kafka::ConsumerGroupRecord::partition_metadata,
                                            "orders", ""};
  log.push_back({format::kafka::encode_key(key), Bytes{0, 0, 1, 0}});
  group = loaded(log);
  log.clear();
  join("m1", {"a"});
  const auto deleted = std::find_if(log.begin(), log.end(), [&key](const GroupRecord& record) {
    return record.key == format::kafka::encode_key(key);
  });
  ASSERT_NE(deleted, log.end());
  EXPECT_FALSE(deleted->value.has_value());
}

TEST_F(ConsumerGroupTest, tombstones_leave_nothing) {
  join("m1", {"a"});
  ConsumerHeartbeat request = join_of("m2", {});
  request.expression = "a";
  send(request);
  group->tombstones(log);
  std::map<Bytes, bool> there;
  for (const GroupRecord& record : log) there[record.key] = record.value.has_value();
  for (const auto& [key, value] : there) EXPECT_FALSE(value);
}

TEST_F(ConsumerGroupTest, describes_itself) {
  ConsumerHeartbeat request = join_of("m1", {"a"});
  request.instance_id = "i1";
  request.rack_id = "r1";
  send(request);
  join("m2", {"a"});
  beat("m1", 1);
  const ConsumerDescribed described = group->consumer_describe(topics);
  EXPECT_EQ(described.state, "Reconciling");
  EXPECT_EQ(described.epoch, 2);
  EXPECT_EQ(described.assignment_epoch, 2);
  ASSERT_EQ(described.members.size(), 2U);
  const ConsumerDescribedMember& one = described.members[0];
  EXPECT_EQ(one.id, "m1");
  EXPECT_EQ(one.instance_id, "i1");
  EXPECT_EQ(one.rack_id, "r1");
  EXPECT_EQ(one.epoch, 1);
  EXPECT_EQ(one.topics, std::vector<std::string>{"a"});
  EXPECT_FALSE(one.classic);
  // What it is giving up is still its own.
  ASSERT_EQ(one.assignment.size(), 1U);
  EXPECT_EQ(one.assignment[0].name, "a");
  EXPECT_EQ(one.assignment[0].partitions.size(), 4U);
  ASSERT_EQ(one.target.size(), 1U);
  EXPECT_EQ(one.target[0].partitions.size(), 2U);
  EXPECT_EQ(group->describe().error, GroupError::group_id_not_found);
}

}  // namespace
}  // namespace polylog::broker::groups
