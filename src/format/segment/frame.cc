#include "format/segment/frame.h"

#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "bytes/endian.h"

namespace polylog::format::segment {
namespace {

constexpr std::size_t parts_bytes_max = std::numeric_limits<std::int32_t>::max();

bool all_zero(ByteView bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

void append_part(ByteView part, std::vector<std::uint8_t>& out) {
  std::array<std::uint8_t, 4> length;
  store_big(length.data(), static_cast<std::uint32_t>(part.size()));
  out.insert(out.end(), length.begin(), length.end());
  out.insert(out.end(), part.begin(), part.end());
}

}  // namespace

FrameHead next_frame(ByteView head, std::uint64_t remaining) {
  POLYLOG_ASSERT(head.size() >= std::min<std::uint64_t>(remaining, frame_head_bytes));
  const std::size_t seen = std::min<std::size_t>(head.size(), frame_head_bytes);
  if (remaining < frame_head_bytes) {
    const bool zeros = remaining != 0 && all_zero(head.first(static_cast<std::size_t>(remaining)));
    return {zeros ? FrameState::zeros : FrameState::torn, 0, {}};
  }
  const auto offset = load_big<std::uint64_t>(head.data() + frame_at::offset);
  const auto total = load_big<std::uint32_t>(head.data() + frame_at::total_length);
  const auto metadata = load_big<std::uint32_t>(head.data() + frame_at::metadata_length);
  if (total == 0 && all_zero(head.first(seen))) return {FrameState::zeros, 0, {}};
  if (offset > std::uint64_t{std::numeric_limits<std::int64_t>::max()} || metadata > total) {
    return {FrameState::corrupt, 0, {}};
  }
  const std::uint64_t size = frame_fixed_bytes + std::uint64_t{total};
  return {size > remaining ? FrameState::torn : FrameState::complete, size,
          Offset(static_cast<std::int64_t>(offset))};
}

Result<Frame> parse_frame(ByteView bytes) {
  if (bytes.size() < frame_fixed_bytes) {
    return fail(Errc::corrupt, "a record frame has 24 bytes at least");
  }
  const std::uint8_t* const at = bytes.data();
  const auto offset = load_big<std::uint64_t>(at + frame_at::offset);
  if (offset > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
    return fail(Errc::corrupt, "the frame's offset is beyond 2^63-1");
  }
  const std::size_t total = load_big<std::uint32_t>(at + frame_at::total_length);
  if (total != bytes.size() - frame_fixed_bytes) {
    return fail(Errc::corrupt, "the frame's total length does not fit its bytes");
  }
  // Each length is compared with what the total one leaves, so that no place is beyond the bytes.
  const std::size_t metadata = load_big<std::uint32_t>(at + frame_at::metadata_length);
  if (metadata > total) return fail(Errc::corrupt, "the frame's metadata length is too large");
  const std::size_t protocol_at = frame_at::metadata + metadata + 4;
  const std::size_t protocol = load_big<std::uint32_t>(at + protocol_at - 4);
  if (protocol > total - metadata) {
    return fail(Errc::corrupt, "the frame's protocol data length is too large");
  }
  const std::size_t data_at = protocol_at + protocol + 4;
  const std::size_t data = load_big<std::uint32_t>(at + data_at - 4);
  if (data != total - metadata - protocol) {
    return fail(Errc::corrupt, "the frame's three lengths don't add up to its total length");
  }
  return Frame{Offset(static_cast<std::int64_t>(offset)),
               bytes.subspan(frame_at::metadata, metadata), bytes.subspan(protocol_at, protocol),
               bytes.subspan(data_at, data)};
}

Result<void> encode(const Frame& frame, std::vector<std::uint8_t>& out) {
  if (frame.size() - frame_fixed_bytes > parts_bytes_max) {
    return fail(Errc::too_large, "a record frame holds 2147483647 bytes at most");
  }
  if (frame.offset < Offset(0)) return fail(Errc::invalid, "a record's offset is below 0");
  std::array<std::uint8_t, frame_at::metadata_length> head;
  store_big(head.data() + frame_at::offset, static_cast<std::uint64_t>(frame.offset.value()));
  store_big(head.data() + frame_at::total_length,
            static_cast<std::uint32_t>(frame.size() - frame_fixed_bytes));
  out.insert(out.end(), head.begin(), head.end());
  append_part(frame.metadata, out);
  append_part(frame.protocol_data, out);
  append_part(frame.data, out);
  return {};
}

}  // namespace polylog::format::segment
