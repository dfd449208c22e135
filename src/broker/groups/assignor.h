#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/ids.h"

// Who gets which partitions in a KIP-848 group: the broker decides (Kafka wire protocol, "KIP-848
// consumer groups"). Pure functions.
namespace polylog::broker::groups {

using PartitionSet = std::map<Uuid, std::set<std::int32_t>>;  // no topic without partitions

// What an assignor knows of a member.
struct AssignorMember {
  std::optional<std::string> instance_id;
  std::set<Uuid> topics;  // subscribed to; only topics that exist
  PartitionSet current;   // what it was to have so far
};

struct AssignorInput {
  std::map<std::string, AssignorMember> members;  // by member id
  std::map<Uuid, std::int32_t> partitions;        // of every topic anybody is subscribed to
};

// Every member of the input has an entry. Every partition of a topic that somebody is subscribed
// to is given to exactly one of its subscribers.
using TargetAssignment = std::map<std::string, PartitionSet>;
using Assignor = TargetAssignment (*)(const AssignorInput& input);

// Equal shares of all partitions, then as few partitions moved as that allows. When everybody is
// subscribed to the same topics the shares differ by one at most.
TargetAssignment assign_uniform(const AssignorInput& input);
// Ranges of each topic, in the order of the members: instance ids first, then member ids. Topics
// with as many partitions and the same subscribers are cut alike, so that equal keys meet.
TargetAssignment assign_range(const AssignorInput& input);

inline constexpr std::string_view assignor_uniform = "uniform";  // the default
inline constexpr std::string_view assignor_range = "range";
Assignor find_assignor(std::string_view name);  // nullptr: unknown

}  // namespace polylog::broker::groups
