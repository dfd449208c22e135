#include "server/kafka/context.h"

#include <algorithm>

namespace polylog::server::kafka {

Context::Context(broker::Broker& broker_in, broker::groups::Coordinator& groups_in,
                 Metrics& metrics_in)
    : broker(broker_in),
      groups(groups_in),
      metrics(metrics_in),
      fetch_sessions(static_cast<std::size_t>(
          std::max<std::int32_t>(broker_in.settings().fetch_session_slots, 0))),
      produced_bytes(metrics_in.counter("polylog_produced_bytes_total",
                                        "Bytes of batches appended for clients.")),
      produced_records(
          metrics_in.counter("polylog_produced_records_total", "Records appended for clients.")),
      fetched_bytes(
          metrics_in.counter("polylog_fetched_bytes_total", "Bytes of batches handed to clients.")),
      fetched_records(
          metrics_in.counter("polylog_fetched_records_total", "Records handed to clients.")) {
  for (std::size_t i = 0; i < throttles.size(); ++i) {
    const auto kind = static_cast<broker::quotas::Kind>(i);
    const std::string label = "quota=\"" + std::string(broker::quotas::name_of(kind)) + "\"";
    throttles[i].requests =
        &metrics.counter("polylog_quota_throttled_total",
                         "Requests after which a client was told to be silent.", label);
    throttles[i].milliseconds =
        &metrics.counter("polylog_quota_throttle_seconds_total",
                         "For how long clients were told to be silent.", label, 1e-3);
  }
}

std::int16_t Context::wire(ErrorCode code) {
  if (code != ErrorCode::none) {
    Counter*& counter = error_counters_[code];
    if (counter == nullptr) {
      counter = &metrics.counter("polylog_kafka_errors_total", "Errors answered, by code.",
                                 "error=\"" + std::string(protocol::kafka::name(code)) + "\"");
    }
    counter->add();
  }
  return protocol::kafka::to_wire(code);
}

std::string Context::advertised_host(const Peer& peer) const {
  const std::string& configured = broker.settings().advertised_host;
  return configured.empty() ? peer.local_host : configured;
}

std::int32_t Context::advertised_port(const Peer& peer) const {
  const std::int32_t configured = broker.settings().advertised_port;
  return configured == 0 ? peer.local_port : configured;
}

std::int64_t Context::deadline_in_ms(std::int64_t ms) const {
  return broker.clock().steady_ns() + std::max<std::int64_t>(ms, 0) * 1'000'000;
}

std::int64_t Context::last_start_ns(std::int32_t timeout_ms) const {
  return timeout_ms > 0 ? deadline_in_ms(timeout_ms) : INT64_MAX;
}

bool is_internal_topic(const std::string& name) {
  return name == "__consumer_offsets" || name == "__transaction_state" ||
         name == "__share_group_state";
}

}  // namespace polylog::server::kafka
