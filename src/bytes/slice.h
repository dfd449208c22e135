#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/assert.h"

namespace polylog {

using ByteView = std::span<const std::uint8_t>;
using MutableBytes = std::span<std::uint8_t>;

inline ByteView as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
inline std::string_view as_text(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline std::vector<std::uint8_t> to_vector(ByteView bytes) { return {bytes.begin(), bytes.end()}; }

// Immutable bytes that keep alive whatever holds them: a frame's buffer, a cached batch, a
// file's pages. Copying a Slice copies a pointer, never the bytes. Safe to share between
// threads as long as nobody writes the memory any more.
class Slice {
 public:
  Slice() = default;
  Slice(std::shared_ptr<const void> owner, ByteView bytes)
      : owner_(std::move(owner)), bytes_(bytes) {}

  // Takes the bytes over.
  static Slice of(std::vector<std::uint8_t> bytes) {
    auto owner = std::make_shared<const std::vector<std::uint8_t>>(std::move(bytes));
    const ByteView view(*owner);
    return Slice(std::move(owner), view);
  }
  static Slice copy_of(ByteView bytes) { return of(to_vector(bytes)); }
  // For memory that outlives every copy of the slice: literals, test data.
  static Slice unowned(ByteView bytes) { return Slice(nullptr, bytes); }

  ByteView view() const { return bytes_; }
  const std::uint8_t* data() const { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  const std::shared_ptr<const void>& owner() const { return owner_; }

  // REQUIRES: offset + count <= size().
  Slice sub(std::size_t offset, std::size_t count) const {
    POLYLOG_ASSERT(offset <= size() && count <= size() - offset);
    return Slice(owner_, bytes_.subspan(offset, count));
  }

 private:
  std::shared_ptr<const void> owner_;
  ByteView bytes_;
};

}  // namespace polylog
