#include "storage/filelog/block_check.h"

#include <algorithm>

namespace polylog::storage {
namespace {

constexpr std::uint64_t block_bytes = BlockSums::block_bytes;

}  // namespace

BlockCheck::BlockCheck(const BlockSums& expected)
    : expected_(expected),
      size_(expected.size()),
      states_(expected.blocks().size() + (expected.size() % block_bytes > 0 ? 1 : 0),
              State::unchecked) {}

Result<BlockCheck::State> BlockCheck::judge(const fs::File& file, std::size_t index,
                                            bool wait) const {
  if (states_[index] != State::unchecked) return states_[index];
  const auto& blocks = expected_.blocks();
  const bool whole = index < blocks.size();
  std::vector<std::uint8_t> block(
      static_cast<std::size_t>(whole ? block_bytes : expected_.size() % block_bytes));
  std::size_t filled = 0;
  while (filled < block.size()) {
    POLYLOG_ASSIGN(got, file.read(index * block_bytes + filled, MutableBytes(block).subspan(filled),
                                  wait));
    if (got == 0) break;
    filled += got;
  }
  if (filled < block.size() && !wait) return fail(Errc::would_block, "block not in memory");
  const std::uint32_t expected = whole ? blocks[index].crc : expected_.tail().crc;
  const bool good = crc32c(ByteView(block).first(filled)) == expected;
  states_[index] = good ? State::good : State::bad;
  return states_[index];
}

Result<bool> BlockCheck::match(const fs::File& file, std::uint64_t from, std::uint64_t to,
                               bool wait) const {
  // Whoever has it may be reading from the disk.
  std::unique_lock lock(mutex_, std::defer_lock);
  if (wait) {
    lock.lock();
  } else if (!lock.try_lock()) {
    return fail(Errc::would_block, "somebody else looks at this file's blocks");
  }
  to = std::min(to, size_);
  bool all_good = true;
  for (std::uint64_t i = from / block_bytes; i * block_bytes < to; ++i) {
    POLYLOG_ASSIGN(state, judge(file, static_cast<std::size_t>(i), wait));
    all_good = all_good && state == State::good;
  }
  return all_good;
}

std::optional<std::uint64_t> BlockCheck::next_frame_after(std::uint64_t position) const {
  const std::lock_guard lock(mutex_);
  const auto& blocks = expected_.blocks();
  for (std::uint64_t i = position / block_bytes; i <= blocks.size(); ++i) {
    const BlockSums::Block& block =
        i < blocks.size() ? blocks[static_cast<std::size_t>(i)] : expected_.tail();
    if (block.first_frame == BlockSums::no_frame) continue;
    const std::uint64_t start = i * block_bytes + block.first_frame;
    if (start > position && start < size_) return start;
  }
  return position < size_ ? std::optional(size_) : std::nullopt;
}

Result<void> BlockCheck::cut(const fs::File& file, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  if (size >= size_) return {};
  if (size % block_bytes > 0) {
    POLYLOG_TRY(judge(file, static_cast<std::size_t>(size / block_bytes), true)
                    .map([](const auto&) {}));
  }
  size_ = size;
  return {};
}

}  // namespace polylog::storage
