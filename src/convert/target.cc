#include "convert/target.h"

#include <algorithm>
#include <utility>

#include "broker/durability.h"
#include "broker/topic_config.h"
#include "format/rocketmq/names.h"
#include "storage/rocketmq/store.h"

namespace polylog::convert {
namespace {

constexpr std::uint64_t sync_bytes = std::uint64_t{64} << 20;
constexpr std::int64_t sync_pause_ns = 2'000'000'000;
constexpr std::size_t dirty_logs_max = 256;
constexpr std::size_t open_files_max = 256;
constexpr std::size_t recovery_threads = 4;

}  // namespace

Result<std::unique_ptr<Target>> Target::open(fs::FileSystem& fs, const Clock& clock,
                                             const Engines& engines, const Setup& setup) {
  std::unique_ptr<Target> made(new Target(fs, clock, setup));
  POLYLOG_TRY(fs::create_directories(fs, setup.path));
  POLYLOG_ASSIGN(lock, fs.lock(fs::join(setup.path, ".lock")));
  made->lock_ = std::move(lock);
  POLYLOG_TRY(write_marker(fs, setup.path, setup.marker));
  POLYLOG_ASSIGN(volume, fs.open_volume(setup.path));
  made->volume_ = std::move(volume);
  const std::string meta_directory = fs::join(setup.path, "meta");
  POLYLOG_TRY(fs::create_directories(fs, meta_directory));
  POLYLOG_ASSIGN(catalog, meta::open_embedded_catalog(fs, meta_directory, setup.cluster_id));
  made->catalog_ = std::move(catalog);
  POLYLOG_TRY(made->lay_configs());
  POLYLOG_TRY(made->open_store(storage::Layout::kafka, engines));
  if (setup.layout != storage::Layout::kafka) {
    POLYLOG_TRY(made->open_store(setup.layout, engines));
  }
  made->synced_ns_ = clock.steady_ns();
  return made;
}

Result<void> Target::lay_configs() {
  if (setup_.rocketmq_configs.empty()) return {};
  const std::string directory =
      fs::join(fs::join(setup_.path, broker::layout_name(storage::Layout::rocketmq)),
               format::rocketmq::config_directory);
  POLYLOG_TRY(fs::create_directories(fs_, directory));
  for (const auto& [name, text] : setup_.rocketmq_configs) {
    const std::string path = fs::join(directory, name);
    if (fs::exists(fs_, path)) continue;
    POLYLOG_TRY(fs::replace_file(fs_, path, as_bytes(text)));
  }
  return {};
}

Result<void> Target::open_store(storage::Layout layout, const Engines& engines) {
  const auto engine = engines.find(layout);
  if (engine == engines.end()) {
    return fail(Errc::unsupported, "the layout " + std::string(broker::layout_name(layout)) +
                                       " is not available in this build");
  }
  POLYLOG_ASSIGN(defaults,
                 broker::resolve_topic_config({}, setup_.settings->values(), layout));
  storage::StoreConfig config;
  config.directory = fs::join(setup_.path, broker::layout_name(layout));
  config.sidecar_directory = fs::join(setup_.path, "sidecar");
  config.node_id = setup_.settings->node_id;
  config.cluster_id = catalog_->cluster_id();
  config.open_files_max = open_files_max;
  config.recovery_threads = recovery_threads;
  config.defaults = defaults.log;
  config.shared = setup_.settings->shared_log;
  POLYLOG_ASSIGN(opened, engine->second(fs_, clock_, config));
  // A log for all has one epoch for all; the layout's bytes don't carry it, so it begins here.
  if (opened.store->traits().shared_log) {
    auto* const its = dynamic_cast<storage::rocketmq::RocketmqStore*>(opened.store.get());
    if (its != nullptr && its->shared_log()->epoch() == no_epoch) {
      POLYLOG_TRY(its->shared_log()->begin_epoch(LeaderEpoch(0)));
    }
  }
  stores_[layout] = {std::move(opened.store), std::move(config)};
  return {};
}

Result<std::unique_ptr<PartitionWriter>> Target::writer(const Partition& partition) {
  const Opened& opened = stores_.at(partition.layout);
  return open_writer(partition.layout,
                     {fs_, clock_, *opened.store, opened.config.directory, opened.config.shared,
                      partition.id, partition.topic, partition.config, partition.range,
                      partition.first, partition.log_append_time});
}

Result<void> Target::wrote(const std::shared_ptr<storage::Log>& log, std::uint64_t bytes) {
  dirty_.insert(log);
  unsynced_bytes_ += bytes;
  const bool due = unsynced_bytes_ >= sync_bytes || dirty_.size() >= dirty_logs_max ||
                   clock_.steady_ns() - synced_ns_ >= sync_pause_ns;
  return due ? sync() : Result<void>();
}

Result<void> Target::sync() {
  std::vector<std::shared_ptr<storage::Log>> logs(dirty_.begin(), dirty_.end());
  dirty_.clear();
  unsynced_bytes_ = 0;
  for (const auto& outcome : broker::run_sync_round(fs_, volume_.get(), std::move(logs))) {
    POLYLOG_TRY(outcome.result);
  }
  for (const auto& [layout, opened] : stores_) {
    auto* const its = dynamic_cast<storage::rocketmq::RocketmqStore*>(opened.store.get());
    if (its == nullptr) continue;
    // Not tend(): nothing may expire here.
    POLYLOG_TRY(its->shared_log()->flush_entries());
    if (its->shared_log()->wants_checkpoint()) POLYLOG_TRY(its->shared_log()->checkpoint());
  }
  synced_ns_ = clock_.steady_ns();
  return {};
}

void Target::reach_epoch(const std::shared_ptr<storage::Log>& log, LeaderEpoch epoch) {
  const auto [found, added] = epochs_.try_emplace(log, epoch);
  found->second = std::max(found->second, epoch);
}

Result<void> Target::close() {
  for (const auto& [log, epoch] : epochs_) {
    if (epoch > log->epoch()) POLYLOG_TRY(log->begin_epoch(epoch));
  }
  epochs_.clear();
  POLYLOG_TRY(sync());
  for (const auto& [layout, opened] : stores_) POLYLOG_TRY(opened.store->close());
  stores_.clear();
  catalog_.reset();
  lock_.reset();
  return {};
}

}  // namespace polylog::convert
