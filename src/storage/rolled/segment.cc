#include "storage/rolled/segment.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace polylog::storage {

FrameSize FormatDecoder::frame_size(ByteView window) const {
  const std::size_t front = format_.head_bytes();
  if (window.size() < front) return {FrameSize::Kind::more, front};
  // How much follows is the scan's to know: a frame that runs past the end is torn there.
  const FrameFormat::Head frame =
      format_.head(window.first(front), std::numeric_limits<std::uint64_t>::max());
  switch (frame.state) {
    case FrameFormat::Head::State::complete: return {FrameSize::Kind::complete, frame.size};
    case FrameFormat::Head::State::zeros: return {FrameSize::Kind::end, 0};
    case FrameFormat::Head::State::corrupt: return {FrameSize::Kind::corrupt, 0};
  }
  return {FrameSize::Kind::corrupt, 0};
}

bool PartFolder::continues(const BatchInfo& frame, FrameFormat::Part part) const {
  return open() && part.index == next_ && part.count == count_ && frame.first == batch_.last + 1 &&
         frame.producer.id == batch_.producer.id && frame.producer.epoch == batch_.producer.epoch;
}

std::optional<BatchInfo> PartFolder::add(const BatchInfo& frame, FrameFormat::Part part) {
  if (continues(frame, part)) {
    batch_.last = frame.last;
    batch_.records += frame.records;
    batch_.max_timestamp = std::max(batch_.max_timestamp, frame.max_timestamp);
    batch_.producer.last_sequence = frame.producer.last_sequence;
  } else {
    drop();
    if (part.index != 0) return std::nullopt;  // its beginning is not there
    batch_ = frame;
    count_ = part.count;
  }
  next_ = part.index + 1;
  if (next_ < count_) return std::nullopt;
  drop();
  return batch_;
}

bool FrameProof::holds(const BatchInfo& frame, ByteView whole, LeaderEpoch epoch_there) const {
  if (!format_->crc_matches(whole)) return false;
  if (format_->crc_covers_place()) return true;
  const bool in_place = next_ && frame.first.value() == *next_;
  return in_place && (!format_->carries_epochs() || frame.epoch == epoch_there);
}

DataSegment::DataSegment(SegmentContext context, std::string path, std::int64_t number_in,
                         std::int64_t base_offset)
    : number(number_in),
      base(base_offset),
      created(context.clock.now()),
      context_(context),
      path_(std::move(path)) {}

Result<fs::FilePtr> DataSegment::data() const { return context_.files.open(path_); }

Result<fs::FilePtr> DataSegment::writable() const {
  if (held != nullptr) return held;
  if (fs::FilePtr open = held_before.lock()) return open;
  return data();
}

void DataSegment::let_go() {
  held = nullptr;
  held_before.reset();
  context_.files.forget(path_);
}

void DataSegment::expect(const BlockSums& sums_in) {
  check_ = std::make_shared<BlockCheck>(sums_in);
}

Result<void> DataSegment::expect_cut(const fs::File& file, std::uint64_t bytes) {
  return check_ == nullptr ? Result<void>() : check_->cut(file, bytes);
}

Result<bool> DataSegment::blocks_match(std::uint64_t from, std::uint64_t to, bool wait) const {
  if (check_ == nullptr) return true;
  POLYLOG_ASSIGN(file, data());
  return check_->match(*file, from, to, wait);
}

std::optional<std::uint64_t> DataSegment::next_frame_after(std::uint64_t position) const {
  return check_ == nullptr ? std::nullopt : check_->next_frame_after(position);
}

RoundFile DataSegment::capture_round() const {
  RoundFile file;
  file.base = number;
  file.inode = inode;
  file.durable_bytes = size;
  file.first_block = reported_blocks;
  if (sums.size() == size) {
    const auto& blocks = sums.blocks();
    file.blocks.assign(blocks.begin() + reported_blocks, blocks.end());
    file.tail = sums.tail();
  }
  return file;
}

void DataSegment::round_done(const RoundFile& file) {
  durable_bytes = file.durable_bytes;
  reported_blocks = file.first_block + static_cast<std::uint32_t>(file.blocks.size());
  durable_tail = file.tail;
  fresh = false;
  if (size == file.durable_bytes) {
    dirty = false;
    held_before = std::exchange(held, nullptr);
  }
}

std::optional<FileNote> DataSegment::note(bool stopped) const {
  if (sums.size() < durable_bytes) return std::nullopt;
  FileNote file;
  file.inode = inode;
  const auto count = durable_bytes / BlockSums::block_bytes;
  const std::span durable(sums.blocks().data(), static_cast<std::size_t>(count));
  if (!file.sums.restore(0, durable, durable_tail, durable_bytes)) return std::nullopt;
  if (sealed || stopped) {
    if (const auto info = context_.fs.info(path_); info) file.sealed = FileIdentity::of(*info);
  }
  return file;
}

void DataSegment::all_synced() {
  durable_bytes = size;
  durable_tail = sums.tail();
  dirty = fresh = false;
  index_synced = !has_unsaved_entries();
  synced_entries = lasting().in_files;
  held = nullptr;
}

}  // namespace polylog::storage
