#pragma once

#include "broker/broker.h"
#include "server/metrics.h"

namespace polylog::server::http {

// Registers what the broker itself can tell: topics, partitions, bytes on disk, failed logs.
// `broker` outlives every later metrics.text().
void add_broker_metrics(Metrics& metrics, const broker::Broker& broker);

}  // namespace polylog::server::http
