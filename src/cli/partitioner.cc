#include "cli/partitioner.h"

#include "bytes/endian.h"

namespace polylog::cli {

std::int32_t murmur2(ByteView bytes) {
  constexpr std::uint32_t seed = 0x9747b28c, multiplier = 0x5bd1e995;
  constexpr int shift = 24;
  std::uint32_t hash = seed ^ static_cast<std::uint32_t>(bytes.size());
  while (bytes.size() >= 4) {
    std::uint32_t word = load_little<std::uint32_t>(bytes.data()) * multiplier;
    word = (word ^ word >> shift) * multiplier;
    hash = hash * multiplier ^ word;
    bytes = bytes.subspan(4);
  }
  if (!bytes.empty()) {
    std::uint32_t rest = 0;
    for (std::size_t i = bytes.size(); i-- > 0;) rest = rest << 8 | bytes[i];
    hash = (hash ^ rest) * multiplier;
  }
  hash = (hash ^ hash >> 13) * multiplier;
  return static_cast<std::int32_t>(hash ^ hash >> 15);
}

std::int32_t Partitioner::choose(const std::optional<ByteView>& key) {
  if (key) return (murmur2(*key) & 0x7fffffff) % partitions_;
  const std::int32_t chosen = next_;
  next_ = (next_ + 1) % partitions_;
  return chosen;
}

}  // namespace polylog::cli
