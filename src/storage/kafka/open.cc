#include <algorithm>
#include <bit>
#include <mutex>

#include "format/kafka/checkpoint.h"
#include "format/kafka/names.h"
#include "storage/kafka/store.h"
#include "storage/rolled/opening.h"

// Opening a Kafka log directory: who owns it, what may be believed, then each partition.
namespace polylog::storage::kafka {
namespace {

constexpr std::size_t checkpoint_bytes_max = std::size_t{64} << 20;
constexpr std::size_t identity_bytes_max = 4096;
constexpr std::string_view sidecar_name = "kafka.sidecar";

}  // namespace

class StoreOpening {
 public:
  StoreOpening(fs::FileSystem& fs, const Clock& clock, const StoreConfig& config)
      : fs_(fs), config_(config), store_(new KafkaStore(fs, clock, config)) {}

  Result<Opened> run() {
    POLYLOG_TRY(fs::create_directories(fs_, config_.directory));
    POLYLOG_TRY(fs::create_directories(fs_, config_.sidecar_directory));
    POLYLOG_ASSIGN(lock, fs_.lock(store_->path(".lock")));
    store_->lock_ = std::move(lock);
    POLYLOG_TRY(list_directories());
    POLYLOG_TRY(check_identity());
    POLYLOG_TRY(judge_evidence());
    load_partitions();
    POLYLOG_TRY(sync_recovered());
    report_.clean = clean_;
    report_.partitions = store_->logs_.size();
    return Opened{std::move(store_), std::move(report_)};
  }

 private:
  // Everything at the root is looked at before anything is changed.
  Result<void> list_directories() {
    POLYLOG_ASSIGN(names, fs_.list(config_.directory));
    for (const std::string& name : names) {
      POLYLOG_ASSIGN(info, fs_.info(store_->path(name)));
      if (!info.directory) continue;
      if (format::kafka::exempt_directory(name)) continue;
      const auto parsed = format::kafka::parse_partition_directory(name);
      if (!parsed) {
        return fail(Errc::invalid, store_->path(name) + " is not a partition directory; " +
                                       config_.directory +
                                       " does not look like a Kafka log directory");
      }
      using Stage = format::kafka::DirectoryStage;
      if (parsed->stage == Stage::live) partitions_.push_back(parsed->id);
      if (parsed->stage == Stage::deleted) doomed_.push_back(store_->path(name));
      if (parsed->stage == Stage::stray || parsed->stage == Stage::future) {
        report_.notes.push_back(store_->path(name) + " is left alone: not a live replica");
      }
    }
    return {};
  }

  Result<void> check_identity() {
    const std::string path = store_->path(format::kafka::meta_properties_file);
    if (!fs::exists(fs_, path)) {
      format::kafka::MetaProperties identity;
      identity.cluster_id = config_.cluster_id.to_string();
      identity.node_id = config_.node_id;
      identity.directory_id = Uuid::random();
      const std::string text = format::kafka::format_meta_properties(identity);
      return fs::replace_file(fs_, path, as_bytes(text));
    }
    POLYLOG_ASSIGN(bytes, fs::read_file(fs_, path, checkpoint_bytes_max));
    const std::string cluster = config_.cluster_id.to_string();
    const auto identity = format::kafka::parse_meta_properties(as_text(bytes));
    if (identity && identity->cluster_id == cluster) return {};
    if (const auto mended = mend_identity(bytes, cluster)) {
      report_.notes.push_back(path + " has one wrong bit and is made anew");
      return fs::replace_file(fs_, path, *mended);
    }
    if (!identity) return fail(Errc::corrupt, path + ": " + identity.error().context);
    return fail(Errc::invalid,
                path + " belongs to cluster " + identity->cluster_id + ", not to " + cluster);
  }

  // The file as it was, if one bit is all that keeps it from naming this cluster.
  static std::optional<std::vector<std::uint8_t>> mend_identity(std::vector<std::uint8_t> bytes,
                                                                const std::string& cluster) {
    if (bytes.size() > identity_bytes_max) return std::nullopt;
    for (std::uint8_t& byte : bytes) {
      for (unsigned bit = 0; bit < 8; ++bit) {
        const std::uint8_t before = byte;
        byte = static_cast<std::uint8_t>(byte ^ (1U << bit));
        const auto identity = format::kafka::parse_meta_properties(as_text(bytes));
        if (identity && identity->cluster_id == cluster) return bytes;
        byte = before;
      }
    }
    return std::nullopt;
  }

  Result<void> judge_evidence() {
    POLYLOG_ASSIGN(sidecar,
                   Sidecar::open(fs_, fs::join(config_.sidecar_directory, sidecar_name), state_));
    store_->context_.sidecar = std::move(sidecar);
    for (const std::string& line : state_.damage) {
      report_.notes.push_back(fs::join(config_.sidecar_directory, sidecar_name) + ": " + line);
    }
    const std::string marker = store_->path(format::kafka::clean_shutdown_file);
    clean_ = fs::exists(fs_, marker);
    believe_ = state_.found && marks_match() && (!clean_ || state_.clean);
    if (state_.found && !believe_) {
      report_.notes.push_back(config_.directory +
                              ": another program has run on this directory since polylog did; its "
                              "own rules of recovery apply and the sidecar is made anew");
    }
    store_->marks_ = state_.marks;
    if (clean_) {
      // Gone before any log is opened: a crash from here on is not an orderly stop.
      POLYLOG_TRY(fs_.remove(marker));
      POLYLOG_TRY(fs_.sync_directory(config_.directory));
    }
    POLYLOG_TRY(read_offsets(format::kafka::recovery_point_checkpoint_file, recovery_points_));
    return read_offsets(format::kafka::log_start_checkpoint_file, log_starts_);
  }

  bool marks_match() const {
    const auto info = fs_.info(store_->path(format::kafka::recovery_point_checkpoint_file));
    if (!info) return state_.marks.empty();
    const FileIdentity identity = FileIdentity::of(*info);
    return std::find(state_.marks.begin(), state_.marks.end(), identity) != state_.marks.end();
  }

  Result<void> read_offsets(std::string_view name, KafkaStore::Offsets& offsets) {
    auto bytes = fs::read_file(fs_, store_->path(name), checkpoint_bytes_max);
    if (!bytes) {
      return bytes.error().code == Errc::not_found ? Result<void>() : fail(bytes.error());
    }
    auto parsed = format::kafka::parse_offset_checkpoint(as_text(*bytes));
    if (!parsed) {
      report_.notes.push_back(store_->path(name) +
                              " does not read and counts as empty: " + parsed.error().context);
      return {};
    }
    for (const auto& entry : *parsed) offsets[entry.id] = entry.offset.value();
    store_->saved_[std::string(name)] = offsets;
    return {};
  }

  void load_partitions() {
    for_all_partitions(partitions_.size(), config_.recovery_threads,
                       [this](std::size_t i) { load_one(partitions_[i]); });
    remove_doomed(fs_, doomed_, report_);
  }

  void load_one(const TopicPartition& id) {
    Recovery report;
    auto loaded = load_partition(id, report);
    const std::lock_guard lock(report_mutex_);
    add_recovery(report_, report);
    if (loaded) {
      store_->logs_.emplace(id, std::move(*loaded));
    } else {
      // One partition that can't be opened must not keep the others from being served.
      report_.notes.push_back(store_->directory_of(id) +
                              " is not served: " + loaded.error().to_string());
    }
  }

  // Whose partition it is. The file has no checksum, and the sidecar has the topic, too: it is
  // right where one bit makes the difference, where an orderly stop was the last that both of them
  // saw, and where nothing can be read while the records are those that it knows.
  Result<Uuid> topic_of(const TopicPartition& id, Recovery& report) const {
    const std::string path =
        fs::join(store_->directory_of(id), format::kafka::partition_metadata_file);
    const auto bytes = fs::read_file(fs_, path, checkpoint_bytes_max);
    const auto read = [&]() -> Result<Uuid> {
      if (!bytes) return fail(bytes.error());
      return format::kafka::parse_partition_metadata(as_text(*bytes));
    };
    const Result<Uuid> topic = read();
    const auto note = state_.logs.find(format::kafka::partition_directory_name(id));
    if (note == state_.logs.end() || (topic && *topic == note->second.topic)) return topic;
    const Uuid& noted = note->second.topic;
    const std::string text = format::kafka::format_partition_metadata(noted);
    const bool damaged = (bytes && one_bit_apart(*bytes, as_bytes(text))) || (believe_ && clean_) ||
                         (believe_ && !topic && has_noted_file(id, note->second));
    if (!damaged) return topic;
    report.notes.push_back(path + (topic ? " says topic " + topic->to_string() : " does not read") +
                           "; the sidecar says topic " + noted.to_string() + ": it is made anew");
    POLYLOG_TRY(fs::replace_file(fs_, path, as_bytes(text)));
    return noted;
  }

  static bool one_bit_apart(ByteView a, ByteView b) {
    int bits = a.size() == b.size() ? 0 : 2;
    for (std::size_t i = 0; i < a.size() && bits <= 1; ++i) {
      bits += std::popcount(static_cast<unsigned>(a[i] ^ b[i]));
    }
    return bits == 1;
  }

  bool has_noted_file(const TopicPartition& id, const LogNote& note) const {
    const std::string directory = store_->directory_of(id);
    return std::any_of(note.files.begin(), note.files.end(), [&](const auto& file) {
      const std::string name =
          format::kafka::segment_file_name(Offset(file.first), format::kafka::SegmentFile::log);
      const auto info = fs_.info(fs::join(directory, name));
      return info && info->inode == file.second.inode;
    });
  }

  Result<std::shared_ptr<KafkaLog>> load_partition(const TopicPartition& id,
                                                   Recovery& report) const {
    const std::string directory = store_->directory_of(id);
    POLYLOG_ASSIGN(topic, topic_of(id, report));
    LogConfig config = config_.defaults;
    KafkaLog::Evidence evidence;
    evidence.clean = clean_;
    const auto note = state_.logs.find(format::kafka::partition_directory_name(id));
    if (note != state_.logs.end() && note->second.topic == topic) {
      if (note->second.config) config = *note->second.config;
      evidence.announced = note->second.announced;
      if (believe_) evidence.note = &note->second;
    } else {
      config.retention_suspended = true;
    }
    if (const auto at = recovery_points_.find(id); at != recovery_points_.end()) {
      evidence.recovery_point = at->second;
    }
    if (const auto at = log_starts_.find(id); at != log_starts_.end()) {
      evidence.log_start = at->second;
    }
    const auto start = state_.queues.find(id);
    if (evidence.note != nullptr && start != state_.queues.end() && start->second.topic == topic) {
      evidence.log_start = start->second.start;
    }
    auto log = std::make_shared<KafkaLog>(store_->context_, id, topic, directory, config);
    POLYLOG_TRY(log->recover(evidence, report));
    return log;
  }

  Result<void> sync_recovered() {
    std::vector<std::shared_ptr<RolledLog>> logs;
    for (const auto& [id, log] : store_->logs_) logs.push_back(log);
    const bool wrote = !clean_ || report_.bytes_truncated > 0;
    POLYLOG_TRY(storage::sync_recovered(fs_, config_.directory, logs, wrote));
    begin_sidecar(store_->context_, store_->rewrite_sidecar(false), report_);
    return {};
  }

  fs::FileSystem& fs_;
  const StoreConfig& config_;
  std::unique_ptr<KafkaStore> store_;
  std::mutex report_mutex_;  // while partitions are being loaded: guards the report and the map
  Recovery report_;
  std::vector<TopicPartition> partitions_;
  std::vector<std::string> doomed_;
  SidecarState state_;
  KafkaStore::Offsets recovery_points_, log_starts_;
  bool clean_ = false;
  bool believe_ = false;
};

Result<Opened> KafkaStore::open(fs::FileSystem& fs, const Clock& clock, const StoreConfig& config) {
  StoreOpening opening(fs, clock, config);
  return opening.run();
}

}  // namespace polylog::storage::kafka
