#include "storage/filelog/block_check.h"

namespace polylog::storage {
namespace {

constexpr std::uint64_t block_bytes = BlockSums::block_bytes;

}  // namespace

BlockCheck::BlockCheck(const BlockSums& expected)
    : expected_(expected), states_(expected.blocks().size(), State::unchecked) {}

Result<bool> BlockCheck::match(const fs::File& file, std::uint64_t from, std::uint64_t to,
                               bool wait) const {
  const std::lock_guard lock(mutex_);
  bool all_good = true;
  std::vector<std::uint8_t> block;
  for (std::uint64_t i = from / block_bytes; i * block_bytes < to; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (at >= states_.size()) break;
    if (states_[at] == State::unchecked) {
      block.resize(block_bytes);
      POLYLOG_ASSIGN(got, file.read(i * block_bytes, block, wait));
      if (got < block.size() && !wait) return fail(Errc::would_block, "block not in memory");
      const bool good = crc32c(ByteView(block).first(got)) == expected_.blocks()[at].crc;
      states_[at] = good ? State::good : State::bad;
    }
    all_good = all_good && states_[at] == State::good;
  }
  return all_good;
}

std::optional<std::uint64_t> BlockCheck::next_frame_after(std::uint64_t position) const {
  const auto& blocks = expected_.blocks();
  for (std::uint64_t i = position / block_bytes; i <= blocks.size(); ++i) {
    const BlockSums::Block& block =
        i < blocks.size() ? blocks[static_cast<std::size_t>(i)] : expected_.tail();
    if (block.first_frame == BlockSums::no_frame) continue;
    const std::uint64_t start = i * block_bytes + block.first_frame;
    if (start > position && start < expected_.size()) return start;
  }
  return std::nullopt;
}

}  // namespace polylog::storage
