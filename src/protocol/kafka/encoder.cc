#include "protocol/kafka/encoder.h"

#include <limits>

#include "protocol/kafka/limits.h"

namespace polylog::protocol::kafka {

Result<void> Encoder::finish(std::string_view message_name, std::int16_t version) const {
  if (!refused_) return {};
  std::string what(message_name);
  what += " v" + std::to_string(version) + " cannot carry " + std::string(refused_what_);
  return polylog::fail(*refused_, std::move(what));
}

void Encoder::refuse(Errc code, std::string_view what) {
  if (refused_) return;
  refused_ = code;
  refused_what_ = what;
}

void Encoder::string(std::string_view value, bool flexible) {
  if (value.size() > string_bytes_max) {
    refuse(Errc::invalid, "a string above 32767 bytes");
    return;
  }
  if (flexible) {
    out_.unsigned_varint(static_cast<std::uint32_t>(value.size()) + 1);
  } else {
    out_.i16(static_cast<std::int16_t>(value.size()));
  }
  out_.text(value);
}

void Encoder::nullable_string(const std::optional<std::string>& value, bool flexible,
                              bool null_allowed) {
  if (value) {
    string(*value, flexible);
    return;
  }
  if (!null_allowed) refuse(Errc::invalid, "a null string");
  if (flexible) {
    out_.unsigned_varint(0);
  } else {
    out_.i16(-1);
  }
}

void Encoder::bytes(const Slice& value, bool flexible) {
  if (value.size() > bytes_bytes_max) {
    refuse(Errc::invalid, "bytes above 2147483647");
    return;
  }
  array_length(value.size(), flexible);
  out_.slice(value);
}

void Encoder::nullable_bytes(const std::optional<Slice>& value, bool flexible, bool null_allowed) {
  if (value) {
    bytes(*value, flexible);
  } else {
    null_array(flexible, null_allowed);
  }
}

void Encoder::array_length(std::size_t count, bool flexible) {
  if (count > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    refuse(Errc::invalid, "more than 2147483647 elements");
    return;
  }
  if (flexible) {
    out_.unsigned_varint(static_cast<std::uint32_t>(count) + 1);
  } else {
    out_.i32(static_cast<std::int32_t>(count));
  }
}

void Encoder::null_array(bool flexible, bool null_allowed) {
  if (!null_allowed) refuse(Errc::invalid, "null bytes or a null array");
  if (flexible) {
    out_.unsigned_varint(0);
  } else {
    out_.i32(-1);
  }
}

void TaggedFields::write(Encoder& out) const {
  out.out_.unsigned_varint(static_cast<std::uint32_t>(fields_.size()));
  for (const auto& [tag, payload] : fields_) {
    const std::size_t size = payload.size();
    if (size > bytes_bytes_max) {
      out.refuse(Errc::invalid, "a tagged field above 2147483647 bytes");
      return;
    }
    out.out_.unsigned_varint(tag);
    out.out_.unsigned_varint(static_cast<std::uint32_t>(size));
    payload.for_each([&out](ByteView piece) { out.out_.bytes(piece); });
  }
}

}  // namespace polylog::protocol::kafka
