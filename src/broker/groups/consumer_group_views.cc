#include <algorithm>

#include "broker/groups/consumer_group.h"

// What others see of a KIP-848 group: its state, its description, and whether it lets offsets be
// committed.
namespace polylog::broker::groups {
namespace {

std::vector<ConsumerDescribedTopic> described(const PartitionSet& partitions,
                                              const TopicView& topics) {
  std::vector<ConsumerDescribedTopic> all;
  for (const auto& [id, mine] : partitions) {
    const std::optional<TopicImage> topic = topics.find(id);
    if (topic) all.push_back({id, topic->name, {mine.begin(), mine.end()}});
  }
  return all;
}

ConsumerDescribedMember described(const ConsumerMember& member, const TopicView& topics) {
  ConsumerDescribedMember one;
  one.id = member.id;
  one.instance_id = member.instance_id;
  one.rack_id = member.rack_id;
  one.epoch = member.epoch;
  one.client_id = member.client_id;
  one.client_host = member.client_host;
  one.topics.assign(member.topics.begin(), member.topics.end());
  one.expression = member.expression;
  one.classic = member.classic.has_value();
  // What it is giving up is its own until it has.
  PartitionSet has = without_epochs(member.assigned);
  for (const auto& [topic, partitions] : without_epochs(member.revoking)) {
    has[topic].insert(partitions.begin(), partitions.end());
  }
  one.assignment = described(has, topics);
  return one;
}

}  // namespace

ConsumerGroup::State ConsumerGroup::state() const {
  if (members_.empty()) return State::empty;
  if (epoch_ > assignment_epoch_) return State::assigning;
  const bool all_there = std::all_of(members_.begin(), members_.end(), [this](const auto& entry) {
    return entry.second.stable_at(assignment_epoch_);
  });
  return all_there ? State::stable : State::reconciling;
}

std::string_view ConsumerGroup::state_name() const {
  switch (state()) {
    case State::empty: return "Empty";
    case State::assigning: return "Assigning";
    case State::reconciling: return "Reconciling";
    case State::stable: return "Stable";
  }
  return "Unknown";
}

ConsumerDescribed ConsumerGroup::consumer_describe(const TopicView& topics) const {
  ConsumerDescribed group;
  group.state = state_name();
  group.epoch = epoch_;
  group.assignment_epoch = assignment_epoch_;
  group.assignor = preferred_assignor();
  for (const auto& [id, member] : members_) {
    ConsumerDescribedMember& one = group.members.emplace_back(described(member, topics));
    if (const auto target = target_.find(id); target != target_.end()) {
      one.target = described(target->second, topics);
    }
  }
  return group;
}

// Kafka answers DescribeGroups about a group of the other protocol as if there were none.
DescribedGroup ConsumerGroup::describe() const {
  DescribedGroup group;
  group.error = GroupError::group_id_not_found;
  group.state = "Dead";
  return group;
}

// Kafka counts from the commit alone: the offsets of a group that read a quiet topic for longer
// than the retention would go at once when its members do.
OffsetExpiry ConsumerGroup::expiry() const {
  if (!members_.empty() || epoch_since_ms_ < 0) return {OffsetExpiry::Rule::by_commit, -1};
  return {OffsetExpiry::Rule::by_emptiness, epoch_since_ms_};
}

GroupError ConsumerGroup::check_delete() const {
  return members_.empty() ? GroupError::none : GroupError::non_empty_group;
}

GroupError ConsumerGroup::check_commit(const CommitRequest& request, GroupEvent) {
  // The admin client, or a consumer that is in no group.
  if (request.generation < 0 && members_.empty()) return GroupError::none;
  const ConsumerMember* member = find(request.member_id);
  if (member == nullptr) return GroupError::unknown_member_id;
  if (!member->classic && !request.knows_epochs) return GroupError::unsupported_version;
  if (request.generation <= member->epoch) return GroupError::none;
  return member->classic ? GroupError::illegal_generation : GroupError::stale_member_epoch;
}

// A commit under an earlier epoch counts for partitions that the member has had since then.
GroupError ConsumerGroup::check_commit_partition(const CommitRequest& request, const Uuid& topic,
                                                 std::int32_t partition) const {
  const ConsumerMember* member = find(request.member_id);
  if (member == nullptr || request.generation == member->epoch) return GroupError::none;
  const std::optional<std::int32_t> since = member->assignment_epoch(topic, partition);
  if (since && request.generation >= *since) return GroupError::none;
  return member->classic ? GroupError::illegal_generation : GroupError::stale_member_epoch;
}

GroupError ConsumerGroup::check_fetch(const FetchOffsetsRequest& request) const {
  if (!request.member_id && request.member_epoch < 0) return GroupError::none;
  const ConsumerMember* member = find(request.member_id.value_or(""));
  if (member == nullptr) return GroupError::unknown_member_id;
  if (request.member_epoch == member->epoch) return GroupError::none;
  return member->classic ? GroupError::illegal_generation : GroupError::stale_member_epoch;
}

}  // namespace polylog::broker::groups
