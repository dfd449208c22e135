#pragma once

#include <mutex>
#include <set>
#include <string>

#include "storage/store.h"

namespace polylog::broker {

// Who writes the next segment of a partition, where this broker is the only one: it does, unless
// the topic is on its way out. Thread-safe; never waits.
class LocalGrants final : public storage::SegmentGrants {
 public:
  // fenced: the topic is being deleted.
  Result<void> grant(const TopicPartition& id, std::int64_t number, Offset start) override;

  void topic_deleting(const std::string& topic);
  void topic_gone(const std::string& topic);  // the name is free again

 private:
  std::mutex mutex_;
  std::set<std::string> deleting_;
};

}  // namespace polylog::broker
