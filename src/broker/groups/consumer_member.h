#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/ids.h"
#include "broker/groups/assignor.h"
#include "broker/groups/types.h"
#include "format/kafka/consumer_group_records.h"

// A member of a KIP-848 group and the steps that lead it to its target (Kafka wire protocol,
// "KIP-848 consumer groups"). Pure values and functions.
namespace polylog::broker::groups {

// Partitions with the epoch at which the member got each.
using OwnedPartitions = std::map<Uuid, std::map<std::int32_t, std::int32_t>>;  // none empty

bool contains(const OwnedPartitions& owned, const Uuid& topic, std::int32_t partition);
bool intersects(const OwnedPartitions& owned, const PartitionSet& partitions);
// Every one of `partitions` is among `owned`.
bool covers(const OwnedPartitions& owned, const PartitionSet& partitions);
PartitionSet without_epochs(const OwnedPartitions& owned);

// The numbers are Kafka's.
enum class MemberState : std::int8_t {
  stable = 0,
  unrevoked_partitions = 1,   // was told to give up partitions and has not yet said that it did
  unreleased_partitions = 2,  // waits for partitions that others have not given up
  unknown = 127,              // written by a later broker
};

// The epochs by which members leave.
inline constexpr std::int32_t leave_epoch = -1;
inline constexpr std::int32_t leave_static_epoch = -2;

// Of a member that speaks the classic protocol.
struct ClassicSide {
  std::int32_t session_timeout_ms = 0;
  std::vector<Protocol> protocols;  // by preference
  bool operator==(const ClassicSide&) const = default;
};

struct ConsumerMember {
  std::string id;
  std::optional<std::string> instance_id;
  std::optional<std::string> rack_id;
  std::string client_id;
  std::string client_host;
  std::set<std::string> topics;  // subscribed to by name
  std::string expression;        // and by regular expression; "": none
  std::int32_t rebalance_timeout_ms = -1;
  std::optional<std::string> assignor;
  std::optional<ClassicSide> classic;

  std::int32_t epoch = 0;  // leave_static_epoch: a static member that will be back
  std::int32_t previous_epoch = -1;
  MemberState state = MemberState::stable;
  OwnedPartitions assigned;
  OwnedPartitions revoking;

  // Steady ms. The session and, when it runs, the time to give up partitions, to join again and to
  // sync (the last two for classic members).
  std::int64_t session_ends_ms = 0;
  std::optional<std::int64_t> revoke_by_ms;
  std::optional<std::int64_t> join_by_ms;
  std::optional<std::int64_t> sync_by_ms;

  bool stable_at(std::int32_t target_epoch) const {
    return state == MemberState::stable && epoch == target_epoch;
  }
  void enter(std::int32_t next_epoch) {
    previous_epoch = epoch;
    epoch = next_epoch;
  }
  std::optional<std::int64_t> next_deadline_ms() const;
  // The epoch at which it got a partition that it still has, or is giving up.
  std::optional<std::int32_t> assignment_epoch(const Uuid& topic, std::int32_t partition) const;
};

// What is written of a member: its own data, and what it has.
format::kafka::MemberMetadataValue metadata_value(const ConsumerMember& member);
format::kafka::CurrentAssignmentValue assignment_value(const ConsumerMember& member);
void apply(const format::kafka::MemberMetadataValue& value, ConsumerMember& member);
void apply(const format::kafka::CurrentAssignmentValue& value, ConsumerMember& member);
format::kafka::TargetAssignmentValue target_value(const PartitionSet& target);
PartitionSet target_of(const format::kafka::TargetAssignmentValue& value);

struct ReconcileInput {
  std::int32_t target_epoch = 0;
  const PartitionSet& target;
  const std::set<Uuid>& subscribed;  // ids of the topics its subscription names now
  bool subscription_changed = false;
  const std::optional<PartitionSet>& owned;  // as it reports; nothing: it did not say
  // Whether somebody else has the partition.
  std::function<bool(const Uuid& topic, std::int32_t partition)> taken;
};

// One step of `member` towards its target: it first gives up what is not its own any more, then
// gets what is free, then waits for the rest. False: it must be fenced, being in a state that this
// broker does not know.
bool reconcile(ConsumerMember& member, const ReconcileInput& input);

}  // namespace polylog::broker::groups
