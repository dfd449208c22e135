#pragma once

#include <cstdint>

namespace polylog::storage {

// Per-partition settings an engine acts on, under Kafka's topic config names. -1 = no limit.
struct LogConfig {
  std::int64_t segment_bytes = 1073741824;
  std::int64_t segment_ms = 604800000;
  std::int64_t segment_jitter_ms = 0;
  std::int64_t segment_index_bytes = 10485760;
  std::int64_t index_interval_bytes = 4096;
  std::int64_t retention_bytes = -1;
  std::int64_t retention_ms = 604800000;
  std::int64_t file_delete_delay_ms = 60000;
  // True for a topic found without any settings: nothing is ever deleted until confirmed.
  bool retention_suspended = false;
  bool operator==(const LogConfig&) const = default;
};

}  // namespace polylog::storage
