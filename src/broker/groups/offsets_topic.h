#pragma once

#include <cstdint>
#include <string_view>

#include "format/rocketmq/properties.h"

namespace polylog::broker::groups {

// Where groups and their committed offsets are kept. In the kafka layout, always.
inline constexpr const char* offsets_topic = "__consumer_offsets";

// The partition of it that a group lives in (Kafka log format, "Internal topics"):
// Java's String.hashCode of its id, made positive, modulo. REQUIRES: partitions > 0.
inline std::int32_t partition_of_group(std::string_view group, std::int32_t partitions) {
  const std::int32_t hash = format::rocketmq::java_hash(group);
  if (hash == INT32_MIN) return 0;
  return (hash < 0 ? -hash : hash) % partitions;
}

}  // namespace polylog::broker::groups
