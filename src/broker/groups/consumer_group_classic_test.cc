#include <gtest/gtest.h>

#include "broker/groups/classic_group.h"
#include "broker/groups/consumer_rig.h"

// Classic members of a KIP-848 group, and groups that change their protocol.
namespace polylog::broker::groups {
namespace {

class ConsumerGroupClassicTest : public testing::Test, protected ConsumerRig {
 protected:
  void SetUp() override {
    limits.assignment_interval_ms = 0;
    topics.add("a", 4);
  }
  PartitionSet of_a(std::set<std::int32_t> partitions) const {
    return {{topics.id("a"), std::move(partitions)}};
  }
  static JoinRequest classic_join(const std::string& member, std::vector<std::int32_t> owned = {}) {
    format::kafka::ConsumerSubscription subscription;
    subscription.version = 1;
    subscription.topics = {"a"};
    if (!owned.empty()) subscription.owned = {{"a", std::move(owned)}};
    JoinRequest request;
    request.group = "orders";
    request.member_id = member;
    request.caller.client_id = "old";
    request.caller.host = "/127.0.0.1";
    request.session_timeout_ms = 10'000;
    request.rebalance_timeout_ms = 30'000;
    request.protocol_type = "consumer";
    request.protocols = {{"range", format::kafka::encode(subscription)}};
    return request;
  }
  JoinResult join_classic(const JoinRequest& request) {
    JoinResult joined;
    group->join(request, [&joined](JoinResult result) { joined = std::move(result); }, event());
    return joined;
  }
  SyncResult sync(const std::string& member, std::int32_t generation) {
    SyncRequest request;
    request.group = "orders";
    request.member_id = member;
    request.generation = generation;
    request.protocol_type = "consumer";
    request.protocol = "range";
    SyncResult synced;
    group->sync(request, [&synced](SyncResult result) { synced = std::move(result); }, event());
    return synced;
  }
  GroupError beat_classic(const std::string& member, std::int32_t generation) {
    return group->heartbeat({"orders", member, std::nullopt, generation}, event());
  }
  std::vector<std::int32_t> partitions_in(const SyncResult& synced) const {
    const auto read = format::kafka::decode_assignment(synced.assignment);
    if (!read || read->partitions.empty()) return {};
    return read->partitions[0].partitions;
  }
};

TEST_F(ConsumerGroupClassicTest, a_classic_member_joins_and_gets_what_others_gave_up) {
  join("m1", {"a"});
  JoinRequest request = classic_join("");
  request.must_know_id = true;
  const JoinResult sent_away = join_classic(request);
  EXPECT_EQ(sent_away.error, GroupError::member_id_required);
  EXPECT_FALSE(sent_away.member_id.empty());
  EXPECT_EQ(group->members().size(), 1U);

  const JoinResult joined = join_classic(classic_join(sent_away.member_id));
  EXPECT_EQ(joined.error, GroupError::none);
  EXPECT_EQ(joined.generation, 2);
  EXPECT_EQ(joined.protocol_type, "consumer");
  EXPECT_EQ(joined.protocol, "range");
  EXPECT_EQ(joined.leader, "");
  EXPECT_TRUE(joined.members.empty());
  EXPECT_TRUE(partitions_in(sync(joined.member_id, 2)).empty());
  EXPECT_EQ(beat_classic(joined.member_id, 2), GroupError::none);

  beat("m1", 2, *beat("m1", 1).assignment);
  beat("m1", 1, without_epochs(group->members().at("m1").assigned));
  EXPECT_EQ(group->members().at("m1").epoch, 2);
  // What it waited for is free: it is to join again.
  EXPECT_EQ(beat_classic(joined.member_id, 2), GroupError::rebalance_in_progress);
  EXPECT_EQ(join_classic(classic_join(joined.member_id)).generation, 2);
  EXPECT_EQ(partitions_in(sync(joined.member_id, 2)).size(), 2U);
  EXPECT_EQ(group->state_name(), "Stable");
  EXPECT_EQ(snapshot_of(*loaded(log)), snapshot_of(*group));
}

TEST_F(ConsumerGroupClassicTest, a_cooperative_member_gives_up_by_joining_again) {
  join_classic(classic_join("c1"));
  EXPECT_EQ(partitions_in(sync("c1", 1)), (std::vector<std::int32_t>{0, 1, 2, 3}));
  join("m1", {"a"});
  EXPECT_EQ(beat_classic("c1", 1), GroupError::rebalance_in_progress);
  EXPECT_EQ(sync("c1", 1).error, GroupError::rebalance_in_progress);
  EXPECT_EQ(join_classic(classic_join("c1", {0, 1, 2, 3})).generation, 1);
  const auto kept = partitions_in(sync("c1", 1));
  EXPECT_EQ(kept.size(), 2U);
  EXPECT_FALSE(beat("m1", 2).assignment.has_value());
  EXPECT_EQ(join_classic(classic_join("c1", kept)).generation, 2);
  EXPECT_EQ(partitions_in(sync("c1", 2)), kept);
  EXPECT_EQ(beat("m1", 2).assignment->begin()->second.size(), 2U);
}

TEST_F(ConsumerGroupClassicTest, who_does_not_join_or_sync_in_time_is_fenced) {
  join("m1", {"a"});
  join_classic(classic_join("c1"));
  for (int i = 0; i < 4; ++i) {
    advance(9'000);
    beat_classic("c1", 2);
    beat("m1", group->members().at("m1").epoch);
  }
  EXPECT_FALSE(group->members().contains("c1"));
}

TEST_F(ConsumerGroupClassicTest, classic_requests_are_checked) {
  join("m1", {"a"});
  join_classic(classic_join("c1"));
  EXPECT_EQ(beat_classic("c1", 1), GroupError::illegal_generation);
  EXPECT_EQ(beat_classic("m1", 1), GroupError::unknown_member_id);
  EXPECT_EQ(beat_classic("c2", 1), GroupError::unknown_member_id);
  SyncRequest other;
  other.member_id = "c1";
  other.generation = 2;
  other.protocol = "sticky";
  SyncResult synced;
  group->sync(other, [&synced](SyncResult result) { synced = std::move(result); }, event());
  EXPECT_EQ(synced.error, GroupError::inconsistent_group_protocol);

  JoinRequest request = classic_join("c2");
  request.protocols[0].name = "sticky";
  EXPECT_EQ(join_classic(request).error, GroupError::inconsistent_group_protocol);
  request = classic_join("c2");
  request.protocol_type = "connect";
  EXPECT_EQ(join_classic(request).error, GroupError::inconsistent_group_protocol);
  request = classic_join("c2");
  request.protocols[0].metadata = {1};
  EXPECT_EQ(join_classic(request).error, GroupError::inconsistent_group_protocol);
  limits.classic_members = false;
  EXPECT_EQ(join_classic(classic_join("c2")).error, GroupError::inconsistent_group_protocol);
}

TEST_F(ConsumerGroupClassicTest, leaving_is_answered_member_by_member) {
  join("m1", {"a"});
  join_classic(classic_join("c1"));
  const LeaveResult left =
      group->leave({"orders", {{"c1", std::nullopt}, {"c9", std::nullopt}}}, event());
  EXPECT_EQ(left.members,
            (std::vector<GroupError>{GroupError::none, GroupError::unknown_member_id}));
  EXPECT_FALSE(group->only_classic());
  EXPECT_EQ(group->members().size(), 1U);
}

TEST_F(ConsumerGroupClassicTest, a_classic_group_goes_on_with_its_partitions) {
  ClassicLimits classic_limits;
  format::kafka::GroupMetadata metadata;
  metadata.protocol_type = "consumer";
  metadata.protocol = "range";
  metadata.generation = 5;
  metadata.leader = "c1";
  format::kafka::GroupMember& member = metadata.members.emplace_back();
  member.id = "c1";
  member.session_timeout_ms = 10'000;
  member.rebalance_timeout_ms = 30'000;
  member.subscription = classic_join("c1").protocols[0].metadata;
  member.assignment =
      format::kafka::encode(format::kafka::ConsumerAssignment{1, {{"a", {0, 1, 2, 3}}}, {}});
  const auto classic = ClassicGroup::load("orders", classic_limits, metadata, now);
  ASSERT_FALSE(ConsumerGroup::check_upgrade(*classic, limits));

  group = ConsumerGroup::from_classic(*classic, limits, nullptr, event());
  EXPECT_EQ(snapshot_of(*loaded(log)), snapshot_of(*group));
  EXPECT_TRUE(group->only_classic());
  EXPECT_EQ(group->epoch(), 5);
  EXPECT_EQ(beat_classic("c1", 5), GroupError::none);
  EXPECT_EQ(join("m1", {"a"}).member_epoch, 6);
  EXPECT_EQ(beat_classic("c1", 5), GroupError::rebalance_in_progress);

  // And back, when the one of the new protocol leaves.
  beat("m1", -1);
  ASSERT_TRUE(group->only_classic());
  const auto back = group->classic_metadata(topics, now);
  EXPECT_EQ(back.protocol_type, "consumer");
  EXPECT_EQ(back.protocol, "range");
  EXPECT_EQ(back.generation, 5);
  ASSERT_EQ(back.members.size(), 1U);
  EXPECT_EQ(back.members[0].subscription, member.subscription);
  EXPECT_EQ(back.members[0].session_timeout_ms, 10'000);
}

TEST_F(ConsumerGroupClassicTest, groups_that_cannot_go_on_are_refused) {
  ClassicLimits classic_limits;
  format::kafka::GroupMetadata metadata;
  metadata.protocol_type = "consumer";
  metadata.protocol = "range";
  format::kafka::GroupMember& member = metadata.members.emplace_back();
  member.id = "c1";
  member.session_timeout_ms = 10'000;
  member.subscription = classic_join("c1").protocols[0].metadata;
  const auto refused = [&] {
    const auto classic = ClassicGroup::load("orders", classic_limits, metadata, now);
    return ConsumerGroup::check_upgrade(*classic, limits).error;
  };
  EXPECT_EQ(refused(), GroupError::none);
  member.subscription = {0};
  EXPECT_EQ(refused(), GroupError::group_id_not_found);
  member.subscription = classic_join("c1").protocols[0].metadata;
  member.assignment = format::kafka::encode(format::kafka::ConsumerAssignment{1, {}, {7}});
  EXPECT_EQ(refused(), GroupError::group_id_not_found);
  member.assignment.clear();
  limits.upgrade = false;
  EXPECT_EQ(refused(), GroupError::group_id_not_found);
  limits.upgrade = true;
  metadata.protocol_type = "connect";
  EXPECT_EQ(refused(), GroupError::group_id_not_found);
  metadata.members.clear();
  EXPECT_EQ(refused(), GroupError::none);  // nobody is in the way
}

TEST_F(ConsumerGroupClassicTest, a_static_member_changes_its_protocol_in_place) {
  JoinRequest request = classic_join("");
  request.instance_id = "i1";
  const JoinResult joined = join_classic(request);
  sync(joined.member_id, joined.generation);
  ConsumerHeartbeat beat = join_of("m1", {"a"});
  beat.instance_id = "i1";
  const auto taken = send(beat);
  EXPECT_EQ(taken.error, GroupError::none);
  EXPECT_EQ(taken.assignment, of_a({0, 1, 2, 3}));
  EXPECT_EQ(group->members().size(), 1U);
  EXPECT_EQ(group->epoch(), 1);
  EXPECT_EQ(beat_classic(joined.member_id, 1), GroupError::unknown_member_id);
  EXPECT_EQ(snapshot_of(*loaded(log)), snapshot_of(*group));
}

}  // namespace
}  // namespace polylog::broker::groups
