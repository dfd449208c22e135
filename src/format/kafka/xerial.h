#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "bytes/slice.h"

// The stream form of snappy-java, which Java's Kafka clients write (Kafka log format,
// "Compression framing", snappy): a header, then blocks of `i32 big-endian length, raw snappy`.
// The header may come again where streams were glued together.
namespace polylog::format::kafka {

inline constexpr std::size_t xerial_header_bytes = 16;
inline constexpr std::size_t xerial_magic_bytes = 8;
inline constexpr std::array<std::uint8_t, xerial_header_bytes> xerial_header{
    0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0,  // magic
    0, 0, 0, 1,                             // version
    0, 0, 0, 1,                             // oldest version able to read it
};
// Uncompressed bytes in a block as written.
inline constexpr std::size_t xerial_block_bytes = 32768;

inline bool begins_with_xerial_magic(ByteView bytes) {
  return bytes.size() >= xerial_magic_bytes &&
         std::equal(xerial_header.begin(), xerial_header.begin() + xerial_magic_bytes,
                    bytes.begin());
}

}  // namespace polylog::format::kafka
