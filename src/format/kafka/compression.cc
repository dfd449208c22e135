#include "format/kafka/compression.h"

#include <lz4frame.h>
#include <snappy.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "base/assert.h"
#include "bytes/endian.h"
#include "format/kafka/xerial.h"

namespace polylog::format::kafka {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::array<std::string_view, 5> names{"none", "gzip", "snappy", "lz4", "zstd"};
constexpr std::size_t bytes_max = std::numeric_limits<std::int32_t>::max();
// lz4 levels are those of Kafka's library: this one selects its fast compressor.
constexpr int lz4_fast_level = 9;

Result<Bytes> gzip(int level, ByteView in) {
  z_stream stream{};
  constexpr int window_bits_gzip = 15 + 16;
  constexpr int memory_level = 8;
  if (deflateInit2(&stream, level, Z_DEFLATED, window_bits_gzip, memory_level,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return fail(Errc::io, "gzip: no memory for the compressor");
  }
  Bytes out(deflateBound(&stream, static_cast<uLong>(in.size())));
  stream.next_in = const_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  POLYLOG_ASSERT(status == Z_STREAM_END);  // deflateBound is enough for one call
  return out;
}

Result<Bytes> snappy_framed(ByteView in) {
  Bytes out(xerial_header.begin(), xerial_header.end());
  while (!in.empty()) {
    const ByteView block = in.first(std::min(in.size(), xerial_block_bytes));
    const std::size_t at = out.size();
    out.resize(at + sizeof(std::int32_t) + snappy::MaxCompressedLength(block.size()));
    std::size_t size = 0;
    snappy::RawCompress(reinterpret_cast<const char*>(block.data()), block.size(),
                        reinterpret_cast<char*>(out.data() + at + sizeof(std::int32_t)), &size);
    store_big(out.data() + at, static_cast<std::int32_t>(size));
    out.resize(at + sizeof(std::int32_t) + size);
    in = in.subspan(block.size());
  }
  return out;
}

Result<Bytes> lz4(int level, ByteView in) {
  LZ4F_preferences_t preferences{};
  preferences.frameInfo.blockSizeID = LZ4F_max64KB;
  preferences.frameInfo.blockMode = LZ4F_blockIndependent;
  preferences.frameInfo.contentChecksumFlag = LZ4F_noContentChecksum;
  preferences.frameInfo.blockChecksumFlag = LZ4F_noBlockChecksum;
  constexpr int hc_min = 3;
  constexpr int hc_max = 12;
  preferences.compressionLevel = level == lz4_fast_level ? 0 : std::clamp(level, hc_min, hc_max);
  LZ4F_cctx* context = nullptr;
  if (LZ4F_isError(LZ4F_createCompressionContext(&context, LZ4F_VERSION)) != 0) {
    return fail(Errc::io, "lz4: no memory for the compressor");
  }
  // Not LZ4F_compressFrame: it shrinks the block size for small inputs, and the header then
  // differs from the one every Kafka client writes.
  constexpr std::size_t header_max = 19;  // of a frame header
  Bytes out(header_max + LZ4F_compressBound(in.size(), &preferences) +
            LZ4F_compressBound(0, &preferences));
  std::size_t at = 0;
  std::size_t size = LZ4F_compressBegin(context, out.data(), out.size(), &preferences);
  if (LZ4F_isError(size) == 0) {
    at += size;
    size = LZ4F_compressUpdate(context, out.data() + at, out.size() - at, in.data(), in.size(),
                               nullptr);
  }
  if (LZ4F_isError(size) == 0) {
    at += size;
    size = LZ4F_compressEnd(context, out.data() + at, out.size() - at, nullptr);
  }
  LZ4F_freeCompressionContext(context);
  if (LZ4F_isError(size) != 0) {
    return fail(Errc::io, std::string("lz4: ") + LZ4F_getErrorName(size));
  }
  out.resize(at + size);
  return out;
}

Result<Bytes> zstd(int level, ByteView in) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  if (context == nullptr) return fail(Errc::io, "zstd: no memory for the compressor");
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 0);
  Bytes out(ZSTD_compressBound(in.size()));
  const std::size_t size =
      ZSTD_compress2(context, out.data(), out.size(), in.data(), in.size());
  ZSTD_freeCCtx(context);
  if (ZSTD_isError(size) != 0) {
    return fail(Errc::io, std::string("zstd: ") + ZSTD_getErrorName(size));
  }
  out.resize(size);
  return out;
}

}  // namespace

std::string_view to_string(Codec codec) { return names[static_cast<std::size_t>(codec)]; }

Result<Codec> parse_codec(std::string_view name) {
  if (name == "uncompressed") return Codec::none;
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    return fail(Errc::invalid, "unknown codec '" + std::string(name) +
                                   "': none, gzip, snappy, lz4 or zstd");
  }
  return static_cast<Codec>(found - names.begin());
}

std::optional<Codec> codec_of(int bits) {
  if (bits < 0 || bits >= static_cast<int>(names.size())) return std::nullopt;
  return static_cast<Codec>(bits);
}

int default_level(Codec codec) {
  switch (codec) {
    case Codec::none:
    case Codec::snappy: return 0;
    case Codec::gzip: return -1;
    case Codec::lz4: return lz4_fast_level;
    case Codec::zstd: return 3;
  }
  return 0;
}

bool valid_level(Codec codec, int level) {
  switch (codec) {
    case Codec::none:
    case Codec::snappy: return true;
    case Codec::gzip: return level == -1 || (level >= 1 && level <= 9);
    case Codec::lz4: return level >= 1 && level <= 17;
    case Codec::zstd: return level >= -131072 && level <= 22;
  }
  return false;
}

Result<std::vector<std::uint8_t>> compress(Codec codec, int level, ByteView in) {
  if (!valid_level(codec, level)) {
    return fail(Errc::invalid, std::string(to_string(codec)) + " has no level " +
                                   std::to_string(level));
  }
  if (in.size() > bytes_max) return fail(Errc::too_large, "more than 2^31-1 bytes to compress");
  Result<Bytes> out = [&]() -> Result<Bytes> {
    switch (codec) {
      case Codec::none: return to_vector(in);
      case Codec::gzip: return gzip(level, in);
      case Codec::snappy: return snappy_framed(in);
      case Codec::lz4: return lz4(level, in);
      case Codec::zstd: return zstd(level, in);
    }
    return fail(Errc::unsupported, "no such codec");
  }();
  if (out && out->size() > bytes_max) {
    return fail(Errc::too_large, "more than 2^31-1 bytes compressed");
  }
  return out;
}

}  // namespace polylog::format::kafka
