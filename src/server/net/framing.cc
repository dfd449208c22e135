#include <algorithm>
#include <array>

#include "bytes/endian.h"
#include "server/net/handler.h"

namespace polylog::server {
namespace {

constexpr std::size_t length_bytes = 4;

std::string_view likely_mistake(ByteView head) {
  // A TLS record: type handshake (22), version 3.x.
  if (head[0] == 0x16 && head[1] == 0x03) {
    return "this looks like a TLS hello, but the port speaks plaintext";
  }
  constexpr std::array<std::string_view, 10> verbs = {"GET ", "POST", "PUT ", "HEAD", "DELE",
                                                      "OPTI", "PATC", "CONN", "TRAC", "PRI "};
  const std::string_view start = as_text(head.subspan(0, length_bytes));
  if (std::find(verbs.begin(), verbs.end(), start) != verbs.end()) {
    return "this looks like an HTTP request, but the port does not speak HTTP";
  }
  // MQTT: fixed header of CONNECT, then the remaining length.
  if (head[0] == 0x10) {
    return "this looks like an MQTT CONNECT, but the port does not speak MQTT";
  }
  return "the frame is larger than socket.request.max.bytes";
}

}  // namespace

FrameCut cut_length_prefixed(ByteView head, std::size_t body_bytes_max) {
  FrameCut cut;
  if (head.size() < length_bytes) return cut;
  const auto size = load_big<std::int32_t>(head.data());
  cut.header_bytes = length_bytes;
  if (size < 0) {
    cut.kind = FrameCut::Kind::refuse;
    cut.reason = "the frame has a negative length";
  } else if (static_cast<std::size_t>(size) > body_bytes_max) {
    cut.kind = FrameCut::Kind::refuse;
    cut.reason = likely_mistake(head);
  } else {
    cut.kind = FrameCut::Kind::frame;
    cut.body_bytes = static_cast<std::size_t>(size);
  }
  return cut;
}

}  // namespace polylog::server
