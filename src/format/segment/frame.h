#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "bytes/slice.h"
#include "format/segment/fields.h"

// The record frame that RobustMQ published (RobustMQ storage page, "on-disk layout of a record"):
// what the .msg files hold, back to back, big-endian, 24 fixed bytes between three variable parts.
// It has no magic, version or checksum of its own; what fills the parts is record.h's (ours) or
// robustmq.h's (RobustMQ's). Byte table: docs/formats/segment-file.md.
namespace polylog::format::segment {

inline constexpr std::size_t frame_fixed_bytes = 24;
inline constexpr std::size_t frame_head_bytes = 16;  // what next_frame() looks at

namespace frame_at {
inline constexpr std::size_t offset = 0;        // u64
inline constexpr std::size_t total_length = 8;  // u32: the three variable parts together
inline constexpr std::size_t metadata_length = 12;
inline constexpr std::size_t metadata = 16;
}  // namespace frame_at
// The front; the other lengths stand between the parts.
inline constexpr std::array<Field, 3> frame_fields{{
    {"offset", frame_at::offset, 8},
    {"totalLength", frame_at::total_length, 4},
    {"metadataLength", frame_at::metadata_length, 4},
}};
static_assert(contiguous(frame_fields, frame_at::metadata));

// One frame's parts; views into the bytes it was parsed from, or is to be encoded from.
struct Frame {
  Offset offset;
  ByteView metadata;
  ByteView protocol_data;
  ByteView data;

  std::size_t size() const {
    return frame_fixed_bytes + metadata.size() + protocol_data.size() + data.size();
  }
};

// What begins at a place of a segment file, as far as its first bytes tell.
enum class FrameState {
  complete,  // `size` bytes make a frame, if its inner lengths agree (parse_frame says)
  zeros,     // never written: reserved ahead
  torn,      // the file (or window) ends inside the frame it announces; `size` 0 = unknown
  corrupt,   // no frame can begin so
};
struct FrameHead {
  FrameState state = FrameState::corrupt;
  std::uint64_t size = 0;  // complete, torn: of the whole frame
  Offset offset;           // complete, torn with a known size
};
// Judges the first 16 bytes; `remaining` is what is left of the file from here. An offset beyond
// 2^63-1 or a metadata length that does not fit into the total one is corrupt.
// REQUIRES: head.size() >= min(remaining, 16).
FrameHead next_frame(ByteView head, std::uint64_t remaining);

// One whole frame, exactly. corrupt: the three lengths don't add up to the total one.
Result<Frame> parse_frame(ByteView bytes);

// Appends the frame. too_large: the parts come to more than 2^31-1 bytes; invalid: an offset below
// 0.
Result<void> encode(const Frame& frame, std::vector<std::uint8_t>& out);

}  // namespace polylog::format::segment
