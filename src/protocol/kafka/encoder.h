#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "bytes/slice.h"
#include "bytes/writer.h"

namespace polylog::protocol::kafka {

// Writes the types of Kafka's message schemas for the generated encoders; the counterpart of
// Decoder. What cannot be written is remembered (the first time) and reported by finish(). The
// writer outlives the encoder.
class Encoder {
 public:
  explicit Encoder(ByteWriter& out) : out_(out) {}

  Result<void> finish(std::string_view message_name, std::int16_t version) const;

  void boolean(bool value) { out_.u8(value ? 1 : 0); }
  void i8(std::int8_t value) { out_.i8(value); }
  void i16(std::int16_t value) { out_.i16(value); }
  void i32(std::int32_t value) { out_.i32(value); }
  void i64(std::int64_t value) { out_.i64(value); }
  void u16(std::uint16_t value) { out_.u16(value); }
  void u32(std::uint32_t value) { out_.u32(value); }
  void f64(double value) { out_.u64(std::bit_cast<std::uint64_t>(value)); }
  void uuid(const Uuid& value) { out_.bytes(value.bytes); }

  void string(std::string_view value, bool flexible);
  void nullable_string(const std::optional<std::string>& value, bool flexible,
                       bool null_allowed = true);
  void bytes(const Slice& value, bool flexible);
  void nullable_bytes(const std::optional<Slice>& value, bool flexible, bool null_allowed = true);

  template <typename T, typename F>
  void array(const std::vector<T>& values, bool flexible, F&& write_element) {
    array_length(values.size(), flexible);
    for (const T& value : values) write_element(value);
  }
  template <typename T, typename F>
  void nullable_array(const std::optional<std::vector<T>>& values, bool flexible, bool null_allowed,
                      F&& write_element) {
    if (values) {
      array(*values, flexible, write_element);
    } else {
      null_array(flexible, null_allowed);
    }
  }

  // Arrays of generated structs.
  template <typename T>
  void structs(const std::vector<T>& values, bool flexible, std::int16_t version) {
    array(values, flexible,
          [this, version](const T& value) { value.encode_fields(*this, version); });
  }
  template <typename T>
  void nullable_structs(const std::optional<std::vector<T>>& values, bool flexible,
                        bool null_allowed, std::int16_t version) {
    nullable_array(values, flexible, null_allowed,
                   [this, version](const T& value) { value.encode_fields(*this, version); });
  }
  template <typename T>
  void nullable_struct(const std::optional<T>& value, std::int16_t version) {
    out_.i8(value ? 1 : -1);
    if (value) value->encode_fields(*this, version);
  }

  void no_tagged_fields() { out_.u8(0); }

  // For a field that the version does not have and that must not be dropped silently.
  void absent(bool is_set, std::string_view field) {
    if (is_set) refuse(Errc::unsupported, field);
  }

 private:
  friend class TaggedFields;

  void refuse(Errc code, std::string_view what);
  void array_length(std::size_t count, bool flexible);
  void null_array(bool flexible, bool null_allowed);

  ByteWriter& out_;
  std::optional<Errc> refused_;
  std::string_view refused_what_;  // a literal
};

// The tagged fields of one struct: each is encoded apart, because its size goes before it.
class TaggedFields {
 public:
  // REQUIRES: tags ascend. `write_field(Encoder&)` writes the value.
  template <typename F>
  void add(Encoder& out, std::uint32_t tag, F&& write_field) {
    ByteWriter payload;
    Encoder encoder(payload);
    write_field(encoder);
    if (encoder.refused_) out.refuse(*encoder.refused_, encoder.refused_what_);
    fields_.emplace_back(tag, payload.take());
  }
  void write(Encoder& out) const;

 private:
  std::vector<std::pair<std::uint32_t, Chain>> fields_;
};

}  // namespace polylog::protocol::kafka
