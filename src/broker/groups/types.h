#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "broker/groups/error.h"

// What clients ask of groups and what they are told, free of any protocol's encoding (Kafka wire
// protocol, "Classic consumer groups"; the same requests reach KIP-848 groups from classic
// members).
namespace polylog::broker::groups {

using Bytes = std::vector<std::uint8_t>;

// Sessions and timeouts count in steady time, which never jumps. What is written down for a later
// run (when a group became empty, when an offset was committed) is wall time, ms since 1970.
struct Now {
  std::int64_t steady_ms = 0;
  std::int64_t wall_ms = 0;
};

// The caller of a request. `connected` (may be empty: yes) tells whether anybody is left to hear
// the answer: a member whose request is parked expires when nobody is.
struct Caller {
  std::string client_id;
  std::string host;  // Kafka's form, "/127.0.0.1"
  std::function<bool()> connected;
  bool gone() const { return connected && !connected(); }
};

struct Protocol {
  std::string name;
  Bytes metadata;
  bool operator==(const Protocol&) const = default;
};

struct JoinRequest {
  std::string group;
  std::string member_id;  // "": not a member yet
  std::optional<std::string> instance_id;
  Caller caller;
  std::int32_t session_timeout_ms = 0;
  std::int32_t rebalance_timeout_ms = 0;
  std::string protocol_type;
  std::vector<Protocol> protocols;   // by preference
  bool must_know_id = false;         // JoinGroup v4+: a new dynamic member is sent away with an id
  bool can_skip_assignment = false;  // JoinGroup v9+: knows skip_assignment
};

struct JoinedMember {
  std::string id;
  std::optional<std::string> instance_id;
  Bytes metadata;
};
struct JoinResult {
  GroupError error = GroupError::none;
  std::int32_t generation = -1;
  std::optional<std::string> protocol_type;
  std::optional<std::string> protocol;
  std::string leader;
  bool skip_assignment = false;
  std::string member_id;
  std::vector<JoinedMember> members;  // for the leader only
};
using JoinDone = std::function<void(JoinResult)>;

struct SyncRequest {
  std::string group;
  std::string member_id;
  std::optional<std::string> instance_id;
  std::int32_t generation = -1;
  std::optional<std::string> protocol_type;
  std::optional<std::string> protocol;
  std::vector<std::pair<std::string, Bytes>> assignments;  // by member id; the leader's
  Caller caller;
};
struct SyncResult {
  GroupError error = GroupError::none;
  std::optional<std::string> protocol_type;
  std::optional<std::string> protocol;
  Bytes assignment;
};
using SyncDone = std::function<void(SyncResult)>;

struct HeartbeatRequest {
  std::string group;
  std::string member_id;
  std::optional<std::string> instance_id;
  std::int32_t generation = -1;
};

// Who leaves, by member id, or by instance id with an empty member id.
struct LeavingMember {
  std::string id;
  std::optional<std::string> instance_id;
};
struct LeaveRequest {
  std::string group;
  std::vector<LeavingMember> members;
};
struct LeaveResult {
  GroupError error = GroupError::none;  // of the group
  std::vector<GroupError> members;      // one for each asked for, when `error` is none
};

struct CommittedOffset {
  std::int64_t offset = -1;
  std::int32_t leader_epoch = -1;
  std::string metadata;
  std::int64_t committed_ms = 0;           // wall time
  std::optional<std::int64_t> expires_ms;  // wall time; asked for by clients before v5
  Uuid topic_id;                           // zero: not known
  bool operator==(const CommittedOffset&) const = default;
};

struct CommitPartition {
  std::int32_t partition = 0;
  std::int64_t offset = -1;
  std::int32_t leader_epoch = -1;
  std::string metadata;
};
struct CommitTopic {
  std::string name;
  Uuid id;  // with `by_id` the name is looked up
  std::vector<CommitPartition> partitions;
};
struct CommitRequest {
  std::string group;
  std::string member_id;
  std::optional<std::string> instance_id;
  std::int32_t generation = -1;  // or member epoch
  std::int64_t retention_ms = -1;
  bool by_id = false;
  bool knows_epochs = false;  // OffsetCommit v9+: GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH
  std::vector<CommitTopic> topics;
};
// One error for each partition asked for, in the same order.
struct CommitResult {
  std::vector<std::vector<GroupError>> topics;
};

struct FetchOffsetsTopic {
  std::string name;
  Uuid id;
  std::vector<std::int32_t> partitions;
};
struct FetchOffsetsRequest {
  std::string group;
  std::optional<std::string> member_id;  // OffsetFetch v9+
  std::int32_t member_epoch = -1;
  bool by_id = false;
  std::optional<std::vector<FetchOffsetsTopic>> topics;  // nothing: all that are committed
};
struct FetchedOffset {
  std::int32_t partition = 0;
  GroupError error = GroupError::none;
  std::optional<CommittedOffset> committed;
};
struct FetchedTopic {
  std::string name;
  Uuid id;
  std::vector<FetchedOffset> partitions;
};
struct FetchOffsetsResult {
  GroupError error = GroupError::none;
  std::vector<FetchedTopic> topics;
};

struct OffsetDeleteRequest {
  std::string group;
  std::vector<FetchOffsetsTopic> topics;  // by name
};
struct OffsetDeleteResult {
  GroupError error = GroupError::none;
  std::vector<std::vector<GroupError>> topics;  // as asked for, when `error` is none
};

// DescribeGroups: of a classic group.
struct DescribedMember {
  std::string id;
  std::optional<std::string> instance_id;
  std::string client_id;
  std::string host;
  Bytes metadata;
  Bytes assignment;
};
struct DescribedGroup {
  GroupError error = GroupError::none;
  std::string state;
  std::string protocol_type;
  std::string protocol;
  std::vector<DescribedMember> members;
};

enum class GroupKind { classic, consumer };
struct ListedGroup {
  std::string id;
  std::string protocol_type;
  std::string state;
  GroupKind kind = GroupKind::classic;
};
struct ListResult {
  GroupError error = GroupError::none;  // load_in_progress: the list lacks some
  std::vector<ListedGroup> groups;
};

}  // namespace polylog::broker::groups
