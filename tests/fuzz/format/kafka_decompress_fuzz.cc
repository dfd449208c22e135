#include <cstdint>
#include <optional>

#include "base/assert.h"
#include "format/kafka/compression.h"
#include "format/kafka/zstd_frames.h"

// The first byte chooses codec (low half) and output limit (high half); the rest is the stream.

using namespace polylog;
using namespace polylog::format::kafka;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::optional<Codec> codec = codec_of(data[0] & 0x0f);
  if (!codec) return 0;
  const std::size_t output_max = std::size_t{1} << (7 + (data[0] >> 4));  // 128 bytes to 4 MiB
  const ByteView in(data + 1, size - 1);
  const std::uint64_t estimate = output_estimate(*codec, in);
  std::size_t total = 0;
  const Result<void> done = decompress(*codec, in, output_max, [&](ByteView piece) {
    total += piece.size();
    return true;
  });
  POLYLOG_ASSERT(total <= output_max);
  // Where blocks can be counted the estimate is an upper bound of what is really there.
  if (done && (*codec == Codec::zstd || *codec == Codec::snappy)) {
    POLYLOG_ASSERT(total <= estimate);
  }
  return 0;
}
