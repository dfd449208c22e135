#include "broker/segment_grants.h"

namespace polylog::broker {

Result<void> LocalGrants::grant(const TopicPartition& id, std::int64_t, Offset) {
  const std::lock_guard lock(mutex_);
  if (!deleting_.contains(id.topic)) return {};
  return fail(Errc::fenced, "topic " + id.topic + " is being deleted");
}

void LocalGrants::topic_deleting(const std::string& topic) {
  const std::lock_guard lock(mutex_);
  deleting_.insert(topic);
}

void LocalGrants::topic_gone(const std::string& topic) {
  const std::lock_guard lock(mutex_);
  deleting_.erase(topic);
}

}  // namespace polylog::broker
