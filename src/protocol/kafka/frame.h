#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "bytes/writer.h"

namespace polylog::protocol::kafka {

// A frame on the wire: a big-endian 32-bit size that excludes itself, a header, a body.
inline constexpr std::size_t frame_size_bytes = 4;

// The size that a frame's first four bytes announce, before anything is allocated for it. Errors:
// too_large (above `bytes_max`; see limits.h) or invalid (negative, or too small for a request
// header). Both mean that the connection has to be closed; the text says so when the bytes look
// like another protocol's greeting (TLS, HTTP, MQTT).
Result<std::size_t> frame_size(std::span<const std::uint8_t, frame_size_bytes> prefix,
                               std::size_t bytes_max);

// Writes the place of the size into an empty writer, and fills it in at the end. end_frame fails
// with too_large when the frame is above 2^31-1 bytes.
// REQUIRES: nothing else was written before begin_frame.
void begin_frame(ByteWriter& out);
Result<void> end_frame(ByteWriter& out);

}  // namespace polylog::protocol::kafka
