#include "storage/rolled/recovery.h"

#include <algorithm>

#include "storage/filelog/producer_note.h"

namespace polylog::storage {

Result<void> RolledRecovery::run() {
  const std::lock_guard lock(log_.mutex_);
  POLYLOG_TRY(finish_interrupted());
  POLYLOG_TRY(load_segments());
  Segments& all = segments();
  if (all.empty()) {
    POLYLOG_ASSIGN(segment, log_.make_segment(std::max<std::int64_t>(evidence_.log_start, 0)));
    all.push_back(std::move(segment));
  }
  for (std::size_t i = 0; i + 1 < all.size(); ++i) all[i]->sealed = true;
  POLYLOG_TRY(load_epochs());
  epochs_on_file_ = log_.epochs_;
  POLYLOG_ASSIGN(point, start_at_point());
  if (point) {
    // Under another id a sidecar written anew would not keep the point, where there is no newer.
    log_.sidecar_id_ = evidence_.note->id;
    log_.point_base_ = evidence_.note->recovery->base;
    log_.point_offset_ = evidence_.note->recovery->offset;
  } else {
    producers().clear();
    POLYLOG_ASSIGN(start, start_without_point());
    point = start;
  }
  began_.base = all[point->segment]->number;
  began_.position = point->position;
  POLYLOG_TRY(scan_from(*point));
  return finish();
}

void RolledRecovery::note(const std::string& text) {
  report_.notes.push_back(log_.directory_ + ": " + text);
}

Result<void> RolledRecovery::load_data(DataSegment& segment) {
  POLYLOG_ASSIGN(info, log_.context_.fs.info(segment.data_path()));
  segment.size = info.size;
  segment.inode = info.inode;
  if (const FileNote* known = file_note(segment)) {
    segment.sums = known->sums;
    segment.expect(known->sums);
    if (info.size < known->sums.size()) {
      note(segment.data_path() + " is " + std::to_string(known->sums.size() - info.size) +
           " bytes shorter than what was durable; what is left is served");
      segment.sums.clear();
    }
  }
  return {};
}

const FileNote* RolledRecovery::file_note(const DataSegment& segment) const {
  if (evidence_.note == nullptr) return nullptr;
  const auto found = evidence_.note->files.find(segment.number);
  if (found == evidence_.note->files.end()) return nullptr;
  // Another inode is another file: ours was replaced.
  return found->second.inode == segment.inode ? &found->second : nullptr;
}

std::uint64_t RolledRecovery::durable_bytes(const DataSegment& segment) const {
  return std::min(guarded_bytes(segment), segment.size);
}

std::uint64_t RolledRecovery::guarded_bytes(const DataSegment& segment) const {
  // After an orderly stop everything was durable.
  if (evidence_.clean) return segment.size;
  const FileNote* const known = file_note(segment);
  return known == nullptr ? 0 : known->sums.size();
}

Result<std::optional<RolledRecovery::Start>> RolledRecovery::start_at_point() {
  if (evidence_.note == nullptr || !evidence_.note->recovery) return std::optional<Start>();
  const RecoveryPoint& point = *evidence_.note->recovery;
  for (std::size_t i = 0; i < segments().size(); ++i) {
    DataSegment& segment = *segments()[i];
    if (segment.number != point.base) continue;
    const FileNote* const known = file_note(segment);
    // An empty file has no sums yet: its inode tells that it is the same one.
    if (known == nullptr || segment.size < point.position || known->sums.size() < point.position) {
      break;
    }
    if (!take_state(point)) return std::optional<Start>();
    Start start{i, point.position, point.offset};
    segment.max_timestamp = point.max_timestamp;
    segment.max_timestamp_offset = point.max_timestamp_offset;
    segment.first_timestamp = point.first_timestamp;
    POLYLOG_ASSIGN(usable, use_point(segment, point, start));
    return usable ? std::optional(start) : std::nullopt;
  }
  return start_behind(point);
}

// Retention took the point's file with all records below the point, and none above it. A power cut
// may bring it back, or one before it: not what the sidecar knew of them.
std::optional<RolledRecovery::Start> RolledRecovery::start_behind(const RecoveryPoint& point) {
  const auto behind = std::find_if(segments().begin(), segments().end(), [&](const auto& segment) {
    return segment->number > point.base;
  });
  if (behind == segments().end()) return std::nullopt;
  const std::int64_t base = (*behind)->base == unknown_base ? evidence_.log_start : (*behind)->base;
  if (base != point.offset || !take_state(point)) return std::nullopt;
  return Start{static_cast<std::size_t>(behind - segments().begin()), 0, base};
}

bool RolledRecovery::take_state(const RecoveryPoint& point) {
  auto remembered = decode_producers(point.producers);
  if (!remembered) return false;
  producers() = std::move(*remembered);
  if (format_.carries_epochs()) epochs() = EpochList(point.epochs);
  producers_from_ = point.offset;
  return true;
}

Result<void> RolledRecovery::scan_from(const Start& start) {
  next_ = start.offset;
  const Segments& all = segments();
  for (std::size_t i = 0; i < all.size(); ++i) {
    DataSegment& segment = *all[i];
    if (segment.base == unknown_base) segment.base = likely_base(i, start);
    if (i < start.segment) {
      if (wants_indexes(segment)) POLYLOG_TRY(rebuild_indexes(segment));
      if (segment.sums.size() != segment.size) POLYLOG_TRY(sum_up(segment));
      segment.durable_bytes = segment.size;
      segment.durable_tail = segment.sums.tail();
      continue;
    }
    next_ = std::max(next_, i == start.segment ? start.offset : segment.base);
    POLYLOG_TRY(scan_segment(i, i == start.segment ? start.position : 0));
    if (never_reached(i)) POLYLOG_TRY(cut(i, segment.size));
  }
  return {};
}

// Where a file begins that is empty or whose first frame does not read: rather too high than too
// low, since a reader that finds nothing in one file goes on to the next.
std::int64_t RolledRecovery::likely_base(std::size_t index, const Start& start) const {
  if (index == 0) return evidence_.log_start;
  if (index > start.segment) return std::max(next_, segments()[index - 1]->base);
  const auto from = segments().begin() + static_cast<std::ptrdiff_t>(index);
  const auto known = std::find_if(
      from, segments().end(), [](const auto& segment) { return segment->base != unknown_base; });
  return known == segments().end() ? start.offset : (*known)->base;
}

// True when what is missing between this segment's end and the next one's base was never
// durable: then nothing behind it was either, only the names had reached the disk. A gap below
// the durable end is one that compaction left.
bool RolledRecovery::never_reached(std::size_t index) const {
  if (evidence_.clean || index + 1 >= segments().size()) return false;
  if (next_ >= segments()[index + 1]->base) return false;
  if (evidence_.note != nullptr) return next_ >= evidence_.note->durable.value();
  return std::all_of(segments().begin() + static_cast<std::ptrdiff_t>(index) + 1, segments().end(),
                     [](const auto& later) { return later->size == 0; });
}

ScanStep RolledRecovery::visit(DataSegment& segment, const ScanFrame& frame) {
  const auto info = format_.describe(frame.bytes);
  const std::int64_t lowest = held_.empty() ? next_ : held_.back().info.last.value() + 1;
  if (!info || info->first.value() < std::max(lowest, segment.base) || !possible(segment, *info) ||
      !proved(segment, *info, frame)) {
    return ScanStep::corrupt;
  }
  const FrameFormat::Part part = format_.part_of(frame.bytes);
  if (part.count > 1 || parts_.open()) return visit_part(segment, frame, *info, part);
  const ScanStep step = take(segment, *info, frame.bytes);
  if (step == ScanStep::next) keep(segment, *info, frame.position, frame.bytes);
  return step;
}

bool RolledRecovery::proved(const DataSegment& segment, const BatchInfo& info,
                            const ScanFrame& frame) const {
  const auto match =
      segment.blocks_match(frame.position, frame.position + frame.bytes.size(), true);
  if (match && *match) return format_.crc_matches(frame.bytes);
  return proof_.holds(info, frame.bytes, epoch_there(info.first.value(), info.epoch));
}

// One that began behind the recovery point is in the layout's file only.
LeaderEpoch RolledRecovery::epoch_there(std::int64_t offset, LeaderEpoch said) const {
  // The lists begin at the log's start, the frame that holds it may begin below.
  offset = std::max(offset, evidence_.log_start);
  const LeaderEpoch known = log_.epochs_.at(LogPosition(offset));
  const LeaderEpoch on_file = epochs_on_file_.at(LogPosition(offset));
  return said == on_file && on_file > known ? on_file : known;
}

void RolledRecovery::fill_epochs(LeaderEpoch epoch, std::int64_t to) {
  for (const EpochList::Entry& entry : epochs_on_file_.entries()) {
    const bool lost = entry.epoch > epochs().latest() && entry.epoch <= epoch &&
                      entry.start.value() >= next_ && entry.start.value() < to;
    if (!lost) continue;
    epochs().assign(entry.epoch, entry.start);
    epochs_changed();
  }
}

// Nothing of a batch counts before its last part is seen.
ScanStep RolledRecovery::visit_part(DataSegment& segment, const ScanFrame& frame,
                                    const BatchInfo& info, FrameFormat::Part part) {
  if (parts_.open() && !parts_.continues(info, part)) return ScanStep::corrupt;
  const auto batch = parts_.add(info, part);
  if (!batch && !parts_.open()) {  // its first part is missing: damage, or the scan began behind it
    if (frame.position >= guarded_bytes(segment)) return ScanStep::corrupt;
    keep(segment, info, frame.position, frame.bytes);
    return ScanStep::next;
  }
  held_.push_back({frame.position, info, to_vector(frame.bytes)});
  if (!batch) return ScanStep::next;
  const ScanStep step = take(segment, *batch, frame.bytes);
  for (const Held& held : held_) keep(segment, held.info, held.position, held.bytes);
  held_.clear();
  return step;
}

// What a whole batch means for producers and epochs.
ScanStep RolledRecovery::take(DataSegment& segment, const BatchInfo& batch, ByteView frame) {
  if (batch.last.value() >= producers_from_) {
    // A marker that does not parse has a good checksum: it was written that way.
    if (auto noted = log_.note_state(batch, frame, &segment); !noted) return ScanStep::corrupt;
  }
  if (batch.epoch > epochs().latest() && batch.epoch != no_epoch) {
    if (format_.carries_epochs()) fill_epochs(batch.epoch, batch.first.value());
    if (batch.epoch > epochs().latest()) {
      epochs().assign(batch.epoch, LogPosition(batch.first.value()));
    }
    epochs_changed();
  }
  return ScanStep::next;
}

void RolledRecovery::keep(DataSegment& segment, const BatchInfo& info, std::uint64_t position,
                          ByteView frame) {
  if (position == segment.sums.size()) segment.sums.add_frame(frame);
  segment.note_frame(info, position, frame.size(), config());
  next_ = info.last.value() + 1;
  proof_.passed(next_);
}

void RolledRecovery::release_parts(DataSegment& segment, std::uint64_t durable, ScanEnd& end) {
  if (held_.empty()) return;
  if (held_.front().position >= durable) {
    // Never whole on the disk, never acknowledged: it goes as a torn frame does.
    end = {ScanEnd::Reason::torn, held_.front().position};
  } else {
    for (const Held& held : held_) keep(segment, held.info, held.position, held.bytes);
  }
  held_.clear();
  parts_.drop();
}

Result<void> RolledRecovery::scan_segment(std::size_t index, std::uint64_t position) {
  const std::shared_ptr<DataSegment> segment = segments()[index];
  const std::uint64_t size = segment->size;
  const std::uint64_t from = position;
  POLYLOG_TRY(prepare_scan(*segment, position));
  proof_.passed(position == 0 ? segment->base : next_);
  POLYLOG_ASSIGN(file, segment->data());
  while (index < segments().size()) {
    POLYLOG_ASSIGN(end, scan(*file, position, size, FormatDecoder(format_), size,
                             [&](const ScanFrame& frame) { return visit(*segment, frame); }));
    release_parts(*segment, guarded_bytes(*segment), end);
    if (end.position >= size) break;
    POLYLOG_ASSIGN(again, handle_damage(index, end, position));
    if (!again) break;
  }
  report_.bytes_scanned += size - from;
  const std::uint64_t durable = std::max(durable_bytes(*segment), from);
  if (!evidence_.clean && segment->size > durable) POLYLOG_TRY(rewrite(*segment, durable));
  segment->durable_bytes = segment->size;
  segment->durable_tail = segment->sums.tail();
  if (segment->sealed) save_sealed(*segment);
  return {};
}

std::optional<std::uint64_t> RolledRecovery::behind_damage(DataSegment& segment,
                                                           std::uint64_t position) {
  const auto file = segment.data();
  if (!file) return std::nullopt;
  const auto head_at = [&](std::uint64_t at) -> std::optional<FrameFormat::Head> {
    std::vector<std::uint8_t> front(format_.head_bytes());
    const auto got = at < segment.size ? (*file)->read(at, front) : Result<std::size_t>(0);
    if (!got || *got < front.size()) return std::nullopt;
    const FrameFormat::Head frame = format_.head(front, segment.size - at);
    using State = FrameFormat::Head::State;
    return frame.state == State::complete ? std::optional(frame) : std::nullopt;
  };
  const auto damaged = head_at(position);
  if (!damaged) return std::nullopt;
  const std::uint64_t behind = position + damaged->size;
  const auto frame = head_at(behind);
  if (!frame) return std::nullopt;
  std::vector<std::uint8_t> whole(static_cast<std::size_t>(frame->size));
  const auto got = (*file)->read(behind, whole);
  if (!got || *got < whole.size()) return std::nullopt;
  const auto info = format_.describe(whole);
  if (!info || info->first.value() < next_) return std::nullopt;
  FrameProof proof(format_, std::nullopt);
  if (proof_.next()) proof.passed(*proof_.next() + (damaged->last - damaged->first) + 1);
  if (!proof.holds(*info, whole, epoch_there(info->first.value(), info->epoch))) {
    return std::nullopt;
  }
  proof_ = proof;
  return behind;
}

Result<bool> RolledRecovery::handle_damage(std::size_t index, const ScanEnd& end,
                                           std::uint64_t& position) {
  DataSegment& segment = *segments()[index];
  const std::uint64_t durable = guarded_bytes(segment);
  if (end.position >= durable) {
    POLYLOG_TRY(cut(index, end.position));
    return false;
  }
  auto next = behind_damage(segment, end.position);
  if (!next) {
    proof_.lost();
    next = segment.next_frame_after(end.position);
  }
  position = std::min(next.value_or(durable), segment.size);
  note(segment.data_path() + ": bytes " + std::to_string(end.position) + " to " +
       std::to_string(position) + " were durable and no longer read; offsets from " +
       std::to_string(next_) + " up to the next good frame are lost, the rest is served");
  damaged_tail_ = position >= segment.size && index + 1 == segments().size();
  return position < segment.size;
}

Result<void> RolledRecovery::cut(std::size_t index, std::uint64_t position) {
  const std::shared_ptr<DataSegment> segment = segments()[index];
  report_.bytes_truncated += segment->size - position;
  POLYLOG_ASSIGN(file, segment->data());
  POLYLOG_TRY(file->truncate(position));
  segment->size = position;
  segment->held = file;
  segment->dirty = true;
  // Where a later segment is known to be durable, all of this one was: what was cut off is none of
  // ours, and nothing behind it has to do with it.
  const auto later = segments().begin() + static_cast<std::ptrdiff_t>(index) + 1;
  if (std::any_of(later, segments().end(),
                  [this](const auto& each) { return guarded_bytes(*each) > 0; })) {
    note(segment->data_path() + ": cut at byte " + std::to_string(position) +
         ", the end of what was durable; later files are served");
    return {};
  }
  // What lies behind a torn frame was written after it and is as little durable.
  while (segments().size() > index + 1) {
    report_.bytes_truncated += segments().back()->size;
    POLYLOG_TRY(segments().back()->remove_files());
    segments().pop_back();
  }
  segment->sealed = false;
  log_.directory_dirty_ = true;
  return {};
}

Result<void> RolledRecovery::rebuild_indexes(DataSegment& segment) {
  ++report_.indexes_rebuilt;
  POLYLOG_TRY(drop_indexes(segment));
  POLYLOG_ASSIGN(file, segment.data());
  const auto visit = [&](const ScanFrame& frame) {
    const auto info = format_.describe(frame.bytes);
    if (!info) return ScanStep::corrupt;
    segment.note_frame(*info, frame.position, frame.bytes.size(), config());
    return ScanStep::next;
  };
  POLYLOG_TRY(scan(*file, 0, segment.size, FormatDecoder(format_), segment.size, visit)
                  .map([](const auto&) {}));
  report_.bytes_scanned += segment.size;
  save_sealed(segment);
  return {};
}

// The sync at the end of the start covers it.
void RolledRecovery::save_sealed(DataSegment& segment) {
  segment.close_index();
  save_indexes(segment);
  segment.index_synced = false;
}

// A file without sums (another program wrote it) gets them once, so that later damage shows.
Result<void> RolledRecovery::sum_up(DataSegment& segment) {
  segment.sums.clear();
  POLYLOG_ASSIGN(file, segment.data());
  POLYLOG_ASSIGN(end, scan(*file, 0, segment.size, FormatDecoder(format_), segment.size,
                           [&](const ScanFrame& frame) {
                             segment.sums.add_frame(frame.bytes);
                             return ScanStep::next;
                           }));
  report_.bytes_scanned += end.position;
  return {};
}

// Pages that look clean after a failed sync or a kill are not believed: written again, they are
// dirty again, and the sync that follows covers them.
Result<void> RolledRecovery::rewrite(DataSegment& segment, std::uint64_t from) {
  POLYLOG_ASSIGN(file, segment.data());
  std::vector<std::uint8_t> chunk(std::min<std::uint64_t>(segment.size - from, 1 << 20));
  for (std::uint64_t at = from; at < segment.size;) {
    const auto want =
        static_cast<std::size_t>(std::min<std::uint64_t>(chunk.size(), segment.size - at));
    POLYLOG_ASSIGN(got, file->read(at, MutableBytes(chunk).first(want)));
    if (got == 0) return fail(Errc::io, segment.data_path() + " shrank while it was read");
    POLYLOG_TRY(file->write(at, ByteView(chunk).first(got)));
    at += got;
  }
  segment.held = std::move(file);
  segment.dirty = true;
  return {};
}

// Where frames begin in a damaged block may not be found again, and those that are appended now
// would lie in it.
bool RolledRecovery::last_block_damaged(std::int64_t end) {
  const DataSegment& last = *segments().back();
  const std::uint64_t from = last.size / BlockSums::block_bytes * BlockSums::block_bytes;
  if (from == last.size || end <= last.base) return false;
  const auto sound = last.blocks_match(from, last.size, true);
  if (sound && *sound) return false;
  note(last.data_path() + ": its last block is damaged; the log goes on in a new file");
  return true;
}

Result<void> RolledRecovery::finish() {
  Segments& all = segments();
  std::int64_t end = std::max(next_, all.back()->base);
  // Lost batches at the very end still had their offsets: they are not given again.
  if (evidence_.note != nullptr) end = std::max(end, evidence_.note->durable.value());
  if (evidence_.clean && evidence_.note == nullptr) end = std::max(end, evidence_.recovery_point);
  if (format_.carries_epochs() && end > next_) fill_epochs(epochs_on_file_.latest(), end);
  if (damaged_tail_ || last_block_damaged(end)) {
    // Nothing is written behind bytes that don't read: the log goes on in a segment of its own.
    all.back()->sealed = true;
    save_sealed(*all.back());
    POLYLOG_ASSIGN(segment, log_.make_segment(end));
    all.push_back(std::move(segment));
  }
  if (end < evidence_.log_start) {
    end = evidence_.log_start;
    for (const auto& segment : all) POLYLOG_TRY(segment->remove_files());
    all.clear();
    producers().clear();
    POLYLOG_ASSIGN(segment, log_.make_segment(end));
    all.push_back(std::move(segment));
    note("ended below its log start offset; begins again at " + std::to_string(end));
  }
  POLYLOG_TRY(finish_layout(end));
  const LeaderEpoch last_epoch = epochs().latest();
  log_.staged_end_ = log_.written_end_ = log_.durable_end_ = end;
  log_.start_ = std::max(evidence_.log_start, all.front()->base);
  if (epochs().truncate_end(LogPosition(end))) epochs_changed();
  if (epochs().truncate_start(LogPosition(log_.start_))) epochs_changed();
  if (log_.start_ == end && epochs().entries().empty() && last_epoch != no_epoch) {
    // Of an empty log it is all that is left of the epochs its records had.
    epochs().assign(last_epoch, LogPosition(end));
    epochs_changed();
  }
  log_.epoch_ = epochs().latest();
  log_.unclean_ = !evidence_.clean;
  // One whose records are gone was begun all the same.
  log_.announced_before_ =
      std::max({evidence_.announced, epochs_on_file_.latest(), last_epoch});
  log_.epochs_lost_ =
      !format_.carries_epochs() && evidence_.note != nullptr && evidence_.note->epochs_lost;
  DataSegment& last = *all.back();
  last.sealed = false;
  if (last.size > 0) POLYLOG_TRY(load_times(last));
  if (evidence_.clean) last.synced_entries = last.lasting().in_files;
  // Those that found no room are the next rounds' to save, and until then no point passes them.
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    if (all[i]->has_unsaved_entries()) log_.sealing_.push_back({all[i], all[i + 1]->base, {}});
  }
  // With them on the disk the sidecar gets a recovery point, and the next start need not read again
  // what this one has read.
  if (last.has_unsaved_entries()) save_indexes(last);
  // Until then the next start would begin where this one did.
  log_.beyond_point_ = log_.bytes_beyond(began_);
  return {};
}

}  // namespace polylog::storage
