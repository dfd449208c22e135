#include "cli/command.h"
#include "storage/kafka/store.h"
#include "storage/rocketmq/store.h"
#include "storage/rocksdb/loader.h"
#include "storage/segment/store.h"

namespace polylog {
namespace {

Result<storage::Opened> open_segment_store(fs::FileSystem& fs, const Clock& clock,
                                           const storage::StoreConfig& config) {
  return storage::segment::SegmentStore::open(
      fs, clock, config,
      [&fs](const std::string& directory) { return storage::load_rocksdb_index(fs, directory); });
}

}  // namespace
}  // namespace polylog

// Wiring: the only place that names concrete engines.
int main(int argc, char** argv) {
  polylog::cli::Engines engines;
  engines.kafka = &polylog::storage::kafka::KafkaStore::open;
  engines.rocketmq = &polylog::storage::rocketmq::RocketmqStore::open;
  engines.segment = &polylog::open_segment_store;
  return polylog::cli::run(argc, argv, engines);
}
