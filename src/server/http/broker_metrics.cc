#include "server/http/broker_metrics.h"

#include <functional>

namespace polylog::server::http {
namespace {

double sum(const broker::Broker& broker,
           const std::function<double(broker::Partition&)>& of_partition) {
  double total = 0;
  for (const std::shared_ptr<broker::Topic>& topic : broker.topics()) {
    for (const std::shared_ptr<broker::Partition>& partition : topic->partitions) {
      total += of_partition(*partition);
    }
  }
  return total;
}

}  // namespace

void add_broker_metrics(Metrics& metrics, const broker::Broker& broker) {
  metrics.gauge("polylog_topics", "Topics.",
                [&broker] { return static_cast<double>(broker.topics().size()); });
  metrics.gauge("polylog_partitions", "Partitions.", [&broker] {
    return sum(broker, [](broker::Partition&) { return 1.0; });
  });
  metrics.gauge("polylog_log_bytes", "Size of all data files.", [&broker] {
    return sum(broker, [](broker::Partition& partition) {
      return static_cast<double>(partition.log().size_bytes());
    });
  });
  metrics.gauge("polylog_failed_partitions",
                "Partitions that refuse writes until restart because a sync failed.", [&broker] {
                  return sum(broker, [](broker::Partition& partition) {
                    return partition.log_state().failed ? 1.0 : 0.0;
                  });
                });
}

}  // namespace polylog::server::http
