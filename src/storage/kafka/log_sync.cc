#include <algorithm>

#include "format/kafka/checkpoint.h"
#include "format/kafka/names.h"
#include "format/kafka/snapshot.h"
#include "storage/filelog/retention.h"
#include "storage/kafka/log.h"
#include "storage/filelog/producer_note.h"

// What of a KafkaLog runs beside the appends, on threads that may wait: sync rounds, sealing,
// checkpoints, retention, the clean stop.
namespace polylog::storage::kafka {

RecoveryPoint KafkaLog::capture_point() const {
  const Segment& segment = active();
  RecoveryPoint point;
  point.base = segment.base;
  point.position = segment.size;
  point.offset = written_end_;
  point.index_entries = segment.index_entries;
  point.time_entries = segment.time_entries;
  point.max_timestamp = segment.max_timestamp;
  point.max_timestamp_offset = segment.max_timestamp_offset;
  point.first_timestamp = segment.first_timestamp;
  point.epochs = epochs_.entries();
  if (staged_.empty()) {
    point.producers = encode_producers(producers_);
  } else {
    // What is staged is not in the file yet: a start would meet it a second time in its scan.
    ProducerState written = producers_;
    for (auto staged = staged_.rbegin(); staged != staged_.rend(); ++staged) {
      written.restore(staged->undo);
    }
    point.producers = encode_producers(written);
  }
  return point;
}

Result<void> KafkaLog::save_indexes(const std::shared_ptr<Segment>& segment,
                                    std::vector<fs::FilePtr>& files) {
  Segment::Unsaved unsaved;
  {
    const std::lock_guard lock(mutex_);
    unsaved = segment->unsaved();
  }
  POLYLOG_ASSIGN(written, segment->save(unsaved));
  const std::lock_guard lock(mutex_);
  segment->saved(unsaved);
  files.insert(files.end(), written.begin(), written.end());
  return {};
}

void KafkaLog::save_sealed(std::vector<fs::FilePtr>& files,
                           std::vector<std::shared_ptr<Segment>>& sealed) {
  std::vector<Sealing> sealing;
  {
    const std::lock_guard lock(mutex_);
    sealing = sealing_;
  }
  std::size_t done = 0;
  for (const Sealing& item : sealing) {
    std::vector<fs::FilePtr> written;
    if (auto saved = save_indexes(item.segment, written); !saved) break;
    const std::string path = snapshot_path(item.snapshot_offset);
    auto snapshot = context_.fs.open(path, fs::OpenMode::create);
    if (!snapshot || !(*snapshot)->truncate(0) || !(*snapshot)->write(0, item.snapshot)) break;
    files.insert(files.end(), written.begin(), written.end());
    files.push_back(*snapshot);
    sealed.push_back(item.segment);
    ++done;
  }
  const std::lock_guard lock(mutex_);
  sealing_.erase(sealing_.begin(), sealing_.begin() + static_cast<std::ptrdiff_t>(done));
  // New index and snapshot names appeared beside the data.
  if (done > 0) directory_dirty_ = true;
}

Result<void> KafkaLog::capture_round(Round& round, DirtyLog& out) {
  // Opened before anything is noted as covered: a round that can't open them is tried again.
  for (const std::string& path : unsynced_) {
    POLYLOG_ASSIGN(file, context_.fs.open(path, fs::OpenMode::write));
    out.files.push_back(std::move(file));
  }
  for (const auto& segment : segments_) {
    // An empty file has a name and no content.
    if (!segment->dirty || segment->held != nullptr || segment->size == 0) continue;
    POLYLOG_ASSIGN(file, segment->data());
    segment->held = std::move(file);
  }
  for (const auto& segment : segments_) {
    if (!segment->dirty) continue;
    RoundFile file;
    file.base = segment->base;
    file.inode = segment->inode;
    file.durable_bytes = segment->size;
    file.first_block = segment->reported_blocks;
    if (segment->sums.size() == segment->size) {
      const auto& blocks = segment->sums.blocks();
      file.blocks.assign(blocks.begin() + segment->reported_blocks, blocks.end());
      file.tail = segment->sums.tail();
    }
    if (segment->held != nullptr) out.files.push_back(segment->held);
    round.files.emplace_back(segment, std::move(file));
  }
  unsynced_.clear();
  out.end = LogPosition(written_end_);
  round.directory = directory_dirty_;
  round.root = root_dirty_;
  if (directory_dirty_) out.directories.push_back(directory_);
  if (root_dirty_) out.directories.push_back(fs::parent_of(directory_));
  directory_dirty_ = root_dirty_ = false;
  return {};
}

// The epoch file is on the disk with the first batches of a new epoch; its sync is the round's.
Result<void> KafkaLog::refresh_epochs_file(std::vector<fs::FilePtr>& files) {
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    if (!epochs_dirty_) return {};
    text = format::kafka::format_epoch_checkpoint(epochs_.entries());
    epochs_dirty_ = false;
  }
  const std::string path = fs::join(directory_, format::kafka::epoch_checkpoint_file);
  const auto put = [&]() -> Result<fs::FilePtr> {
    POLYLOG_ASSIGN(file, context_.fs.open(path + ".tmp", fs::OpenMode::create));
    POLYLOG_TRY(file->truncate(0));
    POLYLOG_TRY(file->write(0, as_bytes(text)));
    POLYLOG_TRY(context_.fs.rename(path + ".tmp", path));
    return file;
  };
  const auto file = put();
  const std::lock_guard lock(mutex_);
  if (file) {
    files.push_back(*file);
    directory_dirty_ = true;
  } else {
    epochs_dirty_ = true;  // every batch header says its epoch: the file can wait for room
  }
  return {};
}

Result<std::optional<DirtyLog>> KafkaLog::dirty() {
  const std::lock_guard sync_lock(sync_mutex_);
  DirtyLog out;
  Round round;
  std::vector<fs::FilePtr> index_files;
  save_sealed(index_files, round.sealed);
  bool point = false, wanted = false;
  {
    const std::lock_guard lock(mutex_);
    POLYLOG_TRY(check_usable());
    wanted = want_point_;
    point = wanted || active().fresh;
  }
  POLYLOG_TRY(refresh_epochs_file(index_files));
  // A recovery point counts index entries, so they reach their files before it is taken.
  std::shared_ptr<Segment> indexed;
  if (point) {
    {
      const std::lock_guard lock(mutex_);
      indexed = segments_.back();
    }
    std::vector<fs::FilePtr> files;
    if (auto saved = save_indexes(indexed, files); !saved) indexed = nullptr;
    // A point counts entries that must be on the disk; of a new segment only the names matter.
    if (wanted) index_files.insert(index_files.end(), files.begin(), files.end());
  }
  const std::lock_guard lock(mutex_);
  if (auto captured = capture_round(round, out); !captured) {
    // Out of descriptors, say. The log is as it was, and so is what waits for it.
    return fail(Errc::would_block, captured.error().to_string());
  }
  out.files.insert(out.files.end(), index_files.begin(), index_files.end());
  if (out.files.empty() && out.directories.empty()) return std::optional<DirtyLog>();
  if (wanted && indexed != nullptr && indexed == segments_.back() && sealing_.empty()) {
    round.point = capture_point();
    want_point_ = false;
  }
  out.log = shared_from_this();
  out.ticket = next_ticket_++;
  rounds_.emplace(out.ticket, std::move(round));
  return std::optional(std::move(out));
}

void KafkaLog::settled(const DirtyLog& done, bool synced) {
  Round round;
  std::vector<RoundFile> files;
  std::uint64_t bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = rounds_.find(done.ticket);
    POLYLOG_ASSERT(found != rounds_.end());
    round = std::move(found->second);
    rounds_.erase(found);
    if (!synced) {
      failed_ = true;
      return;
    }
    durable_end_ = std::max(durable_end_, done.end.value());
    for (auto& [segment, file] : round.files) {
      bytes += file.durable_bytes - std::min(file.durable_bytes, segment->durable_bytes);
      segment->durable_bytes = file.durable_bytes;
      segment->reported_blocks = file.first_block + static_cast<std::uint32_t>(file.blocks.size());
      segment->durable_tail = file.tail;
      segment->fresh = false;
      if (segment->size == file.durable_bytes) {
        segment->dirty = false;
        segment->held = nullptr;
      }
      files.push_back(std::move(file));
    }
  }
  context_.sidecar->round(sidecar_id_, done.end, files);
  for (const auto& segment : round.sealed) {
    if (const auto info = context_.fs.info(segment->path(format::kafka::SegmentFile::log)); info) {
      context_.sidecar->sealed(sidecar_id_, segment->base, FileIdentity::of(*info));
    }
  }
  if (round.point) context_.sidecar->recovery_point(sidecar_id_, *round.point);
  context_.progressed(shared_from_this(), bytes);
}

Result<void> KafkaLog::write_epochs_file(const std::string& text) {
  const std::string path = fs::join(directory_, format::kafka::epoch_checkpoint_file);
  POLYLOG_ASSIGN(file, context_.fs.open(path + ".tmp", fs::OpenMode::create));
  POLYLOG_TRY(file->truncate(0));
  POLYLOG_TRY(file->write(0, as_bytes(text)));
  POLYLOG_TRY(file->sync());
  POLYLOG_TRY(context_.fs.rename(path + ".tmp", path));
  return directory_synced(context_.fs.sync_directory(directory_));
}

// A failed sync covered every name in the directory, those of new segments too: final for the log.
Result<void> KafkaLog::directory_synced(Result<void> outcome) {
  if (!outcome) {
    const std::lock_guard lock(mutex_);
    failed_ = true;
  }
  return outcome;
}

Result<void> KafkaLog::checkpoint() {
  const std::lock_guard sync_lock(sync_mutex_);
  std::vector<EpochList::Entry> epochs;
  bool write_epochs = false;
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || failed_) return {};
    write_epochs = epochs_dirty_;
    epochs_dirty_ = false;
    epochs = epochs_.entries();
  }
  if (write_epochs) {
    if (auto wrote = write_epochs_file(format::kafka::format_epoch_checkpoint(epochs)); !wrote) {
      const std::lock_guard lock(mutex_);
      epochs_dirty_ = true;
      return wrote;
    }
  }
  std::shared_ptr<Segment> segment;
  {
    const std::lock_guard lock(mutex_);
    // A log with writes under way gets its point with the sync round that covers them.
    if (written_end_ != durable_end_ || active().dirty || !sealing_.empty()) {
      want_point_ = true;
      return {};
    }
    segment = segments_.back();
  }
  std::vector<fs::FilePtr> files;
  POLYLOG_TRY(save_indexes(segment, files));
  RecoveryPoint point;
  {
    const std::lock_guard lock(mutex_);
    if (segment != segments_.back() || written_end_ != durable_end_ || active().dirty) {
      want_point_ = true;
      return {};
    }
    point = capture_point();
  }
  context_.sidecar->recovery_point(sidecar_id_, point);
  return {};
}

std::optional<std::int64_t> KafkaLog::start_checkpoint() const {
  const std::lock_guard lock(mutex_);
  if (start_ <= segments_.front()->base) return std::nullopt;
  return start_;
}

std::int64_t KafkaLog::recovery_checkpoint() const {
  const std::lock_guard lock(mutex_);
  std::int64_t point = durable_end_;
  for (const Sealing& item : sealing_) point = std::min(point, item.segment->base);
  for (const auto& segment : segments_) {
    if (segment->sealed && !segment->index_pending.empty()) point = std::min(point, segment->base);
  }
  return point;
}

std::vector<std::shared_ptr<Segment>> KafkaLog::take_expired(Offset visible, Timestamp now) {
  const std::lock_guard sync_lock(sync_mutex_);
  const std::lock_guard lock(mutex_);
  if (closed_ || failed_ || !staged_.empty() || !rounds_.empty()) return {};
  std::vector<RetainedFile> files;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const Segment& segment = *segments_[i];
    const bool is_active = i + 1 == segments_.size();
    RetainedFile file;
    file.bytes = segment.size;
    file.end = is_active ? written_end_ : segments_[i + 1]->base;
    file.active = is_active;
    if (const auto largest = segment.largest_time(); largest) {
      file.last_time = Timestamp(largest->timestamp);
    }
    // A record from the future must not keep its segment for ever, and one without a time says
    // nothing: the time of writing counts instead.
    if (file.last_time.value() < 0 || file.last_time > now) {
      const auto info = context_.fs.info(segment.path(format::kafka::SegmentFile::log));
      file.last_time = info ? info->modified : now;
    }
    files.push_back(file);
  }
  RetentionRule rule;
  rule.start = start_;
  rule.visible = visible.value();
  if (!config_.retention_suspended) {
    rule.bytes = config_.retention_bytes;
    rule.time_ms = config_.retention_ms;
  }
  const std::size_t count = plan_retention(files, rule, now);
  if (count == 0) return {};
  if (count == segments_.size()) {
    // The active segment goes too: one empty segment named by the log end remains.
    if (auto rolled = roll(written_end_); !rolled) return {};
  }
  std::vector<std::shared_ptr<Segment>> gone(
      segments_.begin(), segments_.begin() + static_cast<std::ptrdiff_t>(count));
  segments_.erase(segments_.begin(), segments_.begin() + static_cast<std::ptrdiff_t>(count));
  std::erase_if(sealing_, [&](const Sealing& item) {
    return std::find(gone.begin(), gone.end(), item.segment) != gone.end();
  });
  start_ = std::max(start_, segments_.front()->base);
  if (epochs_.truncate_start(LogPosition(start_))) epochs_dirty_ = true;
  return gone;
}

Result<Retained> KafkaLog::remove_segments(const std::vector<std::shared_ptr<Segment>>& segments) {
  Retained retained;
  if (segments.empty()) return retained;
  for (const auto& segment : segments) {
    POLYLOG_TRY(segment->remove_files());
    ++retained.segments_removed;
    retained.bytes_removed += segment->size;
  }
  context_.sidecar->files_dropped(sidecar_id_, segments.back()->base + 1);
  // Committed at once, so that the room can be used (see KafkaStore::remove).
  POLYLOG_TRY(directory_synced(context_.fs.sync_directory(directory_)));
  return retained;
}

std::vector<std::shared_ptr<Segment>> KafkaLog::unsaved_segments() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Segment>> unsaved;
  for (const auto& segment : segments_) {
    if (!segment->index_pending.empty() || !segment->time_pending.empty()) {
      unsaved.push_back(segment);
    }
  }
  return unsaved;
}

Result<void> KafkaLog::close_files() {
  const std::lock_guard sync_lock(sync_mutex_);
  std::vector<fs::FilePtr> files;
  std::vector<std::shared_ptr<Segment>> sealed;
  save_sealed(files, sealed);
  std::shared_ptr<Segment> last;
  std::vector<std::uint8_t> snapshot;
  std::string epochs;
  std::int64_t end = 0;
  {
    const std::lock_guard lock(mutex_);
    if (failed_ || !sealing_.empty()) {
      return fail(Errc::unavailable, directory_ + ": can't be closed cleanly");
    }
    POLYLOG_ASSERT(staged_.empty() && rounds_.empty());
    last = segments_.back();
    last->close_time_index();
    snapshot = format::kafka::encode_snapshot(producers_);
    epochs = format::kafka::format_epoch_checkpoint(epochs_.entries());
    end = written_end_;
  }
  for (const auto& segment : unsaved_segments()) POLYLOG_TRY(save_indexes(segment, files));
  POLYLOG_TRY(save_indexes(last, files));
  POLYLOG_ASSIGN(file, context_.fs.open(snapshot_path(end), fs::OpenMode::create));
  POLYLOG_TRY(file->truncate(0));
  POLYLOG_TRY(file->write(0, snapshot));
  const std::string path = fs::join(directory_, format::kafka::epoch_checkpoint_file);
  POLYLOG_ASSIGN(epoch_file, context_.fs.open(path, fs::OpenMode::create));
  POLYLOG_TRY(epoch_file->truncate(0));
  if (!epochs.empty()) POLYLOG_TRY(epoch_file->write(0, as_bytes(epochs)));
  const std::lock_guard lock(mutex_);
  closed_ = true;
  return {};
}

LogNote KafkaLog::note() const {
  const std::lock_guard lock(mutex_);
  LogNote note;
  note.id = sidecar_id_;
  note.topic = topic_;
  note.durable = LogPosition(durable_end_);
  note.config = config_;
  // Whoever opens the log begins the next epoch; it must not be begun a second time for other
  // records, even if a power cut takes every record of it.
  note.announced = std::max({epoch_, epochs_.latest() + 1, announced_before_ + 1});
  for (const auto& segment : segments_) {
    FileNote file;
    file.inode = segment->inode;
    const auto count = segment->durable_bytes / BlockSums::block_bytes;
    const auto& blocks = segment->sums.blocks();
    if (segment->sums.size() < segment->durable_bytes) continue;  // written by another program
    const std::span durable(blocks.data(), static_cast<std::size_t>(count));
    if (!file.sums.restore(0, durable, segment->durable_tail, segment->durable_bytes)) continue;
    if (segment->sealed || closed_) {
      if (const auto info = context_.fs.info(segment->path(format::kafka::SegmentFile::log));
          info) {
        file.sealed = FileIdentity::of(*info);
      }
    }
    note.files.emplace(segment->base, std::move(file));
  }
  if (closed_ || (durable_end_ == written_end_ && active().index_pending.empty() &&
                  active().time_pending.empty() && !active().dirty)) {
    note.recovery = capture_point();
  }
  return note;
}

void KafkaLog::begin_note() {
  sidecar_id_ = context_.sidecar->begin_log(format::kafka::partition_directory_name(id_), topic_);
  context_.sidecar->config(sidecar_id_, config_);
}

void KafkaLog::use_note_id(std::uint32_t id) { sidecar_id_ = id; }

void KafkaLog::end_note() {
  const std::lock_guard sync_lock(sync_mutex_);
  const std::lock_guard lock(mutex_);
  closed_ = true;
  context_.sidecar->end_log(sidecar_id_);
  // Files that are held open keep their room on the disk, removed or not.
  for (const auto& segment : segments_) segment->let_go();
}

}  // namespace polylog::storage::kafka
