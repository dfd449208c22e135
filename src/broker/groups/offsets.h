#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "broker/groups/group.h"
#include "broker/groups/types.h"

namespace polylog::broker::groups {

// The committed offsets of one group. Every change is appended as the record that says it.
class GroupOffsets {
 public:
  using Partitions = std::map<std::int32_t, CommittedOffset>;
  using Topics = std::map<std::string, Partitions, std::less<>>;

  explicit GroupOffsets(std::string group) : group_(std::move(group)) {}

  const CommittedOffset* find(std::string_view topic, std::int32_t partition) const;
  const Topics& topics() const { return topics_; }
  bool empty() const { return topics_.empty(); }
  std::size_t size() const { return size_; }

  void commit(const std::string& topic, std::int32_t partition, CommittedOffset offset,
              GroupRecords& out);
  // False: there was none.
  bool erase(const std::string& topic, std::int32_t partition, GroupRecords& out);
  std::size_t erase_topic(const std::string& topic, GroupRecords& out);
  void erase_all(GroupRecords& out);

  // Drops those past retention; topics that `subscribed` names stay. Gives their number.
  std::size_t expire(const OffsetExpiry& rule, std::int64_t retention_ms, std::int64_t wall_ms,
                     const std::function<bool(std::string_view)>& subscribed, GroupRecords& out);

  // From a record, at load.
  void replay(const std::string& topic, std::int32_t partition, CommittedOffset offset);
  void replay_erase(const std::string& topic, std::int32_t partition);
  void snapshot(GroupRecords& out) const;

 private:
  std::string group_;
  Topics topics_;
  std::size_t size_ = 0;
};

}  // namespace polylog::broker::groups
