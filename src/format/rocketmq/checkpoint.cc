#include "format/rocketmq/checkpoint.h"

#include <algorithm>

#include "bytes/endian.h"

namespace polylog::format::rocketmq {
namespace {

// Timestamps and what they stand for are not taken at the same instant.
constexpr std::int64_t margin_ms = 3000;

}  // namespace

std::array<std::uint8_t, checkpoint_bytes> encode_checkpoint(const Checkpoint& checkpoint) {
  std::array<std::uint8_t, checkpoint_bytes> bytes{};
  store_big(bytes.data(), checkpoint.physical_timestamp);
  store_big(bytes.data() + 8, checkpoint.queue_timestamp);
  store_big(bytes.data() + 16, checkpoint.index_timestamp);
  store_big(bytes.data() + 24, checkpoint.master_flushed_offset);
  store_big(bytes.data() + 32, checkpoint.confirm_physical_offset);
  return bytes;
}

Result<Checkpoint> decode_checkpoint(ByteView bytes) {
  Checkpoint checkpoint;
  if (bytes.empty()) return checkpoint;
  if (bytes.size() < checkpoint_used_bytes) {
    return fail(Errc::corrupt,
                "a checkpoint has at least 40 bytes, not " + std::to_string(bytes.size()));
  }
  checkpoint.physical_timestamp = load_big<std::int64_t>(bytes.data());
  checkpoint.queue_timestamp = load_big<std::int64_t>(bytes.data() + 8);
  checkpoint.index_timestamp = load_big<std::int64_t>(bytes.data() + 16);
  checkpoint.master_flushed_offset = load_big<std::int64_t>(bytes.data() + 24);
  checkpoint.confirm_physical_offset = load_big<std::int64_t>(bytes.data() + 32);
  return checkpoint;
}

std::int64_t recovery_timestamp(const Checkpoint& checkpoint, bool with_index) {
  const std::int64_t both = std::min(checkpoint.physical_timestamp, checkpoint.queue_timestamp);
  const std::int64_t from = both > margin_ms ? both - margin_ms : 0;
  return with_index ? std::min(from, std::max<std::int64_t>(checkpoint.index_timestamp, 0)) : from;
}

}  // namespace polylog::format::rocketmq
