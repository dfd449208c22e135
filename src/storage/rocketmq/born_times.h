#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/ids.h"

namespace polylog::storage::rocketmq {

// Largest born timestamp of each block of a queue's entries, so that a lookup by record time reads
// one block instead of the queue. The layout orders by store time only; born times come from
// clients in any order. Filled as records are dispatched; what an earlier run wrote is filled in by
// the lookups that need it. Guarded by the store's lock.
class BornTimes {
 public:
  static constexpr std::int64_t block_entries = 1024;
  static std::int64_t block_of(std::int64_t offset) { return offset / block_entries; }

  // The entry at `offset` was added; offsets come in order.
  void note(std::int64_t offset, std::int64_t born_ms) {
    if (offset % block_entries == 0) {
      current_ = block_of(offset);
      current_max_ = born_ms;
    } else if (current_ == block_of(offset)) {
      current_max_ = std::max(current_max_, born_ms);
    }
    if (offset % block_entries == block_entries - 1 && current_ == block_of(offset)) {
      learn(current_, current_max_);
    }
  }
  void learn(std::int64_t block, std::int64_t max_ms) { known_[block] = max_ms; }
  // Of a block all of whose entries exist.
  std::optional<std::int64_t> largest(std::int64_t block) const {
    const auto found = known_.find(block);
    if (found == known_.end()) return std::nullopt;
    return found->second;
  }
  // The queue was cut: entries at and beyond `end` are gone.
  void cut(std::int64_t end) {
    std::erase_if(known_, [end](const auto& entry) { return entry.first >= block_of(end); });
    current_ = -1;
  }

 private:
  std::unordered_map<std::int64_t, std::int64_t> known_;
  std::int64_t current_ = -1;  // block being filled from its first entry on
  std::int64_t current_max_ = 0;
};

}  // namespace polylog::storage::rocketmq
