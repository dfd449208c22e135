#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"
#include "fs/file_system.h"
#include "storage/filelog/block_sums.h"

namespace polylog::storage {

// Checks a data file against the sums that the sidecar kept of it: each whole 64 KiB block once,
// when it is first read from disk. Thread-safe.
class BlockCheck {
 public:
  explicit BlockCheck(const BlockSums& expected);

  // Looks at the blocks that cover [from, to) and are known. False: some block does not match, and
  // the frames in it must prove themselves. would_block: not in memory, and `wait` is false.
  Result<bool> match(const fs::File& file, std::uint64_t from, std::uint64_t to, bool wait) const;
  // First position beyond `position` where a frame starts, as the sums remember.
  std::optional<std::uint64_t> next_frame_after(std::uint64_t position) const;

 private:
  enum class State : std::uint8_t { unchecked, good, bad };

  const BlockSums expected_;
  mutable std::mutex mutex_;
  mutable std::vector<State> states_;
};

}  // namespace polylog::storage
