#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "protocol/kafka/api_versions_request.h"
#include "protocol/kafka/consumer_group_describe_request.h"
#include "protocol/kafka/consumer_group_describe_response.h"
#include "protocol/kafka/consumer_group_heartbeat_request.h"
#include "protocol/kafka/consumer_group_heartbeat_response.h"
#include "protocol/kafka/describe_groups_request.h"
#include "protocol/kafka/describe_groups_response.h"
#include "protocol/kafka/find_coordinator_request.h"
#include "protocol/kafka/find_coordinator_response.h"
#include "protocol/kafka/join_group_request.h"
#include "protocol/kafka/join_group_response.h"
#include "protocol/kafka/list_groups_request.h"
#include "protocol/kafka/list_groups_response.h"
#include "protocol/kafka/offset_commit_request.h"
#include "protocol/kafka/offset_commit_response.h"
#include "protocol/kafka/offset_fetch_request.h"
#include "protocol/kafka/offset_fetch_response.h"
#include "server/kafka/broker_rig.h"
#include "server/kafka/handlers.h"

// KIP-848 groups over the wire, both versions of their requests.
namespace polylog::server::kafka {
namespace {

using namespace protocol::kafka;  // NOLINT: every message of the test

using Beat = ConsumerGroupHeartbeatRequest;
using BeatAnswer = ConsumerGroupHeartbeatResponse;

class ConsumerGroups : public testing::Test {
 protected:
  ConsumerGroups() {
    rig.create_topic("a", 2);
    FindCoordinatorRequest find;
    find.key = "orders";
    for (int i = 0; i < 100; ++i) {
      if (client.ask<FindCoordinatorResponse>(find, 1).error_code == 0) break;
    }
  }
  static Beat join_of(const std::string& member) {
    Beat request;
    request.group_id = "orders";
    request.member_id = member;
    request.rebalance_timeout_ms = 60'000;
    request.subscribed_topic_names = std::vector<std::string>{"a"};
    request.topic_partitions.emplace();
    return request;
  }
  static Beat beat_of(const std::string& member, std::int32_t epoch) {
    Beat request;
    request.group_id = "orders";
    request.member_id = member;
    request.member_epoch = epoch;
    return request;
  }
  // Asks again while the coordinator loads its groups.
  BeatAnswer beat(const Beat& request, std::int16_t version = 1) {
    BeatAnswer answer;
    for (int i = 0; i < 100; ++i) {
      answer = client.ask<BeatAnswer>(request, version);
      if (answer.error_code != to_wire(ErrorCode::coordinator_load_in_progress)) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return answer;
  }
  static std::size_t partitions_in(const BeatAnswer& answer) {
    if (!answer.assignment || answer.assignment->topic_partitions.empty()) return 0;
    return answer.assignment->topic_partitions[0].partitions.size();
  }

  BrokerRig rig{
      {{"offsets.topic.num.partitions", "1"}, {"group.consumer.assignment.interval.ms", "0"}}};
  WireClient client{rig.port()};
};

TEST_F(ConsumerGroups, two_members_share_a_topic) {
  const BeatAnswer first = beat(join_of("m1"));
  EXPECT_EQ(first.error_code, 0);
  EXPECT_EQ(first.member_id, "m1");
  EXPECT_EQ(first.member_epoch, 1);
  EXPECT_EQ(first.heartbeat_interval_ms, 5'000);
  EXPECT_EQ(partitions_in(first), 2U);
  const BeatAnswer second = beat(join_of("m2"));
  EXPECT_EQ(second.member_epoch, 2);
  EXPECT_EQ(partitions_in(second), 0U);

  const BeatAnswer told = beat(beat_of("m1", 1));
  EXPECT_EQ(partitions_in(told), 1U);
  Beat gave_up = beat_of("m1", 1);
  gave_up.topic_partitions.emplace();
  auto& kept = gave_up.topic_partitions->emplace_back();
  kept.topic_id = told.assignment->topic_partitions.at(0).topic_id;
  kept.partitions = told.assignment->topic_partitions.at(0).partitions;
  EXPECT_EQ(beat(gave_up).member_epoch, 2);
  EXPECT_EQ(partitions_in(beat(beat_of("m2", 2))), 1U);
  EXPECT_FALSE(beat(beat_of("m2", 2)).assignment.has_value());

  EXPECT_EQ(beat(beat_of("m1", -1)).error_code, 0);
  EXPECT_EQ(partitions_in(beat(beat_of("m2", 2))), 2U);
}

TEST_F(ConsumerGroups, version_0_members_get_an_id_and_errors_a_message) {
  const BeatAnswer joined = beat(join_of(""), 0);
  EXPECT_EQ(joined.error_code, 0);
  EXPECT_FALSE(joined.member_id.value_or("").empty());
  EXPECT_EQ(beat(beat_of(*joined.member_id, 1), 0).error_code, 0);

  const BeatAnswer nameless = beat(join_of(""), 1);
  EXPECT_EQ(nameless.error_code, to_wire(ErrorCode::invalid_request));
  EXPECT_FALSE(nameless.error_message.value_or("").empty());
  Beat other = join_of("m9");
  other.server_assignor = "sticky";
  EXPECT_EQ(beat(other).error_code, to_wire(ErrorCode::unsupported_assignor));
  other = join_of("m9");
  other.subscribed_topic_regex = "(";
  EXPECT_EQ(beat(other).error_code, to_wire(ErrorCode::invalid_regular_expression));
  other = beat_of("m9", 3);
  EXPECT_EQ(beat(other).error_code, to_wire(ErrorCode::unknown_member_id));
  other.group_id = "nobody's";
  EXPECT_EQ(beat(other).error_code, to_wire(ErrorCode::group_id_not_found));
}

TEST_F(ConsumerGroups, expressions_subscribe_to_topics_that_come_later) {
  Beat request = join_of("m1");
  request.subscribed_topic_names = std::vector<std::string>{};
  request.subscribed_topic_regex = "b.*";
  EXPECT_EQ(partitions_in(beat(request)), 0U);
  rig.create_topic("b1", 3);
  std::size_t got = 0;
  for (int i = 0; i < 200 && got == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::int32_t epoch = i == 0 ? 1 : 0;
    got = epoch == 1 ? partitions_in(beat(beat_of("m1", 1))) : partitions_in(beat(request));
  }
  EXPECT_EQ(got, 3U);
}

TEST_F(ConsumerGroups, commits_and_fetches_carry_the_epoch) {
  beat(join_of("m1"));
  OffsetCommitRequest commit;
  commit.group_id = "orders";
  commit.member_id = "m1";
  commit.generation_id_or_member_epoch = 1;
  auto& topic = commit.topics.emplace_back();
  topic.name = "a";
  topic.partitions.emplace_back().committed_offset = 7;
  const auto code_of = [&](std::int16_t version) {
    const auto answer = client.ask<OffsetCommitResponse>(commit, version);
    return answer.topics.at(0).partitions.at(0).error_code;
  };
  EXPECT_EQ(code_of(9), 0);
  EXPECT_EQ(code_of(8), to_wire(ErrorCode::unsupported_version));
  commit.generation_id_or_member_epoch = 2;
  EXPECT_EQ(code_of(9), to_wire(ErrorCode::stale_member_epoch));
  commit.member_id = "m2";
  EXPECT_EQ(code_of(9), to_wire(ErrorCode::unknown_member_id));

  OffsetFetchRequest fetch;
  auto& group = fetch.groups.emplace_back();
  group.group_id = "orders";
  group.member_id = "m1";
  group.member_epoch = 1;
  group.topics.emplace();
  auto& asked = group.topics->emplace_back();
  asked.name = "a";
  asked.partition_indexes = {0};
  const auto fetched = client.ask<OffsetFetchResponse>(fetch, 9);
  EXPECT_EQ(fetched.groups.at(0).error_code, 0);
  EXPECT_EQ(fetched.groups.at(0).topics.at(0).partitions.at(0).committed_offset, 7);
  fetch.groups[0].member_epoch = 5;
  EXPECT_EQ(client.ask<OffsetFetchResponse>(fetch, 9).groups.at(0).error_code,
            to_wire(ErrorCode::stale_member_epoch));
}

TEST_F(ConsumerGroups, are_listed_and_described_as_what_they_are) {
  Beat request = join_of("m1");
  request.instance_id = "i1";
  beat(request);
  ListGroupsRequest list;
  list.types_filter = {"consumer"};
  const auto listed = client.ask<ListGroupsResponse>(list, 5);
  ASSERT_EQ(listed.groups.size(), 1U);
  EXPECT_EQ(listed.groups[0].group_id, "orders");
  EXPECT_EQ(listed.groups[0].group_type, "consumer");
  EXPECT_EQ(listed.groups[0].group_state, "Stable");
  EXPECT_EQ(listed.groups[0].protocol_type, "consumer");
  list.types_filter = {"classic"};
  EXPECT_TRUE(client.ask<ListGroupsResponse>(list, 5).groups.empty());

  for (std::int16_t version = 0; version <= 1; ++version) {
    ConsumerGroupDescribeRequest describe;
    describe.group_ids = {"orders", "none"};
    describe.include_authorized_operations = true;
    const auto described = client.ask<ConsumerGroupDescribeResponse>(describe, version);
    ASSERT_EQ(described.groups.size(), 2U);
    const auto& group = described.groups[0];
    EXPECT_EQ(group.error_code, 0);
    EXPECT_EQ(group.group_state, "Stable");
    EXPECT_EQ(group.group_epoch, 1);
    EXPECT_EQ(group.assignor_name, "uniform");
    ASSERT_EQ(group.members.size(), 1U);
    EXPECT_EQ(group.members[0].instance_id, "i1");
    EXPECT_EQ(group.members[0].assignment.topic_partitions.at(0).topic_name, "a");
    EXPECT_EQ(group.members[0].target_assignment, group.members[0].assignment);
    EXPECT_EQ(group.members[0].member_type, version == 1 ? 1 : -1);
    EXPECT_GT(group.authorized_operations, 0);
    EXPECT_EQ(described.groups[1].error_code, to_wire(ErrorCode::group_id_not_found));
  }
  DescribeGroupsRequest classic;
  classic.groups = {"orders"};
  EXPECT_EQ(client.ask<DescribeGroupsResponse>(classic, 6).groups.at(0).error_code,
            to_wire(ErrorCode::group_id_not_found));
  EXPECT_EQ(client.ask<DescribeGroupsResponse>(classic, 5).groups.at(0).group_state, "Dead");
}

TEST(ConsumerGroupsPolicy, without_migration_neither_protocol_enters_the_others_group) {
  BrokerRig rig{
      {{"offsets.topic.num.partitions", "1"}, {"group.consumer.migration.policy", "disabled"}}};
  WireClient client{rig.port()};
  rig.create_topic("a", 1);
  FindCoordinatorRequest find;
  find.key = "orders";
  client.ask<FindCoordinatorResponse>(find, 1);
  Beat beat;
  beat.group_id = "orders";
  beat.member_id = "m1";
  beat.rebalance_timeout_ms = 60'000;
  beat.subscribed_topic_names = std::vector<std::string>{"a"};
  beat.topic_partitions.emplace();
  BeatAnswer answer;
  for (int i = 0; i < 100; ++i) {
    answer = client.ask<BeatAnswer>(beat, 1);
    if (answer.error_code == 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(answer.error_code, 0);
  JoinGroupRequest join;
  join.group_id = "orders";
  join.session_timeout_ms = 10'000;
  join.rebalance_timeout_ms = 10'000;
  join.protocol_type = "consumer";
  join.protocols.emplace_back().name = "range";
  EXPECT_EQ(client.ask<JoinGroupResponse>(join, 3).error_code,
            to_wire(ErrorCode::inconsistent_group_protocol));
}

TEST(ConsumerGroupsPolicy, a_broker_told_to_speak_classic_only_says_so) {
  BrokerRig rig{{{"group.coordinator.rebalance.protocols", "classic"}}};
  WireClient client{rig.port()};
  ApiVersionsRequest request;
  request.client_software_name = "t";
  request.client_software_version = "1";
  const auto versions = client.ask<ApiVersionsResponse>(request, 4);
  EXPECT_EQ(versions.api_keys.size(), apis().size() - 2);
  EXPECT_TRUE(versions.finalized_features.empty());
  Beat beat;
  beat.group_id = "orders";
  EXPECT_EQ(client.ask<BeatAnswer>(beat, 1).error_code, to_wire(ErrorCode::unsupported_version));
}

}  // namespace
}  // namespace polylog::server::kafka
