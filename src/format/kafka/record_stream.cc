#include "format/kafka/record_stream.h"

#include <algorithm>
#include <limits>

namespace polylog::format::kafka {
namespace {

constexpr std::size_t varint_bytes_max = 5;
constexpr std::size_t varlong_bytes_max = 10;

// A header takes at least its two lengths.
constexpr std::int32_t encoded_header_bytes_min = 2;

constexpr const char* runs_past_end = "a record runs past the end of the batch";
constexpr const char* bad_length = "a record has an impossible length";
constexpr const char* bad_varint = "a varint is malformed or runs past the end of its record";
constexpr const char* bad_key = "a key runs past the end of its record";
constexpr const char* bad_value = "a value runs past the end of its record";
constexpr const char* bad_header_count = "a record has an impossible number of headers";
constexpr const char* bad_header_key = "a header has no key, or one past the end of its record";
constexpr const char* bad_header_value = "a header value runs past the end of its record";
constexpr const char* bytes_left = "a record has bytes left over behind its headers";

// Reads a length and steps over as many bytes; a negative length is null.
[[gnu::always_inline]] inline const char* skip_sized(const std::uint8_t*& at,
                                                     const std::uint8_t* end, std::int32_t& size,
                                                     const char* fault) {
  if (!read_varint(at, end, size)) return bad_varint;
  if (size <= 0) return nullptr;
  if (size > end - at) return fault;
  at += size;
  return nullptr;
}

}  // namespace

const char* parse_parts(ByteView body, RecordParts& parts) {
  const std::uint8_t* at = body.data();
  const std::uint8_t* const end = at + body.size();
  if (at == end) return bad_length;
  ++at;  // attributes: no bit is defined
  if (!read_varlong(at, end, parts.timestamp_delta) ||
      !read_varint(at, end, parts.offset_delta)) {
    return bad_varint;
  }
  if (const char* fault = skip_sized(at, end, parts.key_bytes, bad_key)) return fault;
  parts.key = at - std::max(parts.key_bytes, 0);
  if (const char* fault = skip_sized(at, end, parts.value_bytes, bad_value)) return fault;
  parts.value = at - std::max(parts.value_bytes, 0);
  if (!read_varint(at, end, parts.header_count)) return bad_varint;
  if (parts.header_count < 0 || parts.header_count > (end - at) / encoded_header_bytes_min) {
    return bad_header_count;
  }
  parts.headers = at;
  for (std::int32_t i = 0; i < parts.header_count; ++i) {
    std::int32_t size = 0;
    if (const char* fault = skip_sized(at, end, size, bad_header_key)) return fault;
    if (size < 0) return bad_header_key;
    if (const char* fault = skip_sized(at, end, size, bad_header_value)) return fault;
  }
  return at == end ? nullptr : bytes_left;
}

RecordStream::RecordStream(Codec codec, ByteView payload, std::size_t output_max)
    : output_max_(output_max) {
  if (codec == Codec::none) {
    window_ = payload;
  } else {
    stream_.emplace(codec, payload, output_max);
  }
}

Result<bool> RecordStream::refill() {
  if (!stream_) {
    window_ = {};
    return false;
  }
  POLYLOG_ASSIGN(piece, stream_->next());
  window_ = piece;
  return !window_.empty();
}

Result<bool> RecordStream::at_end() {
  if (!window_.empty()) return false;
  POLYLOG_ASSIGN(more, refill());
  return !more;
}

Result<ByteView> RecordStream::assemble() {
  carry_.clear();
  // Appends `size` bytes, but nothing that has not arrived.
  const auto gather = [this](std::size_t size) -> Result<void> {
    while (size > 0) {
      if (window_.empty()) {
        POLYLOG_ASSIGN(more, refill());
        if (!more) return fail(Errc::invalid, runs_past_end);
      }
      const ByteView part = window_.first(std::min(size, window_.size()));
      carry_.insert(carry_.end(), part.begin(), part.end());
      window_ = window_.subspan(part.size());
      size -= part.size();
    }
    return {};
  };
  std::int32_t length = 0;
  do {
    if (carry_.size() == varint_bytes_max) return fail(Errc::invalid, bad_varint);
    POLYLOG_TRY(gather(1));
  } while (carry_.back() >= 0x80);
  const std::uint8_t* at = carry_.data();
  if (!read_varint(at, carry_.data() + carry_.size(), length)) {
    return fail(Errc::invalid, bad_varint);
  }
  if (length < 0) return fail(Errc::invalid, bad_length);
  const auto size = static_cast<std::size_t>(length);
  if (!stream_ && size > window_.size()) return fail(Errc::invalid, runs_past_end);
  if (size > output_max_) {
    return fail(Errc::too_large, "a record is longer than the decompressed data may be");
  }
  carry_.clear();
  POLYLOG_TRY(gather(size));
  return ByteView(carry_);
}

// Reads fields straight from the pieces of output, counting down the record's length.
class RecordStream::Walker {
 public:
  explicit Walker(RecordStream& stream) : stream_(stream) {}

  Result<void> enter() {
    std::int64_t length = 0;
    POLYLOG_TRY(integer(length, varint_bytes_max));
    if (length < 0) return fail(Errc::invalid, bad_length);
    left_ = length;
    return {};
  }
  std::int64_t left() const { return left_; }

  Result<void> integer(std::int64_t& value, std::size_t bytes_max) {
    std::uint8_t bytes[varlong_bytes_max];
    std::size_t size = 0;
    do {
      if (size == bytes_max) return fail(Errc::invalid, bad_varint);
      POLYLOG_TRY(byte(bytes[size]));
    } while (bytes[size++] >= 0x80);
    const std::uint8_t* at = bytes;
    bool ok = false;
    if (bytes_max == varint_bytes_max) {
      std::int32_t narrow = 0;
      ok = read_varint(at, bytes + size, narrow);
      value = narrow;
    } else {
      ok = read_varlong(at, bytes + size, value);
    }
    if (!ok) return fail(Errc::invalid, bad_varint);
    return {};
  }

  Result<void> integer(std::int32_t& value) {
    std::int64_t wide = 0;
    POLYLOG_TRY(integer(wide, varint_bytes_max));
    value = static_cast<std::int32_t>(wide);
    return {};
  }

  Result<void> skip(std::int64_t size, const char* fault) {
    if (size > left_) return fail(Errc::invalid, fault);
    left_ -= size;
    while (size > 0) {
      POLYLOG_TRY(need());
      const auto part = std::min(static_cast<std::size_t>(size), stream_.window_.size());
      stream_.window_ = stream_.window_.subspan(part);
      size -= static_cast<std::int64_t>(part);
    }
    return {};
  }

  // A length and as many bytes.
  Result<void> sized(std::int32_t& size, const char* fault) {
    POLYLOG_TRY(integer(size));
    return skip(std::max(size, 0), fault);
  }

 private:
  Result<void> need() {
    if (!stream_.window_.empty()) return {};
    POLYLOG_ASSIGN(more, stream_.refill());
    if (!more) return fail(Errc::invalid, runs_past_end);
    return {};
  }
  Result<void> byte(std::uint8_t& value) {
    if (left_ == 0) return fail(Errc::invalid, bad_varint);
    POLYLOG_TRY(need());
    value = stream_.window_.front();
    stream_.window_ = stream_.window_.subspan(1);
    --left_;
    return {};
  }

  RecordStream& stream_;
  std::int64_t left_ = varint_bytes_max;  // of the body; before it, of the length's own bytes
};

Result<void> RecordStream::walk(RecordParts& parts) {
  parts.key = parts.value = parts.headers = nullptr;
  Walker in(*this);
  POLYLOG_TRY(in.enter());
  if (in.left() == 0) return fail(Errc::invalid, bad_length);
  POLYLOG_TRY(in.skip(1, bad_length));
  POLYLOG_TRY(in.integer(parts.timestamp_delta, varlong_bytes_max));
  POLYLOG_TRY(in.integer(parts.offset_delta));
  POLYLOG_TRY(in.sized(parts.key_bytes, bad_key));
  POLYLOG_TRY(in.sized(parts.value_bytes, bad_value));
  POLYLOG_TRY(in.integer(parts.header_count));
  if (parts.header_count < 0 || parts.header_count > in.left() / encoded_header_bytes_min) {
    return fail(Errc::invalid, bad_header_count);
  }
  for (std::int32_t i = 0; i < parts.header_count; ++i) {
    std::int32_t size = 0;
    POLYLOG_TRY(in.sized(size, bad_header_key));
    if (size < 0) return fail(Errc::invalid, bad_header_key);
    POLYLOG_TRY(in.sized(size, bad_header_value));
  }
  if (in.left() != 0) return fail(Errc::invalid, bytes_left);
  return {};
}

}  // namespace polylog::format::kafka
