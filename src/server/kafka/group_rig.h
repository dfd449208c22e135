#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "broker/groups/classic_group_rig.h"
#include "protocol/kafka/find_coordinator_request.h"
#include "protocol/kafka/find_coordinator_response.h"
#include "protocol/kafka/heartbeat_request.h"
#include "protocol/kafka/heartbeat_response.h"
#include "protocol/kafka/join_group_request.h"
#include "protocol/kafka/join_group_response.h"
#include "protocol/kafka/offset_commit_request.h"
#include "protocol/kafka/offset_commit_response.h"
#include "protocol/kafka/offset_fetch_request.h"
#include "protocol/kafka/offset_fetch_response.h"
#include "protocol/kafka/sync_group_request.h"
#include "protocol/kafka/sync_group_response.h"
#include "server/kafka/broker_rig.h"

// For tests: a member of a classic group over the wire, one request at a time.
namespace polylog::server::kafka {

inline constexpr std::int16_t no_error = 0;

class GroupClient {
 public:
  explicit GroupClient(BrokerRig& rig, std::string group = "g")
      : wire(rig.port()), group_(std::move(group)) {}

  void find_coordinator(std::int16_t version = 6) {
    protocol::kafka::FindCoordinatorRequest request;
    if (version >= 4) request.coordinator_keys = {group_};
    if (version < 4) request.key = group_;
    const auto response = wire.ask<protocol::kafka::FindCoordinatorResponse>(request, version);
    if (version < 4) {
      EXPECT_EQ(response.error_code, no_error);
      return;
    }
    ASSERT_EQ(response.coordinators.size(), 1U);
    EXPECT_EQ(response.coordinators[0].error_code, no_error);
    EXPECT_EQ(response.coordinators[0].host, "127.0.0.1");
  }

  void send_join(std::int16_t version) {
    protocol::kafka::JoinGroupRequest request;
    request.group_id = group_;
    request.member_id = member_id;
    request.session_timeout_ms = session_timeout_ms;
    if (version >= 1) request.rebalance_timeout_ms = 5000;
    if (version >= 5) request.group_instance_id = instance_id;
    request.protocol_type = "consumer";
    auto& protocol = request.protocols.emplace_back();
    protocol.name = "range";
    protocol.metadata = Slice::of(broker::groups::subscription({"t"}));
    wire.send(request, version);
  }
  protocol::kafka::JoinGroupResponse receive_join(std::int16_t version) {
    auto response = wire.receive<protocol::kafka::JoinGroupResponse>(version);
    if (!response.member_id.empty()) member_id = response.member_id;
    generation = response.generation_id;
    leads = response.leader == response.member_id;
    return response;
  }
  // Learns its id first where the version wants that.
  protocol::kafka::JoinGroupResponse join(std::int16_t version = 9) {
    send_join(version);
    auto response = receive_join(version);
    constexpr std::int16_t member_id_required = 79;
    if (response.error_code != member_id_required) return response;
    send_join(version);
    return receive_join(version);
  }

  void send_sync(std::int16_t version,
                 const std::vector<std::pair<std::string, std::string>>& assignments = {}) {
    protocol::kafka::SyncGroupRequest request;
    request.group_id = group_;
    request.generation_id = generation;
    request.member_id = member_id;
    if (version >= 3) request.group_instance_id = instance_id;
    for (const auto& [id, text] : assignments) {
      auto& out = request.assignments.emplace_back();
      out.member_id = id;
      out.assignment = Slice::copy_of(as_bytes(text));
    }
    wire.send(request, version);
  }
  protocol::kafka::SyncGroupResponse receive_sync(std::int16_t version) {
    return wire.receive<protocol::kafka::SyncGroupResponse>(version);
  }

  std::int16_t heartbeat(std::int16_t version = 4) {
    protocol::kafka::HeartbeatRequest request;
    request.group_id = group_;
    request.generation_id = generation;
    request.member_id = member_id;
    if (version >= 3) request.group_instance_id = instance_id;
    return wire.ask<protocol::kafka::HeartbeatResponse>(request, version).error_code;
  }

  // One partition of a topic; by id from version 10 on.
  std::int16_t commit(const std::string& topic, std::int64_t offset, std::int16_t version = 9,
                      const Uuid& id = {}, const std::string& metadata = "note") {
    protocol::kafka::OffsetCommitRequest request;
    request.group_id = group_;
    request.generation_id_or_member_epoch = generation;
    request.member_id = generation < 0 ? "" : member_id;
    auto& out = request.topics.emplace_back();
    if (version < 10) out.name = topic;
    if (version >= 10) out.topic_id = id;
    auto& partition = out.partitions.emplace_back();
    partition.committed_offset = offset;
    partition.committed_metadata = metadata;
    if (version >= 6) partition.committed_leader_epoch = 3;
    const auto response = wire.ask<protocol::kafka::OffsetCommitResponse>(request, version);
    EXPECT_EQ(response.topics.size(), 1U);
    if (response.topics.empty() || response.topics[0].partitions.empty()) return -1;
    return response.topics[0].partitions[0].error_code;
  }

  struct Fetched {
    std::int64_t offset = -1;
    std::string metadata;
    std::int16_t error = 0;
    std::int16_t group_error = 0;
  };
  Fetched fetch(const std::string& topic, std::int16_t version = 9, const Uuid& id = {}) {
    protocol::kafka::OffsetFetchRequest request;
    if (version >= 8) {
      auto& group = request.groups.emplace_back();
      group.group_id = group_;
      auto& out = group.topics->emplace_back();
      if (version < 10) out.name = topic;
      if (version >= 10) out.topic_id = id;
      out.partition_indexes = {0};
    } else {
      request.group_id = group_;
      auto& out = request.topics->emplace_back();
      out.name = topic;
      out.partition_indexes = {0};
    }
    const auto response = wire.ask<protocol::kafka::OffsetFetchResponse>(request, version);
    Fetched fetched;
    const auto take = [&](const auto& topics) {
      if (topics.size() != 1 || topics[0].partitions.size() != 1) return;
      fetched.offset = topics[0].partitions[0].committed_offset;
      fetched.metadata = topics[0].partitions[0].metadata.value_or("(null)");
      fetched.error = topics[0].partitions[0].error_code;
    };
    if (version >= 8) {
      EXPECT_EQ(response.groups.size(), 1U);
      if (response.groups.empty()) return fetched;
      fetched.group_error = response.groups[0].error_code;
      take(response.groups[0].topics);
    } else {
      fetched.group_error = response.error_code;
      take(response.topics);
    }
    return fetched;
  }
  // While the coordinator loads.
  Fetched fetch_when_loaded(const std::string& topic, std::int16_t version = 9,
                            const Uuid& id = {}) {
    Fetched fetched;
    for (int i = 0; i < 1000; ++i) {
      fetched = fetch(topic, version, id);
      constexpr std::int16_t load_in_progress = 14;
      if (fetched.group_error != load_in_progress && fetched.error != load_in_progress) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return fetched;
  }

  WireClient wire;
  std::string member_id;
  std::optional<std::string> instance_id;
  std::int32_t session_timeout_ms = 10'000;
  std::int32_t generation = -1;
  bool leads = false;

 private:
  std::string group_;
};

}  // namespace polylog::server::kafka
