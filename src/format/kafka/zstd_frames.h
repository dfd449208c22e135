#pragma once

#include <cstdint>
#include <optional>

#include "bytes/slice.h"

namespace polylog::format::kafka {

// What the frames of a zstd stream demand, read from frame and block headers alone (RFC 8878,
// "Frames" and "Blocks").
struct ZstdDemand {
  std::uint64_t output_max = 0;  // upper bound: 128 KiB per compressed block, exact otherwise
  std::uint64_t window_max = 0;  // of the frame that wants most
};

// Nothing when the headers don't chain up to exactly the end of the input.
std::optional<ZstdDemand> zstd_demand(ByteView in);

}  // namespace polylog::format::kafka
