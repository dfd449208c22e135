#include <charconv>

#include "server/net/listener.h"

namespace polylog::server {

Result<HostPort> parse_host_port(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) {
    return fail(Errc::invalid, "'" + text + "' has no port; write HOST:PORT");
  }
  HostPort parsed;
  parsed.host = text.substr(0, colon);
  const char* first = text.data() + colon + 1;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(first, last, parsed.port);
  if (error != std::errc() || end != last) {
    return fail(Errc::invalid,
                "'" + text + "': '" + std::string(first, last) + "' is not a port number");
  }
  if (parsed.host.size() >= 2 && parsed.host.front() == '[' && parsed.host.back() == ']') {
    parsed.host = parsed.host.substr(1, parsed.host.size() - 2);
  } else if (parsed.host.find(':') != std::string::npos) {
    return fail(Errc::invalid, "'" + text + "': an IPv6 address goes in brackets, [::1]:9092");
  }
  return parsed;
}

std::string join_host_port(const std::string& host, std::uint16_t port) {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::string Peer::address() const { return join_host_port(ip, port); }

}  // namespace polylog::server
