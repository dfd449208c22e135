#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "broker/async.h"
#include "server/metrics.h"

namespace polylog::server::http {

// The port for people and machines that look after the broker, HTTP/1.1:
//   /healthz  200 while the process serves
//   /readyz   200 once set_ready(true) was called, 503 otherwise
//   /metrics  Prometheus text format
// GET and HEAD only, heads up to 8 KiB, no request bodies. Reactor only, except open() and the
// destructor, which may also run before or after the reactor does.
class HttpService {
 public:
  // Listens on HOST:PORT (port 0: any); start() begins to accept. `context` and `metrics` outlive
  // the service. invalid, exists (port in use), io: fit to be shown on a terminal.
  static Result<std::unique_ptr<HttpService>> open(boost::asio::io_context& context,
                                                   Metrics& metrics, const std::string& address);
  ~HttpService();

  void start();
  void stop();
  void abort();
  void set_ready(bool ready);

  std::uint16_t port() const;
  std::string address() const;  // HOST:PORT with the port that was bound

 private:
  struct Impl;
  explicit HttpService(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace polylog::server::http
