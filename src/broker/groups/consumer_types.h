#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "broker/groups/assignor.h"
#include "broker/groups/types.h"

// What members of KIP-848 groups ask and are told, free of any protocol's encoding (Kafka wire
// protocol, "KIP-848 consumer groups").
namespace polylog::broker::groups {

struct ConsumerHeartbeat {
  std::string group;
  std::string member_id;          // "": the broker names it (version 0)
  std::int32_t member_epoch = 0;  // 0 joins, -1 leaves, -2 leaves for a while
  std::optional<std::string> instance_id;
  std::optional<std::string> rack_id;
  std::int32_t rebalance_timeout_ms = -1;  // -1, and nothing below: as before
  std::optional<std::vector<std::string>> topics;
  std::optional<std::string> expression;
  std::optional<std::string> assignor;
  std::optional<PartitionSet> owned;
  bool names_itself = false;  // version 1 and later: the member's id is the client's to make
  std::string client_id;
  std::string client_host;  // Kafka's form, "/127.0.0.1"
};

struct ConsumerHeartbeatResult {
  GroupError error = GroupError::none;
  std::string message;
  std::string member_id;
  std::int32_t member_epoch = 0;
  std::int32_t heartbeat_interval_ms = 0;
  std::optional<PartitionSet> assignment;  // nothing: no change
};

struct ConsumerDescribedTopic {
  Uuid id;
  std::string name;
  std::vector<std::int32_t> partitions;
};
struct ConsumerDescribedMember {
  std::string id;
  std::optional<std::string> instance_id;
  std::optional<std::string> rack_id;
  std::int32_t epoch = 0;
  std::string client_id;
  std::string client_host;
  std::vector<std::string> topics;
  std::string expression;
  std::vector<ConsumerDescribedTopic> assignment;
  std::vector<ConsumerDescribedTopic> target;
  bool classic = false;
};
struct ConsumerDescribed {
  GroupError error = GroupError::none;
  std::string message;
  std::string state;
  std::int32_t epoch = 0;
  std::int32_t assignment_epoch = 0;
  std::string assignor;
  std::vector<ConsumerDescribedMember> members;
};

}  // namespace polylog::broker::groups
