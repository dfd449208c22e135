#include "broker/groups/offsets.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "format/kafka/group_records.h"

namespace polylog::broker::groups {
namespace {

Bytes key_of(const std::string& group, const std::string& topic, std::int32_t partition) {
  auto key = format::kafka::encode_offset_commit_key({group, {topic, partition}});
  POLYLOG_ASSERT(key);  // names come from requests and records, which hold no longer ones
  return std::move(*key);
}

Bytes value_of(const CommittedOffset& offset) {
  format::kafka::OffsetCommit value;
  value.offset = offset.offset;
  value.leader_epoch = LeaderEpoch(offset.leader_epoch);
  value.metadata = offset.metadata;
  value.committed = Timestamp(offset.committed_ms);
  if (offset.expires_ms) value.expires = Timestamp(*offset.expires_ms);
  value.topic_id = offset.topic_id;
  auto bytes = format::kafka::encode_offset_commit(value);
  POLYLOG_ASSERT(bytes);
  return std::move(*bytes);
}

bool past(const CommittedOffset& offset, const OffsetExpiry& rule, std::int64_t retention_ms,
          std::int64_t wall_ms) {
  if (offset.expires_ms) return wall_ms >= *offset.expires_ms;
  std::int64_t since_ms = offset.committed_ms;
  if (rule.rule == OffsetExpiry::Rule::by_emptiness) {
    since_ms = std::max(since_ms, rule.empty_since_ms);
  }
  // Not `since + retention`, which a long retention makes overflow.
  return wall_ms - since_ms >= retention_ms;
}

}  // namespace

const CommittedOffset* GroupOffsets::find(std::string_view topic, std::int32_t partition) const {
  const auto its = topics_.find(topic);
  if (its == topics_.end()) return nullptr;
  const auto at = its->second.find(partition);
  return at == its->second.end() ? nullptr : &at->second;
}

void GroupOffsets::commit(const std::string& topic, std::int32_t partition, CommittedOffset offset,
                          GroupRecords& out) {
  out.push_back({key_of(group_, topic, partition), value_of(offset)});
  replay(topic, partition, std::move(offset));
}

bool GroupOffsets::erase(const std::string& topic, std::int32_t partition, GroupRecords& out) {
  if (find(topic, partition) == nullptr) return false;
  out.push_back({key_of(group_, topic, partition), std::nullopt});
  replay_erase(topic, partition);
  return true;
}

std::size_t GroupOffsets::erase_topic(const std::string& topic, GroupRecords& out) {
  const auto its = topics_.find(topic);
  if (its == topics_.end()) return 0;
  const std::size_t count = its->second.size();
  for (const auto& [partition, offset] : its->second) {
    out.push_back({key_of(group_, topic, partition), std::nullopt});
  }
  size_ -= count;
  topics_.erase(its);
  return count;
}

void GroupOffsets::erase_all(GroupRecords& out) {
  while (!topics_.empty()) {
    const std::string topic = topics_.begin()->first;
    erase_topic(topic, out);
  }
}

std::size_t GroupOffsets::expire(const OffsetExpiry& rule, std::int64_t retention_ms,
                                 std::int64_t wall_ms,
                                 const std::function<bool(std::string_view)>& subscribed,
                                 GroupRecords& out) {
  if (rule.rule == OffsetExpiry::Rule::never) return 0;
  std::vector<std::pair<std::string, std::int32_t>> expired;
  for (const auto& [topic, partitions] : topics_) {
    if (subscribed(topic)) continue;
    for (const auto& [partition, offset] : partitions) {
      if (past(offset, rule, retention_ms, wall_ms)) expired.emplace_back(topic, partition);
    }
  }
  for (const auto& [topic, partition] : expired) erase(topic, partition, out);
  return expired.size();
}

void GroupOffsets::replay(const std::string& topic, std::int32_t partition,
                          CommittedOffset offset) {
  if (topics_[topic].insert_or_assign(partition, std::move(offset)).second) ++size_;
}

void GroupOffsets::replay_erase(const std::string& topic, std::int32_t partition) {
  const auto its = topics_.find(topic);
  if (its == topics_.end()) return;
  size_ -= its->second.erase(partition);
  if (its->second.empty()) topics_.erase(its);
}

void GroupOffsets::snapshot(GroupRecords& out) const {
  for (const auto& [topic, partitions] : topics_) {
    for (const auto& [partition, offset] : partitions) {
      out.push_back({key_of(group_, topic, partition), value_of(offset)});
    }
  }
}

}  // namespace polylog::broker::groups
