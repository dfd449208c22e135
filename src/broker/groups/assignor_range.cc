#include <algorithm>
#include <vector>

#include "broker/groups/assignor.h"

namespace polylog::broker::groups {
namespace {

using Entry = std::map<std::string, AssignorMember>::const_pointer;

// Members with an instance id keep their place however often their member id changes.
bool before(Entry a, Entry b) {
  const std::optional<std::string>& left = a->second.instance_id;
  const std::optional<std::string>& right = b->second.instance_id;
  if (left.has_value() != right.has_value()) return left.has_value();
  if (left && *left != *right) return *left < *right;
  return a->first < b->first;
}

}  // namespace

TargetAssignment assign_range(const AssignorInput& input) {
  TargetAssignment target;
  std::vector<Entry> order;
  for (const auto& entry : input.members) {
    target.try_emplace(entry.first);
    order.push_back(&entry);
  }
  std::sort(order.begin(), order.end(), before);

  std::map<Uuid, std::vector<Entry>> subscribers;
  for (const Entry member : order) {
    for (const Uuid& topic : member->second.topics) subscribers[topic].push_back(member);
  }
  for (const auto& [topic, members] : subscribers) {
    const auto count = static_cast<std::int32_t>(members.size());
    const std::int32_t partitions = input.partitions.at(topic);
    std::int32_t next = 0;
    for (std::int32_t i = 0; i < count; ++i) {
      const std::int32_t share = partitions / count + (i < partitions % count ? 1 : 0);
      if (share == 0) break;
      std::set<std::int32_t>& mine = target[members[static_cast<std::size_t>(i)]->first][topic];
      for (const std::int32_t end = next + share; next < end; ++next) mine.insert(mine.end(), next);
    }
  }
  return target;
}

Assignor find_assignor(std::string_view name) {
  if (name == assignor_uniform) return assign_uniform;
  if (name == assignor_range) return assign_range;
  return nullptr;
}

}  // namespace polylog::broker::groups
