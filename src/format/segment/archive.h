#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "bytes/endian.h"
#include "bytes/slice.h"

namespace polylog::format::segment {

// Reads the values of an archive that the Rust crate rkyv 0.8 wrote with its default features:
// little-endian, pointers of 32 bits relative to their own place, the root at the end, what it
// points to in front of it (crate documentation, "Format"; checked by tests/golden/robustmq).
// Places count from the archive's start. Sticky failure as in ByteReader; nothing is allocated,
// and no value lies outside the bytes.
class ArchiveReader {
 public:
  static constexpr std::size_t string_bytes = 8;
  static constexpr std::size_t vector_bytes = 8;
  static constexpr std::size_t optional_vector_bytes = 4 + vector_bytes;
  static constexpr std::size_t inline_bytes_max = 8;  // of a string

  explicit ArchiveReader(ByteView bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }

  template <std::integral T>
  T number(std::size_t at) {
    return fits(at, sizeof(T)) ? load_little<T>(bytes_.data() + at) : T{0};
  }

  // Up to 8 bytes in place, filled up with ff; else a length whose lowest byte has its sixth and
  // seventh bit moved up and the mark 10 put there, and a pointer from the string's own place.
  // Not UTF-8 is a failure.
  std::string_view string(std::size_t at);

  // An Option of a Vec: a byte 0 or 1, padding, a pointer from its own place, a count.
  struct Elements {
    std::size_t at = 0;
    std::size_t count = 0;
  };
  std::optional<Elements> optional_vector(std::size_t at, std::size_t element_bytes);
  // Likewise one of bytes.
  std::optional<ByteView> optional_bytes(std::size_t at);

 private:
  bool fits(std::size_t at, std::size_t size) {
    if (!ok_ || at > bytes_.size() || bytes_.size() - at < size) ok_ = false;
    return ok_;
  }
  // Where the pointer stored at `at`, relative to `from`, leads; checked for `size` bytes there.
  std::size_t follow(std::size_t at, std::size_t from, std::size_t size);

  ByteView bytes_;
  std::size_t followed_ = 0;  // bytes of all targets: they don't overlap, so never more than all
  bool ok_ = true;
};

}  // namespace polylog::format::segment
