#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "bytes/endian.h"
#include "bytes/slice.h"

namespace polylog {

// Reads typed values from a span, front to back, big-endian unless named otherwise. A read
// either consumes or fails; the first failure sticks, later reads return zero values and consume
// nothing, so a decoder reads straight through and checks ok() once. Nothing is ever allocated
// here: counts must be compared with remaining() before anything is reserved (see count()).
class ByteReader {
 public:
  ByteReader() = default;
  explicit ByteReader(ByteView bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  std::size_t remaining() const { return ok_ ? bytes_.size() - at_ : 0; }
  std::size_t position() const { return at_; }
  void fail() { ok_ = false; }

  template <std::integral T>
  T big() {
    if (!take(sizeof(T))) return 0;
    return load_big<T>(bytes_.data() + at_ - sizeof(T));
  }
  template <std::integral T>
  T little() {
    if (!take(sizeof(T))) return 0;
    return load_little<T>(bytes_.data() + at_ - sizeof(T));
  }
  std::int8_t i8() { return big<std::int8_t>(); }
  std::int16_t i16() { return big<std::int16_t>(); }
  std::int32_t i32() { return big<std::int32_t>(); }
  std::int64_t i64() { return big<std::int64_t>(); }
  std::uint8_t u8() { return big<std::uint8_t>(); }
  std::uint16_t u16() { return big<std::uint16_t>(); }
  std::uint32_t u32() { return big<std::uint32_t>(); }
  std::uint64_t u64() { return big<std::uint64_t>(); }

  // A view into the underlying bytes; empty on failure.
  ByteView bytes(std::size_t size) {
    if (!take(size)) return {};
    return bytes_.subspan(at_ - size, size);
  }
  std::string_view text(std::size_t size) { return as_text(bytes(size)); }
  void skip(std::size_t size) { take(size); }

  // Base-128 little-endian groups. `varint`/`varlong` are zigzag (Kafka records),
  // `unsigned_varint` is plain (Kafka's flexible messages). More than 5 (10) groups, or bits
  // beyond 32 (64), fail.
  std::int32_t varint();
  std::int64_t varlong();
  std::uint32_t unsigned_varint();

  // Checks an element count against what the remaining bytes can hold at `element_bytes_min`
  // each, so that reserving `count` elements is safe. Fails on a negative or impossible count.
  std::size_t count(std::int64_t claimed, std::size_t element_bytes_min);

 private:
  bool take(std::size_t size) {
    if (!ok_ || bytes_.size() - at_ < size) {
      ok_ = false;
      return false;
    }
    at_ += size;
    return true;
  }
  std::uint64_t groups(int bits_max);

  ByteView bytes_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace polylog
