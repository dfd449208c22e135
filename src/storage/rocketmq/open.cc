#include <algorithm>
#include <charconv>

#include "format/rocketmq/checkpoint.h"
#include "format/rocketmq/names.h"
#include "storage/rocketmq/recovery.h"
#include "storage/rocketmq/store.h"

// Opening a RocketMQ store directory: whose it is, what may be believed, then the log.
namespace polylog::storage::rocketmq {

namespace stored = format::rocketmq;

namespace {

constexpr std::size_t small_file_bytes_max = std::size_t{64} << 20;
constexpr std::string_view sidecar_name = "rocketmq.sidecar";

std::optional<std::int32_t> parse_queue_id(std::string_view name) {
  std::int32_t id = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
  if (error != std::errc() || end != name.data() + name.size() || id < 0) return std::nullopt;
  return id;
}

}  // namespace

class StoreOpening {
 public:
  StoreOpening(fs::FileSystem& fs, const Clock& clock, const StoreConfig& config)
      : fs_(fs),
        config_(config),
        store_(new RocketmqStore(fs, clock, config)),
        log_(*store_->log_) {}

  Result<Opened> run() {
    POLYLOG_ASSIGN(levels, stored::DelayLevels::parse(config_.shared.delay_levels));
    log_.delay_levels_ = std::move(levels);
    POLYLOG_TRY(look_around());
    POLYLOG_TRY(take_over());
    POLYLOG_TRY(judge_evidence());
    POLYLOG_TRY(log_.commit_log_.load(believe_ ? durable_end() : -1));
    POLYLOG_TRY(log_.index_.load(report_.notes));
    POLYLOG_TRY(list_queues());
    POLYLOG_TRY(read_topics());
    LogRecovery recovery(log_, evidence_, report_);
    POLYLOG_TRY(recovery.run());
    POLYLOG_TRY(put_in_step());
    report_.clean = evidence_.clean;
    report_.partitions = store_->partitions().size();
    return Opened{std::move(store_), std::move(report_)};
  }

 private:
  std::string path(std::string_view name) const { return fs::join(config_.directory, name); }

  // Nothing has been changed when this refuses.
  Result<void> look_around() {
    if (!fs::exists(fs_, config_.directory)) return {};
    POLYLOG_ASSIGN(names, fs_.list(config_.directory));
    for (const std::string& name : names) {
      // Only these two forms of queues would be overlooked, and their records with them.
      const bool other_queues = name == stored::batch_queue_directory || name == "consumequeue_r" ||
                                name == "rocksdb_consumequeue";
      if (!other_queues) continue;
      POLYLOG_ASSIGN(inside, fs_.list(path(name)));
      if (inside.empty()) continue;
      return fail(Errc::unsupported,
                  path(name) +
                      ": batch and RocksDB consume queues can't be read; export the store "
                      "to file consume queues first");
    }
    const std::string log = path(stored::commit_log_directory);
    if (!fs::exists(fs_, log)) return {};
    POLYLOG_ASSIGN(files, fs_.list(log));
    for (const std::string& name : files) {
      POLYLOG_ASSIGN(info, fs_.info(fs::join(log, name)));
      if (info.directory || stored::parse_file_name(name)) continue;
      return fail(Errc::invalid, fs::join(log, name) + " is no commit log file; " +
                                     config_.directory + " does not look like a RocketMQ store");
    }
    return {};
  }

  Result<void> take_over() {
    POLYLOG_TRY(fs::create_directories(fs_, config_.directory));
    POLYLOG_TRY(fs::create_directories(fs_, config_.sidecar_directory));
    POLYLOG_ASSIGN(lock, fs_.lock(path(stored::lock_file)));
    store_->lock_ = std::move(lock);
    POLYLOG_TRY(fs::create_directories(fs_, path(stored::commit_log_directory)));
    return fs::create_directories(fs_, path(stored::consume_queue_directory));
  }

  Result<void> judge_evidence() {
    const std::string beside = fs::join(config_.sidecar_directory, sidecar_name);
    POLYLOG_ASSIGN(sidecar, Sidecar::open(fs_, beside, state_));
    log_.sidecar_ = std::move(sidecar);
    for (const std::string& line : state_.damage) report_.notes.push_back(beside + ": " + line);
    POLYLOG_ASSIGN(files, fs_.list(path(stored::commit_log_directory)));
    const bool abort = fs::exists(fs_, path(stored::abort_file));
    evidence_.clean = !abort;
    const auto note = state_.logs.find(std::string(stored::commit_log_directory));
    const bool noted = state_.found && note != state_.logs.end();
    believe_ = noted && marks_match(note->second) && (abort || state_.clean);
    if (noted && !believe_) {
      report_.notes.push_back(config_.directory +
                              ": another program has run on this directory since polylog did; its "
                              "own rules of recovery apply and the sidecar is made anew");
    }
    if (noted) log_.announced_before_ = note->second.announced;
    if (believe_) evidence_.note = &note->second;
    log_.marks_ = state_.marks;
    for (const auto& [id, queue] : state_.queues) {
      if (queue.removed) log_.removed_[id] = queue;
    }
    return read_checkpoint();
  }

  Result<void> read_checkpoint() {
    auto bytes = fs::read_file(fs_, path(stored::checkpoint_file), small_file_bytes_max);
    if (!bytes) {
      return bytes.error().code == Errc::not_found ? Result<void>() : fail(bytes.error());
    }
    const auto checkpoint = stored::decode_checkpoint(*bytes);
    if (!checkpoint) {
      report_.notes.push_back(path(stored::checkpoint_file) + " does not read and counts as zero");
      return {};
    }
    evidence_.index_time = checkpoint->index_timestamp;
    return {};
  }

  bool marks_match(const LogNote& note) const {
    const auto info = fs_.info(path(stored::checkpoint_file));
    // The first mark may have been noted for a checkpoint that never got its name.
    if (!info) return state_.marks.empty() || no_file_replaced(note);
    const FileIdentity identity = FileIdentity::of(*info);
    return std::find(state_.marks.begin(), state_.marks.end(), identity) != state_.marks.end();
  }

  bool no_file_replaced(const LogNote& note) const {
    const std::string directory = path(stored::commit_log_directory);
    return std::all_of(note.files.begin(), note.files.end(), [&](const auto& file) {
      const auto info = fs_.info(fs::join(directory, stored::file_name(file.first)));
      return !info || info->inode == file.second.inode;
    });
  }

  std::int64_t durable_end() const { return evidence_.note->durable.value(); }

  // Queues that the sidecar knows, and those that have a directory.
  Result<void> list_queues() {
    for (const auto& [id, note] : state_.queues) {
      if (note.removed) continue;
      POLYLOG_ASSIGN(name, stored_name(id.topic));
      log_.make_queue(id, std::move(name), note);
    }
    const std::string root = path(stored::consume_queue_directory);
    POLYLOG_ASSIGN(topics, fs_.list(root));
    for (const std::string& topic : topics) {
      POLYLOG_ASSIGN(info, fs_.info(fs::join(root, topic)));
      if (!info.directory) continue;
      if (!stored::check_stored_topic(topic)) {
        report_.notes.push_back(fs::join(root, topic) + " is left alone: no topic's name");
        continue;
      }
      POLYLOG_ASSIGN(names, fs_.list(fs::join(root, topic)));
      for (const std::string& name : names) {
        const auto queue_id = parse_queue_id(name);
        if (queue_id) POLYLOG_TRY(add_queue(topic, *queue_id));
      }
    }
    return {};
  }

  Result<void> add_queue(const std::string& topic, std::int32_t queue_id) {
    const TopicPartition id{stored::from_stored_topic(topic), queue_id};
    if (log_.queues_.contains(id)) return {};
    if (log_.removed_.contains(id)) {
      // A removal that a crash interrupted.
      return QueueFiles(log_.queue_files_, log_.queue_directory(topic, queue_id)).remove_all();
    }
    QueueNote note;
    note.config = config_.defaults;
    note.config.retention_suspended = true;
    log_.make_queue(id, topic, note);
    return {};
  }

  Result<void> read_topics() {
    const std::string file = fs::join(path(stored::config_directory), stored::topics_file);
    for (const std::string& candidate : {file, file + std::string(stored::backup_suffix)}) {
      const auto bytes = fs::read_file(fs_, candidate, small_file_bytes_max);
      if (!bytes || bytes->empty()) continue;
      auto parsed = stored::parse_topics(as_text(*bytes));
      if (parsed) {
        log_.topics_ = std::move(*parsed);
        return {};
      }
      report_.notes.push_back(candidate + " does not read: " + parsed.error().context);
    }
    log_.topics_dirty_ = !log_.queues_.empty();
    return {};
  }

  // One round for everything that recovery wrote, before anything is served; then the marks that
  // this run has begun.
  Result<void> put_in_step() {
    if (!evidence_.clean || evidence_.note == nullptr) {
      for (const auto& [id, queue] : log_.queues_) {
        POLYLOG_TRY(queue->files_.cut(queue->flushed_));
      }
    }
    const auto flushed = log_.flush_entries();
    if (!flushed) {
      if (flushed.error().code != Errc::no_space) return flushed;
      report_.notes.push_back("queue entries wait for room: " + flushed.error().to_string());
    }
    const std::string abort = path(stored::abort_file);
    if (!fs::exists(fs_, abort)) {
      POLYLOG_TRY(fs_.open(abort, fs::OpenMode::create).map([](const auto&) {}));
    }
    const auto indexed = log_.index_.checkpoint();
    if (!indexed) {
      if (indexed.error().code != Errc::no_space) return indexed;
      report_.notes.push_back("the key index waits for room: " + indexed.error().to_string());
    }
    POLYLOG_TRY(fs_.sync_directory(config_.directory));
    POLYLOG_TRY(log_.sync_volume());
    for (const CommitFilePtr& file : log_.commit_log_.files()) file->dirty = file->fresh = false;
    log_.directory_dirty_ = log_.facts_dirty_ = false;
    // A point must not lie beyond what the queues and the index have.
    const bool waits = !flushed || !log_.with_pending_.empty() || !indexed;
    if (!waits) log_.last_point_ = log_.capture_point();
    if (auto rewritten = log_.rewrite_sidecar(false); !rewritten) {
      // A full disk: the old sidecar stays a lower bound, and nothing more is said in it.
      report_.notes.push_back("the sidecar can't be written now: " + rewritten.error().to_string());
      log_.sidecar_->silence();
      return {};
    }
    if (auto noted = waits ? Result<void>() : log_.note_progress(); !noted) {
      report_.notes.push_back("the checkpoint can't be written now: " + noted.error().to_string());
    }
    return {};
  }

  fs::FileSystem& fs_;
  const StoreConfig& config_;
  std::unique_ptr<RocketmqStore> store_;
  SharedLog& log_;
  Recovery report_;
  SidecarState state_;
  LogRecovery::Evidence evidence_;
  bool believe_ = false;
};

Result<Opened> RocketmqStore::open(fs::FileSystem& fs, const Clock& clock,
                                   const StoreConfig& config) {
  StoreOpening opening(fs, clock, config);
  return opening.run();
}

}  // namespace polylog::storage::rocketmq
