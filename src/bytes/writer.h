#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "bytes/endian.h"
#include "bytes/slice.h"

namespace polylog {

// What a ByteWriter produced: its own bytes with slices spliced in between, ready for one
// gathered write.
struct Chain {
  struct Splice {
    std::size_t at;  // the slice goes before bytes[at]; ascending
    Slice slice;
  };
  std::vector<std::uint8_t> bytes;
  std::vector<Splice> splices;

  std::size_t size() const;
  // Calls f(ByteView) for each piece in order; empty pieces are left out.
  template <typename F>
  void for_each(F&& f) const {
    std::size_t from = 0;
    for (const Splice& splice : splices) {
      if (splice.at > from) f(ByteView(bytes).subspan(from, splice.at - from));
      if (!splice.slice.empty()) f(splice.slice.view());
      from = splice.at;
    }
    if (bytes.size() > from) f(ByteView(bytes).subspan(from));
  }
  std::vector<std::uint8_t> flatten() const;
};

// Appends typed values, big-endian unless named otherwise. Large slices are spliced, not copied.
class ByteWriter {
 public:
  void reserve(std::size_t own_bytes) { out_.bytes.reserve(own_bytes); }
  template <std::integral T>
  void big(T value) {
    const std::size_t at = grow(sizeof(T));
    store_big(out_.bytes.data() + at, value);
  }
  void i8(std::int8_t v) { big(v); }
  void i16(std::int16_t v) { big(v); }
  void i32(std::int32_t v) { big(v); }
  void i64(std::int64_t v) { big(v); }
  void u8(std::uint8_t v) { big(v); }
  void u16(std::uint16_t v) { big(v); }
  void u32(std::uint32_t v) { big(v); }
  void u64(std::uint64_t v) { big(v); }
  void bytes(ByteView view) { out_.bytes.insert(out_.bytes.end(), view.begin(), view.end()); }
  void text(std::string_view view) { bytes(as_bytes(view)); }
  void varint(std::int32_t v);
  void varlong(std::int64_t v);
  void unsigned_varint(std::uint32_t v);
  // Splices the slice when it is large enough to be worth an iovec, copies it otherwise.
  void slice(const Slice& slice);

  std::size_t size() const { return out_.bytes.size() + spliced_; }
  // Overwrites four already written bytes of our own (not of a splice), e.g. a length known
  // only at the end. `at` counts own bytes only.
  void patch_i32(std::size_t at, std::int32_t value);

  const std::vector<std::uint8_t>& own_bytes() const { return out_.bytes; }
  Chain take() {
    spliced_ = 0;
    return std::exchange(out_, {});
  }
  // REQUIRES: nothing was spliced. For small encodings (checkpoints, headers, tests).
  std::vector<std::uint8_t> take_bytes();

 private:
  std::size_t grow(std::size_t count) {
    const std::size_t at = out_.bytes.size();
    out_.bytes.resize(at + count);
    return at;
  }
  void groups(std::uint64_t value);

  Chain out_;
  std::size_t spliced_ = 0;
};

// Bytes that unsigned_varint(v) takes.
std::size_t unsigned_varint_size(std::uint32_t v);

}  // namespace polylog
