#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/crc.h"
#include "bytes/slice.h"

namespace polylog::storage {

// CRC-32C of every 64 KiB block of an append-only file, and where the first frame in each block
// starts. Kept beside the file (see sidecar.h), it covers what the layout's own checksums leave
// out (offsets, lengths) and tells where to go on reading after a damaged block.
class BlockSums {
 public:
  static constexpr std::uint64_t block_bytes = 64 * 1024;
  static constexpr std::uint32_t no_frame = 0xffffffff;

  struct Block {
    std::uint32_t crc = 0;
    std::uint32_t first_frame = no_frame;  // offset in the block of the first frame start
    bool operator==(const Block&) const = default;
  };

  std::uint64_t size() const { return size_; }
  // Blocks that are full; the last, partial one is tail().
  const std::vector<Block>& blocks() const { return blocks_; }
  const Block& tail() const { return tail_; }

  // Adds bytes at the end of the file; a frame starts at the first of them.
  void add_frame(ByteView frame) {
    if (tail_.first_frame == no_frame) {
      tail_.first_frame = static_cast<std::uint32_t>(size_ % block_bytes);
    }
    add(frame);
  }
  // Adds bytes that continue what was added last.
  void add(ByteView bytes);

  // Forgets everything; the next byte added is the file's first.
  void clear() { *this = BlockSums(); }
  // Takes over what a sidecar recorded: blocks from number `first_block` on, the partial block
  // after them, the file's size. False, and nothing changed, when that does not fit together.
  bool restore(std::uint64_t first_block, std::span<const Block> blocks, Block tail,
               std::uint64_t size);

 private:
  std::vector<Block> blocks_;
  Block tail_;
  std::uint64_t size_ = 0;
};

}  // namespace polylog::storage
