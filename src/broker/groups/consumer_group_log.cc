#include <utility>

#include "broker/groups/consumer_group.h"

namespace polylog::broker::groups {

namespace kafka = format::kafka;
using kafka::ConsumerGroupRecord;

kafka::ConsumerGroupKey ConsumerGroup::key(ConsumerGroupRecord record, std::string subject) const {
  return {record, id_, std::move(subject)};
}

void ConsumerGroup::write_epoch(GroupRecords& out) const {
  out.push_back({kafka::encode_key(key(ConsumerGroupRecord::group_epoch)),
                 kafka::encode(kafka::GroupEpochValue{epoch_, hash_}), epoch_since_ms_});
}

void ConsumerGroup::write_target_epoch(GroupRecords& out) const {
  out.push_back({kafka::encode_key(key(ConsumerGroupRecord::target_epoch)),
                 kafka::encode(kafka::TargetEpochValue{assignment_epoch_, assigned_at_ms_})});
}

void ConsumerGroup::write_metadata(const ConsumerMember& member, GroupRecords& out) const {
  out.push_back({kafka::encode_key(key(ConsumerGroupRecord::member_metadata, member.id)),
                 kafka::encode(metadata_value(member))});
}

void ConsumerGroup::write_target(const std::string& member_id, GroupRecords& out) const {
  const auto target = target_.find(member_id);
  if (target == target_.end()) return;
  out.push_back({kafka::encode_key(key(ConsumerGroupRecord::target_assignment, member_id)),
                 kafka::encode(target_value(target->second))});
}

void ConsumerGroup::write_assignment(const ConsumerMember& member, GroupRecords& out) const {
  out.push_back({kafka::encode_key(key(ConsumerGroupRecord::current_assignment, member.id)),
                 kafka::encode(assignment_value(member))});
}

void ConsumerGroup::write_expression(const std::string& expression, GroupRecords& out) const {
  const Resolved& resolved = resolved_.at(expression);
  kafka::RegularExpressionValue value;
  value.topics.assign(resolved.topics.begin(), resolved.topics.end());
  value.timestamp_ms = resolved.timestamp_ms;
  out.push_back({kafka::encode_key(key(ConsumerGroupRecord::regular_expression, expression)),
                 kafka::encode(value)});
}

void ConsumerGroup::write_tombstone(ConsumerGroupRecord record, std::string subject,
                                    GroupRecords& out) const {
  out.push_back({kafka::encode_key(key(record, std::move(subject))), std::nullopt});
}

// In the order in which Kafka's loader wants them.
void ConsumerGroup::write_removal(const std::string& member_id, GroupRecords& out) const {
  write_tombstone(ConsumerGroupRecord::current_assignment, member_id, out);
  write_tombstone(ConsumerGroupRecord::target_assignment, member_id, out);
  write_tombstone(ConsumerGroupRecord::member_metadata, member_id, out);
}

void ConsumerGroup::snapshot(GroupRecords& out, Now) const {
  for (const auto& [id, member] : members_) write_metadata(member, out);
  for (const auto& [expression, resolved] : resolved_) write_expression(expression, out);
  write_epoch(out);
  for (const auto& [id, target] : target_) write_target(id, out);
  if (assignment_epoch_ >= 0) write_target_epoch(out);
  for (const auto& [id, member] : members_) write_assignment(member, out);
}

void ConsumerGroup::tombstones(GroupRecords& out) const {
  for (const auto& [id, member] : members_) {
    write_tombstone(ConsumerGroupRecord::current_assignment, id, out);
  }
  for (const auto& [id, target] : target_) {
    write_tombstone(ConsumerGroupRecord::target_assignment, id, out);
  }
  write_tombstone(ConsumerGroupRecord::target_epoch, "", out);
  for (const auto& [id, member] : members_) {
    write_tombstone(ConsumerGroupRecord::member_metadata, id, out);
  }
  for (const auto& [expression, resolved] : resolved_) {
    write_tombstone(ConsumerGroupRecord::regular_expression, expression, out);
  }
  if (old_metadata_record_) write_tombstone(ConsumerGroupRecord::partition_metadata, "", out);
  write_tombstone(ConsumerGroupRecord::group_epoch, "", out);
}

Result<void> ConsumerGroup::replay(const kafka::ConsumerGroupKey& key,
                                   const std::optional<ByteView>& value, std::int64_t written_ms) {
  switch (key.record) {
    case ConsumerGroupRecord::group_epoch:
      if (value) {
        POLYLOG_ASSIGN(read, kafka::decode_group_epoch(*value));
        epoch_ = read.epoch;
        epoch_since_ms_ = written_ms;
        hash_ = read.metadata_hash;
      }
      return {};
    case ConsumerGroupRecord::partition_metadata:
      old_metadata_record_ = value.has_value();
      return {};
    case ConsumerGroupRecord::target_epoch: {
      kafka::TargetEpochValue read{-1, 0};
      if (value) {
        POLYLOG_ASSIGN(decoded, kafka::decode_target_epoch(*value));
        read = decoded;
      }
      assignment_epoch_ = read.epoch;
      assigned_at_ms_ = read.timestamp_ms;
      return {};
    }
    case ConsumerGroupRecord::member_metadata: return replay_member(key.subject, value);
    case ConsumerGroupRecord::target_assignment: return replay_target(key.subject, value);
    case ConsumerGroupRecord::current_assignment: return replay_assignment(key.subject, value);
    case ConsumerGroupRecord::regular_expression: return replay_expression(key.subject, value);
  }
  return {};
}

Result<void> ConsumerGroup::replay_member(const std::string& member_id,
                                          const std::optional<ByteView>& value) {
  if (!value) {
    members_.erase(member_id);
    return {};
  }
  POLYLOG_ASSIGN(read, kafka::decode_member_metadata(*value));
  ConsumerMember& member = members_[member_id];
  member.id = member_id;
  apply(read, member);
  return {};
}

Result<void> ConsumerGroup::replay_assignment(const std::string& member_id,
                                              const std::optional<ByteView>& value) {
  kafka::CurrentAssignmentValue read;
  if (value) {
    POLYLOG_ASSIGN(decoded, kafka::decode_current_assignment(*value));
    read = std::move(decoded);
  } else if (!members_.contains(member_id)) {
    return {};
  } else {
    read.epoch = leave_epoch;
    read.previous_epoch = leave_epoch;
  }
  ConsumerMember& member = members_[member_id];
  member.id = member_id;
  apply(read, member);
  return {};
}

Result<void> ConsumerGroup::replay_target(const std::string& member_id,
                                          const std::optional<ByteView>& value) {
  if (!value) {
    target_.erase(member_id);
    return {};
  }
  POLYLOG_ASSIGN(read, kafka::decode_target_assignment(*value));
  target_[member_id] = target_of(read);
  return {};
}

Result<void> ConsumerGroup::replay_expression(const std::string& expression,
                                              const std::optional<ByteView>& value) {
  if (!value) {
    resolved_.erase(expression);
    return {};
  }
  POLYLOG_ASSIGN(read, kafka::decode_regular_expression(*value));
  resolved_[expression] = {{read.topics.begin(), read.topics.end()}, read.timestamp_ms};
  return {};
}

// Nobody knows when the members were last heard of: their time begins anew. What the topics are
// like now is compared with what the epoch stands for at the next heartbeat.
void ConsumerGroup::loaded(Now now) {
  static_ids_.clear();
  owners_.clear();
  earliest_ms_.reset();
  topics_stale_ = true;
  for (auto& [id, member] : members_) {
    if (member.instance_id) static_ids_[*member.instance_id] = id;
    own(member);
    touch(member, now);
    if (member.classic || member.state != MemberState::unrevoked_partitions) continue;
    member.revoke_by_ms = now.steady_ms + member.rebalance_timeout_ms;
    due(*member.revoke_by_ms);
  }
}

}  // namespace polylog::broker::groups
