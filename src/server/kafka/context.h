#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "broker/broker.h"
#include "broker/groups/coordinator.h"
#include "server/kafka/errors.h"
#include "server/kafka/fetch_sessions.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/net/handler.h"

namespace polylog::server::kafka {

// Counted per API.
struct ApiCounters {
  Counter* requests = nullptr;
  Counter* nanoseconds = nullptr;  // from the frame to its answer, waiting included
  Counter* request_bytes = nullptr;
  Counter* response_bytes = nullptr;
};

// How often clients were told to be silent for a quota, and for how long.
struct ThrottleCounters {
  Counter* requests = nullptr;
  Counter* milliseconds = nullptr;
};

// What all requests share. Lives as long as the service. Reactor only.
struct Context {
  Context(broker::Broker& broker_in, broker::groups::Coordinator& groups_in,
          Metrics& metrics_in);

  broker::Broker& broker;
  broker::groups::Coordinator& groups;
  Metrics& metrics;
  FetchSessions fetch_sessions;
  std::map<std::int16_t, ApiCounters> api_counters;
  std::array<ThrottleCounters, broker::quotas::kinds> throttles;  // by Kind
  Counter& produced_bytes;
  Counter& produced_records;
  Counter& fetched_bytes;
  Counter& fetched_records;
  RateLimit refused_requests{10'000};
  RateLimit refused_transactions{60'000};
  RateLimit storage_trouble{10'000};

  // The code as it goes into a response; errors are counted by name.
  std::int16_t wire(ErrorCode code);
  // A node to connect to, as metadata names it to this client.
  std::string advertised_host(const Peer& peer) const;
  std::int32_t advertised_port(const Peer& peer) const;
  std::int64_t now_ms() const { return broker.clock().now().value(); }
  std::int64_t deadline_in_ms(std::int64_t ms) const;
  // Of an administrator's request: no part of it begins later. A timeout of 0 or less is none.
  std::int64_t last_start_ns(std::int32_t timeout_ms) const;
  bool passed(std::int64_t deadline_ns) const { return broker.clock().steady_ns() >= deadline_ns; }

 private:
  std::map<ErrorCode, Counter*> error_counters_;
};

// One connection, as far as it is more than a sequence of requests.
struct Client {
  Client(std::shared_ptr<const Peer> peer_in, std::shared_ptr<Context> context_in)
      : peer(std::move(peer_in)),
        origin(broker::parse_origin(peer->address())),
        context(std::move(context_in)) {}
  const std::shared_ptr<const Peer> peer;
  const broker::Origin origin;  // of what it produces
  const std::shared_ptr<Context> context;  // requests at work may outlive the service
  bool ended = false;  // no request will follow: long polls answer at once
  // A connection has one fetch at work at a time, which bounds what its answers can hold.
  bool fetching = false;
  broker::Signal* fetch_waits = nullptr;                 // what wakes the fetch at work
  std::unique_ptr<broker::Signal> fetch_done;            // what wakes the next one
};
using ClientPtr = std::shared_ptr<Client>;

// One request, its header read.
struct Call {
  std::int16_t version = 0;
  std::optional<std::string> client_id;
  Slice body;
};

// Names clients may read but not write.
bool is_internal_topic(const std::string& name);

}  // namespace polylog::server::kafka
