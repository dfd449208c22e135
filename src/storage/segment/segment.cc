#include "storage/segment/segment.h"

#include <algorithm>
#include <array>
#include <utility>

#include "format/segment/frame.h"
#include "format/segment/record.h"

namespace polylog::storage::segment {

namespace stored = format::segment;

const RecordFrames record_frames;

std::size_t RecordFrames::head_bytes() const { return stored::frame_head_bytes; }

FrameFormat::Head RecordFrames::head(ByteView head, std::uint64_t remaining) const {
  const stored::FrameHead frame =
      stored::next_frame(head.first(std::min(head.size(), stored::frame_head_bytes)), remaining);
  using State = Head::State;
  switch (frame.state) {
    case stored::FrameState::complete:
      return {State::complete, frame.size, frame.offset.value(), frame.offset.value()};
    case stored::FrameState::zeros: return {State::zeros, 0, 0, 0};
    case stored::FrameState::torn:
    case stored::FrameState::corrupt: return {};
  }
  return {};
}

Result<BatchInfo> RecordFrames::describe(ByteView frame) const {
  POLYLOG_ASSIGN(head, stored::decode_head(frame));
  return stored::to_info(head);
}

bool RecordFrames::crc_matches(ByteView frame) const { return stored::crc_matches(frame); }

Result<void> RecordFrames::for_each_time(ByteView frame, const VisitTime& visit) const {
  POLYLOG_ASSIGN(head, stored::decode_head(frame));
  visit(head.offset, head.shown_time);
  return {};
}

FrameFormat::Part RecordFrames::part_of(ByteView frame) const {
  const auto head = stored::decode_head(frame);
  if (!head || !head->producer) return {};
  return {head->producer->index, head->producer->count};
}

Segment::Segment(SegmentContext context, PositionIndex& index, const std::string& directory,
                 std::string shard, std::int64_t number_in, std::int64_t base_offset)
    : DataSegment(context, fs::join(directory, std::to_string(number_in) + ".msg"), number_in,
                  base_offset),
      index_(index),
      shard_(std::move(shard)) {}

void Segment::note_frame(const BatchInfo& frame, std::uint64_t position, std::uint64_t bytes,
                         const LogConfig&) {
  if (position == 0) first_timestamp = frame.max_timestamp;
  const bool step = frame.first.value() % index_step_offsets == 0;
  if (position > 0 && (step || bytes_since_entry_ >= index_step_bytes)) {
    const std::lock_guard lock(entries_mutex_);
    pending_.push_back({frame.first.value(), position, max_timestamp});
    bytes_since_entry_ = 0;
  }
  if (frame.max_timestamp > max_timestamp) {
    max_timestamp = frame.max_timestamp;
    max_timestamp_offset = frame.last.value();
  }
  bytes_since_entry_ += bytes;
}

void Segment::forget_indexes() {
  const std::lock_guard lock(entries_mutex_);
  pending_.clear();
  last_.reset();
  bytes_since_entry_ = covered_bytes_ = 0;
  max_timestamp = first_timestamp = no_timestamp;
  max_timestamp_offset = -1;
}

Result<void> Segment::trim_indexes() {
  index_.remove_segment(shard_, number);
  return {};
}

Segment::Unsaved Segment::unsaved(std::int64_t next) const {
  const std::lock_guard lock(entries_mutex_);
  return {pending_,
          {inode, base, size, next, max_timestamp, max_timestamp_offset, first_timestamp}};
}

Result<void> Segment::save(const Unsaved& unsaved) {
  return index_.save(shard_, number, unsaved.entries, unsaved.covered);
}

void Segment::saved(const Unsaved& unsaved) {
  const std::lock_guard lock(entries_mutex_);
  if (!unsaved.entries.empty()) last_ = unsaved.entries.back();
  pending_.erase(pending_.begin(),
                 pending_.begin() + static_cast<std::ptrdiff_t>(unsaved.entries.size()));
  if (pending_.empty()) pending_.shrink_to_fit();
  covered_bytes_ = unsaved.covered.position;
}

Result<bool> Segment::begins_frame(std::uint64_t position, std::int64_t offset, bool wait) const {
  POLYLOG_ASSIGN(file, data());
  std::array<std::uint8_t, stored::frame_head_bytes> head{};
  POLYLOG_ASSIGN(got, file->read(position, head, wait));
  if (got != head.size()) return false;
  const stored::FrameHead frame = stored::next_frame(head, UINT64_MAX);
  return frame.state == stored::FrameState::complete && frame.offset.value() == offset;
}

Result<std::uint64_t> Segment::locate(std::int64_t offset, std::uint64_t end, bool wait) const {
  std::optional<PositionIndex::Entry> entry;
  std::uint64_t covered_bytes = 0;
  {
    const std::lock_guard lock(entries_mutex_);
    covered_bytes = covered_bytes_;
    const auto beyond =
        std::upper_bound(pending_.begin(), pending_.end(), offset,
                         [](std::int64_t at, const auto& e) { return at < e.offset; });
    if (beyond != pending_.begin()) {
      entry = *std::prev(beyond);
    } else if (last_ && last_->offset <= offset) {
      entry = last_;
    }
  }
  if (!entry && covered_bytes > index_step_bytes) {
    // The index itself may have to read from the disk.
    if (!wait) return fail(Errc::would_block, "the index");
    // It is a hint: one that can't be read costs a longer scan, nothing else.
    if (auto found = index_.floor(shard_, number, offset); found) entry = *found;
  }
  if (!entry || entry->position >= end) return std::uint64_t{0};
  POLYLOG_ASSIGN(confirmed, begins_frame(entry->position, entry->offset, wait));
  return confirmed ? entry->position : std::uint64_t{0};
}

Result<std::int64_t> Segment::time_floor(Timestamp at) const {
  // An entry says that nothing before it is later than its time, so one below `at` may begin the
  // search.
  const Timestamp below = at - 1;
  {
    const std::lock_guard lock(entries_mutex_);
    const auto beyond =
        std::find_if(pending_.begin(), pending_.end(),
                     [&](const PositionIndex::Entry& e) { return e.time_before > below; });
    if (beyond != pending_.begin()) return std::prev(beyond)->offset;
  }
  const auto found = index_.time_floor(shard_, number, below);
  return found && *found ? **found : base;
}

Result<void> Segment::remove_files() {
  let_go();
  auto removed = context_.fs.remove(data_path());
  if (!removed && removed.error().code != Errc::not_found) return removed;
  index_.remove_segment(shard_, number);
  return {};
}

std::optional<PositionIndex::Covered> Segment::covered() const {
  const auto found = index_.covered(shard_, number);
  if (!found || !*found) return std::nullopt;
  const PositionIndex::Covered& covered = **found;
  if (covered.inode != inode || covered.position > size) return std::nullopt;
  if (covered.position == size) return covered;
  // Of an earlier file, or of a tail that a crash took, it may say what is not so here.
  const auto confirmed = begins_frame(covered.position, covered.next, true);
  return confirmed && *confirmed ? *found : std::nullopt;
}

void Segment::adopt(const PositionIndex::Covered& covered) {
  max_timestamp = covered.max_timestamp;
  max_timestamp_offset = covered.max_timestamp_offset;
  first_timestamp = covered.first_timestamp;
  covered_bytes_ = covered.position;
}

void Segment::cut_entries(std::int64_t offset) {
  index_.cut(shard_, number, offset, max_timestamp);
}

Result<void> Segment::load_first_time() {
  if (first_timestamp != no_timestamp) return {};
  POLYLOG_ASSIGN(file, data());
  std::vector<std::uint8_t> front(std::min<std::uint64_t>(size, 64 * 1024));
  POLYLOG_ASSIGN(got, file->read(0, front));
  const ByteView read = ByteView(front).first(got);
  if (read.size() < stored::frame_head_bytes) return {};
  const auto frame = stored::next_frame(read.first(stored::frame_head_bytes), read.size());
  if (frame.state != stored::FrameState::complete) return {};  // large: it rolls by size first
  const auto head = stored::decode_head(read.first(static_cast<std::size_t>(frame.size)));
  if (head) first_timestamp = head->shown_time;
  return {};
}

}  // namespace polylog::storage::segment
