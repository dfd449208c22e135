#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bytes/slice.h"

// The codecs of a record batch's payload (Kafka log format, "Compression framing"). Everything
// here reads hostile bytes: work and memory are bounded by the output cap the caller gives.
namespace polylog::format::kafka {

// Values are those of attribute bits 0-2.
enum class Codec : std::uint8_t { none = 0, gzip = 1, snappy = 2, lz4 = 3, zstd = 4 };

// "none", "gzip", "snappy", "lz4", "zstd".
std::string_view to_string(Codec codec);
// The same names, and "uncompressed" for none. invalid: anything else ("producer" included,
// which is no codec).
Result<Codec> parse_codec(std::string_view name);
// From attribute bits; nothing for the unassigned 5 to 7.
std::optional<Codec> codec_of(int bits);

// A codec's level when nothing is configured, and whether a configured one is legal (gzip -1 and
// 1..9, lz4 1..17, zstd -131072..22; the others have none).
int default_level(Codec codec);
bool valid_level(Codec codec, int level);

// Decompresses as a stream, on demand: next() gives the following piece of output until an
// empty one marks the end. Owned and used by one thread at a time; the input must outlive it.
//
// Memory: 64 KiB of scratch, plus what the stream's own form forces: gzip 32 KiB, lz4 two blocks
// (at most 8 MiB), snappy one block (checked against the cap and against the best ratio snappy
// can reach before it is allocated), zstd its window (at most 32 MiB).
class Decompressor {
 public:
  Decompressor(Codec codec, ByteView in, std::size_t output_max);
  ~Decompressor();
  Decompressor(Decompressor&&) noexcept;
  Decompressor& operator=(Decompressor&&) noexcept;

  // The view lives until the next call. too_large: more than `output_max` comes out, or the
  // stream demands more memory than allowed. corrupt: malformed, cut short, or bytes follow the
  // end of the stream. An error repeats on later calls.
  Result<ByteView> next();

  class Source;  // one codec's stream; defined with the codecs

 private:
  std::unique_ptr<Source> source_;
  std::size_t room_;
  std::optional<Error> failed_;
};

// Feeds each piece to `sink(ByteView) -> bool`; false stops early, which is no error.
template <typename Sink>
Result<void> decompress(Codec codec, ByteView in, std::size_t output_max, Sink&& sink) {
  Decompressor stream(codec, in, output_max);
  for (;;) {
    Result<ByteView> piece = stream.next();
    if (!piece) return fail(std::move(piece).error());
    if (piece->empty() || !sink(*piece)) return {};
  }
}

Result<std::vector<std::uint8_t>> decompress_all(Codec codec, ByteView in, std::size_t output_max);

// What will come out, without decompressing: exact where the form says so (snappy), an upper
// bound where blocks can be counted (lz4, zstd), the writer's own claim for gzip, which may lie.
// Malformed input gives 0: decompressing it ends at once.
std::uint64_t output_estimate(Codec codec, ByteView in);

// Compresses the way Kafka's own producers do: snappy in the framed ("xerial") shape, lz4 as a
// frame of independent 64 KiB blocks without checksums, zstd without content size. `level` as in
// valid_level(); for lz4 9 means the fast compressor, as in Kafka. invalid: a level out of
// range. too_large: beyond 2^31-1 bytes in or out.
Result<std::vector<std::uint8_t>> compress(Codec codec, int level, ByteView in);

}  // namespace polylog::format::kafka
