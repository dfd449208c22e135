#include <algorithm>
#include <utility>

#include "broker/groups/classic_group.h"
#include "broker/groups/consumer_group.h"

// Classic members of a KIP-848 group, and the way of a whole group from one protocol to the other
// (Kafka wire protocol, "KIP-848 consumer groups", migration).
namespace polylog::broker::groups {
namespace {

namespace kafka = format::kafka;

constexpr std::string_view consumer_type = "consumer";

bool names(const std::vector<Protocol>& protocols, const std::string& name) {
  return std::any_of(protocols.begin(), protocols.end(),
                     [&name](const Protocol& protocol) { return protocol.name == name; });
}

PartitionSet by_id(const std::vector<kafka::TopicPartitions>& topics, const TopicView& view) {
  PartitionSet partitions;
  for (const kafka::TopicPartitions& topic : topics) {
    const std::optional<TopicImage> image = view.find(topic.topic);
    if (!image || topic.partitions.empty()) continue;
    partitions[image->id].insert(topic.partitions.begin(), topic.partitions.end());
  }
  return partitions;
}

// In the version of the subscription it answers.
Bytes assignment_bytes(const PartitionSet& partitions, std::int16_t version,
                       const TopicView& view) {
  kafka::ConsumerAssignment assignment;
  assignment.version = version;
  for (const auto& [id, mine] : partitions) {
    const std::optional<TopicImage> image = view.find(id);
    if (image) assignment.partitions.push_back({image->name, {mine.begin(), mine.end()}});
  }
  return kafka::encode(assignment);
}

std::int16_t version_of(const Bytes& subscription) {
  const auto read = kafka::decode_subscription(subscription);
  return read ? read->version : std::int16_t{0};
}

// The protocol its generation agreed on, or before there is one the member's own choice.
const Protocol* protocol_of(const ClassicMember& member, const ClassicGroup& group) {
  if (group.protocol()) return member.find(*group.protocol());
  return member.protocols.empty() ? nullptr : &member.protocols.front();
}

}  // namespace

// ---- requests

bool ConsumerGroup::supports(const JoinRequest& request) const {
  if (request.protocol_type != consumer_type || request.protocols.empty()) return false;
  return std::any_of(
      request.protocols.begin(), request.protocols.end(), [this](const Protocol& protocol) {
        return std::all_of(members_.begin(), members_.end(), [&protocol](const auto& entry) {
          return !entry.second.classic || names(entry.second.classic->protocols, protocol.name);
        });
      });
}

Refusal ConsumerGroup::draft_of(const JoinRequest& request, const std::string& member_id,
                                const kafka::ConsumerSubscription& subscription,
                                Draft& draft) const {
  const ConsumerMember* in_place =
      request.instance_id ? find_static(*request.instance_id) : nullptr;
  if (in_place != nullptr && request.member_id.empty()) {
    draft_replacement(*in_place, member_id, draft);
  } else if (request.instance_id && !request.member_id.empty()) {
    Refusal why;
    const ConsumerMember* member = who(request.member_id, request.instance_id, why);
    if (member == nullptr) return why;
    draft.before = *member;
  } else if (const ConsumerMember* member = find(member_id)) {
    draft.before = *member;
  }
  if (draft.before && draft.before->state == MemberState::unknown) {
    return {GroupError::unknown_member_id, "the member is in a state this broker does not know"};
  }
  if (draft.before && draft.before->epoch == leave_static_epoch) {
    draft.before->epoch = 0;
    draft.before->previous_epoch = 0;
  }

  ConsumerMember& after = draft.after;
  if (draft.before) after = *draft.before;
  after.id = member_id;
  if (request.instance_id) after.instance_id = request.instance_id;
  if (subscription.rack_id && !subscription.rack_id->empty()) after.rack_id = subscription.rack_id;
  after.rebalance_timeout_ms =
      request.rebalance_timeout_ms >= 0 ? request.rebalance_timeout_ms : request.session_timeout_ms;
  after.topics = {subscription.topics.begin(), subscription.topics.end()};
  after.expression.clear();
  after.client_id = request.caller.client_id;
  after.client_host = request.caller.host;
  after.classic = ClassicSide{request.session_timeout_ms, request.protocols};
  after.revoke_by_ms.reset();
  return {};
}

void ConsumerGroup::join(JoinRequest request, JoinDone done, GroupEvent event) {
  JoinResult result;
  result.member_id = request.member_id.empty() ? Uuid::random().to_string() : request.member_id;
  const auto refuse = [&](GroupError error) {
    result.error = error;
    if (error != GroupError::member_id_required) result.member_id = request.member_id;
    done(std::move(result));
  };
  if (!limits_.classic_members) return refuse(GroupError::inconsistent_group_protocol);
  std::size_t bytes = 0;
  for (const Protocol& protocol : request.protocols) bytes += protocol.metadata.size();
  if (full_for(result.member_id) || bytes > limits_.subscription_bytes_max / 2) {
    return refuse(GroupError::group_max_size_reached);
  }
  if (!supports(request)) return refuse(GroupError::inconsistent_group_protocol);
  if (request.must_know_id && request.member_id.empty() && !request.instance_id) {
    return refuse(GroupError::member_id_required);
  }
  const auto subscription = kafka::decode_subscription(request.protocols.front().metadata);
  if (!subscription) return refuse(GroupError::inconsistent_group_protocol);
  Draft draft;
  if (const Refusal why = draft_of(request, result.member_id, *subscription, draft)) {
    return refuse(why.error);
  }
  const std::optional<PartitionSet> owned = by_id(subscription->owned, event.topics);
  ConsumerMember& member = update(std::move(draft), owned, event);
  member.join_by_ms.reset();
  touch(member, event.now);
  member.sync_by_ms = event.now.steady_ms + member.rebalance_timeout_ms;
  due(*member.sync_by_ms);
  result.generation = member.epoch;
  result.protocol_type = std::string(consumer_type);
  result.protocol = request.protocols.front().name;
  done(std::move(result));
}

GroupError ConsumerGroup::check_classic(const ConsumerMember& member,
                                        std::int32_t generation) const {
  if (!member.classic) return GroupError::unknown_member_id;
  return member.epoch == generation ? GroupError::none : GroupError::illegal_generation;
}

// It is to join again, and to be quick about it.
void ConsumerGroup::expect_join(ConsumerMember& member, GroupEvent event) {
  if (!member.join_by_ms) member.join_by_ms = event.now.steady_ms + member.rebalance_timeout_ms;
  due(*member.join_by_ms);
}

void ConsumerGroup::sync(SyncRequest request, SyncDone done, GroupEvent event) {
  SyncResult result;
  const auto refuse = [&](GroupError error) {
    result.error = error;
    done(std::move(result));
  };
  Refusal why;
  const ConsumerMember* found = who(request.member_id, request.instance_id, why);
  if (found == nullptr) return refuse(why.error);
  ConsumerMember& member = members_.at(found->id);
  const GroupError error = check_classic(member, request.generation);
  if (error != GroupError::none) return refuse(error);
  const std::string& protocol = member.classic->protocols.front().name;
  if ((request.protocol_type && *request.protocol_type != consumer_type) ||
      (request.protocol && *request.protocol != protocol)) {
    return refuse(GroupError::inconsistent_group_protocol);
  }
  if (assignment_epoch_ > member.epoch && member.state != MemberState::unrevoked_partitions) {
    expect_join(member, event);
    return refuse(GroupError::rebalance_in_progress);
  }
  member.sync_by_ms.reset();
  touch(member, event.now);
  result.protocol_type = request.protocol_type;
  result.protocol = request.protocol;
  result.assignment = classic_assignment(member, event.topics);
  done(std::move(result));
}

Bytes ConsumerGroup::classic_assignment(const ConsumerMember& member,
                                        const TopicView& topics) const {
  return assignment_bytes(without_epochs(member.assigned),
                          version_of(member.classic->protocols.front().metadata), topics);
}

bool ConsumerGroup::waits_for_others(const ConsumerMember& member) const {
  const auto target = target_.find(member.id);
  if (target == target_.end()) return false;
  for (const auto& [topic, partitions] : target->second) {
    for (const std::int32_t partition : partitions) {
      if (!contains(member.assigned, topic, partition) &&
          taken_by_another(member.id, topic, partition)) {
        return true;
      }
    }
  }
  return false;
}

GroupError ConsumerGroup::heartbeat(const HeartbeatRequest& request, GroupEvent event) {
  Refusal why;
  const ConsumerMember* found = who(request.member_id, request.instance_id, why);
  if (found == nullptr) return why.error;
  ConsumerMember& member = members_.at(found->id);
  const GroupError error = check_classic(member, request.generation);
  if (error != GroupError::none) return error;
  touch(member, event.now);
  // Where only classic members are left, nobody else computes what is due.
  if (topics_stale_ || epoch_ > assignment_epoch_) {
    refresh_epoch(resolve_expressions(event), event);
    refresh_target(event);
  }
  // Only a join takes it further: to a new target, from partitions it is to give up, or to those
  // it waited for.
  const bool has_waited =
      member.state == MemberState::unreleased_partitions && !waits_for_others(member);
  if (member.epoch >= assignment_epoch_ && member.state != MemberState::unrevoked_partitions &&
      !has_waited) {
    return GroupError::none;
  }
  expect_join(member, event);
  return GroupError::rebalance_in_progress;
}

// Members of either protocol: an administrator may remove static ones.
LeaveResult ConsumerGroup::leave(const LeaveRequest& request, GroupEvent event) {
  LeaveResult result;
  std::set<std::string> leaving;
  for (const LeavingMember& asked : request.members) {
    Refusal why;
    const ConsumerMember* member = who(asked.id, asked.instance_id, why);
    result.members.push_back(member != nullptr ? GroupError::none : why.error);
    if (member != nullptr) leaving.insert(member->id);
  }
  fence({leaving.begin(), leaving.end()}, event);
  return result;
}

// ---- from classic and back

Refusal ConsumerGroup::check_upgrade(const ClassicGroup& classic, const ConsumerLimits& limits) {
  const auto refuse = [&classic](const char* why) {
    return Refusal{GroupError::group_id_not_found, "group " + classic.id() + " " + why};
  };
  if (classic.members().empty()) return {};  // who has got an id at most is nobody's member
  if (!limits.upgrade) return refuse("is a classic group, and may not become another");
  if (classic.protocol_type() != consumer_type) return refuse("is not one of consumers");
  const std::vector<const ClassicMember*> members = classic.members();
  if (members.size() > limits.members_max) return refuse("has too many members");
  for (const ClassicMember* member : members) {
    const Protocol* protocol = protocol_of(*member, classic);
    if (protocol == nullptr || !kafka::decode_subscription(protocol->metadata)) {
      return refuse("has members whose subscription does not read");
    }
    if (member->assignment.empty()) continue;
    const auto assignment = kafka::decode_assignment(member->assignment);
    if (!assignment) return refuse("has members whose assignment does not read");
    if (!assignment->user_data.empty()) {
      return refuse("uses an assignor whose data the broker can't keep");
    }
  }
  return {};
}

// REQUIRES: check_upgrade() found nothing. Whether they have more to give up or to get shows at
// their next join.
std::unique_ptr<ConsumerGroup> ConsumerGroup::from_classic(const ClassicGroup& classic,
                                                           const ConsumerLimits& limits,
                                                           std::uint64_t* rebalances,
                                                           GroupEvent event) {
  auto group = std::make_unique<ConsumerGroup>(classic.id(), limits, rebalances);
  group->epoch_ = classic.generation();
  group->assignment_epoch_ = classic.generation();
  for (const ClassicMember* old : classic.members()) {
    const auto subscription = kafka::decode_subscription(protocol_of(*old, classic)->metadata);
    ConsumerMember member;
    member.id = old->id;
    member.instance_id = old->instance_id;
    member.rack_id = subscription->rack_id;
    member.client_id = old->client_id;
    member.client_host = old->host;
    member.topics = {subscription->topics.begin(), subscription->topics.end()};
    member.rebalance_timeout_ms = old->rebalance_timeout_ms;
    member.classic = ClassicSide{old->session_timeout_ms, old->protocols};
    member.epoch = classic.generation();
    member.previous_epoch = classic.generation();
    PartitionSet target;
    if (!old->assignment.empty()) {
      target = by_id(kafka::decode_assignment(old->assignment)->partitions, event.topics);
    }
    for (const auto& [topic, partitions] : target) {
      for (const std::int32_t partition : partitions) {
        if (group->taken_by_another(old->id, topic, partition)) continue;
        member.assigned[topic].emplace(partition, classic.generation());
      }
    }
    group->own(member);
    group->target_[old->id] = without_epochs(member.assigned);
    group->members_.emplace(old->id, std::move(member));
  }
  group->hash_ = group->metadata_hash(event.topics);
  group->loaded(event.now);
  group->snapshot(event.records, event.now);
  return group;
}

bool ConsumerGroup::only_classic() const {
  return !members_.empty() && std::all_of(members_.begin(), members_.end(), [](const auto& entry) {
    return entry.second.classic.has_value();
  });
}

kafka::GroupMetadata ConsumerGroup::classic_metadata(const TopicView& topics, Now now) const {
  kafka::GroupMetadata metadata;
  metadata.protocol_type = consumer_type;
  // Their own, so that their next heartbeat is told of a rebalance and not that they are strangers.
  metadata.generation = 0;
  for (const auto& [id, member] : members_) {
    metadata.generation = std::max(metadata.generation, member.epoch);
  }
  metadata.state_since = Timestamp(now.wall_ms);
  // The one that all know and most put first.
  std::map<std::string, std::size_t> votes;
  for (const auto& [id, member] : members_) {
    for (const Protocol& protocol : member.classic->protocols) {
      const bool common = std::all_of(members_.begin(), members_.end(), [&](const auto& entry) {
        return names(entry.second.classic->protocols, protocol.name);
      });
      if (!common) continue;
      ++votes[protocol.name];
      break;
    }
  }
  const auto most = std::max_element(
      votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != votes.end()) metadata.protocol = most->first;
  metadata.leader = members_.begin()->first;
  for (const auto& [id, member] : members_) {
    kafka::GroupMember& one = metadata.members.emplace_back();
    one.id = id;
    one.instance_id = member.instance_id;
    one.client_id = member.client_id;
    one.host = member.client_host;
    one.rebalance_timeout_ms = member.rebalance_timeout_ms;
    one.session_timeout_ms = member.classic->session_timeout_ms;
    for (const Protocol& protocol : member.classic->protocols) {
      if (protocol.name == metadata.protocol) one.subscription = protocol.metadata;
    }
    const auto target = target_.find(id);
    one.assignment = assignment_bytes(target == target_.end() ? PartitionSet{} : target->second,
                                      version_of(one.subscription), topics);
  }
  return metadata;
}

}  // namespace polylog::broker::groups
