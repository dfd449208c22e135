#include <mutex>

#include "storage/rolled/opening.h"
#include "storage/segment/store.h"

// Opening a directory of shards: who owns it, what may be believed, then each partition.
namespace polylog::storage::segment {
namespace {

constexpr std::string_view sidecar_name = "segment.sidecar";
constexpr std::string_view lock_name = "segment.lock";
constexpr std::string_view index_name = "segment.index";

}  // namespace

class StoreOpening {
 public:
  StoreOpening(fs::FileSystem& fs, const Clock& clock, const StoreConfig& config,
               const OpenOrderedIndex& open_index)
      : fs_(fs),
        config_(config),
        open_index_(open_index),
        store_(new SegmentStore(fs, clock, config)) {}

  Result<Opened> run() {
    POLYLOG_TRY(fs::create_directories(fs_, config_.directory));
    POLYLOG_TRY(fs::create_directories(fs_, config_.sidecar_directory));
    POLYLOG_ASSIGN(lock, fs_.lock(beside(lock_name)));
    store_->lock_ = std::move(lock);
    POLYLOG_TRY(list_shards());
    POLYLOG_TRY(judge_evidence());
    store_->context_.index = std::make_unique<PositionIndex>(fs_, open_index_, beside(index_name));
    if (!partitions_.empty()) POLYLOG_TRY(store_->context_.index->open(report_.notes));
    POLYLOG_TRY(drop_unborn());
    load_partitions();
    POLYLOG_TRY(sync_recovered());
    report_.clean = clean_;
    report_.partitions = store_->logs_.size();
    return Opened{std::move(store_), std::move(report_)};
  }

 private:
  std::string beside(std::string_view name) const {
    return fs::join(config_.sidecar_directory, name);
  }

  Result<void> list_shards() {
    POLYLOG_ASSIGN(names, fs_.list(config_.directory));
    for (const std::string& name : names) {
      const std::string path = fs::join(config_.directory, name);
      POLYLOG_ASSIGN(info, fs_.info(path));
      if (info.directory && name.ends_with(removed_suffix)) {
        doomed_.push_back(path);
      } else if (auto id = info.directory ? parse_shard_name(name) : std::nullopt) {
        partitions_.push_back(std::move(*id));
      } else {
        report_.notes.push_back(path + " is left alone: no shard");
      }
    }
    return {};
  }

  Result<void> judge_evidence() {
    POLYLOG_ASSIGN(sidecar, Sidecar::open(fs_, beside(sidecar_name), state_));
    store_->context_.sidecar = std::move(sidecar);
    for (const std::string& line : state_.damage) {
      report_.notes.push_back(beside(sidecar_name) + ": " + line);
    }
    const std::string marker = beside(clean_stop_file);
    const bool marked = fs::exists(fs_, marker);
    clean_ = marked && state_.clean;
    if (marked) {
      // Gone before any log is opened: a crash from here on is not an orderly stop.
      POLYLOG_TRY(fs_.remove(marker));
      POLYLOG_TRY(fs_.sync_directory(config_.sidecar_directory));
    }
    if (!state_.found && !partitions_.empty()) {
      report_.notes.push_back(config_.directory +
                              ": there is no sidecar; all segments are read, and retention waits "
                              "until somebody confirms each topic's settings");
    }
    return {};
  }

  // Directories that a crash left of a creation nobody was told of: the name's last owner was
  // removed, or there never was one, and nothing is in the files.
  Result<void> drop_unborn() {
    if (!state_.found) return {};
    std::vector<TopicPartition> born;
    for (TopicPartition& id : partitions_) {
      const auto fact = state_.queues.find(id);
      bool unborn = fact != state_.queues.end() && fact->second.removed;
      if (fact == state_.queues.end()) {
        POLYLOG_ASSIGN(bytes, bytes_in(store_->directory_of(id)));
        unborn = bytes == 0;
      }
      if (unborn) {
        doomed_.push_back(store_->directory_of(id));
      } else {
        born.push_back(std::move(id));
      }
    }
    partitions_ = std::move(born);
    return {};
  }

  Result<std::uint64_t> bytes_in(const std::string& directory) const {
    std::uint64_t bytes = 0;
    POLYLOG_ASSIGN(names, fs_.list(directory));
    for (const std::string& name : names) {
      POLYLOG_ASSIGN(info, fs_.info(fs::join(directory, name)));
      bytes += info.size;
    }
    return bytes;
  }

  void load_partitions() {
    for_all_partitions(partitions_.size(), config_.recovery_threads,
                       [this](std::size_t i) { load_one(partitions_[i]); });
    remove_doomed(fs_, doomed_, report_);
  }

  void load_one(const TopicPartition& id) {
    Recovery report;
    QueueNote fact;
    auto loaded = load_partition(id, fact, report);
    const std::lock_guard lock(report_mutex_);
    add_recovery(report_, report);
    if (loaded) {
      store_->logs_.emplace(id, std::move(*loaded));
      store_->facts_.emplace(id, std::move(fact));
    } else {
      // One partition that can't be opened must not keep the others from being served.
      report_.notes.push_back(store_->directory_of(id) +
                              " is not served: " + loaded.error().to_string());
    }
  }

  Result<std::shared_ptr<SegmentLog>> load_partition(const TopicPartition& id, QueueNote& fact,
                                                     Recovery& report) const {
    RolledLog::Evidence evidence;
    evidence.clean = clean_;
    const auto known = state_.queues.find(id);
    if (known != state_.queues.end()) {
      fact = known->second;
    } else {
      fact.config = config_.defaults;
      fact.config.retention_suspended = true;
    }
    evidence.log_start = fact.start;
    LogConfig config = fact.config;
    const auto note = state_.logs.find(shard_name(id));
    if (note != state_.logs.end() && note->second.topic == fact.topic) {
      if (note->second.config) config = *note->second.config;
      evidence.announced = note->second.announced;
      evidence.note = &note->second;
    }
    if (evidence.note == nullptr) evidence.clean = false;
    auto log = std::make_shared<SegmentLog>(store_->context_, id, fact.topic,
                                            store_->directory_of(id), shard_name(id), config);
    POLYLOG_TRY(log->recover(evidence, report));
    return log;
  }

  Result<void> sync_recovered() {
    // Entries that recovery took back must not come back with the next crash.
    if (auto synced = clean_ ? Result<void>() : store_->context_.index->sync(); !synced) {
      report_.notes.push_back("the index can't be synced now: " + synced.error().to_string());
    }
    std::vector<std::shared_ptr<RolledLog>> logs;
    for (const auto& [id, log] : store_->logs_) logs.push_back(log);
    const bool wrote = !clean_ || report_.bytes_truncated > 0;
    POLYLOG_TRY(storage::sync_recovered(fs_, config_.directory, logs, wrote));
    begin_sidecar(store_->context_, store_->rewrite_sidecar(false), report_);
    return {};
  }

  fs::FileSystem& fs_;
  const StoreConfig& config_;
  const OpenOrderedIndex& open_index_;
  std::unique_ptr<SegmentStore> store_;
  std::mutex report_mutex_;  // while partitions are being loaded: guards the report and the maps
  Recovery report_;
  std::vector<TopicPartition> partitions_;
  std::vector<std::string> doomed_;
  SidecarState state_;
  bool clean_ = false;
};

Result<Opened> SegmentStore::open(fs::FileSystem& fs, const Clock& clock, const StoreConfig& config,
                                  const OpenOrderedIndex& open_index) {
  StoreOpening opening(fs, clock, config, open_index);
  return opening.run();
}

}  // namespace polylog::storage::segment
