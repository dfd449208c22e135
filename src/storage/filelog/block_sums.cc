#include "storage/filelog/block_sums.h"

#include <algorithm>

namespace polylog::storage {

void BlockSums::add(ByteView bytes) {
  while (!bytes.empty()) {
    const std::uint64_t room = block_bytes - size_ % block_bytes;
    const auto part =
        bytes.first(static_cast<std::size_t>(std::min<std::uint64_t>(room, bytes.size())));
    tail_.crc = crc32c_extend(tail_.crc, part);
    size_ += part.size();
    bytes = bytes.subspan(part.size());
    if (size_ % block_bytes == 0) {
      blocks_.push_back(tail_);
      tail_ = Block();
    }
  }
}

bool BlockSums::restore(std::uint64_t first_block, std::span<const Block> blocks, Block tail,
                        std::uint64_t size) {
  if (first_block > blocks_.size() || first_block + blocks.size() != size / block_bytes) {
    return false;
  }
  blocks_.resize(static_cast<std::size_t>(first_block));
  blocks_.insert(blocks_.end(), blocks.begin(), blocks.end());
  tail_ = tail;
  size_ = size;
  return true;
}

}  // namespace polylog::storage
