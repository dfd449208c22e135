#include "broker/groups/consumer_member.h"

#include <algorithm>
#include <utility>

namespace polylog::broker::groups {
namespace {

using format::kafka::AssignedTopic;

std::vector<AssignedTopic> topics_of(const OwnedPartitions& owned) {
  std::vector<AssignedTopic> topics;
  for (const auto& [id, partitions] : owned) {
    AssignedTopic& topic = topics.emplace_back();
    topic.topic = id;
    topic.epochs.emplace();
    for (const auto& [partition, epoch] : partitions) {
      topic.partitions.push_back(partition);
      topic.epochs->push_back(epoch);
    }
  }
  return topics;
}

OwnedPartitions owned_of(const std::vector<AssignedTopic>& topics, std::int32_t member_epoch) {
  OwnedPartitions owned;
  for (const AssignedTopic& topic : topics) {
    for (std::size_t i = 0; i < topic.partitions.size(); ++i) {
      const std::int32_t epoch = topic.epochs ? (*topic.epochs)[i] : std::max(member_epoch, 0);
      owned[topic.topic][topic.partitions[i]] = epoch;
    }
  }
  return owned;
}

void add(OwnedPartitions& to, const OwnedPartitions& from) {
  for (const auto& [topic, partitions] : from)
    to[topic].insert(partitions.begin(), partitions.end());
}

// Whether the client still uses any of them; one that does not say is taken to.
bool uses(const std::optional<PartitionSet>& owned, const OwnedPartitions& partitions) {
  return !owned || intersects(partitions, *owned);
}

// The subscription changed while the target did not: what it no longer covers must go at once.
void drop_unsubscribed(ConsumerMember& member, const ReconcileInput& input) {
  OwnedPartitions kept, dropped;
  for (const auto& [topic, partitions] : member.assigned) {
    (input.subscribed.contains(topic) ? kept : dropped).emplace(topic, partitions);
  }
  if (dropped.empty()) return;
  member.assigned = std::move(kept);
  member.enter(member.epoch);
  OwnedPartitions revoking = member.revoking;
  add(revoking, dropped);
  if (uses(input.owned, revoking)) {
    member.state = MemberState::unrevoked_partitions;
    member.revoking = std::move(revoking);
  }
}

void approach_target(ConsumerMember& member, const ReconcileInput& input) {
  OwnedPartitions kept, revoking;
  for (const auto& [topic, partitions] : member.assigned) {
    const auto target = input.target.find(topic);
    const bool wanted = target != input.target.end() && input.subscribed.contains(topic);
    for (const auto& [partition, epoch] : partitions) {
      OwnedPartitions& to = wanted && target->second.contains(partition) ? kept : revoking;
      to[topic].emplace(partition, epoch);
    }
  }
  if (!revoking.empty() && uses(input.owned, revoking)) {
    member.enter(member.epoch);
    member.state = MemberState::unrevoked_partitions;
    member.assigned = std::move(kept);
    member.revoking = std::move(revoking);
    return;
  }
  bool waits = false;
  for (const auto& [topic, partitions] : input.target) {
    if (!input.subscribed.contains(topic)) continue;
    for (const std::int32_t partition : partitions) {
      if (contains(kept, topic, partition)) continue;
      if (input.taken(topic, partition)) {
        waits = true;
      } else {
        kept[topic].emplace(partition, input.target_epoch);
      }
    }
  }
  member.enter(input.target_epoch);
  member.state = waits ? MemberState::unreleased_partitions : MemberState::stable;
  member.assigned = std::move(kept);
  member.revoking.clear();
}

}  // namespace

bool contains(const OwnedPartitions& owned, const Uuid& topic, std::int32_t partition) {
  const auto found = owned.find(topic);
  return found != owned.end() && found->second.contains(partition);
}

bool intersects(const OwnedPartitions& owned, const PartitionSet& partitions) {
  for (const auto& [topic, asked] : partitions) {
    for (const std::int32_t partition : asked) {
      if (contains(owned, topic, partition)) return true;
    }
  }
  return false;
}

bool covers(const OwnedPartitions& owned, const PartitionSet& partitions) {
  for (const auto& [topic, asked] : partitions) {
    for (const std::int32_t partition : asked) {
      if (!contains(owned, topic, partition)) return false;
    }
  }
  return true;
}

PartitionSet without_epochs(const OwnedPartitions& owned) {
  PartitionSet plain;
  for (const auto& [topic, partitions] : owned) {
    std::set<std::int32_t>& mine = plain[topic];
    for (const auto& [partition, epoch] : partitions) mine.insert(mine.end(), partition);
  }
  return plain;
}

std::optional<std::int64_t> ConsumerMember::next_deadline_ms() const {
  std::int64_t next = session_ends_ms;
  for (const std::optional<std::int64_t>& deadline : {revoke_by_ms, join_by_ms, sync_by_ms}) {
    if (deadline) next = std::min(next, *deadline);
  }
  return next;
}

std::optional<std::int32_t> ConsumerMember::assignment_epoch(const Uuid& topic,
                                                             std::int32_t partition) const {
  for (const OwnedPartitions* owned : {&assigned, &revoking}) {
    if (contains(*owned, topic, partition)) return owned->at(topic).at(partition);
  }
  return std::nullopt;
}

format::kafka::MemberMetadataValue metadata_value(const ConsumerMember& member) {
  format::kafka::MemberMetadataValue value;
  value.instance_id = member.instance_id;
  value.rack_id = member.rack_id;
  value.client_id = member.client_id;
  value.client_host = member.client_host;
  value.topics.assign(member.topics.begin(), member.topics.end());
  value.regular_expression = member.expression;
  value.rebalance_timeout_ms = member.rebalance_timeout_ms;
  value.assignor = member.assignor;
  if (member.classic) {
    value.classic.emplace();
    value.classic->session_timeout_ms = member.classic->session_timeout_ms;
    for (const Protocol& protocol : member.classic->protocols) {
      value.classic->protocols.push_back({protocol.name, protocol.metadata});
    }
  }
  return value;
}

void apply(const format::kafka::MemberMetadataValue& value, ConsumerMember& member) {
  member.instance_id = value.instance_id;
  member.rack_id = value.rack_id;
  member.client_id = value.client_id;
  member.client_host = value.client_host;
  member.topics = {value.topics.begin(), value.topics.end()};
  member.expression = value.regular_expression.value_or("");
  member.rebalance_timeout_ms = value.rebalance_timeout_ms;
  member.assignor = value.assignor;
  member.classic.reset();
  if (!value.classic) return;
  member.classic.emplace();
  member.classic->session_timeout_ms = value.classic->session_timeout_ms;
  for (const format::kafka::ClassicProtocolValue& protocol : value.classic->protocols) {
    member.classic->protocols.push_back({protocol.name, protocol.metadata});
  }
}

format::kafka::CurrentAssignmentValue assignment_value(const ConsumerMember& member) {
  format::kafka::CurrentAssignmentValue value;
  value.epoch = member.epoch;
  value.previous_epoch = member.previous_epoch;
  value.state = static_cast<std::int8_t>(member.state);
  value.assigned = topics_of(member.assigned);
  value.revoking = topics_of(member.revoking);
  return value;
}

void apply(const format::kafka::CurrentAssignmentValue& value, ConsumerMember& member) {
  member.epoch = value.epoch;
  member.previous_epoch = value.previous_epoch;
  constexpr auto last_known = static_cast<std::int8_t>(MemberState::unreleased_partitions);
  const bool known = value.state >= 0 && value.state <= last_known;
  member.state = known ? static_cast<MemberState>(value.state) : MemberState::unknown;
  member.assigned = owned_of(value.assigned, value.epoch);
  member.revoking = owned_of(value.revoking, value.epoch);
}

format::kafka::TargetAssignmentValue target_value(const PartitionSet& target) {
  format::kafka::TargetAssignmentValue value;
  for (const auto& [topic, partitions] : target) {
    value.topics.push_back({topic, {partitions.begin(), partitions.end()}, std::nullopt});
  }
  return value;
}

PartitionSet target_of(const format::kafka::TargetAssignmentValue& value) {
  PartitionSet target;
  for (const AssignedTopic& topic : value.topics) {
    if (topic.partitions.empty()) continue;
    target[topic.topic].insert(topic.partitions.begin(), topic.partitions.end());
  }
  return target;
}

bool reconcile(ConsumerMember& member, const ReconcileInput& input) {
  switch (member.state) {
    case MemberState::stable:
      if (member.epoch != input.target_epoch) {
        approach_target(member, input);
      } else if (input.subscription_changed) {
        drop_unsubscribed(member, input);
      }
      return true;
    case MemberState::unrevoked_partitions:
      if (!uses(input.owned, member.revoking)) {
        approach_target(member, input);
      } else if (input.subscription_changed) {
        drop_unsubscribed(member, input);
      }
      return true;
    case MemberState::unreleased_partitions: approach_target(member, input); return true;
    case MemberState::unknown:
      if (!input.owned || !input.owned->empty()) return false;
      approach_target(member, input);
      return true;
  }
  return false;
}

}  // namespace polylog::broker::groups
