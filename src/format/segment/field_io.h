#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "bytes/endian.h"
#include "bytes/slice.h"
#include "format/kafka/varint.h"

// The integers of the segment layout's record encoding: zigzag varints as in Kafka's records, and
// unsigned ones for lengths. Everything here runs for each record.
namespace polylog::format::segment {

inline std::size_t unsigned_size(std::size_t value) {
  std::size_t size = 1;
  for (; value >= 0x80; value >>= 7) ++size;
  return size;
}
inline std::size_t zigzag_size(std::int64_t value) { return kafka::varlong_size(value); }

// Writes at a place with room for it; nothing is checked.
class FieldWriter {
 public:
  explicit FieldWriter(std::uint8_t* at) : at_(at) {}

  const std::uint8_t* at() const { return at_; }
  void u8(std::uint8_t value) { *at_++ = value; }
  void u32(std::size_t value) {
    store_big(at_, static_cast<std::uint32_t>(value));
    at_ += 4;
  }
  void u64(std::uint64_t value) {
    store_big(at_, value);
    at_ += 8;
  }
  void length(std::size_t value) {
    for (; value >= 0x80; value >>= 7) u8(static_cast<std::uint8_t>(value | 0x80));
    u8(static_cast<std::uint8_t>(value));
  }
  void zigzag(std::int64_t value) { at_ = kafka::write_varlong(at_, value); }
  void bytes(ByteView bytes) {
    if (!bytes.empty()) std::memcpy(at_, bytes.data(), bytes.size());
    at_ += bytes.size();
  }
  void counted(ByteView view) {
    length(view.size());
    bytes(view);
  }
  void counted(std::string_view text) { counted(as_bytes(text)); }

 private:
  std::uint8_t* at_;
};

// Reads front to back; the first failure sticks and ends everything, as ByteReader's does.
class FieldReader {
 public:
  explicit FieldReader(ByteView bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}

  bool ok() const { return ok_; }
  bool done() const { return at_ == end_; }
  std::size_t remaining() const { return static_cast<std::size_t>(end_ - at_); }

  std::uint8_t u8() {
    if (at_ == end_) return fail();
    return *at_++;
  }
  std::uint32_t length() {
    if (at_ != end_ && *at_ < 0x80) [[likely]] return *at_++;
    return long_length();
  }
  std::int64_t zigzag64() {
    std::int64_t value = 0;
    if (!kafka::read_varlong(at_, end_, value)) return fail();
    return value;
  }
  std::int32_t zigzag32() {
    std::int32_t value = 0;
    if (!kafka::read_varint(at_, end_, value)) return fail();
    return value;
  }
  // A value of a narrower type; one that does not fit fails.
  std::int16_t zigzag16() {
    const std::int32_t value = zigzag32();
    if (value != static_cast<std::int16_t>(value)) return fail();
    return static_cast<std::int16_t>(value);
  }
  ByteView bytes(std::size_t size) {
    if (size > remaining()) {
      fail();
      return {};
    }
    const ByteView view(at_, size);
    at_ += size;
    return view;
  }
  ByteView counted() { return bytes(length()); }
  std::string_view counted_text() { return as_text(counted()); }

 private:
  // Nothing is left to read afterwards.
  std::uint8_t fail() {
    ok_ = false;
    at_ = end_;
    return 0;
  }
  [[gnu::noinline]] std::uint32_t long_length() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
      const std::uint8_t byte = u8();
      if (!ok_) return 0;
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value >> 32 == 0 ? static_cast<std::uint32_t>(value) : fail();
    }
    return fail();
  }

  const std::uint8_t* at_;
  const std::uint8_t* end_;
  bool ok_ = true;
};

}  // namespace polylog::format::segment
