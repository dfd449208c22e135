#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "broker/async.h"
#include "server/metrics.h"
#include "server/net/handler.h"

namespace polylog::server {

struct ListenerOptions {
  std::string protocol;                     // for log lines and metrics: "kafka"
  std::string address;                      // HOST:PORT; port 0 picks one; [v6]:PORT; :PORT = all
  CutFrame cut = cut_length_prefixed;
  std::size_t frame_bytes_max = 104857600;  // socket.request.max.bytes
  std::size_t connections_max = INT32_MAX;  // max.connections
  std::int64_t idle_ms_max = 600000;        // connections.max.idle.ms; -1: never
  std::size_t requests_in_flight_max = 1024;
  std::size_t answer_bytes_max = 4 * 1024 * 1024;
  // Whether a client at that address may connect now: 0, or how many ms its connection is held,
  // unread, and then closed. Null: everybody may.
  std::function<std::int64_t(const std::string& ip)> admit;
};

// Accepts connections on all addresses of one HOST:PORT and owns them. Reactor only, except
// open() and the destructor, which may also run before or after the reactor does.
class Listener {
 public:
  // Listens at once; nothing is accepted before start(). invalid: the address cannot be parsed or
  // resolved; io: it cannot be bound, in words fit for the terminal. `context` and `metrics`
  // outlive the listener.
  static Result<std::unique_ptr<Listener>> open(boost::asio::io_context& context,
                                                ListenerOptions options, MakeHandler make_handler,
                                                Metrics& metrics);
  ~Listener();

  void start();
  // Accepts and reads no more; connections close once their answers are out.
  void stop();
  // Closes everything at once.
  void abort();
  // max.connections from now on; those that are open stay.
  void set_connections_max(std::size_t connections_max);

  std::uint16_t port() const;
  std::string address() const;  // HOST:PORT as asked for, with the port that was bound
  std::size_t connections() const;

 private:
  struct Impl;
  explicit Listener(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

// Splits HOST:PORT, [V6]:PORT and :PORT. invalid with a sentence otherwise.
struct HostPort {
  std::string host;  // without brackets; "" = every address
  std::uint16_t port = 0;
};
Result<HostPort> parse_host_port(const std::string& text);
// The other way round: brackets where the host is an IPv6 address.
std::string join_host_port(const std::string& host, std::uint16_t port);

}  // namespace polylog::server
