#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace polylog::server::kafka {

// What keeps a partition from being on these brokers, in Kafka's words; "" when they are this
// node and no other. Each such list is refused with INVALID_REPLICA_ASSIGNMENT.
inline std::string wrong_with_replicas(const std::vector<std::int32_t>& replicas,
                                       std::int32_t node_id) {
  if (replicas.empty()) return "The manual partition assignment includes an empty replica list.";
  const auto stranger = std::find_if(replicas.begin(), replicas.end(),
                                     [node_id](std::int32_t id) { return id != node_id; });
  if (stranger != replicas.end()) {
    return "The manual partition assignment includes broker " + std::to_string(*stranger) +
           ", but no such broker is registered.";
  }
  if (replicas.size() > 1) {
    return "The manual partition assignment includes the broker " + std::to_string(node_id) +
           " more than once.";
  }
  return "";
}

}  // namespace polylog::server::kafka
