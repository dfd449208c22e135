#include <lz4frame.h>
#include <snappy.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/assert.h"
#include "bytes/endian.h"
#include "format/kafka/compression.h"
#include "format/kafka/xerial.h"
#include "format/kafka/zstd_frames.h"

namespace polylog::format::kafka {

// One codec's stream. `room` is what the output cap leaves: a source may give up to one byte
// more (so that the cap is noticed), never needs to give more, and allocates by it.
class Decompressor::Source {
 public:
  virtual ~Source() = default;
  virtual Result<ByteView> next(std::size_t room) = 0;
};

namespace {

constexpr std::size_t scratch_bytes = 64 * 1024;

Result<ByteView> cut_short(std::string_view codec) {
  return fail(Errc::corrupt, std::string(codec) + ": the data end before the stream does");
}

// Output memory that is not zeroed: pages a stream never fills are never touched.
class Scratch {
 public:
  std::uint8_t* reserve(std::size_t size) {
    if (size > size_) {
      bytes_ = std::unique_ptr<std::uint8_t[]>(new std::uint8_t[size]);
      size_ = size;
    }
    return bytes_.get();
  }
  static std::size_t piece(std::size_t room) {
    return room < scratch_bytes ? room + 1 : scratch_bytes;
  }

 private:
  std::unique_ptr<std::uint8_t[]> bytes_;
  std::size_t size_ = 0;
};

class Stored final : public Decompressor::Source {
 public:
  explicit Stored(ByteView in) : in_(in) {}
  Result<ByteView> next(std::size_t) override { return std::exchange(in_, {}); }

 private:
  ByteView in_;
};

class Gzip final : public Decompressor::Source {
 public:
  explicit Gzip(ByteView in) : in_(in) {
    constexpr int window_bits_gzip = 15 + 16;
    ready_ = inflateInit2(&stream_, window_bits_gzip) == Z_OK;
    feed();
  }
  ~Gzip() override { inflateEnd(&stream_); }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  Result<ByteView> next(std::size_t room) override {
    if (done_) return ByteView();
    if (!ready_) return fail(Errc::io, "gzip: no memory for the decompressor");
    const std::size_t size = Scratch::piece(room);
    std::uint8_t* out = scratch_.reserve(size);
    stream_.next_out = out;
    stream_.avail_out = static_cast<uInt>(size);
    while (stream_.avail_out > 0 && !done_) {
      if (stream_.avail_in == 0) feed();
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status == Z_STREAM_END) {
        done_ = stream_.avail_in == 0 && in_.empty();
        if (!done_) inflateReset(&stream_);  // members may follow each other
      } else if (status == Z_BUF_ERROR || (status == Z_OK && exhausted())) {
        return cut_short("gzip");
      } else if (status != Z_OK) {
        return fail(Errc::corrupt, std::string("gzip: ") +
                                       (stream_.msg != nullptr ? stream_.msg : "malformed"));
      }
    }
    return ByteView(out, size - stream_.avail_out);
  }

 private:
  // zlib counts input in 32 bits.
  void feed() {
    const std::size_t size = std::min<std::size_t>(in_.size(), 1U << 30);
    stream_.next_in = const_cast<Bytef*>(in_.data());
    stream_.avail_in = static_cast<uInt>(size);
    in_ = in_.subspan(size);
  }
  bool exhausted() const {
    return stream_.avail_in == 0 && in_.empty() && stream_.avail_out > 0;
  }

  ByteView in_;
  z_stream stream_{};
  Scratch scratch_;
  bool ready_ = false;
  bool done_ = false;
};

// The best any snappy encoder can do: a 3-byte copy yields at most 64 bytes.
bool plausible_snappy(std::size_t claimed, std::size_t compressed) {
  constexpr std::size_t ratio_max = 22;
  return claimed / ratio_max <= compressed;
}

std::optional<std::size_t> snappy_claim(ByteView block) {
  std::size_t claimed = 0;
  if (!snappy::GetUncompressedLength(reinterpret_cast<const char*>(block.data()), block.size(),
                                     &claimed) ||
      !plausible_snappy(claimed, block.size())) {
    return std::nullopt;
  }
  return claimed;
}

Result<ByteView> snappy_block(ByteView block, std::size_t room, Scratch& scratch) {
  const std::optional<std::size_t> claimed = snappy_claim(block);
  if (!claimed) return fail(Errc::corrupt, "snappy: impossible block length");
  if (*claimed > room) return fail(Errc::too_large, "snappy: a block exceeds the output limit");
  std::uint8_t* out = scratch.reserve(std::max<std::size_t>(*claimed, 1));
  if (!snappy::RawUncompress(reinterpret_cast<const char*>(block.data()), block.size(),
                             reinterpret_cast<char*>(out))) {
    return fail(Errc::corrupt, "snappy: malformed block");
  }
  return ByteView(out, *claimed);
}

class RawSnappy final : public Decompressor::Source {
 public:
  explicit RawSnappy(ByteView in) : in_(in) {}
  Result<ByteView> next(std::size_t room) override {
    if (std::exchange(done_, true)) return ByteView();
    return snappy_block(in_, room, scratch_);
  }

 private:
  ByteView in_;
  Scratch scratch_;
  bool done_ = false;
};

// Steps over headers and hands out blocks; shared by decompression and the size estimate.
class XerialBlocks {
 public:
  explicit XerialBlocks(ByteView in) : in_(in) {}
  bool at_end() const { return in_.empty(); }
  // An empty view where only a header was left. corrupt: a block runs past the end.
  Result<ByteView> next() {
    while (begins_with_xerial_magic(in_)) {
      if (in_.size() < xerial_header_bytes) return cut_short("snappy");
      in_ = in_.subspan(xerial_header_bytes);
    }
    if (in_.empty()) return ByteView();
    if (in_.size() < sizeof(std::int32_t)) return cut_short("snappy");
    const auto size = load_big<std::int32_t>(in_.data());
    in_ = in_.subspan(sizeof(std::int32_t));
    if (size <= 0 || static_cast<std::size_t>(size) > in_.size()) {
      return fail(Errc::corrupt, "snappy: impossible length of a framed block");
    }
    const ByteView block = in_.first(static_cast<std::size_t>(size));
    in_ = in_.subspan(block.size());
    return block;
  }

 private:
  ByteView in_;
};

class FramedSnappy final : public Decompressor::Source {
 public:
  explicit FramedSnappy(ByteView in) : blocks_(in) {}
  Result<ByteView> next(std::size_t room) override {
    while (!blocks_.at_end()) {
      POLYLOG_ASSIGN(block, blocks_.next());
      if (block.empty()) break;
      POLYLOG_ASSIGN(piece, snappy_block(block, room, scratch_));
      if (!piece.empty()) return piece;
    }
    return ByteView();
  }

 private:
  XerialBlocks blocks_;
  Scratch scratch_;
};

// LZ4 frame format: magic, FLG, BD.
constexpr std::uint32_t lz4_magic = 0x184D2204;
constexpr std::size_t lz4_header_bytes_min = 7;

bool begins_with_lz4_magic(ByteView in) {
  return in.size() >= lz4_header_bytes_min && load_little<std::uint32_t>(in.data()) == lz4_magic;
}

class Lz4 final : public Decompressor::Source {
 public:
  explicit Lz4(ByteView in) : in_(in) {
    if (LZ4F_isError(LZ4F_createDecompressionContext(&context_, LZ4F_VERSION)) != 0) {
      context_ = nullptr;
    }
  }
  ~Lz4() override { LZ4F_freeDecompressionContext(context_); }
  Lz4(const Lz4&) = delete;
  Lz4& operator=(const Lz4&) = delete;

  Result<ByteView> next(std::size_t room) override {
    if (done_) return ByteView();
    if (context_ == nullptr) return fail(Errc::io, "lz4: no memory for the decompressor");
    if (std::exchange(first_, false) && !begins_with_lz4_magic(in_)) {
      return fail(Errc::corrupt, "lz4: not an LZ4 frame");
    }
    const std::size_t size = Scratch::piece(room);
    std::uint8_t* out = scratch_.reserve(size);
    for (;;) {
      std::size_t written = size;
      std::size_t consumed = in_.size();
      const std::size_t hint =
          LZ4F_decompress(context_, out, &written, in_.data(), &consumed, nullptr);
      if (LZ4F_isError(hint) != 0) {
        return fail(Errc::corrupt, std::string("lz4: ") + LZ4F_getErrorName(hint));
      }
      in_ = in_.subspan(consumed);
      if (hint == 0) {
        if (!in_.empty()) return fail(Errc::corrupt, "lz4: bytes follow the end of the frame");
        done_ = true;
        return ByteView(out, written);
      }
      if (written > 0) return ByteView(out, written);
      if (consumed == 0) return cut_short("lz4");
    }
  }

 private:
  ByteView in_;
  LZ4F_dctx* context_ = nullptr;
  Scratch scratch_;
  bool first_ = true;
  bool done_ = false;
};

// A zstd context costs more to make than a small batch to decompress, so each thread keeps one;
// not one that has grown, which would hold its window for good.
class ZstdContext {
 public:
  ZstdContext() : context_(std::exchange(spare().context, nullptr)) {
    if (context_ == nullptr) context_ = ZSTD_createDCtx();
  }
  ~ZstdContext() {
    constexpr std::size_t kept_bytes_max = 4 * 1024 * 1024;
    if (context_ != nullptr && spare().context == nullptr &&
        ZSTD_sizeof_DCtx(context_) <= kept_bytes_max) {
      ZSTD_DCtx_reset(context_, ZSTD_reset_session_and_parameters);
      spare().context = context_;
    } else {
      ZSTD_freeDCtx(context_);
    }
  }
  ZstdContext(const ZstdContext&) = delete;
  ZstdContext& operator=(const ZstdContext&) = delete;
  ZSTD_DCtx* get() const { return context_; }

 private:
  struct Spare {
    ZSTD_DCtx* context = nullptr;
    ~Spare() { ZSTD_freeDCtx(context); }
  };
  static Spare& spare() {
    thread_local Spare kept;
    return kept;
  }

  ZSTD_DCtx* context_;
};

class Zstd final : public Decompressor::Source {
 public:
  explicit Zstd(ByteView in) : in_{in.data(), in.size(), 0}, demand_(zstd_demand(in)) {}

  Result<ByteView> next(std::size_t room) override {
    if (done_) return ByteView();
    if (!demand_) return fail(Errc::corrupt, "zstd: malformed or cut short");
    if (context_.get() == nullptr) return fail(Errc::io, "zstd: no memory for the decompressor");
    if (in_.pos == 0 && in_.size > 0) {
      // In one step without a window where the output is known to be small, or where the window
      // a frame claims (Java's level 20 and up claim 32 to 128 MiB for any content) is out of
      // proportion to what can come out.
      if (demand_->output_max <= whole_bytes_max ||
          (demand_->window_max > window_bytes_usual && demand_->output_max <= window_bytes_max)) {
        return whole(room);
      }
      if (demand_->window_max > window_bytes_max) {
        return fail(Errc::too_large, "zstd: a window of more than 32 MiB");
      }
      ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, window_log_max);
    }
    return streamed(room);
  }

 private:
  static constexpr std::uint64_t whole_bytes_max = 256 * 1024;
  static constexpr std::uint64_t window_bytes_usual = 8 * 1024 * 1024;
  static constexpr int window_log_max = 25;
  static constexpr std::uint64_t window_bytes_max = std::uint64_t{1} << window_log_max;

  Result<ByteView> whole(std::size_t room) {
    done_ = true;
    const std::size_t size = std::min<std::uint64_t>(demand_->output_max, room);
    std::uint8_t* out = scratch_.reserve(std::max<std::size_t>(size, 1));
    const std::size_t written = ZSTD_decompressDCtx(context_.get(), out, size, in_.src, in_.size);
    if (ZSTD_isError(written) == 0) return ByteView(out, written);
    if (ZSTD_getErrorCode(written) == ZSTD_error_dstSize_tooSmall && size == room) {
      return fail(Errc::too_large, "zstd: the output exceeds the limit");
    }
    return malformed(written);
  }

  Result<ByteView> streamed(std::size_t room) {
    const std::size_t size = Scratch::piece(room);
    std::uint8_t* bytes = scratch_.reserve(size);
    ZSTD_outBuffer out{bytes, size, 0};
    while (out.pos == 0 && !done_) {
      const std::size_t before = in_.pos;
      const std::size_t hint = ZSTD_decompressStream(context_.get(), &out, &in_);
      if (ZSTD_isError(hint) != 0) return malformed(hint);
      if (hint == 0 && in_.pos == in_.size) done_ = true;  // frames may follow each other
      if (hint != 0 && out.pos == 0 && in_.pos == before) return cut_short("zstd");
    }
    return ByteView(bytes, out.pos);
  }

  static Result<ByteView> malformed(std::size_t code) {
    return fail(Errc::corrupt, std::string("zstd: ") + ZSTD_getErrorName(code));
  }

  ZSTD_inBuffer in_;
  std::optional<ZstdDemand> demand_;
  ZstdContext context_;
  Scratch scratch_;
  bool done_ = false;
};

std::unique_ptr<Decompressor::Source> open_source(Codec codec, ByteView in) {
  switch (codec) {
    case Codec::none: return std::make_unique<Stored>(in);
    case Codec::gzip: return std::make_unique<Gzip>(in);
    case Codec::snappy:
      if (begins_with_xerial_magic(in)) return std::make_unique<FramedSnappy>(in);
      return std::make_unique<RawSnappy>(in);
    case Codec::lz4: return std::make_unique<Lz4>(in);
    case Codec::zstd: return std::make_unique<Zstd>(in);
  }
  return nullptr;
}

// The uncompressed size modulo 2^32 that ends a gzip member.
std::uint64_t gzip_claim(ByteView in) {
  constexpr std::size_t member_bytes_min = 18;
  if (in.size() < member_bytes_min) return 0;
  return load_little<std::uint32_t>(in.data() + in.size() - sizeof(std::uint32_t));
}

std::uint64_t snappy_claims(ByteView in) {
  if (!begins_with_xerial_magic(in)) return snappy_claim(in).value_or(0);
  std::uint64_t total = 0;
  for (XerialBlocks blocks(in); !blocks.at_end();) {
    const Result<ByteView> block = blocks.next();
    if (!block || block->empty()) break;
    total += snappy_claim(*block).value_or(0);
  }
  return total;
}

std::uint64_t lz4_bound(ByteView in) {
  if (!begins_with_lz4_magic(in)) return 0;
  constexpr std::uint32_t stored_bit = 0x80000000;
  const std::uint8_t flags = in[4];
  const std::uint64_t block_max = std::uint64_t{1} << (8 + 2 * ((in[5] >> 4) & 7));
  std::size_t at = lz4_header_bytes_min + ((flags & 0x08) != 0 ? 8 : 0) +
                   ((flags & 0x01) != 0 ? 4 : 0);
  const std::size_t checksum = (flags & 0x10) != 0 ? 4 : 0;
  std::uint64_t total = 0;
  while (at + sizeof(std::uint32_t) <= in.size()) {
    const auto head = load_little<std::uint32_t>(in.data() + at);
    if (head == 0) break;
    const std::size_t size = head & ~stored_bit;
    total += (head & stored_bit) != 0 ? size : block_max;
    at += sizeof(head) + size + checksum;
  }
  return total;
}

}  // namespace

Decompressor::Decompressor(Codec codec, ByteView in, std::size_t output_max)
    : source_(open_source(codec, in)), room_(output_max) {}
Decompressor::~Decompressor() = default;
Decompressor::Decompressor(Decompressor&&) noexcept = default;
Decompressor& Decompressor::operator=(Decompressor&&) noexcept = default;

Result<ByteView> Decompressor::next() {
  if (failed_) return fail(*failed_);
  POLYLOG_ASSERT(source_ != nullptr);
  Result<ByteView> piece = source_->next(room_);
  if (piece && piece->size() > room_) {
    piece = fail(Errc::too_large, "the decompressed data exceed the limit");
  }
  if (!piece) {
    failed_ = piece.error();
    source_.reset();
    return piece;
  }
  room_ -= piece->size();
  return piece;
}

Result<std::vector<std::uint8_t>> decompress_all(Codec codec, ByteView in,
                                                 std::size_t output_max) {
  std::vector<std::uint8_t> out;
  POLYLOG_TRY(decompress(codec, in, output_max, [&out](ByteView piece) {
    out.insert(out.end(), piece.begin(), piece.end());
    return true;
  }));
  return out;
}

std::uint64_t output_estimate(Codec codec, ByteView in) {
  switch (codec) {
    case Codec::none: return in.size();
    case Codec::gzip: return gzip_claim(in);
    case Codec::snappy: return snappy_claims(in);
    case Codec::lz4: return lz4_bound(in);
    case Codec::zstd: {
      const std::optional<ZstdDemand> demand = zstd_demand(in);
      return demand ? demand->output_max : 0;
    }
  }
  return 0;
}

}  // namespace polylog::format::kafka
