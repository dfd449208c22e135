#pragma once

#include <cstdint>

// Sets of operations by their numbers (Kafka wire protocol, "ACLs"): without an authorizer
// everybody may do everything.
namespace polylog::server::kafka {

inline constexpr std::int32_t topic_operations = 0x0df8;
inline constexpr std::int32_t group_operations = 0x0d48;
inline constexpr std::int32_t cluster_operations = 0x1fa0;

}  // namespace polylog::server::kafka
