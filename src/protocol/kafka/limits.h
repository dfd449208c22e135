#pragma once

#include <cstddef>
#include <cstdint>

namespace polylog::protocol::kafka {

// The one list of sizes that the Kafka protocol's decoders and encoders hold input against.

// socket.request.max.bytes: the largest request frame, without its own 4 bytes of size.
inline constexpr std::size_t frame_bytes_max = 104'857'600;

// sasl.server.max.receive.size: the largest frame of a peer that still has to authenticate.
inline constexpr std::size_t frame_bytes_max_unauthenticated = 524'288;

// Kafka's messages refuse longer strings in both encodings, though only the older one (a 16-bit
// length) has to.
inline constexpr std::size_t string_bytes_max = 32'767;

inline constexpr std::size_t bytes_bytes_max = 2'147'483'647;  // bytes, records, a whole response

// Memory that an array takes before its first element is read, per byte still to be read. More
// is taken only as elements arrive; see Decoder::elements.
inline constexpr std::size_t array_bytes_up_front_max = 1;

}  // namespace polylog::protocol::kafka
