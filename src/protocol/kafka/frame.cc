#include "protocol/kafka/frame.h"

#include <string>

#include "base/assert.h"
#include "bytes/endian.h"
#include "protocol/kafka/limits.h"

namespace polylog::protocol::kafka {
namespace {

// API key, version, correlation id: nothing shorter is a request.
constexpr std::size_t frame_bytes_min = 8;

// What a peer probably speaks that is not Kafka; empty when it does not show.
std::string_view likely_protocol(std::span<const std::uint8_t, frame_size_bytes> prefix) {
  constexpr std::uint8_t tls_handshake = 0x16, tls_major_version = 3, mqtt_connect = 0x10;
  if (prefix[0] == tls_handshake && prefix[1] == tls_major_version) return "TLS";
  if (prefix[0] == mqtt_connect) return "MQTT";
  const std::string_view text = as_text(prefix);
  for (const std::string_view method :
       {"GET ", "HEAD", "POST", "PUT ", "DELE", "OPTI", "PATC", "CONN", "TRAC", "PRI "}) {
    if (text == method) return "HTTP";
  }
  return {};
}

}  // namespace

Result<std::size_t> frame_size(std::span<const std::uint8_t, frame_size_bytes> prefix,
                               std::size_t bytes_max) {
  const auto size = load_big<std::int32_t>(prefix.data());
  if (size >= 0 && static_cast<std::size_t>(size) <= bytes_max) {
    if (static_cast<std::size_t>(size) >= frame_bytes_min) return static_cast<std::size_t>(size);
    return fail(Errc::invalid, "a frame of " + std::to_string(size) + " bytes is no request");
  }
  std::string what =
      "a frame of " + std::to_string(size) + " bytes, allowed are " + std::to_string(bytes_max);
  if (const std::string_view other = likely_protocol(prefix); !other.empty()) {
    what += "; the peer seems to speak " + std::string(other) + ", this is a Kafka port";
  }
  return fail(size < 0 ? Errc::invalid : Errc::too_large, std::move(what));
}

void begin_frame(ByteWriter& out) {
  POLYLOG_ASSERT(out.size() == 0);
  out.i32(0);
}

Result<void> end_frame(ByteWriter& out) {
  const std::size_t size = out.size() - frame_size_bytes;
  if (size > bytes_bytes_max) {
    return fail(Errc::too_large, "a frame of " + std::to_string(size) + " bytes");
  }
  out.patch_i32(0, static_cast<std::int32_t>(size));
  return {};
}

}  // namespace polylog::protocol::kafka
