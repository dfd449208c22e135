#include "format/transcode/mapping.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

#include "base/assert.h"
#include "format/kafka/varint.h"
#include "format/rocketmq/properties.h"
#include "format/transcode/base64.h"
#include "format/transcode/text_rules.h"

namespace polylog::format {
namespace {

constexpr char base64_mark = '=';

void append_varint(std::vector<std::uint8_t>& out, std::int64_t value) {
  std::array<std::uint8_t, 10> bytes;
  std::uint8_t* const end = kafka::write_varlong(bytes.data(), value);
  out.insert(out.end(), bytes.data(), end);
}

void append_sized(std::vector<std::uint8_t>& out, const std::optional<ByteView>& bytes) {
  if (!bytes) return append_varint(out, -1);
  append_varint(out, static_cast<std::int64_t>(bytes->size()));
  out.insert(out.end(), bytes->begin(), bytes->end());
}

// A varint length and as many bytes; -1 is null. False: cut short, or another negative length.
bool take_sized(const std::uint8_t*& at, const std::uint8_t* end, std::optional<ByteView>& bytes) {
  std::int32_t size = 0;
  if (!kafka::read_varint(at, end, size) || size < -1 || size > end - at) return false;
  bytes.reset();
  if (size < 0) return true;
  bytes.emplace(at, static_cast<std::size_t>(size));
  at += size;
  return true;
}

}  // namespace

bool travels_alone(std::string_view name, std::string_view value) {
  if (is_binary(name)) {
    std::vector<std::uint8_t> bytes;
    return !value.empty() && decode_base64(value, bytes);
  }
  return !rocketmq::is_reserved(name) && is_plain_text(name) && is_plain_text(value);
}

bool is_bound_to_store(std::string_view name) {
  return name.starts_with("INNER_") || name.starts_with("__RMQ.") ||
         name == rocketmq::property::crc32;
}

void append_key(std::string& text, ByteView key) {
  const std::string_view clean = as_text(key);
  if (!clean.starts_with(base64_mark) && is_printable(clean)) {
    text += clean;
    return;
  }
  text += base64_mark;
  append_base64(text, key);
}

bool decode_key(std::string_view value, std::vector<std::uint8_t>& out) {
  if (value.starts_with(base64_mark)) return decode_base64(value.substr(1), out);
  const ByteView bytes = as_bytes(value);
  out.insert(out.end(), bytes.begin(), bytes.end());
  return true;
}

void append_header_list(std::vector<std::uint8_t>& out, const std::vector<Header>& headers) {
  append_varint(out, static_cast<std::int64_t>(headers.size()));
  for (const Header& header : headers) {
    append_sized(out, as_bytes(header.name));
    append_sized(out, header.value);
  }
}

bool decode_header_list(ByteView bytes, std::vector<Header>& headers) {
  constexpr std::int64_t header_bytes_min = 2;
  const std::uint8_t* at = bytes.data();
  const std::uint8_t* const end = at + bytes.size();
  std::int32_t count = 0;
  if (!kafka::read_varint(at, end, count) || count < 0 || count > (end - at) / header_bytes_min) {
    return false;
  }
  headers.clear();
  headers.reserve(static_cast<std::size_t>(count));
  for (std::int32_t i = 0; i < count; ++i) {
    std::optional<ByteView> name;
    Header header;
    if (!take_sized(at, end, name) || !name || !take_sized(at, end, header.value)) return false;
    header.name = as_text(*name);
    headers.push_back(header);
  }
  return at == end;
}

rocketmq::Host to_host(ByteView address, std::int32_t port) {
  rocketmq::Host host;
  POLYLOG_ASSERT(address.size() == 4 || address.size() == host.address.size());
  host.v6 = address.size() == host.address.size();
  std::copy(address.begin(), address.end(), host.address.begin());
  host.port = port;
  return host;
}

std::string to_text(const rocketmq::Host& host) {
  std::array<char, INET6_ADDRSTRLEN> address{};
  inet_ntop(host.v6 ? AF_INET6 : AF_INET, host.address.data(), address.data(), address.size());
  const std::string port = std::to_string(host.port);
  return host.v6 ? "[" + std::string(address.data()) + "]:" + port
                 : std::string(address.data()) + ":" + port;
}

std::optional<rocketmq::Host> parse_host(std::string_view text) {
  rocketmq::Host host;
  host.v6 = text.starts_with('[');
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view address = text.substr(0, colon);
  if (host.v6) {
    if (address.size() < 2 || address.back() != ']') return std::nullopt;
    address = address.substr(1, address.size() - 2);
  }
  const std::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), host.port);
  if (error != std::errc() || end != port.data() + port.size()) return std::nullopt;
  std::array<char, INET6_ADDRSTRLEN> terminated{};
  if (address.size() >= terminated.size()) return std::nullopt;
  std::copy(address.begin(), address.end(), terminated.begin());
  if (inet_pton(host.v6 ? AF_INET6 : AF_INET, terminated.data(), host.address.data()) != 1 ||
      to_text(host) != text) {
    return std::nullopt;
  }
  return host;
}

}  // namespace polylog::format
