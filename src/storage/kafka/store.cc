#include "storage/kafka/store.h"

#include <algorithm>

#include "format/kafka/checkpoint.h"
#include "format/kafka/names.h"
#include "storage/rolled/points.h"

namespace polylog::storage::kafka {
namespace {

constexpr std::size_t metadata_bytes_max = 4096;
constexpr Traits kafka_traits{BatchFormat::kafka, false, true, false};

Result<void> write_small(fs::FileSystem& fs, const std::string& path, std::string_view text) {
  POLYLOG_ASSIGN(file, fs.open(path, fs::OpenMode::create));
  POLYLOG_ASSIGN(info, file->info());
  if (info.size > 0) POLYLOG_TRY(file->truncate(0));
  return file->write(0, as_bytes(text));
}

QueueNote start_note(const RolledLog& log, std::int64_t start) {
  QueueNote note;
  note.topic = log.topic();
  note.start = start;
  return note;
}

std::string to_text(const std::map<TopicPartition, std::int64_t>& offsets) {
  std::vector<format::kafka::PartitionOffset> entries;
  entries.reserve(offsets.size());
  for (const auto& [id, offset] : offsets) entries.push_back({id, Offset(offset)});
  return format::kafka::format_offset_checkpoint(entries);
}

}  // namespace

KafkaStore::KafkaStore(fs::FileSystem& fs, const Clock& clock, const StoreConfig& config)
    : context_(fs, clock, config, "kafka.ballast"), config_(config) {
  context_.save_log_start = [this](const RolledLog& log, std::int64_t start) {
    return save_log_start(log, start);
  };
}

KafkaStore::~KafkaStore() = default;

const Traits& KafkaStore::traits() const { return kafka_traits; }

std::string KafkaStore::path(std::string_view name) const {
  return fs::join(config_.directory, name);
}

std::string KafkaStore::directory_of(const TopicPartition& id) const {
  return path(format::kafka::partition_directory_name(id));
}

std::vector<std::shared_ptr<KafkaLog>> KafkaStore::logs() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<KafkaLog>> all;
  all.reserve(logs_.size());
  for (const auto& [id, log] : logs_) all.push_back(log);
  return all;
}

Result<std::shared_ptr<PartitionLog>> KafkaStore::create(const TopicPartition& id,
                                                         const Uuid& topic,
                                                         const LogConfig& config) {
  fs::FileSystem& fs = context_.fs;
  const std::string directory = directory_of(id);
  {
    const std::lock_guard lock(mutex_);
    if (logs_.contains(id)) return fail(Errc::exists, directory + " exists");
  }
  POLYLOG_TRY(clear_away(id, topic));
  POLYLOG_TRY(forget_progress(id));
  const bool there = fs::exists(fs, directory);
  if (!there) POLYLOG_TRY(fs.create_directory(directory));
  const std::string text = format::kafka::format_partition_metadata(topic);
  const std::string metadata = fs::join(directory, format::kafka::partition_metadata_file);
  POLYLOG_TRY(write_small(fs, metadata, text));
  auto log = std::make_shared<KafkaLog>(context_, id, topic, directory, config);
  if (there) {
    // A creation that a crash interrupted, or data whose metadata was lost: what it holds stays.
    Recovery report;
    POLYLOG_TRY(log->recover({}, report));
    log->keep_for_sync(metadata);
  } else {
    POLYLOG_TRY(
        fs.open(fs::join(directory, format::kafka::epoch_checkpoint_file), fs::OpenMode::create)
            .map([](const auto&) {}));
    POLYLOG_TRY(log->start_empty(metadata));
  }
  // No rewrite of the sidecar may come between what is noted here and the log being listed.
  const std::lock_guard progress(progress_mutex_);
  log->begin_note(format::kafka::partition_directory_name(id));
  // A lower bound, as the rest of the note; without room for it the checkpoint alone tells.
  static_cast<void>(
      context_.sidecar->queue(id, start_note(*log, log->offsets().start.value())));
  const std::lock_guard lock(mutex_);
  logs_[id] = log;
  return std::shared_ptr<PartitionLog>(log);
}

std::shared_ptr<PartitionLog> KafkaStore::find(const TopicPartition& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = logs_.find(id);
  return found == logs_.end() ? nullptr : found->second;
}

std::vector<TopicPartition> KafkaStore::partitions() const {
  const std::lock_guard lock(mutex_);
  std::vector<TopicPartition> all;
  all.reserve(logs_.size());
  for (const auto& [id, log] : logs_) all.push_back(id);
  std::sort(all.begin(), all.end());
  return all;
}

std::optional<Uuid> KafkaStore::topic_id(const TopicPartition& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = logs_.find(id);
  if (found == logs_.end()) return std::nullopt;
  return found->second->topic();
}

Result<void> KafkaStore::remove(const TopicPartition& id) {
  std::shared_ptr<KafkaLog> log;
  {
    const std::lock_guard lock(mutex_);
    const auto found = logs_.find(id);
    if (found == logs_.end()) return fail(Errc::not_found, directory_of(id) + " is not open");
    log = found->second;
  }
  // Known until it is gone for good: a removal that failed can be tried again.
  POLYLOG_ASSIGN(doomed, condemn(id));
  {
    const std::lock_guard lock(mutex_);
    logs_.erase(id);
  }
  log->end_note();
  if (doomed.empty()) return {};
  POLYLOG_TRY(fs::remove_tree(context_.fs, doomed));
  // Journalling file systems hand blocks out again only when the removal is committed: on a full
  // disk that is what everybody waits for.
  return root_synced(context_.fs.sync_directory(config_.directory));
}

// Once renamed it is gone: no start takes a -delete directory for a partition.
Result<std::string> KafkaStore::condemn(const TopicPartition& id) {
  std::string doomed = path(format::kafka::partition_directory_name(
      id, format::kafka::DirectoryStage::deleted, Uuid::random()));
  if (auto renamed = context_.fs.rename(directory_of(id), doomed); !renamed) {
    if (renamed.error().code != Errc::not_found) return fail(renamed.error());
    doomed.clear();  // renamed by an attempt whose sync failed
  }
  POLYLOG_TRY(root_synced(context_.fs.sync_directory(config_.directory)));
  return doomed;
}

// A directory of that name may be left from a topic whose removal failed half-way: its records
// are not the new topic's.
Result<void> KafkaStore::clear_away(const TopicPartition& id, const Uuid& topic) {
  const auto text =
      fs::read_file(context_.fs, fs::join(directory_of(id), format::kafka::partition_metadata_file),
                    metadata_bytes_max);
  if (!text) return text.error().code == Errc::not_found ? Result<void>() : fail(text.error());
  const auto owner = format::kafka::parse_partition_metadata(as_text(*text));
  if (!owner || *owner == topic) return {};
  POLYLOG_ASSIGN(doomed, condemn(id));
  return doomed.empty() ? Result<void>() : fs::remove_tree(context_.fs, doomed);
}

Result<Retained> KafkaStore::retain(const TopicPartition& id, Offset visible, Timestamp now) {
  std::shared_ptr<KafkaLog> log;
  {
    const std::lock_guard lock(mutex_);
    const auto found = logs_.find(id);
    if (found == logs_.end()) return fail(Errc::not_found, directory_of(id) + " is not open");
    log = found->second;
  }
  return log->retain(visible, now);
}

Result<std::vector<AbortedTransaction>> KafkaStore::aborted(const PartitionLog& partition,
                                                            OffsetRange range) const {
  return dynamic_cast<const KafkaLog&>(partition).aborted(range);
}

Result<void> KafkaStore::root_synced(Result<void> outcome) {
  if (!outcome) {
    for (const auto& log : logs()) log->root_sync_failed();
  }
  return outcome;
}

Result<FileIdentity> KafkaStore::write_temporary(std::string_view name, std::string_view text) {
  POLYLOG_ASSIGN(file, context_.fs.open(path(name) + ".tmp", fs::OpenMode::create));
  POLYLOG_TRY(file->truncate(0));
  POLYLOG_TRY(file->write(0, as_bytes(text)));
  POLYLOG_TRY(file->sync());
  POLYLOG_ASSIGN(info, file->info());
  return FileIdentity::of(info);
}

Result<void> KafkaStore::put_in_place(std::string_view name) {
  POLYLOG_TRY(context_.fs.rename(path(name) + ".tmp", path(name)));
  return root_synced(context_.fs.sync_directory(config_.directory));
}

Result<void> KafkaStore::write_offsets(std::string_view name, const Offsets& offsets) {
  const auto before = saved_.find(name);
  if (before != saved_.end() && before->second == offsets) return {};
  POLYLOG_TRY(write_temporary(name, to_text(offsets)).map([](const auto&) {}));
  POLYLOG_TRY(put_in_place(name));
  saved_[std::string(name)] = offsets;
  return {};
}

Result<void> KafkaStore::write_recovery_points(const Offsets& offsets) {
  const std::string name(format::kafka::recovery_point_checkpoint_file);
  const auto before = saved_.find(name);
  if (before != saved_.end() && before->second == offsets) return {};
  POLYLOG_ASSIGN(identity, write_temporary(name, to_text(offsets)));
  POLYLOG_TRY(context_.sidecar->mark(identity));
  marks_.push_back(identity);
  if (marks_.size() > 2) marks_.erase(marks_.begin());
  POLYLOG_TRY(put_in_place(name));
  saved_[name] = offsets;
  return {};
}

// The checkpoint has no checksum, so the sidecar has the start too, and first. On a full disk that
// is enough: the checkpoint follows when there is room.
Result<void> KafkaStore::save_log_start(const RolledLog& raised, std::int64_t start) {
  const std::lock_guard progress(progress_mutex_);
  bool noted = false;
  const auto write = [&]() -> Result<void> {
    if (!noted) {
      if (context_.sidecar->silent()) POLYLOG_TRY(write_sidecar(false));
      POLYLOG_TRY(context_.sidecar->queue_synced(raised.id(), start_note(raised, start)));
      noted = true;
    }
    return write_log_starts(raised, start);
  };
  auto done = context_.with_room(write);
  if (!done && noted && done.error().code == Errc::no_space) return {};
  return done;
}

Result<void> KafkaStore::write_log_starts(const RolledLog& raised, std::int64_t start) {
  Offsets starts;
  for (const auto& log : logs()) {
    if (log.get() == &raised) {
      starts[log->id()] = start;
    } else if (const auto own = log->start_checkpoint()) {
      starts[log->id()] = *own;
    }
  }
  return write_offsets(format::kafka::log_start_checkpoint_file, starts);
}

Result<void> KafkaStore::write_progress() {
  Offsets recovery, visible, starts;
  for (const auto& log : logs()) {
    recovery[log->id()] = log->recovery_checkpoint();
    visible[log->id()] = log->durable_end().value();
    if (const auto own = log->start_checkpoint()) starts[log->id()] = *own;
  }
  const std::lock_guard progress(progress_mutex_);
  POLYLOG_TRY(write_offsets(format::kafka::log_start_checkpoint_file, starts));
  POLYLOG_TRY(write_offsets(format::kafka::high_watermark_checkpoint_file, visible));
  return write_recovery_points(recovery);
}

Result<void> KafkaStore::forget_progress(const TopicPartition& id) {
  const std::lock_guard progress(progress_mutex_);
  const auto without = [&](std::string_view name) {
    const auto found = saved_.find(name);
    Offsets offsets = found == saved_.end() ? Offsets() : found->second;
    offsets.erase(id);
    return offsets;
  };
  const auto starts = without(format::kafka::log_start_checkpoint_file);
  if (saved_.contains(format::kafka::log_start_checkpoint_file)) {
    POLYLOG_TRY(write_offsets(format::kafka::log_start_checkpoint_file, starts));
  }
  if (!saved_.contains(format::kafka::recovery_point_checkpoint_file)) return {};
  return write_recovery_points(without(format::kafka::recovery_point_checkpoint_file));
}

Result<void> KafkaStore::rewrite_sidecar(bool clean) {
  const std::lock_guard progress(progress_mutex_);
  return write_sidecar(clean);
}

Result<void> KafkaStore::write_sidecar(bool clean) {
  context_.sidecar->begin_rewrite();
  SidecarState state;
  state.clean = clean;
  state.marks = marks_;
  const auto all = logs();
  for (const auto& log : all) {
    state.logs[format::kafka::partition_directory_name(log->id())] = log->note();
    state.queues[log->id()] = start_note(*log, log->offsets().start.value());
  }
  POLYLOG_TRY(context_.sidecar->rewrite(state));
  for (const auto& log : all) {
    log->noted_anew(state.logs[format::kafka::partition_directory_name(log->id())]);
  }
  return {};
}

Result<void> KafkaStore::checkpoint() {
  Result<void> outcome;
  for (const auto& log : logs()) {
    if (auto done = log->checkpoint(); !done) outcome = done;
  }
  POLYLOG_TRY(outcome);
  // First: one that fell silent on a full disk can't take the progress file's mark.
  if (context_.sidecar->wants_rewrite()) POLYLOG_TRY(rewrite_sidecar(false));
  context_.lay_ballast();
  return write_progress();
}

bool KafkaStore::points_due() const { return storage::points_due(context_); }

std::vector<std::shared_ptr<Log>> KafkaStore::advance_points() {
  const auto all = logs();
  return storage::advance_points(context_, {all.begin(), all.end()});
}

Result<void> KafkaStore::close() {
  for (const auto& log : logs()) POLYLOG_TRY(log->close_files());
  POLYLOG_ASSIGN(volume, context_.fs.open_volume(config_.directory));
  POLYLOG_TRY(volume->sync());
  for (const auto& log : logs()) log->all_synced();
  if (context_.sidecar->wants_rewrite()) POLYLOG_TRY(rewrite_sidecar(false));
  POLYLOG_TRY(write_progress());
  POLYLOG_TRY(rewrite_sidecar(true));
  const std::string text = format::kafka::format_clean_shutdown(-1);
  POLYLOG_TRY(
      fs::replace_file(context_.fs, path(format::kafka::clean_shutdown_file), as_bytes(text)));
  lock_.reset();
  return {};
}

}  // namespace polylog::storage::kafka
