#include "base/assert.h"
#include "storage/rolled/log.h"

// Cutting a log back (replication found that the leader has another tail).
namespace polylog::storage {

// Where the first batch begins that has a record at or beyond `end`: it goes whole.
Result<std::uint64_t> RolledLog::cut_position(const DataSegment& segment, std::int64_t end) const {
  POLYLOG_ASSIGN(file, segment.data());
  POLYLOG_ASSIGN(from, segment.locate(end, segment.size, true));
  for (;;) {
    std::uint64_t keep = segment.size;
    std::uint64_t batch_start = from;
    bool inside = false;  // the scan began within a batch of several frames
    POLYLOG_TRY(scan(*file, from, segment.size, FormatDecoder(format_), segment.size,
                     [&](const ScanFrame& frame) {
                       const auto head = format_.head(frame.bytes, frame.bytes.size());
                       const bool begins = format_.part_of(frame.bytes).index == 0;
                       if (begins) batch_start = frame.position;
                       if (!begins && frame.position == from) inside = true;
                       if (head.last < end) return ScanStep::next;
                       keep = batch_start;
                       return ScanStep::stop;
                     })
                    .map([](const auto&) {}));
    if (!inside || from == 0) return keep;
    from = 0;
  }
}

Result<void> RolledLog::truncate(LogPosition end) {
  const std::lock_guard sync_lock(sync_mutex_);
  const std::lock_guard notes(notes_mutex_);
  const std::lock_guard lock(mutex_);
  POLYLOG_TRY(check_usable());
  POLYLOG_ASSERT(staged_.empty() && rounds_.empty());
  if (end.value() >= written_end_) return {};
  if (end.value() < start_) {
    return fail(Errc::out_of_range, directory_ + ": nothing below the log start can be kept");
  }
  const std::shared_ptr<DataSegment> segment = floor(end.value());
  POLYLOG_ASSIGN(file, segment->data());
  POLYLOG_ASSIGN(keep, cut_position(*segment, end.value()));
  auto done = cut_back(segment, file, keep, end.value());
  // Half of it may be on the disk: only a start can tell.
  if (!done) failed_ = true;
  return done;
}

Result<void> RolledLog::cut_back(const std::shared_ptr<DataSegment>& segment,
                                 const fs::FilePtr& file, std::uint64_t keep, std::int64_t end) {
  // First what the sidecar says, then the bytes: it must never promise what is gone.
  POLYLOG_TRY(context_.sidecar->cut(sidecar_id_, segment->number, keep, LogPosition(end)));
  while (segments_.back() != segment) {
    const std::shared_ptr<DataSegment> last = segments_.back();
    POLYLOG_TRY(last->remove_files());
    std::erase_if(sealing_, [&](const Sealing& item) { return item.segment == last; });
    forget_saved(*last);
    segments_.pop_back();
  }
  directory_dirty_ = true;
  POLYLOG_TRY(segment->expect_cut(*file, keep));
  POLYLOG_TRY(file->truncate(keep));
  return reload_active(file, keep, end);
}

Result<void> RolledLog::reload_active(const fs::FilePtr& file, std::uint64_t size,
                                      std::int64_t end) {
  DataSegment& segment = active();
  segment.sealed = false;
  std::erase_if(sealing_, [&](const Sealing& item) { return item.segment.get() == &segment; });
  forget_saved(segment);
  segment.size = size;
  segment.held = file;
  segment.dirty = true;
  segment.durable_bytes = std::min(segment.durable_bytes, size);
  segment.reported_blocks = 0;
  segment.forget_beyond(end);
  POLYLOG_TRY(segment.trim_indexes());
  segment.sums.clear();
  producers_.clear();
  // Producer state is made again from everything that is left; truncation is rare and never on
  // the path of an append.
  for (const auto& each : segments_) POLYLOG_TRY(replay(each));
  staged_end_ = written_end_ = end;
  durable_end_ = std::min(durable_end_, end);
  // A start reads all of it, unless the last point lies before the cut.
  point_base_ = point_offset_ = -1;
  beyond_point_ = bytes_beyond(RecoveryPoint{.base = segments_.front()->number});
  if (epochs_.truncate_end(LogPosition(end))) epochs_changed();
  epoch_ = epochs_.latest();
  return {};
}

// Producer state from a segment's frames, and, of the active one, its sums and index entries.
Result<void> RolledLog::replay(const std::shared_ptr<DataSegment>& segment) {
  const bool is_active = segment.get() == &active();
  POLYLOG_ASSIGN(data, segment->data());
  Result<void> noted;
  PartFolder parts;
  const auto visit = [&](const ScanFrame& frame) {
    const auto info = format_.describe(frame.bytes);
    if (!info) return ScanStep::corrupt;
    if (const auto batch = parts.add(*info, format_.part_of(frame.bytes))) {
      noted = note_state(*batch, frame.bytes, is_active ? segment.get() : nullptr);
    }
    if (is_active) {
      segment->sums.add_frame(frame.bytes);
      segment->note_frame(*info, frame.position, frame.bytes.size(), config_);
    }
    return noted ? ScanStep::next : ScanStep::stop;
  };
  POLYLOG_ASSIGN(stop, scan(*data, 0, segment->size, FormatDecoder(format_), segment->size, visit));
  POLYLOG_TRY(noted);
  if (stop.position >= segment->size) return {};
  return fail(Errc::corrupt, segment->data_path() + " does not read after truncation");
}

}  // namespace polylog::storage
