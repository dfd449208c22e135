#include "protocol/kafka/decoder.h"

namespace polylog::protocol::kafka {
namespace {

// The length of a string or of bytes, once read. Fails the reader unless the rest can hold it.
template <typename T>
bool holds(ByteReader& in, T length, std::size_t length_max) {
  if (length < 0 || static_cast<std::uint64_t>(length) > length_max) in.fail();
  return in.ok();
}

}  // namespace

Result<void> Decoder::finish(std::string_view message_name, std::int16_t version) const {
  if (ok()) return {};
  std::string what(message_name);
  what += " v" + std::to_string(version) + ": malformed at byte " + std::to_string(position()) +
          " of " + std::to_string(body_.size());
  return polylog::fail(Errc::invalid, std::move(what));
}

Uuid Decoder::uuid() {
  Uuid id;
  const ByteView raw = in_.bytes(id.bytes.size());
  std::copy(raw.begin(), raw.end(), id.bytes.begin());
  return id;
}

std::optional<std::string> Decoder::nullable_string(bool flexible, bool null_allowed) {
  const std::int64_t length =
      flexible ? std::int64_t{in_.unsigned_varint()} - 1 : std::int64_t{in_.i16()};
  if (length == null_length && null_allowed) return std::nullopt;
  if (!holds(in_, length, string_bytes_max)) return std::nullopt;
  return std::string(in_.text(static_cast<std::size_t>(length)));
}

std::string Decoder::string(bool flexible) {
  return nullable_string(flexible, false).value_or(std::string());
}

std::optional<Slice> Decoder::nullable_bytes(bool flexible, bool null_allowed) {
  const std::int64_t length = array_length(flexible);
  if (length == null_length && null_allowed) return std::nullopt;
  if (!holds(in_, length, bytes_bytes_max)) return std::nullopt;
  return share(in_.bytes(static_cast<std::size_t>(length)));
}

Slice Decoder::bytes(bool flexible) { return nullable_bytes(flexible, false).value_or(Slice()); }

}  // namespace polylog::protocol::kafka
