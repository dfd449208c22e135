#include <zlib.h>

#include <algorithm>

#include "format/kafka/compression.h"
#include "format/transcode/mapping.h"

namespace polylog::format {
namespace {

// The compression types of RocketMQ clients (RocketMQ store format, "SYSFLAG bits").
enum class CompressionType : std::int32_t { zlib_old = 0, lz4 = 1, zstd = 2, zlib = 3 };

CompressionType type_of(std::int32_t sys_flag) {
  return static_cast<CompressionType>((sys_flag & rocketmq::sys_flag::compression_mask) >> 8);
}

// One inflate stream, ended with its owner.
struct Inflate {
  z_stream stream{};
  bool ready = inflateInit(&stream) == Z_OK;
  Inflate() = default;
  ~Inflate() { inflateEnd(&stream); }
  Inflate(const Inflate&) = delete;
  Inflate& operator=(const Inflate&) = delete;
};

}  // namespace

std::optional<std::size_t> BodyExpander::inflate_zlib(ByteView body, std::size_t bytes_max) {
  constexpr std::size_t first_bytes = 16 * 1024;
  Inflate inflater;
  if (!inflater.ready) return std::nullopt;
  z_stream& stream = inflater.stream;
  stream.next_in = const_cast<Bytef*>(body.data());
  stream.avail_in = static_cast<uInt>(body.size());  // a body has at most 2^31-1 bytes
  std::size_t size = 0;
  for (;;) {
    // One byte more than allowed, so that too much is noticed.
    if (size == out_.size()) {
      out_.resize(std::min(std::max(2 * size, first_bytes), bytes_max + 1));
    }
    stream.next_out = out_.data() + size;
    stream.avail_out = static_cast<uInt>(std::min<std::size_t>(out_.size() - size, 1U << 30));
    const int status = inflate(&stream, Z_NO_FLUSH);
    const auto before = size;
    size = static_cast<std::size_t>(stream.next_out - out_.data());
    produced_bytes_ += size - before;
    if (size > bytes_max) return std::nullopt;
    if (status == Z_STREAM_END && stream.avail_in == 0) return size;
    if (status != Z_OK) return std::nullopt;
  }
}

std::optional<ByteView> BodyExpander::expand(std::int32_t sys_flag, ByteView body,
                                             std::size_t bytes_max) {
  const CompressionType type = type_of(sys_flag);
  if (type == CompressionType::zlib || type == CompressionType::zlib_old) {
    const std::optional<std::size_t> size = inflate_zlib(body, bytes_max);
    if (!size) return std::nullopt;
    return ByteView(out_).first(*size);
  }
  if (type != CompressionType::lz4 && type != CompressionType::zstd) return std::nullopt;
  const kafka::Codec codec = type == CompressionType::lz4 ? kafka::Codec::lz4 : kafka::Codec::zstd;
  out_.clear();
  const Result<void> whole = kafka::decompress(codec, body, bytes_max, [this](ByteView piece) {
    out_.insert(out_.end(), piece.begin(), piece.end());
    produced_bytes_ += piece.size();
    return true;
  });
  if (!whole) return std::nullopt;
  return ByteView(out_);
}

}  // namespace polylog::format
