#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bytes/slice.h"

// RFC 4648 section 4: the standard alphabet, with padding.
namespace polylog::format {

constexpr std::size_t base64_size(std::size_t bytes) { return (bytes + 2) / 3 * 4; }

void append_base64(std::string& text, ByteView bytes);

// Appends what the text stands for to `out`. False, and `out` as it was: not base64. One text for
// each value only: no white space, padding as required, no bits left over.
bool decode_base64(std::string_view text, std::vector<std::uint8_t>& out);

}  // namespace polylog::format
