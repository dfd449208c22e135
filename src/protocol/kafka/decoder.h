#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "bytes/reader.h"
#include "bytes/slice.h"
#include "protocol/kafka/limits.h"

namespace polylog::protocol::kafka {

// Reads the types of Kafka's message schemas (Kafka protocol guide, "Protocol Primitive Types";
// flexible versions: KIP-482) for the generated decoders. Failure is sticky, as in ByteReader:
// after it every read returns a zero value and consumes nothing. `flexible` picks between the
// classic lengths (16 or 32 bits, -1 for null) and the compact ones (unsigned varint of the length
// plus one, 0 for null). Byte fields share the body's memory; strings are copied.
class Decoder {
 public:
  explicit Decoder(const Slice& body) : body_(body), in_(body.view()) {}

  bool ok() const { return in_.ok(); }
  // What was read so far, or where the reading failed.
  std::size_t position() const { return window_start_ + in_.position(); }
  void fail() { in_.fail(); }
  // Success, or an error that names the message and the place.
  Result<void> finish(std::string_view message_name, std::int16_t version) const;

  bool boolean() { return in_.u8() != 0; }
  std::int8_t i8() { return in_.i8(); }
  std::int16_t i16() { return in_.i16(); }
  std::int32_t i32() { return in_.i32(); }
  std::int64_t i64() { return in_.i64(); }
  std::uint16_t u16() { return in_.u16(); }
  std::uint32_t u32() { return in_.u32(); }
  double f64() { return std::bit_cast<double>(in_.u64()); }
  Uuid uuid();

  std::string string(bool flexible);
  std::optional<std::string> nullable_string(bool flexible, bool null_allowed = true);
  Slice bytes(bool flexible);
  std::optional<Slice> nullable_bytes(bool flexible, bool null_allowed = true);

  // Calls read_element(T&) for each element. `element_bytes_min` is what the shortest element
  // takes on the wire; a count that the remaining bytes cannot hold fails before it costs memory.
  template <typename T, typename F>
  void array(std::vector<T>& out, bool flexible, std::size_t element_bytes_min, F&& read_element) {
    elements(out, array_length(flexible), element_bytes_min, read_element);
  }
  template <typename T, typename F>
  void nullable_array(std::optional<std::vector<T>>& out, bool flexible, bool null_allowed,
                      std::size_t element_bytes_min, F&& read_element) {
    const std::int64_t claimed = array_length(flexible);
    if (claimed == null_length && null_allowed) {
      out.reset();
    } else {
      elements(out.emplace(), claimed, element_bytes_min, read_element);
    }
  }

  // Arrays of generated structs.
  template <typename T>
  void structs(std::vector<T>& out, bool flexible, std::int16_t version) {
    array(out, flexible, T::encoded_bytes_min(version),
          [this, version](T& element) { element.decode_fields(*this, version); });
  }
  template <typename T>
  void nullable_structs(std::optional<std::vector<T>>& out, bool flexible, bool null_allowed,
                        std::int16_t version) {
    nullable_array(out, flexible, null_allowed, T::encoded_bytes_min(version),
                   [this, version](T& element) { element.decode_fields(*this, version); });
  }
  template <typename T>
  void nullable_struct(std::optional<T>& out, std::int16_t version) {
    const std::int8_t presence = in_.i8();
    if (presence == 1) {
      // Clang settles is_constructible<T> while T's enclosing message is incomplete, and wrongly;
      // hence no emplace() without arguments.
      out.emplace(T{}).decode_fields(*this, version);
    } else {
      out.reset();
      if (presence != null_length) in_.fail();
    }
  }

  // The tagged fields at the end of a struct. `read_known(tag)` reads the field and returns true,
  // or returns false for a tag it does not know, which is then skipped. Tags must ascend, and a
  // known field must fill the size that precedes it.
  template <typename F>
  void tagged_fields(F&& read_known) {
    const std::size_t count = in_.count(in_.unsigned_varint(), tagged_field_bytes_min);
    std::int64_t previous = -1;
    for (std::size_t i = 0; i < count && in_.ok(); ++i) {
      const std::uint32_t tag = in_.unsigned_varint();
      const std::uint32_t size = in_.unsigned_varint();
      if (tag <= previous) in_.fail();
      previous = tag;
      tagged_field(size, [&] { return read_known(tag); });
    }
  }
  void skip_tagged_fields() {
    tagged_fields([](std::uint32_t) { return false; });
  }

 private:
  static constexpr std::int64_t null_length = -1;
  static constexpr std::size_t tagged_field_bytes_min = 2;  // tag, size

  // -1 for null; anything below fails when it is used.
  std::int64_t array_length(bool flexible) {
    return flexible ? std::int64_t{in_.unsigned_varint()} - 1 : in_.i32();
  }

  // Elements can be much larger in memory than on the wire (an empty string: one byte against
  // sizeof(std::string)), so a count is not reserved at once: the vector trebles as elements
  // arrive, up to the claimed count. Trebling keeps old and new block together below 4/3 of what
  // the count needs, doubling would take 3/2.
  template <typename T, typename F>
  void elements(std::vector<T>& out, std::int64_t claimed, std::size_t element_bytes_min,
                F&& read_element) {
    const std::size_t count = in_.count(claimed, element_bytes_min);
    const std::size_t up_front = in_.remaining() * array_bytes_up_front_max / sizeof(T) + 1;
    for (std::size_t i = 0; i < count && in_.ok(); ++i) {
      if (out.size() == out.capacity()) {
        out.reserve(std::min(count, std::max(up_front, 3 * out.size())));
      }
      read_element(out.emplace_back());
    }
  }

  // Reads one field within a window of its size, so that it cannot reach past its end.
  template <typename F>
  void tagged_field(std::uint32_t size, F&& read_known) {
    const ByteView window = in_.bytes(size);
    if (!in_.ok()) return;
    const ByteReader outer = std::exchange(in_, ByteReader(window));
    const std::size_t outer_start = window_start_;
    window_start_ = position_of(window);
    const bool known = read_known();
    const bool filled = in_.ok() && in_.remaining() == 0;
    if (known && !filled) {
      in_.fail();
      return;
    }
    window_start_ = outer_start;
    in_ = outer;
  }

  std::size_t position_of(ByteView part) const {
    return part.empty() ? 0 : static_cast<std::size_t>(part.data() - body_.data());
  }
  Slice share(ByteView part) const { return body_.sub(position_of(part), part.size()); }

  const Slice& body_;
  ByteReader in_;
  std::size_t window_start_ = 0;  // of in_ within the body
};

}  // namespace polylog::protocol::kafka
