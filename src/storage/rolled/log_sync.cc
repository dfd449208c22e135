#include <algorithm>

#include "base/assert.h"
#include "storage/filelog/producer_note.h"
#include "storage/rolled/log.h"

// What of a RolledLog runs beside the appends, on threads that may wait: sync rounds, sealing,
// checkpoints, retention, truncation, the clean stop.
namespace polylog::storage {
namespace {

// A sync round of a log that is so far beyond its recovery point brings a new one.
constexpr std::uint64_t point_bytes = std::uint64_t{16} << 20;

// What was noted so far is on the disk. A silent sidecar has nothing that a sync would bring there.
Result<void> sync_noted(Sidecar& sidecar) {
  if (sidecar.silent()) return {};
  const Sidecar::Extent noted = sidecar.extent();
  if (auto synced = noted.file->sync(); !synced) {
    sidecar.silence();
    return synced;
  }
  sidecar.covered(noted);
  return {};
}

}  // namespace

RecoveryPoint RolledLog::capture_point() const {
  const DataSegment& segment = active();
  RecoveryPoint point;
  point.base = segment.number;
  point.position = segment.size;
  point.offset = written_end_;
  point.max_timestamp = segment.max_timestamp;
  point.max_timestamp_offset = segment.max_timestamp_offset;
  point.first_timestamp = segment.first_timestamp;
  point.epochs = epochs_.entries();
  fill_point(point);
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

void RolledLog::save_sealed() {
  std::vector<Sealing> sealing;
  {
    const std::lock_guard lock(mutex_);
    sealing = sealing_;
  }
  std::size_t done = 0;
  for (const Sealing& item : sealing) {
    std::vector<fs::FilePtr> written;
    if (auto saved = save_indexes(item.segment, written); !saved) break;
    if (auto saved = save_sealed_state(item, written); !saved) break;
    saved_.push_back({item.segment, std::move(written)});
    ++done;
  }
  const std::lock_guard lock(mutex_);
  sealing_.erase(sealing_.begin(), sealing_.begin() + static_cast<std::ptrdiff_t>(done));
  // New names appeared beside the data.
  if (done > 0) directory_dirty_ = true;
}

void RolledLog::forget_saved(const DataSegment& segment) {
  std::erase_if(saved_, [&](const Saved& item) { return item.segment.get() == &segment; });
}

Result<void> RolledLog::capture_round(Round& round, DirtyLog& out) {
  // Opened before anything is noted as covered: a round that can't open them is tried again.
  std::vector<fs::FilePtr> small;
  for (const std::string& path : unsynced_) {
    POLYLOG_ASSIGN(file, context_.fs.open(path, fs::OpenMode::write));
    small.push_back(std::move(file));
  }
  for (const auto& segment : segments_) {
    // An empty file has a name and no content.
    if (!segment->dirty || segment->held != nullptr || segment->size == 0) continue;
    POLYLOG_ASSIGN(file, segment->data());
    segment->held = std::move(file);
  }
  out.files.insert(out.files.end(), small.begin(), small.end());
  for (Saved& item : std::exchange(saved_, {})) {
    out.files.insert(out.files.end(), item.files.begin(), item.files.end());
    round.sealed.push_back(std::move(item.segment));
  }
  for (const auto& segment : segments_) {
    if (!segment->dirty) continue;
    if (segment->held != nullptr) out.files.push_back(segment->held);
    round.files.emplace_back(segment, segment->capture_round());
  }
  unsynced_.clear();
  out.end = LogPosition(written_end_);
  round.root = root_dirty_;
  round.facts = std::exchange(facts_, {});
  if (directory_dirty_) out.directories.push_back(directory_);
  if (root_dirty_) out.directories.push_back(fs::parent_of(directory_));
  directory_dirty_ = root_dirty_ = false;
  return {};
}

Result<std::optional<DirtyLog>> RolledLog::dirty() {
  const std::lock_guard sync_lock(sync_mutex_);
  {
    // Of a log that is closed, or removed, nothing is written any more.
    const std::lock_guard lock(mutex_);
    POLYLOG_TRY(check_usable());
  }
  DirtyLog out;
  Round round;
  save_sealed();
  bool point = false, wanted = false;
  {
    const std::lock_guard lock(mutex_);
    wanted = want_point_ || beyond_point_ >= point_bytes;
    point = active().fresh;
  }
  // Nothing is written for a point that the sidecar can't be told of.
  wanted = wanted && !context_.sidecar->silent();
  point = point || wanted;
  POLYLOG_TRY(prepare_round(out));
  // A recovery point counts index entries, so they reach their files before it is taken.
  std::shared_ptr<DataSegment> indexed;
  if (point) {
    {
      const std::lock_guard lock(mutex_);
      indexed = segments_.back();
    }
    std::vector<fs::FilePtr> files;
    if (auto saved = save_indexes(indexed, files); !saved) indexed = nullptr;
    // A point counts entries that must be on the disk; of a new segment only the names matter.
    if (wanted) out.files.insert(out.files.end(), files.begin(), files.end());
  }
  std::unique_lock lock(mutex_);
  while (wants_preparation()) {  // appends go on meanwhile
    lock.unlock();
    POLYLOG_TRY(prepare_round(out));
    lock.lock();
  }
  if (auto captured = capture_round(round, out); !captured) {
    // Out of descriptors, say. The log is as it was, and so is what waits for it.
    round_dropped();
    return fail(Errc::would_block, captured.error().to_string());
  }
  if (out.files.empty() && out.directories.empty()) return std::optional<DirtyLog>();
  if (wanted && indexed != nullptr) {
    round.entries = indexed->lasting().in_files;
    round.indexed = indexed;
  }
  if (round.indexed == segments_.back() && !indexed->lasting().pending &&
      indexes_covered(segments_.front()->number, round)) {
    round.point = capture_point();
    want_point_ = false;
  }
  out.log = shared_from_this();
  out.ticket = next_ticket_++;
  rounds_.emplace(out.ticket, std::move(round));
  return std::optional(std::move(out));
}

void RolledLog::settled(const DirtyLog& done, bool synced) {
  Round round;
  std::vector<RoundFile> files;
  const std::lock_guard notes(notes_mutex_);
  {
    const std::lock_guard lock(mutex_);
    const auto found = rounds_.find(done.ticket);
    POLYLOG_ASSERT(found != rounds_.end());
    round = std::move(found->second);
    rounds_.erase(found);
    if (!synced) {
      failed_ = true;
      round_failed();
      return;
    }
    durable_end_ = std::max(durable_end_, done.end.value());
    for (auto& [segment, file] : round.files) {
      segment->round_done(file);
      files.push_back(std::move(file));
    }
    for (const auto& segment : round.sealed) segment->index_synced = true;
    if (round.indexed != nullptr) {
      round.indexed->synced_entries = std::max(round.indexed->synced_entries, round.entries);
    }
  }
  if (round.facts.file != nullptr) context_.sidecar->covered(round.facts);
  context_.sidecar->round(sidecar_id_, done.end, files);
  for (const auto& segment : round.sealed) {
    if (const auto info = context_.fs.info(segment->data_path()); info) {
      context_.sidecar->sealed(sidecar_id_, segment->number, FileIdentity::of(*info));
    }
  }
  if (round.point) note_point(*round.point);
}

// One that found no way into the sidecar leaves as much to be read as before.
void RolledLog::note_point(const RecoveryPoint& point) {
  if (!context_.sidecar->recovery_point(sidecar_id_, point)) return;
  const std::lock_guard lock(mutex_);
  point_noted(point);
}

void RolledLog::point_noted(const RecoveryPoint& point) {
  point_base_ = point.base;
  point_offset_ = point.offset;
  beyond_point_ = bytes_beyond(point);
}

std::uint64_t RolledLog::bytes_beyond(const RecoveryPoint& point) const {
  std::uint64_t bytes = 0;
  for (auto each = segments_.rbegin(); each != segments_.rend(); ++each) {
    const DataSegment& segment = **each;
    if (segment.number < point.base) break;
    bytes += segment.size;
    if (segment.number == point.base) bytes -= std::min(segment.size, point.position);
  }
  return bytes;
}

void RolledLog::write_noted() { context_.sidecar->write_noted(); }

// A failed sync covered every name in the directory, those of new segments too: final for the log.
Result<void> RolledLog::directory_synced(Result<void> outcome) {
  if (!outcome) {
    const std::lock_guard lock(mutex_);
    failed_ = true;
  }
  return outcome;
}

Result<void> RolledLog::checkpoint() {
  const std::lock_guard sync_lock(sync_mutex_);
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || failed_) return {};
  }
  POLYLOG_TRY(save_progress());
  return save_point().map([](bool) {});
}

std::uint64_t RolledLog::bytes_to_scan() const {
  const std::lock_guard lock(mutex_);
  return closed_ || failed_ ? 0 : beyond_point_;
}

Result<bool> RolledLog::advance_point() {
  const std::lock_guard sync_lock(sync_mutex_);
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || failed_) return true;
  }
  return save_point();
}

bool RolledLog::indexes_covered(std::int64_t from, const Round& round) const {
  return std::all_of(segments_.begin(), segments_.end(), [&](const auto& segment) {
    if (!segment->sealed || segment->index_synced || segment->number < from) return true;
    return std::find(round.sealed.begin(), round.sealed.end(), segment) != round.sealed.end();
  });
}

bool RolledLog::indexes_synced() const {
  const std::lock_guard lock(mutex_);
  return indexes_covered(segments_.front()->number, {});
}

// What was written to an index and not synced yet counts as little as what was not written: the
// files of sealed segments are not looked at again behind a point.
bool RolledLog::all_durable() const {
  return written_end_ == durable_end_ && !active().dirty && active().lasting_synced() &&
         indexes_covered(segments_.front()->number, {});
}

// False: a log with writes under way gets its point with the sync round that covers them.
Result<bool> RolledLog::save_point() {
  std::shared_ptr<DataSegment> segment;
  {
    const std::lock_guard lock(mutex_);
    want_point_ = !all_durable();
    if (want_point_) return false;
    segment = segments_.back();
  }
  std::vector<fs::FilePtr> files;
  POLYLOG_TRY(save_indexes(segment, files));
  RecoveryPoint point;
  const std::lock_guard notes(notes_mutex_);
  {
    const std::lock_guard lock(mutex_);
    want_point_ = segment != segments_.back() || !all_durable();
    if (want_point_) return false;
    point = capture_point();
  }
  note_point(point);
  return true;
}

// One file as retention sees it.
RetainedFile RolledLog::retained(std::size_t index, Timestamp now) const {
  const DataSegment& segment = *segments_[index];
  const bool is_active = index + 1 == segments_.size();
  RetainedFile file;
  file.bytes = segment.size;
  file.end = is_active ? written_end_ : segments_[index + 1]->base;
  file.active = is_active;
  if (const auto largest = segment.largest_timestamp(); largest) file.last_time = *largest;
  // A record from the future must not keep its segment for ever, and one without a time says
  // nothing: the time of writing counts instead.
  if (file.last_time.value() < 0 || file.last_time > now) {
    const auto info = context_.fs.info(segment.data_path());
    file.last_time = info ? info->modified : now;
  }
  return file;
}

RolledLog::Expiry RolledLog::plan_expiry(Offset visible, Timestamp now) {
  const std::lock_guard notes(notes_mutex_);
  const std::lock_guard lock(mutex_);
  if (closed_ || failed_ || !staged_.empty() || !rounds_.empty()) return {};
  std::vector<RetainedFile> files;
  for (std::size_t i = 0; i < segments_.size(); ++i) files.push_back(retained(i, now));
  RetentionRule rule;
  rule.start = start_;
  rule.visible = visible.value();
  if (!config_.retention_suspended) {
    rule.bytes = config_.retention_bytes;
    rule.time_ms = config_.retention_ms;
  }
  std::size_t count = plan_retention(files, rule, now);
  if (count == segments_.size()) {
    // The active segment goes too: one empty segment named by the log end remains.
    if (auto rolled = roll(written_end_); !rolled) --count;
  }
  return {count, segments_.back()};
}

// The new start first: a file that a crash brings back lies below it and stays deleted. Where there
// is no room for that, files go all the same, or there would never be any: but not the last records
// that tell where the log ends and which epoch it is in.
Result<std::size_t> RolledLog::secure_expiry(std::size_t count) {
  std::int64_t start = 0;
  bool names = false, records = false;
  {
    const std::lock_guard lock(mutex_);
    start = segments_[count]->base;
    names = directory_dirty_;
    records = std::any_of(segments_.begin() + static_cast<std::ptrdiff_t>(count), segments_.end(),
                          [](const auto& segment) { return segment->durable_bytes > 0; });
  }
  // The name of a new segment is on the disk before the one it replaces goes.
  if (names) POLYLOG_TRY(directory_synced(context_.fs.sync_directory(directory_)));
  const auto noted = context_.save_log_start(*this, start);
  const auto saved = context_.with_room([this] { return save_progress(); });
  for (const auto& done : {noted, saved}) {
    if (!done && done.error().code != Errc::no_space) return fail(done.error());
  }
  const bool told = records || (saved && (noted || names_tell_bases()));
  if (!told && --count == 0) return fail(noted ? saved.error() : noted.error());
  return count;
}

// A point at the end, if all is durable, and nothing but what goes has indexes to be saved.
std::optional<RecoveryPoint> RolledLog::capture_without(std::size_t count) const {
  const DataSegment& last = active();
  const std::int64_t first = segments_[count]->number;
  const bool durable = written_end_ == durable_end_ && (!last.dirty || last.size == 0);
  const bool saved =
      !last.has_unsaved_entries() && last.lasting_synced() && indexes_covered(first, {});
  return durable && saved ? std::optional(capture_point()) : std::nullopt;
}

// The log start is on the disk, and the names are: not the name of a segment made since, and no
// point goes into that one.
Result<bool> RolledLog::keep_producers(const Expiry& expiry) {
  const std::shared_ptr<DataSegment>& last = expiry.last;
  bool told = false, unsaved = false;
  {
    const std::lock_guard lock(mutex_);
    const DataSegment& first = *segments_[expiry.count];
    told = point_base_ >= first.number || point_offset_ == first.base;
  }
  // A point that a round or a checkpoint noted may be lost with the power still.
  if (told) return sync_noted(*context_.sidecar).map([] { return true; });
  {
    const std::lock_guard lock(mutex_);
    want_point_ = true;
    if (written_end_ != durable_end_ || last != segments_.back()) return false;
    unsaved = last->has_unsaved_entries();
  }
  std::vector<fs::FilePtr> files;
  if (unsaved) POLYLOG_TRY(save_indexes(last, files));
  std::optional<RecoveryPoint> point;
  RoundFile file;
  LogPosition durable;
  const std::lock_guard notes(notes_mutex_);
  {
    const std::lock_guard lock(mutex_);
    if (last == segments_.back()) point = capture_without(expiry.count);
    file = last->capture_round();
    durable = LogPosition(durable_end_);
  }
  if (!point) return false;
  // The sidecar may not know a new file yet.
  if (file.durable_bytes == 0) context_.sidecar->round(sidecar_id_, durable, {file});
  POLYLOG_TRY(context_.sidecar->recovery_point_synced(sidecar_id_, *point));
  const std::lock_guard lock(mutex_);
  point_noted(*point);
  want_point_ = false;
  return true;
}

std::vector<std::shared_ptr<DataSegment>> RolledLog::drop_front(std::size_t count) {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<DataSegment>> gone(
      segments_.begin(), segments_.begin() + static_cast<std::ptrdiff_t>(count));
  segments_.erase(segments_.begin(), segments_.begin() + static_cast<std::ptrdiff_t>(count));
  std::erase_if(sealing_, [&](const Sealing& item) {
    return std::find(gone.begin(), gone.end(), item.segment) != gone.end();
  });
  for (const auto& segment : gone) forget_saved(*segment);
  start_ = std::max(start_, segments_.front()->base);
  if (epochs_.truncate_start(LogPosition(start_))) epochs_changed();
  return gone;
}

// A log that is being written to gets its point with the next round, and its files go after that.
// They wait once: a round may find no room on a full disk, and then it is retention that makes it.
Result<Retained> RolledLog::retain(Offset visible, Timestamp now) {
  const std::lock_guard sync_lock(sync_mutex_);
  Expiry expiry = plan_expiry(visible, now);
  if (expiry.count == 0) return Retained();
  POLYLOG_ASSIGN(count, secure_expiry(expiry.count));
  expiry.count = count;
  const auto kept = keep_producers(expiry);
  if (!kept && kept.error().code != Errc::no_space) return fail(kept.error());
  put_off_ = kept && !*kept && !put_off_;
  if (put_off_) return Retained();
  return remove_segments(drop_front(count));
}

Result<void> RolledLog::roll_by_age(Timestamp now) {
  const std::unique_lock sync_lock(sync_mutex_, std::try_to_lock);
  if (!sync_lock) return {};
  const std::lock_guard lock(mutex_);
  if (closed_ || failed_ || !staged_.empty()) return {};
  const DataSegment& segment = active();
  const std::int64_t age_max = config_.segment_ms - segment.jitter_ms;
  if (segment.size == 0 || now - segment.created <= age_max) return {};
  POLYLOG_TRY(roll(written_end_));
  // There is nothing in it yet: a log at rest takes no descriptor.
  active().held = nullptr;
  return {};
}

Result<Retained> RolledLog::remove_segments(
    const std::vector<std::shared_ptr<DataSegment>>& segments) {
  Retained retained;
  if (segments.empty()) return retained;
  for (const auto& segment : segments) {
    POLYLOG_TRY(segment->remove_files());
    ++retained.segments_removed;
    retained.bytes_removed += segment->size;
  }
  // Committed at once, so that the room can be used: journalling file systems hand blocks out
  // again only when the removal is committed.
  POLYLOG_TRY(directory_synced(context_.fs.sync_directory(directory_)));
  // Not before: of a file that a power cut brings back it must still be known what is in it.
  context_.sidecar->files_dropped(sidecar_id_, segments.back()->number + 1);
  return retained;
}

std::vector<std::shared_ptr<DataSegment>> RolledLog::unsaved_segments() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<DataSegment>> unsaved;
  for (const auto& segment : segments_) {
    if (segment->has_unsaved_entries()) unsaved.push_back(segment);
  }
  return unsaved;
}

Result<void> RolledLog::close_files() {
  const std::lock_guard sync_lock(sync_mutex_);
  save_sealed();
  std::shared_ptr<DataSegment> last;
  {
    const std::lock_guard notes(notes_mutex_);
    const std::lock_guard lock(mutex_);
    if (failed_ || !sealing_.empty()) {
      return fail(Errc::unavailable, directory_ + ": can't be closed cleanly");
    }
    POLYLOG_ASSERT(staged_.empty() && rounds_.empty());
    last = segments_.back();
    last->close_index();
  }
  std::vector<fs::FilePtr> files;
  for (const auto& segment : unsaved_segments()) POLYLOG_TRY(save_indexes(segment, files));
  POLYLOG_TRY(save_indexes(last, files));
  POLYLOG_TRY(write_closing_state());
  const std::lock_guard lock(mutex_);
  closed_ = true;
  return {};
}

LogNote RolledLog::note() const {
  const std::lock_guard lock(mutex_);
  LogNote note;
  note.id = sidecar_id_;
  note.topic = topic_;
  note.durable = LogPosition(durable_end_);
  note.config = config_;
  if (!format_.carries_epochs()) {
    note.epochs = epochs_.entries();
    note.epochs_lost = epochs_lost_;
  }
  // Whoever opens the log begins the next epoch; it must not be begun a second time for other
  // records, even if a power cut takes every record of it.
  note.announced = std::max({epoch_, epochs_.latest() + 1, announced_before_ + 1});
  for (const auto& segment : segments_) {
    if (auto file = segment->note(closed_)) note.files.emplace(segment->number, std::move(*file));
  }
  if (closed_ || (all_durable() && !active().has_unsaved_entries())) {
    note.recovery = capture_point();
  }
  return note;
}

void RolledLog::begin_note(const std::string& name) {
  sidecar_id_ = context_.sidecar->begin_log(name, topic_);
  context_.sidecar->config(sidecar_id_, config_);
}

void RolledLog::noted_anew(const LogNote& note) {
  sidecar_id_ = note.id;
  const std::lock_guard lock(mutex_);
  if (note.recovery && note.recovery->offset >= point_offset_) point_noted(*note.recovery);
}

void RolledLog::end_note() {
  const std::lock_guard sync_lock(sync_mutex_);
  const std::lock_guard lock(mutex_);
  closed_ = true;
  context_.sidecar->end_log(sidecar_id_);
  // Files that are held open keep their room on the disk, removed or not.
  for (const auto& segment : segments_) segment->let_go();
}

}  // namespace polylog::storage
