#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "fs/file_system.h"

namespace polylog::storage {

// Searches a file of fixed-size entries sorted by a key: Kafka's indexes, RocketMQ's queues.
// Reads a few entries at a time, so that nothing has to stay in memory for a cold file.
class FixedEntries {
 public:
  FixedEntries(const fs::File& file, std::size_t entry_bytes, std::uint64_t count)
      : file_(file), entry_bytes_(entry_bytes), count_(count) {}

  std::uint64_t count() const { return count_; }
  // The bytes of entry `i`. REQUIRES: i < count().
  Result<std::vector<std::uint8_t>> entry(std::uint64_t i) const;

  // Index of the last entry for which `before(entry bytes)` holds, nullopt if for none.
  // REQUIRES: `before` holds for a prefix of the entries.
  template <typename F>
  Result<std::optional<std::uint64_t>> last_where(F&& before) const {
    std::uint64_t low = 0, high = count_;
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      POLYLOG_ASSIGN(bytes, entry(middle));
      if (before(ByteView(bytes))) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    if (low == 0) return std::optional<std::uint64_t>();
    return std::optional<std::uint64_t>(low - 1);
  }

 private:
  const fs::File& file_;
  std::size_t entry_bytes_;
  std::uint64_t count_;
};

}  // namespace polylog::storage
