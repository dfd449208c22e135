#include "storage/kafka/log.h"

#include <algorithm>
#include <limits>
#include <random>

#include "format/kafka/records.h"
#include "format/kafka/snapshot.h"

namespace polylog::storage::kafka {
namespace {

constexpr std::uint64_t recovery_point_bytes = std::uint64_t{16} << 20;
constexpr std::uint64_t writeback_bytes = std::uint64_t{8} << 20;

std::int64_t draw_jitter(const LogConfig& config) {
  const std::int64_t bound = std::min(config.segment_jitter_ms, config.segment_ms);
  if (bound <= 0) return 0;
  thread_local std::mt19937_64 generator{std::random_device{}()};
  return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(generator);
}

}  // namespace

void StoreContext::progressed(const std::shared_ptr<KafkaLog>& log, std::uint64_t bytes) {
  std::vector<std::shared_ptr<KafkaLog>> due;
  {
    const std::lock_guard lock(mutex_);
    progressed_.insert(log);
    progressed_bytes_ += bytes;
    if (progressed_bytes_ < recovery_point_bytes) return;
    progressed_bytes_ = 0;
    due.assign(progressed_.begin(), progressed_.end());
    progressed_.clear();
  }
  for (const auto& each : due) {
    // A log that can't write its indexes now keeps its older recovery point.
    if (auto done = each->checkpoint(); !done) continue;
  }
}

std::vector<std::shared_ptr<KafkaLog>> StoreContext::take_progressed() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<KafkaLog>> due(progressed_.begin(), progressed_.end());
  progressed_.clear();
  progressed_bytes_ = 0;
  return due;
}

KafkaLog::KafkaLog(StoreContext& context, TopicPartition id, const Uuid& topic,
                   std::string directory, const LogConfig& config)
    : context_(context),
      id_(std::move(id)),
      topic_(topic),
      directory_(std::move(directory)),
      config_(config) {}

Result<void> KafkaLog::start_empty(const std::string& metadata) {
  const std::lock_guard lock(mutex_);
  POLYLOG_ASSIGN(segment, make_segment(0));
  // Thousands of new partitions must not take a descriptor each: there is nothing in it yet.
  segment->held = nullptr;
  segments_.push_back(std::move(segment));
  unsynced_.push_back(metadata);
  root_dirty_ = true;
  return {};
}

void KafkaLog::keep_for_sync(const std::string& path) {
  const std::lock_guard lock(mutex_);
  unsynced_.push_back(path);
  root_dirty_ = directory_dirty_ = true;
}

void KafkaLog::root_sync_failed() {
  const std::lock_guard lock(mutex_);
  failed_ = failed_ || root_dirty_ ||
            std::any_of(rounds_.begin(), rounds_.end(),
                        [](const auto& round) { return round.second.root; });
}

void KafkaLog::all_synced() {
  const std::lock_guard lock(mutex_);
  durable_end_ = written_end_;
  for (const auto& segment : segments_) {
    segment->durable_bytes = segment->size;
    segment->durable_tail = segment->sums.tail();
    segment->dirty = segment->fresh = false;
    segment->held = nullptr;
  }
  directory_dirty_ = root_dirty_ = false;
}

OffsetRange KafkaLog::offsets() const {
  const std::lock_guard lock(mutex_);
  return {Offset(start_), Offset(written_end_)};
}

Result<void> KafkaLog::check_usable() const {
  if (failed_) {
    return fail(Errc::unavailable,
                directory_ + ": a sync failed; writes are refused until the broker restarts");
  }
  if (closed_) return fail(Errc::unavailable, directory_ + ": closed");
  return {};
}

bool KafkaLog::must_roll(const BatchInfo& batch, std::uint64_t bytes) const {
  const Segment& segment = active();
  std::uint64_t size = segment.size;
  for (const StagedBatch& staged : staged_) size += staged.bytes();
  if (size + bytes > static_cast<std::uint64_t>(config_.segment_bytes)) return size > 0;
  if (batch.last.value() - segment.base > std::numeric_limits<std::int32_t>::max()) return true;
  if (size == 0) return false;
  if (segment.index_full(config_)) return true;
  const std::int64_t elapsed =
      segment.first_timestamp.value() >= 0 && batch.max_timestamp != no_timestamp
          ? batch.max_timestamp - segment.first_timestamp
          : context_.clock.now() - segment.created;
  return elapsed > config_.segment_ms - segment.jitter_ms;
}

Result<std::shared_ptr<Segment>> KafkaLog::make_segment(std::int64_t base) {
  auto segment = std::make_shared<Segment>(
      SegmentContext{context_.fs, context_.clock, context_.files}, directory_, base);
  // A file of that name that belongs to no loaded segment is a leftover of an interrupted roll.
  POLYLOG_ASSIGN(
      file, context_.fs.open(segment->path(format::kafka::SegmentFile::log), fs::OpenMode::create));
  POLYLOG_ASSIGN(info, file->info());
  if (info.size > 0) POLYLOG_TRY(file->truncate(0));
  context_.files.adopt(segment->path(format::kafka::SegmentFile::log), file);
  segment->inode = info.inode;
  segment->jitter_ms = draw_jitter(config_);
  segment->last_time = format::kafka::TimeIndexEntry{-1, 0};
  segment->fresh = true;
  segment->dirty = true;
  segment->held = std::move(file);
  directory_dirty_ = true;
  return segment;
}

Result<void> KafkaLog::roll(std::int64_t base) {
  POLYLOG_ASSIGN(next, make_segment(base));
  const std::shared_ptr<Segment> old = segments_.back();
  old->close_time_index();
  old->sealed = true;
  sealing_.push_back({old, base, format::kafka::encode_snapshot(producers_)});
  segments_.push_back(std::move(next));
  return {};
}

Result<Staged> KafkaLog::append(Batch batch) {
  POLYLOG_ASSERT(batch.format == BatchFormat::kafka);
  POLYLOG_ASSERT(batch.bytes.size() >= format::kafka::header_bytes);
  const std::lock_guard lock(mutex_);
  POLYLOG_TRY(check_usable());
  if (batch.bytes.size() > static_cast<std::uint64_t>(config_.segment_bytes)) {
    return fail(Errc::too_large, "a batch of " + std::to_string(batch.bytes.size()) +
                                     " bytes is over segment.bytes");
  }
  BatchInfo info = batch.info;
  const std::int64_t delta = info.last - info.first;
  info.first = Offset(staged_end_);
  info.last = info.first + delta;
  info.epoch = epoch_;
  if (must_roll(info, batch.bytes.size())) {
    POLYLOG_TRY(write_staged_locked());
    POLYLOG_TRY(roll(staged_end_));
  }
  StagedBatch staged;
  std::copy_n(batch.bytes.data(), staged.head.size(), staged.head.begin());
  format::kafka::patch_base_offset(staged.head, info.first);
  format::kafka::patch_leader_epoch(staged.head, epoch_);
  staged.rest = batch.bytes.sub(staged.head.size(), batch.bytes.size() - staged.head.size());
  staged.info = info;
  const LogPosition end(info.last.value() + 1);
  staged.undo = producers_.update(info, end);
  staged_.push_back(std::move(staged));
  staged_end_ = end.value();
  return Staged{{info.first, info.last + 1}, end};
}

Result<void> KafkaLog::write_staged() {
  const std::lock_guard lock(mutex_);
  return write_staged_locked();
}

void KafkaLog::drop_staged() {
  for (auto staged = staged_.rbegin(); staged != staged_.rend(); ++staged) {
    producers_.restore(std::move(staged->undo));
  }
  staged_.clear();
  staged_end_ = written_end_;
}

Result<void> KafkaLog::write_staged_locked() {
  if (staged_.empty()) return {};
  if (auto usable = check_usable(); !usable) {
    drop_staged();
    return usable;
  }
  Segment& segment = active();
  std::vector<ByteView> parts;
  parts.reserve(2 * staged_.size());
  for (const StagedBatch& staged : staged_) {
    parts.emplace_back(staged.head);
    if (!staged.rest.empty()) parts.push_back(staged.rest.view());
  }
  auto file = segment.data();
  Result<void> wrote;
  if (!file) {
    wrote = fail(file.error());
  } else {
    wrote = (*file)->write(segment.size, parts);
    if (!wrote) {
      // Back to the old end: nothing of this turn may be found by a reader or a recovery.
      if (auto cut = (*file)->truncate(segment.size); !cut) failed_ = true;
    }
  }
  if (!wrote) {
    drop_staged();
    return wrote;
  }
  segment.held = *file;
  segment.dirty = true;
  for (const StagedBatch& staged : staged_) {
    note_written(staged.info, staged.head, staged.rest.view());
  }
  staged_.clear();
  written_end_ = staged_end_;
  if (segment.size - segment.writeback_from >= writeback_bytes) {
    segment.held->start_writeback(segment.writeback_from, segment.size - segment.writeback_from);
    segment.writeback_from = segment.size;
  }
  return {};
}

void KafkaLog::note_written(const BatchInfo& batch, ByteView head, ByteView rest) {
  Segment& segment = active();
  if (segment.sums.size() == segment.size) {  // else the file's beginning was never summed
    segment.sums.add_frame(head);
    segment.sums.add(rest);
  }
  const std::uint64_t bytes = head.size() + rest.size();
  segment.note_batch(batch, segment.size, bytes, config_);
  segment.size += bytes;
  if (batch.epoch != no_epoch && epochs_.assign(batch.epoch, LogPosition(batch.first.value()))) {
    epochs_dirty_ = true;
  }
}

Result<void> KafkaLog::note_state(const BatchInfo& batch, ByteView whole, Segment* segment) {
  if (batch.producer.id == no_producer) return {};
  if (!batch.control) {
    producers_.update(batch, LogPosition(0));
    return {};
  }
  if (batch.records == 0) return {};  // an emptied marker closes nothing
  POLYLOG_ASSIGN(marker, format::kafka::parse_control(whole));
  using Type = format::kafka::ControlType;
  if (marker.type != Type::commit && marker.type != Type::abort) return {};
  const auto aborted =
      producers_.end_transaction(batch, marker.type == Type::commit, marker.coordinator_epoch);
  if (aborted && segment != nullptr) segment->aborted_pending.push_back(*aborted);
  return {};
}

Offset KafkaLog::first_unstable() const {
  const std::lock_guard lock(mutex_);
  return producers_.first_open().value_or(Offset(written_end_));
}

EpochEnd KafkaLog::end_of_epoch(LeaderEpoch epoch) const {
  const std::lock_guard lock(mutex_);
  return epochs_.end_of(epoch, LogPosition(written_end_));
}

LeaderEpoch KafkaLog::first_epoch() const {
  const std::lock_guard lock(mutex_);
  return epochs_.at(LogPosition(start_));
}

ProducerState::Check KafkaLog::check_producer(const BatchInfo& batch) const {
  const std::lock_guard lock(mutex_);
  return producers_.check(batch);
}

void KafkaLog::expire_producers(Timestamp before) {
  const std::lock_guard lock(mutex_);
  // A staged batch's undo would bring an expired producer back: harmless, it expires again.
  producers_.expire(before);
}

std::uint64_t KafkaLog::size_bytes() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t total = 0;
  for (const auto& segment : segments_) total += segment->size;
  return total;
}

void KafkaLog::configure(const LogConfig& config) {
  {
    const std::lock_guard lock(mutex_);
    config_ = config;
  }
  if (sidecar_id_ != 0) context_.sidecar->config(sidecar_id_, config);
}

std::shared_ptr<Log> KafkaLog::log() const {
  return std::const_pointer_cast<KafkaLog>(shared_from_this());
}

LogPosition KafkaLog::end() const {
  const std::lock_guard lock(mutex_);
  return LogPosition(written_end_);
}

LogPosition KafkaLog::durable_end() const {
  const std::lock_guard lock(mutex_);
  return LogPosition(durable_end_);
}

LeaderEpoch KafkaLog::epoch() const {
  const std::lock_guard lock(mutex_);
  return std::max({epoch_, epochs_.latest(), announced_before_});
}

bool KafkaLog::unclean() const {
  const std::lock_guard lock(mutex_);
  return unclean_;
}

bool KafkaLog::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

Result<void> KafkaLog::begin_epoch(LeaderEpoch epoch) {
  const std::lock_guard lock(mutex_);
  POLYLOG_TRY(check_usable());
  if (epoch < std::max(epoch_, epochs_.latest())) {
    return fail(Errc::fenced, "epoch " + std::to_string(epoch.value()) + " is over");
  }
  // The list grows with the first batch that carries the epoch, as at recovery.
  epoch_ = epoch;
  return {};
}

Result<void> KafkaLog::advance_start(Offset start) {
  const std::lock_guard sync_lock(sync_mutex_);
  {
    const std::lock_guard lock(mutex_);
    POLYLOG_TRY(check_usable());
    if (start.value() > written_end_ || start.value() < 0) {
      return fail(Errc::out_of_range, "log start " + std::to_string(start.value()) +
                                          " lies beyond the end " + std::to_string(written_end_));
    }
    if (start.value() <= start_) return {};
  }
  POLYLOG_TRY(context_.save_log_start(*this, start.value()));
  const std::lock_guard lock(mutex_);
  start_ = std::max(start_, start.value());
  if (epochs_.truncate_start(LogPosition(start_))) epochs_dirty_ = true;
  return {};
}

Result<std::vector<AbortedTransaction>> KafkaLog::aborted(OffsetRange range) const {
  std::vector<AbortedTransaction> found;
  for (const ReadPlan& plan : plan_from(range.start.value())) {
    POLYLOG_ASSIGN(entries, plan.segment->aborted());
    for (const AbortedTransaction& entry : entries) {
      if (entry.last >= range.start && entry.first < range.end) found.push_back(entry);
      // What ends beyond the range can't have begun later markers inside it.
      if (entry.last_stable >= range.end) return found;
    }
  }
  return found;
}

std::string KafkaLog::snapshot_path(std::int64_t offset) const {
  return fs::join(directory_, format::kafka::segment_file_name(
                                  Offset(offset), format::kafka::SegmentFile::snapshot));
}

}  // namespace polylog::storage::kafka
