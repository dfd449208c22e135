#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"
#include "fs/file_system.h"
#include "storage/filelog/block_sums.h"

namespace polylog::storage {

// Checks a data file against the sums that the sidecar kept of it: each 64 KiB block once, when it
// is first read from disk. Of the last, partial block exactly the bytes that were summed count: the
// file may have grown since. Thread-safe.
class BlockCheck {
 public:
  explicit BlockCheck(const BlockSums& expected);

  // Looks at the blocks that cover [from, to) and are known. False: some block does not match, and
  // the frames in it must prove themselves. would_block: not in memory, and `wait` is false.
  Result<bool> match(const fs::File& file, std::uint64_t from, std::uint64_t to, bool wait) const;
  // First position beyond `position` where a frame starts, as the sums remember. Where the summed
  // bytes end one starts, too, once the file has grown.
  std::optional<std::uint64_t> next_frame_after(std::uint64_t position) const;

  // The file is about to be cut to `size` bytes, a frame's boundary: the block that is cut in two
  // is judged while it is whole, and nothing is known of what will stand behind.
  Result<void> cut(const fs::File& file, std::uint64_t size);

 private:
  enum class State : std::uint8_t { unchecked, good, bad };

  Result<State> judge(const fs::File& file, std::size_t index, bool wait) const;

  const BlockSums expected_;
  mutable std::mutex mutex_;
  std::uint64_t size_;                 // bytes that the sums still tell of
  mutable std::vector<State> states_;  // of the whole blocks and the partial one
};

}  // namespace polylog::storage
