#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "broker/broker.h"
#include "broker/groups/coordinator.h"
#include "server/metrics.h"

namespace polylog::server::kafka {

// Kafka's protocol on one port (Kafka wire protocol, "Connection rules"). Reactor only, except
// open() and the destructor, which may also run before or after the reactor does.
//
// Stopping: stop(), then let the reactor run until connections() is 0 or patience ends, then
// abort(), and only then close the broker. Answers that wait for a sync leave before the
// connection closes.
class KafkaService {
 public:
  // Listens on HOST:PORT (port 0: any); start() begins to accept. `broker`, `groups` and `metrics`
  // outlive the service. invalid, exists (port in use), io: fit to be shown on a terminal.
  static Result<std::unique_ptr<KafkaService>> open(broker::Broker& broker,
                                                    broker::groups::Coordinator& groups,
                                                    Metrics& metrics, const std::string& address);
  ~KafkaService();

  void start();
  void stop();
  void abort();

  std::uint16_t port() const;
  std::string address() const;  // HOST:PORT with the port that was bound
  std::size_t connections() const;

 private:
  struct Impl;
  explicit KafkaService(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace polylog::server::kafka
