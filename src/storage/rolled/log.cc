#include "storage/rolled/log.h"

#include <algorithm>
#include <random>

#include "base/assert.h"

namespace polylog::storage {
namespace {

constexpr std::uint64_t writeback_bytes = std::uint64_t{8} << 20;
constexpr std::uint64_t ballast_bytes = std::uint64_t{256} << 10;

std::int64_t draw_jitter(const LogConfig& config) {
  const std::int64_t bound = std::min(config.segment_jitter_ms, config.segment_ms);
  if (bound <= 0) return 0;
  thread_local std::mt19937_64 generator{std::random_device{}()};
  return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(generator);
}

}  // namespace

RolledContext::RolledContext(fs::FileSystem& fs_in, const Clock& clock_in,
                             const StoreConfig& config, std::string_view ballast_name)
    : fs(fs_in),
      clock(clock_in),
      files(fs_in, config.open_files_max),
      scan_bytes_max(config.scan_bytes_max),
      ballast_(fs_in, config.sidecar_directory, ballast_bytes, ballast_name) {}

Result<void> RolledContext::with_room(const std::function<Result<void>()>& task) {
  auto done = task();
  if (!done && done.error().code == Errc::no_space) {
    Result<bool> given;
    {
      const std::lock_guard lock(ballast_mutex_);
      given = ballast_.give_back();
    }
    if (given && *given) done = task();
  }
  if (done) lay_ballast();  // there may be room for it again
  return done;
}

void RolledContext::lay_ballast() {
  const std::lock_guard lock(ballast_mutex_);
  // Without it a full disk may have to be given room by somebody else.
  static_cast<void>(ballast_.lay_if_roomy());
}

RolledLog::RolledLog(RolledContext& context, const FrameFormat& format, TopicPartition id,
                     const Uuid& topic, std::string directory, const LogConfig& config)
    : context_(context),
      format_(format),
      id_(std::move(id)),
      topic_(topic),
      directory_(std::move(directory)),
      config_(config) {}

Result<void> RolledLog::start_empty(const std::string& metadata) {
  const std::lock_guard lock(mutex_);
  POLYLOG_ASSIGN(segment, make_segment(0));
  // Thousands of new partitions must not take a descriptor each: there is nothing in it yet.
  segment->held = nullptr;
  segments_.push_back(std::move(segment));
  if (!metadata.empty()) unsynced_.push_back(metadata);
  root_dirty_ = true;
  return {};
}

void RolledLog::keep_for_sync(const std::string& path) {
  const std::lock_guard lock(mutex_);
  unsynced_.push_back(path);
  root_dirty_ = directory_dirty_ = true;
}

void RolledLog::root_sync_failed() {
  const std::lock_guard lock(mutex_);
  failed_ = failed_ || root_dirty_ ||
            std::any_of(rounds_.begin(), rounds_.end(),
                        [](const auto& round) { return round.second.root; });
}

void RolledLog::all_synced() {
  const std::lock_guard lock(mutex_);
  durable_end_ = written_end_;
  for (const auto& segment : segments_) segment->all_synced();
  directory_dirty_ = root_dirty_ = false;
}

OffsetRange RolledLog::offsets() const {
  const std::lock_guard lock(mutex_);
  return {Offset(start_), Offset(written_end_)};
}

Result<void> RolledLog::check_usable() const {
  if (failed_) {
    return fail(Errc::unavailable,
                directory_ + ": a sync failed; writes are refused until the broker restarts");
  }
  if (closed_) return fail(Errc::unavailable, directory_ + ": closed");
  return {};
}

bool RolledLog::must_roll(const BatchInfo& batch, std::uint64_t bytes) const {
  const DataSegment& segment = active();
  std::uint64_t size = segment.size;
  for (const StagedBatch& staged : staged_) size += staged.bytes.size();
  if (size + bytes > static_cast<std::uint64_t>(config_.segment_bytes)) return size > 0;
  if (must_roll_for(batch, size, bytes)) return true;
  if (size == 0) return false;
  if (segment.index_full(config_)) return true;
  const std::int64_t elapsed =
      segment.first_timestamp.value() >= 0 && batch.max_timestamp != no_timestamp
          ? batch.max_timestamp - segment.first_timestamp
          : context_.clock.now() - segment.created;
  return elapsed > config_.segment_ms - segment.jitter_ms;
}

Result<void> RolledLog::begin_file(DataSegment& segment) {
  POLYLOG_ASSIGN(file, context_.fs.open(segment.data_path(), fs::OpenMode::create));
  POLYLOG_ASSIGN(info, file->info());
  if (info.size > 0) POLYLOG_TRY(file->truncate(0));
  context_.files.adopt(segment.data_path(), file);
  segment.inode = info.inode;
  segment.jitter_ms = draw_jitter(config_);
  segment.forget_indexes();
  segment.fresh = true;
  segment.dirty = true;
  segment.held = std::move(file);
  directory_dirty_ = true;
  return {};
}

Result<void> RolledLog::roll(std::int64_t base) {
  POLYLOG_ASSIGN(next, make_segment(base));
  const std::shared_ptr<DataSegment> old = segments_.back();
  old->close_index();
  old->sealed = true;
  old->index_synced = false;
  sealing_.push_back({old, base, sealed_state()});
  segments_.push_back(std::move(next));
  return {};
}

Result<Staged> RolledLog::append(Batch batch) {
  POLYLOG_ASSERT(batch.format == format_.batch_format());
  POLYLOG_ASSERT(batch.bytes.size() >= format_.head_bytes());
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
  staged.bytes = place(batch, info);
  staged.info = info;
  const LogPosition end(info.last.value() + 1);
  staged.undo = producers_.update(info, end);
  staged_.push_back(std::move(staged));
  staged_end_ = end.value();
  return Staged{{info.first, info.last + 1}, end};
}

Result<void> RolledLog::write_staged() {
  const std::lock_guard lock(mutex_);
  return write_staged_locked();
}

void RolledLog::drop_staged() {
  for (auto staged = staged_.rbegin(); staged != staged_.rend(); ++staged) {
    producers_.restore(std::move(staged->undo));
  }
  staged_.clear();
  staged_end_ = written_end_;
}

// What tells where an epoch begins must not come to the disk after its records.
Result<void> RolledLog::announce_epochs() {
  LeaderEpoch latest = epochs_.latest();
  for (const StagedBatch& staged : staged_) {
    if (staged.info.epoch == no_epoch || staged.info.epoch <= latest) continue;
    latest = staged.info.epoch;
    POLYLOG_TRY(epoch_starts({latest, LogPosition(staged.info.first.value())}));
  }
  return {};
}

Result<void> RolledLog::write_staged_locked() {
  if (staged_.empty()) return {};
  auto ready = check_usable();
  if (ready) ready = announce_epochs();
  if (!ready) {
    drop_staged();
    return ready;
  }
  DataSegment& segment = active();
  std::vector<ByteView> parts;
  parts.reserve(2 * staged_.size());
  for (const StagedBatch& staged : staged_) {
    if (staged.bytes.head_size > 0) parts.push_back(staged.bytes.head_view());
    if (!staged.bytes.rest.empty()) parts.push_back(staged.bytes.rest.view());
  }
  auto file = segment.writable();
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
    note_written(staged.info, staged.bytes.head_view(), staged.bytes.rest.view());
  }
  staged_ = std::vector<StagedBatch>();  // most logs have nothing staged most of the time
  written_end_ = staged_end_;
  if (segment.size - segment.writeback_from >= writeback_bytes) {
    segment.held->start_writeback(segment.writeback_from, segment.size - segment.writeback_from);
    segment.writeback_from = segment.size;
  }
  return {};
}

void RolledLog::note_written(const BatchInfo& batch, ByteView head, ByteView rest) {
  DataSegment& segment = active();
  const std::uint64_t bytes_in = head.size() + rest.size();
  beyond_point_ += bytes_in;
  context_.written_since_look.fetch_add(bytes_in, std::memory_order_relaxed);
  // Else the file's beginning was never summed.
  const bool summed = segment.sums.size() == segment.size;
  if (!head.empty()) {  // one frame
    if (summed) {
      segment.sums.add_frame(head);
      segment.sums.add(rest);
    }
    const std::uint64_t bytes = head.size() + rest.size();
    segment.note_frame(batch, segment.size, bytes, config_);
    segment.size += bytes;
  } else {
    while (!rest.empty()) {
      const auto frame = format_.head(rest.first(format_.head_bytes()), rest.size());
      POLYLOG_ASSERT(frame.state == FrameFormat::Head::State::complete);
      const ByteView whole = rest.first(static_cast<std::size_t>(frame.size));
      if (summed) segment.sums.add_frame(whole);
      BatchInfo info = batch;
      info.first = Offset(frame.first);
      info.last = Offset(frame.last);
      segment.note_frame(info, segment.size, whole.size(), config_);
      segment.size += whole.size();
      rest = rest.subspan(whole.size());
    }
  }
  if (batch.epoch != no_epoch && epochs_.assign(batch.epoch, LogPosition(batch.first.value()))) {
    epochs_changed();
  }
}

Offset RolledLog::first_unstable() const {
  const std::lock_guard lock(mutex_);
  return producers_.first_open().value_or(Offset(written_end_));
}

EpochEnd RolledLog::end_of_epoch(LeaderEpoch epoch) const {
  const std::lock_guard lock(mutex_);
  const auto& known = epochs_.entries();
  if (epochs_lost_ && !known.empty() && epoch < known.front().epoch) return {};
  return epochs_.end_of(epoch, LogPosition(written_end_));
}

LeaderEpoch RolledLog::first_epoch() const {
  const std::lock_guard lock(mutex_);
  return epochs_.at(LogPosition(start_));
}

ProducerState::Check RolledLog::check_producer(const BatchInfo& batch) const {
  const std::lock_guard lock(mutex_);
  return producers_.check(batch);
}

void RolledLog::expire_producers(Timestamp before) {
  const std::lock_guard lock(mutex_);
  // A staged batch's undo would bring an expired producer back: harmless, it expires again.
  producers_.expire(before);
}

RolledLog::Producers RolledLog::producers() const {
  const std::lock_guard lock(mutex_);
  return producers_.entries();
}

std::uint64_t RolledLog::size_bytes() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t total = 0;
  for (const auto& segment : segments_) total += segment->size;
  return total;
}

void RolledLog::configure(const LogConfig& config) {
  {
    const std::lock_guard lock(mutex_);
    config_ = config;
  }
  if (sidecar_id_ != 0) context_.sidecar->config(sidecar_id_, config);
}

std::shared_ptr<Log> RolledLog::log() const {
  return std::const_pointer_cast<RolledLog>(shared_from_this());
}

LogPosition RolledLog::end() const {
  const std::lock_guard lock(mutex_);
  return LogPosition(written_end_);
}

LogPosition RolledLog::durable_end() const {
  const std::lock_guard lock(mutex_);
  return LogPosition(durable_end_);
}

LeaderEpoch RolledLog::epoch() const {
  const std::lock_guard lock(mutex_);
  return std::max({epoch_, epochs_.latest(), announced_before_});
}

bool RolledLog::unclean() const {
  const std::lock_guard lock(mutex_);
  return unclean_;
}

LogConfig RolledLog::config() const {
  const std::lock_guard lock(mutex_);
  return config_;
}

bool RolledLog::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

Result<void> RolledLog::begin_epoch(LeaderEpoch epoch) {
  const std::lock_guard lock(mutex_);
  POLYLOG_TRY(check_usable());
  if (epoch < std::max(epoch_, epochs_.latest())) {
    return fail(Errc::fenced, "epoch " + std::to_string(epoch.value()) + " is over");
  }
  // The list grows with the first batch that carries the epoch, as at recovery.
  epoch_ = epoch;
  return {};
}

Result<void> RolledLog::advance_start(Offset start) {
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
  if (epochs_.truncate_start(LogPosition(start_))) epochs_changed();
  return {};
}

}  // namespace polylog::storage
