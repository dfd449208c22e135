#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "broker/settings.h"
#include "convert/data_directory.h"
#include "convert/marker.h"
#include "convert/partition_writer.h"
#include "meta/catalog.h"

namespace polylog::convert {

// The data directory that a conversion makes: its catalogue, Kafka's store for Kafka's own topics,
// and the store of the wanted layout. Used by one thread.
class Target {
 public:
  struct Setup {
    std::string path;
    storage::Layout layout = storage::Layout::kafka;
    Uuid cluster_id;  // zero: a new one
    Marker marker;    // written before anything else, but for the lock
    const broker::Settings* settings = nullptr;
    // Files for the config folder of RocketMQ's layout, unless they are there.
    std::map<std::string, std::string> rocketmq_configs;
  };

  // Makes the directory, or goes on with it. locked: somebody else works on it.
  static Result<std::unique_ptr<Target>> open(fs::FileSystem& fs, const Clock& clock,
                                              const Engines& engines, const Setup& setup);

  meta::Catalog& catalog() { return *catalog_; }
  storage::Store& store(storage::Layout layout) { return *stores_.at(layout).store; }

  struct Partition {
    storage::Layout layout;
    TopicPartition id;
    Uuid topic;
    storage::LogConfig config;
    bool log_append_time = false;
    OffsetRange range;
    Offset first;
  };
  Result<std::unique_ptr<PartitionWriter>> writer(const Partition& partition);

  // `log` was given so many bytes. Now and then everything is synced: what a sync has covered is
  // not copied again by the next run.
  Result<void> wrote(const std::shared_ptr<storage::Log>& log, std::uint64_t bytes);
  Result<void> sync();
  // Clients may have seen that epoch of what `log` holds now: the broker's next one is later.
  void reach_epoch(const std::shared_ptr<storage::Log>& log, LeaderEpoch epoch);
  // A clean stop of all stores; nothing may be called afterwards.
  Result<void> close();

 private:
  struct Opened {
    std::unique_ptr<storage::Store> store;
    storage::StoreConfig config;
  };

  Target(fs::FileSystem& fs, const Clock& clock, const Setup& setup)
      : fs_(fs), clock_(clock), setup_(setup) {}
  Result<void> open_store(storage::Layout layout, const Engines& engines);
  Result<void> lay_configs();

  fs::FileSystem& fs_;
  const Clock& clock_;
  const Setup setup_;
  std::unique_ptr<fs::Lock> lock_;
  std::unique_ptr<fs::Volume> volume_;
  std::unique_ptr<meta::Catalog> catalog_;
  std::map<storage::Layout, Opened> stores_;
  std::set<std::shared_ptr<storage::Log>> dirty_;
  std::map<std::shared_ptr<storage::Log>, LeaderEpoch> epochs_;
  std::uint64_t unsynced_bytes_ = 0;
  std::int64_t synced_ns_ = 0;
};

}  // namespace polylog::convert
