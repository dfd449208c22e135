#include <gtest/gtest.h>

#include "broker/groups/offsets_topic.h"
#include "format/kafka/group_records.h"
#include "format/kafka/records.h"
#include "protocol/kafka/delete_groups_request.h"
#include "protocol/kafka/delete_groups_response.h"
#include "protocol/kafka/delete_topics_request.h"
#include "protocol/kafka/delete_topics_response.h"
#include "protocol/kafka/describe_groups_request.h"
#include "protocol/kafka/describe_groups_response.h"
#include "protocol/kafka/leave_group_request.h"
#include "protocol/kafka/leave_group_response.h"
#include "protocol/kafka/list_groups_request.h"
#include "protocol/kafka/list_groups_response.h"
#include "protocol/kafka/offset_delete_request.h"
#include "protocol/kafka/offset_delete_response.h"
#include "protocol/kafka/produce_request.h"
#include "protocol/kafka/produce_response.h"
#include "server/kafka/group_rig.h"

namespace polylog::server::kafka {
namespace {

using namespace protocol::kafka;  // messages, by their own names
using std::chrono::milliseconds;

constexpr std::int16_t unknown_topic_or_partition = 3;
constexpr std::int16_t offset_metadata_too_large = 12;
constexpr std::int16_t not_coordinator = 16;
constexpr std::int16_t invalid_topic = 17;
constexpr std::int16_t illegal_generation = 22;
constexpr std::int16_t unknown_member_id = 25;
constexpr std::int16_t rebalance_in_progress = 27;
constexpr std::int16_t non_empty_group = 68;
constexpr std::int16_t group_id_not_found = 69;
constexpr std::int16_t group_subscribed_to_topic = 86;
constexpr std::int16_t unknown_topic_id = 100;

std::map<std::string, std::string> quick() {
  return {{"group.initial.rebalance.delay.ms", "0"},
          {"group.min.session.timeout.ms", "100"},
          {"offsets.topic.num.partitions", "5"}};
}

struct Groups : testing::Test {
  BrokerRig rig{quick()};
  GroupClient client{rig};
  void SetUp() override {
    rig.create_topic("t", 2);
    client.find_coordinator();
  }
  template <typename F>
  void wait_until(F&& met) {
    for (int i = 0; i < 1000 && !met(); ++i) std::this_thread::sleep_for(milliseconds(5));
    EXPECT_TRUE(met());
  }
  // Bytes in the partition of the offsets topic that group "g" is in, from its log start on.
  OffsetRange offsets_log() {
    OffsetRange range;
    rig.on_reactor([&] {
      const auto partition = rig.broker().find(broker::groups::offsets_topic,
                                               broker::groups::partition_of_group("g", 5));
      range = partition->log().offsets();
    });
    return range;
  }
};

TEST_F(Groups, the_topic_is_made_when_the_first_group_comes) {
  rig.on_reactor([&] {
    const auto topic = rig.broker().find(broker::groups::offsets_topic);
    ASSERT_TRUE(topic);
    EXPECT_EQ(topic->partitions.size(), 5U);
    EXPECT_TRUE(topic->config.compact);
    EXPECT_EQ(topic->overrides.at("segment.bytes"), "104857600");
  });
  for (std::int16_t version = 0; version <= 6; ++version) {
    GroupClient(rig).find_coordinator(version);
  }
}

TEST_F(Groups, without_the_topic_nobody_coordinates) {
  BrokerRig fresh{quick()};
  EXPECT_EQ(GroupClient(fresh).heartbeat(), not_coordinator);
}

TEST_F(Groups, commits_are_fetched_in_every_version) {
  const Uuid id = rig.topic_id("t");
  std::int64_t offset = 0;
  for (std::int16_t commit = 2; commit <= 10; ++commit) {
    EXPECT_EQ(client.commit("t", ++offset, commit, id), no_error) << commit;
    for (std::int16_t fetch = 1; fetch <= 10; ++fetch) {
      const auto fetched = client.fetch("t", fetch, id);
      EXPECT_EQ(fetched.offset, offset) << commit << " fetched by " << fetch;
      EXPECT_EQ(fetched.metadata, "note");
      EXPECT_EQ(fetched.error, no_error);
    }
  }
  EXPECT_EQ(GroupClient(rig, "other").fetch("t").offset, -1);
  EXPECT_EQ(GroupClient(rig, "other").fetch("t").metadata, "");
}

TEST_F(Groups, all_offsets_of_several_groups_are_fetched_at_once) {
  client.commit("t", 7);
  GroupClient(rig, "h").commit("t", 8);
  OffsetFetchRequest request;
  for (const char* group : {"g", "h", "none"}) {
    auto& asked = request.groups.emplace_back();
    asked.group_id = group;
    asked.topics = std::nullopt;
  }
  const auto response = client.wire.ask<OffsetFetchResponse>(request, 10);
  ASSERT_EQ(response.groups.size(), 3U);
  EXPECT_EQ(response.groups[0].topics.at(0).partitions.at(0).committed_offset, 7);
  EXPECT_EQ(response.groups[0].topics.at(0).topic_id, rig.topic_id("t"));
  EXPECT_EQ(response.groups[1].topics.at(0).partitions.at(0).committed_offset, 8);
  EXPECT_TRUE(response.groups[2].topics.empty());
  EXPECT_EQ(response.groups[2].error_code, no_error);
}

TEST_F(Groups, commits_that_can_not_be_are_refused_one_by_one) {
  EXPECT_EQ(client.commit("none", 1), unknown_topic_or_partition);
  EXPECT_EQ(client.commit("", 1, 10, Uuid::random()), unknown_topic_id);
  EXPECT_EQ(client.fetch("", 10, Uuid::random()).error, unknown_topic_id);
  EXPECT_EQ(client.commit("t", 1, 9, {}, std::string(4097, 'x')), offset_metadata_too_large);
  EXPECT_EQ(client.commit("t", 1, 9, {}, std::string(4096, 'x')), no_error);
  GroupClient stranger(rig, "nobodys");
  stranger.generation = 3;
  stranger.member_id = "m";
  EXPECT_EQ(stranger.commit("t", 1, 8), illegal_generation);
  EXPECT_EQ(stranger.commit("t", 1, 9), group_id_not_found);
}

TEST_F(Groups, acknowledged_commits_survive_stops_and_kills) {
  const Uuid id = rig.topic_id("t");
  for (int i = 1; i <= 4; ++i) {
    EXPECT_EQ(GroupClient(rig).commit("t", 100 + i), no_error);
    rig.restart(i % 2 == 0);
    const auto fetched = GroupClient(rig).fetch_when_loaded("t", 10, id);
    EXPECT_EQ(fetched.offset, 100 + i);
    EXPECT_EQ(fetched.metadata, "note");
  }
}

// BR-22. The check runs many times within this test.
TEST(GroupsExpiry, offsets_stay_through_a_restart_and_expiry_checks) {
  auto settings = quick();
  settings["offsets.retention.check.interval.ms"] = "20";
  BrokerRig rig(settings);
  rig.create_topic("t");
  {
    GroupClient client(rig);
    client.find_coordinator();
    EXPECT_EQ(client.join().error_code, no_error);
    client.send_sync(5);
    client.receive_sync(5);
    EXPECT_EQ(client.commit("t", 5), no_error);
    LeaveGroupRequest leave;
    leave.group_id = "g";
    leave.members.emplace_back().member_id = client.member_id;
    EXPECT_EQ(client.wire.ask<LeaveGroupResponse>(leave, 5).members.at(0).error_code, no_error);
  }
  rig.restart();
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(GroupClient(rig).fetch_when_loaded("t").offset, 5);
  rig.on_reactor([&] {
    EXPECT_EQ(rig.groups().stats().offsets_expired, 0U);
    EXPECT_EQ(rig.groups().groups_in_state("Empty"), 1U);
  });
}

TEST_F(Groups, two_members_share_a_topic) {
  const auto alone = client.join();
  EXPECT_EQ(alone.error_code, no_error);
  EXPECT_EQ(alone.members.size(), 1U);
  client.send_sync(5, {{client.member_id, "all"}});
  EXPECT_EQ(as_text(client.receive_sync(5).assignment.view()), "all");

  GroupClient second(rig);
  second.send_join(9);
  EXPECT_EQ(second.receive_join(9).error_code, 79);
  second.send_join(9);
  EXPECT_TRUE(second.wire.silent_for(100)) << "parked until the first one rejoins";
  EXPECT_EQ(client.heartbeat(), rebalance_in_progress);
  const auto together = client.join();
  EXPECT_EQ(together.members.size(), 2U);
  EXPECT_EQ(together.generation_id, 2);
  EXPECT_EQ(second.receive_join(9).generation_id, 2);
  second.send_sync(5);
  EXPECT_TRUE(second.wire.silent_for(50));
  client.send_sync(5, {{client.member_id, "one"}, {second.member_id, "two"}});
  EXPECT_EQ(as_text(client.receive_sync(5).assignment.view()), "one");
  EXPECT_EQ(as_text(second.receive_sync(5).assignment.view()), "two");
  EXPECT_EQ(client.heartbeat(), no_error);
  EXPECT_EQ(second.heartbeat(), no_error);
  EXPECT_EQ(second.commit("t", 9), no_error);
  EXPECT_EQ(GroupClient(rig).commit("t", 9), unknown_member_id) << "not while members are there";
}

// BR-24: what a version does not know is left out, and both get their answers.
TEST_F(Groups, leader_and_members_of_different_versions) {
  for (std::int16_t leading = 0; leading <= 9; ++leading) {
    const std::string group = "versions" + std::to_string(leading);
    GroupClient leader(rig, group), fixed(rig, group);
    fixed.instance_id = "i1";
    leader.join(leading);
    const std::int16_t sync = std::min<std::int16_t>(leading, 5);
    leader.send_sync(sync, {{leader.member_id, "one"}});
    leader.receive_sync(sync);
    fixed.send_join(5);
    // The static member is parked when the leader comes back.
    wait_until([&] { return leader.heartbeat(0) == rebalance_in_progress; });
    const auto rejoined = leader.join(leading);
    EXPECT_EQ(rejoined.error_code, no_error) << leading;
    EXPECT_EQ(rejoined.members.size(), 2U) << leading;
    EXPECT_EQ(fixed.receive_join(5).error_code, no_error);
    fixed.send_sync(3);
    leader.send_sync(sync, {{leader.member_id, "one"}, {fixed.member_id, "two"}});
    EXPECT_EQ(as_text(leader.receive_sync(sync).assignment.view()), "one") << leading;
    EXPECT_EQ(as_text(fixed.receive_sync(3).assignment.view()), "two") << leading;

    // Killed and back within its session: it has what it had.
    GroupClient again(rig, group);
    again.instance_id = "i1";
    EXPECT_EQ(again.join(5).error_code, no_error);
    EXPECT_EQ(again.generation, 2);
    again.send_sync(3);
    EXPECT_EQ(as_text(again.receive_sync(3).assignment.view()), "two");
    EXPECT_EQ(leader.heartbeat(0), no_error) << "nobody rebalanced";
  }
}

TEST_F(Groups, a_member_whose_connection_went_while_it_was_parked_expires) {
  client.session_timeout_ms = 20'000;
  client.join();
  client.send_sync(5, {{client.member_id, "all"}});
  client.receive_sync(5);
  {
    GroupClient gone(rig);
    gone.session_timeout_ms = 300;
    gone.send_join(3);
    wait_until([&] { return client.heartbeat() == rebalance_in_progress; });
  }
  const auto members = [&] {
    std::size_t count = 0;
    rig.on_reactor([&] { count = rig.groups().members(); });
    return count;
  };
  wait_until([&] { return members() == 1; });
  EXPECT_EQ(client.join().members.size(), 1U);
}

TEST_F(Groups, members_and_generation_come_back_with_the_group) {
  client.join();
  client.send_sync(5, {{client.member_id, "all"}});
  client.receive_sync(5);
  rig.restart(false);
  GroupClient back(rig);
  back.member_id = client.member_id;
  back.generation = client.generation;
  wait_until([&] { return back.heartbeat() == no_error; });
  back.send_sync(5);
  EXPECT_EQ(as_text(back.receive_sync(5).assignment.view()), "all");
  EXPECT_EQ(back.commit("t", 3), no_error);
}

TEST_F(Groups, a_deleted_topic_takes_its_offsets_with_it) {
  client.commit("t", 5);
  DeleteTopicsRequest request;
  request.topics.emplace_back().name = "t";
  EXPECT_EQ(client.wire.ask<DeleteTopicsResponse>(request, 6).responses.at(0).error_code, 0);
  rig.create_topic("t", 2);
  EXPECT_EQ(client.fetch("t").offset, -1);
  rig.restart();
  EXPECT_EQ(GroupClient(rig).fetch_when_loaded("t").offset, -1);
}

TEST_F(Groups, are_described_and_listed) {
  client.join();
  GroupClient(rig, "alone").commit("t", 1);
  client.send_sync(5, {{client.member_id, "all"}});
  client.receive_sync(5);
  for (std::int16_t version = 0; version <= 6; ++version) {
    DescribeGroupsRequest request;
    request.groups = {"g", "none"};
    if (version >= 3) request.include_authorized_operations = true;
    const auto response = client.wire.ask<DescribeGroupsResponse>(request, version);
    ASSERT_EQ(response.groups.size(), 2U);
    EXPECT_EQ(response.groups[0].group_state, "Stable");
    EXPECT_EQ(response.groups[0].protocol_data, "range");
    ASSERT_EQ(response.groups[0].members.size(), 1U);
    EXPECT_EQ(response.groups[0].members[0].client_id, "test");
    EXPECT_EQ(response.groups[0].members[0].client_host, "/127.0.0.1");
    EXPECT_EQ(as_text(response.groups[0].members[0].member_assignment.view()), "all");
    EXPECT_EQ(response.groups[1].group_state, "Dead");
    EXPECT_EQ(response.groups[1].error_code, version >= 6 ? group_id_not_found : no_error);
  }
  for (std::int16_t version = 0; version <= 5; ++version) {
    EXPECT_EQ(client.wire.ask<ListGroupsResponse>(ListGroupsRequest(), version).groups.size(), 2U);
  }
  ListGroupsRequest stable;
  stable.states_filter = {"stable"};
  const auto listed = client.wire.ask<ListGroupsResponse>(stable, 5).groups;
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].group_id, "g");
  EXPECT_EQ(listed[0].group_state, "Stable");
  EXPECT_EQ(listed[0].group_type, "classic");
  EXPECT_EQ(listed[0].protocol_type, "consumer");
  ListGroupsRequest consumers;
  consumers.types_filter = {"consumer"};
  EXPECT_TRUE(client.wire.ask<ListGroupsResponse>(consumers, 5).groups.empty());
}

TEST_F(Groups, groups_and_offsets_are_deleted_when_nobody_uses_them) {
  client.join();
  client.send_sync(5, {{client.member_id, "all"}});
  client.receive_sync(5);
  client.commit("t", 4);
  OffsetDeleteRequest offsets;
  offsets.group_id = "g";
  for (const char* name : {"t", "none"}) {
    auto& topic = offsets.topics.emplace_back();
    topic.name = name;
    topic.partitions.emplace_back();
  }
  auto refused = client.wire.ask<OffsetDeleteResponse>(offsets, 0);
  EXPECT_EQ(refused.topics.at(0).partitions.at(0).error_code, group_subscribed_to_topic);
  EXPECT_EQ(refused.topics.at(1).partitions.at(0).error_code, unknown_topic_or_partition);
  DeleteGroupsRequest groups;
  groups.groups_names = {"g", "none"};
  auto kept = client.wire.ask<DeleteGroupsResponse>(groups, 2);
  EXPECT_EQ(kept.results.at(0).error_code, non_empty_group);
  EXPECT_EQ(kept.results.at(1).error_code, group_id_not_found);

  LeaveGroupRequest leave;
  leave.group_id = "g";
  leave.member_id = client.member_id;
  EXPECT_EQ(client.wire.ask<LeaveGroupResponse>(leave, 1).error_code, no_error);
  EXPECT_EQ(client.wire.ask<LeaveGroupResponse>(leave, 1).error_code, unknown_member_id);
  client.generation = -1;
  EXPECT_EQ(client.fetch("t").offset, 4);
  EXPECT_EQ(
      client.wire.ask<OffsetDeleteResponse>(offsets, 0).topics.at(0).partitions.at(0).error_code,
      no_error);
  EXPECT_EQ(client.fetch("t").offset, -1);
  EXPECT_EQ(client.wire.ask<DeleteGroupsResponse>(groups, 2).results.at(0).error_code, no_error);
  EXPECT_EQ(client.wire.ask<DeleteGroupsResponse>(groups, 2).results.at(0).error_code,
            group_id_not_found);
  rig.restart();
  GroupClient after(rig);
  wait_until([&] {
    const auto list = after.wire.ask<ListGroupsResponse>(ListGroupsRequest(), 5);
    return list.error_code == no_error && list.groups.empty();
  });
}

TEST_F(Groups, clients_can_not_write_to_the_topic) {
  ProduceRequest request;
  request.acks = -1;
  request.timeout_ms = 1000;
  auto& topic = request.topic_data.emplace_back();
  topic.name = broker::groups::offsets_topic;
  topic.partition_data.emplace_back().records = batch_of(std::vector<std::string>{"v"});
  const auto response = client.wire.ask<ProduceResponse>(request, 9);
  EXPECT_EQ(response.responses.at(0).partition_responses.at(0).error_code, invalid_topic);
}

// What an adopted directory may hold: transactions, unknown records, records that do not read.
TEST_F(Groups, a_log_of_kafkas_is_read_by_its_rules) {
  const std::int32_t index = broker::groups::partition_of_group("g", 5);
  const auto put = [&](format::kafka::BatchOptions options, std::int64_t offset,
                       const std::string& topic) {
    format::kafka::BatchBuilder builder(options);
    const auto key = *format::kafka::encode_offset_commit_key({"g", {topic, 0}});
    format::kafka::OffsetCommit commit;
    commit.offset = offset;
    const auto value = *format::kafka::encode_offset_commit(commit);
    Record record;
    record.timestamp = Timestamp(1);
    record.key = ByteView(key);
    record.value = ByteView(value);
    EXPECT_TRUE(builder.add(record));
    return *builder.finish();
  };
  const auto append = [&](std::vector<std::uint8_t> bytes) {
    rig.on_reactor([&] {
      Batch batch;
      batch.info = format::kafka::to_info(format::kafka::decode_header(bytes));
      batch.bytes = Slice::of(std::move(bytes));
      const auto partition = rig.broker().find(broker::groups::offsets_topic, index);
      EXPECT_TRUE(partition->append(std::move(batch)));
    });
  };
  rig.create_topic("committed");
  rig.create_topic("aborted");
  rig.create_topic("open");
  format::kafka::BatchOptions transactional;
  transactional.transactional = true;
  transactional.producer_epoch = 0;
  transactional.base_sequence = 0;
  const std::vector<std::pair<int, const char*>> transactions{
      {1, "committed"}, {2, "aborted"}, {3, "open"}};
  for (const auto& [id, topic] : transactions) {
    transactional.producer_id = ProducerId(id);
    append(put(transactional, 10 + id, topic));
  }
  for (const std::int64_t id : {1, 2}) {
    format::kafka::Marker marker;
    marker.commit = id == 1;
    marker.producer_id = ProducerId(id);
    marker.producer_epoch = 0;
    marker.coordinator_epoch = 0;
    marker.timestamp = Timestamp(1);
    append(format::kafka::build_marker(marker));
  }
  format::kafka::BatchOptions compressed;
  compressed.codec = format::kafka::Codec::zstd;
  append(put(compressed, 77, "t"));
  EXPECT_EQ(client.commit("t", 78), no_error);
  rig.expect_report("never ended");
  rig.restart();
  GroupClient after(rig);
  EXPECT_EQ(after.fetch_when_loaded("committed").offset, 11);
  EXPECT_EQ(after.fetch("aborted").offset, -1);
  EXPECT_EQ(after.fetch("open").offset, -1);
  EXPECT_EQ(after.fetch("t").offset, 78);
}

TEST_F(Groups, a_long_log_is_written_anew) {
  rig.create_topic("wide", 64);
  OffsetCommitRequest request;
  request.group_id = "g";
  auto& topic = request.topics.emplace_back();
  topic.name = "wide";
  for (std::int32_t i = 0; i < 64; ++i) {
    auto& partition = topic.partitions.emplace_back();
    partition.partition_index = i;
    partition.committed_metadata = std::string(4000, 'x');
  }
  for (std::int64_t round = 0; round < 40; ++round) {
    for (auto& partition : request.topics[0].partitions) partition.committed_offset = round;
    EXPECT_EQ(
        client.wire.ask<OffsetCommitResponse>(request, 9).topics.at(0).partitions.at(63).error_code,
        no_error);
  }
  wait_until([&] { return offsets_log().start > Offset(0); });
  const OffsetRange log = offsets_log();
  EXPECT_LT(log.end - log.start, 64 * 40);
  EXPECT_EQ(client.commit("t", 5), no_error);
  rig.restart(false);
  EXPECT_EQ(GroupClient(rig).fetch_when_loaded("wide").offset, 39);
  EXPECT_EQ(GroupClient(rig).fetch("t").offset, 5);
}

TEST_F(Groups, metrics_count_them) {
  client.join();
  client.send_sync(5, {{client.member_id, "all"}});
  client.receive_sync(5);
  client.commit("t", 4);
  std::string text;
  rig.on_reactor([&] { text = rig.metrics().text(); });
  EXPECT_NE(text.find("polylog_groups{state=\"Stable\"} 1"), std::string::npos) << text;
  EXPECT_NE(text.find("polylog_group_members 1"), std::string::npos);
  EXPECT_NE(text.find("polylog_group_commits_total 1"), std::string::npos);
  EXPECT_NE(text.find("polylog_group_rebalances_total 1"), std::string::npos);
}

}  // namespace
}  // namespace polylog::server::kafka
