#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace polylog::broker::groups {

// One record for __consumer_offsets, encoded (format/kafka/group_records.h). Without a value it is
// a tombstone.
struct GroupRecord {
  std::vector<std::uint8_t> key;
  std::optional<std::vector<std::uint8_t>> value;
  std::int64_t timestamp_ms = -1;  // wall; -1: when it is written
};
using GroupRecords = std::vector<GroupRecord>;

}  // namespace polylog::broker::groups
