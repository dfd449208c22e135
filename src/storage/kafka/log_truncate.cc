#include "storage/kafka/log.h"

// Cutting a log back (replication found that the leader has another tail).
namespace polylog::storage::kafka {

Result<void> KafkaLog::truncate(LogPosition end) {
  const std::lock_guard sync_lock(sync_mutex_);
  const std::lock_guard lock(mutex_);
  POLYLOG_TRY(check_usable());
  POLYLOG_ASSERT(staged_.empty() && rounds_.empty());
  if (end.value() >= written_end_) return {};
  if (end.value() < start_) {
    return fail(Errc::out_of_range, directory_ + ": nothing below the log start can be kept");
  }
  const std::shared_ptr<Segment> segment = floor(end.value());
  std::uint64_t keep = segment->size;
  POLYLOG_ASSIGN(file, segment->data());
  POLYLOG_ASSIGN(from, segment->locate(end.value(), segment->size, true));
  POLYLOG_TRY(
      scan(*file, from, segment->size, BatchDecoder(), segment->size, [&](const ScanFrame& frame) {
        const auto header = format::kafka::decode_header(frame.bytes);
        // A batch that straddles the cut goes whole.
        if (header.last_offset().value() < end.value()) return ScanStep::next;
        keep = frame.position;
        return ScanStep::stop;
      }).map([](const auto&) {}));
  // First what the sidecar says, then the bytes: it must never promise what is gone.
  POLYLOG_TRY(context_.sidecar->cut(sidecar_id_, segment->base, keep, end));
  while (segments_.back() != segment) {
    const std::shared_ptr<Segment> last = segments_.back();
    POLYLOG_TRY(last->remove_files());
    std::erase_if(sealing_, [&](const Sealing& item) { return item.segment == last; });
    segments_.pop_back();
  }
  directory_dirty_ = true;
  POLYLOG_TRY(file->truncate(keep));
  return reload_active(file, keep, end.value());
}

Result<void> KafkaLog::reload_active(const fs::FilePtr& file, std::uint64_t size,
                                     std::int64_t end) {
  Segment& segment = active();
  segment.sealed = false;
  segment.size = size;
  segment.held = file;
  segment.dirty = true;
  segment.durable_bytes = std::min(segment.durable_bytes, size);
  segment.reported_blocks = 0;
  segment.forget_indexes();
  POLYLOG_TRY(segment.trim_index_files());
  segment.sums.clear();
  producers_.clear();
  // Producer state is made again from everything that is left; truncation is rare and never on
  // the path of an append.
  for (const auto& each : segments_) {
    POLYLOG_ASSIGN(data, each->data());
    Result<void> noted;
    std::uint64_t at = 0;
    POLYLOG_ASSIGN(
        stop, scan(*data, 0, each->size, BatchDecoder(), each->size, [&](const ScanFrame& frame) {
          const auto info = format::kafka::to_info(format::kafka::decode_header(frame.bytes));
          noted = note_state(info, frame.bytes, each->base == segment.base ? &segment : nullptr);
          if (each->base == segment.base) {
            segment.sums.add_frame(frame.bytes);
            segment.note_batch(info, at, frame.bytes.size(), config_);
          }
          at += frame.bytes.size();
          return noted ? ScanStep::next : ScanStep::stop;
        }));
    POLYLOG_TRY(noted);
    if (stop.position < each->size) {
      return fail(Errc::corrupt,
                  each->path(format::kafka::SegmentFile::log) + " does not read after truncation");
    }
  }
  staged_end_ = written_end_ = end;
  durable_end_ = std::min(durable_end_, end);
  if (epochs_.truncate_end(LogPosition(end))) epochs_dirty_ = true;
  epoch_ = epochs_.latest();
  return {};
}

}  // namespace polylog::storage::kafka
