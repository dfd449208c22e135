#include "cli/command.h"
#include "storage/kafka/store.h"
#include "storage/rocketmq/store.h"

// Wiring: the only place that names concrete engines.
int main(int argc, char** argv) {
  polylog::cli::Engines engines;
  engines.kafka = &polylog::storage::kafka::KafkaStore::open;
  engines.rocketmq = &polylog::storage::rocketmq::RocketmqStore::open;
  return polylog::cli::run(argc, argv, engines);
}
