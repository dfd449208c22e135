#include <algorithm>
#include <functional>

#include "base/assert.h"
#include "storage/rolled/log.h"

// Reading a RolledLog: by offset, by time, and whole chunks for replication.
namespace polylog::storage {
namespace {

using Head = FrameFormat::Head;

// What is read beyond the asked bytes so that the frames before the wanted one, which the sparse
// index makes us step over, don't need a read of their own.
constexpr std::uint64_t slack_bytes = 16 * 1024;

struct Window {
  std::shared_ptr<std::uint8_t[]> memory;
  std::uint64_t position = 0;
  std::size_t size = 0;
  ByteView view() const { return {memory.get(), size}; }
};

Result<Window> load(const DataSegment& segment, std::uint64_t position, std::uint64_t bytes,
                    bool wait) {
  POLYLOG_ASSIGN(file, segment.data());
  Window window;
  window.memory = std::shared_ptr<std::uint8_t[]>(new std::uint8_t[bytes]);
  window.position = position;
  const MutableBytes into(window.memory.get(), static_cast<std::size_t>(bytes));
  while (window.size < into.size()) {
    POLYLOG_ASSIGN(got, file->read(position + window.size, into.subspan(window.size), wait));
    if (got == 0) break;
    window.size += got;
  }
  return window;
}

Error damage(const DataSegment& segment, std::uint64_t position, std::int64_t offset) {
  return {Errc::corrupt, segment.data_path() + " is damaged at byte " + std::to_string(position) +
                             ", offset " + std::to_string(offset)};
}

// What a read must know to judge frames in a damaged block.
struct Judge {
  const FrameFormat& format;
  const DataSegment& segment;
  std::function<LeaderEpoch(std::int64_t)> epoch_at;  // as the log's list of epochs has it

  // The sums vouch for a block as a whole; where they don't, each frame answers for itself.
  Result<BatchInfo> describe(std::uint64_t position, ByteView whole,
                             const FrameProof& proof) const {
    POLYLOG_ASSIGN(match, segment.blocks_match(position, position + whole.size(), true));
    POLYLOG_ASSIGN(info, format.describe(whole));
    if (match || proof.holds(info, whole, epoch_at(info.first.value()))) return info;
    return fail(Errc::corrupt, "bad checksum or place");
  }
  // Of the frame the index led to, which it confirmed, or of the segment's first one.
  Result<FrameProof> proof_at(std::uint64_t position, std::uint64_t size, bool wait) const {
    if (position == 0) return FrameProof(format, segment.base);
    POLYLOG_ASSIGN(front, load(segment, position, format.head_bytes(), wait));
    const Head frame = format.head(front.view(), size - position);
    if (frame.state != Head::State::complete) return FrameProof(format, std::nullopt);
    return FrameProof(format, frame.first);
  }
};

// Walks whole frames of a window: skips those below `from`, keeps what fits.
class RegionBuilder {
 public:
  // `trusted`: the window touches no damaged block.
  RegionBuilder(const Judge& judge, std::int64_t from, const ReadLimits& limits, bool trusted,
                FrameProof& proof)
      : judge_(judge),
        format_(judge.format),
        from_(from),
        limits_(limits),
        trusted_(trusted),
        proof_(proof) {}

  enum class Stop { full, beyond, end, more, damaged };

  // `beyond`: the frame at resume() begins at or behind the limits' end. `more`: it needs needed()
  // bytes in one piece.
  Stop walk(const Window& window, std::uint64_t file_end) {
    ByteView rest = window.view();
    resume_ = window.position;
    while (resume_ < file_end) {
      if (rest.size() < std::min<std::uint64_t>(format_.head_bytes(), file_end - resume_)) {
        return need(format_.head_bytes());
      }
      const Head frame = format_.head(rest, file_end - resume_);
      if (frame.state != Head::State::complete) return Stop::damaged;
      if (!accept(frame, rest)) return stop_;
      proof_.passed(frame.last + 1);
      rest = rest.subspan(static_cast<std::size_t>(frame.size));
      resume_ += frame.size;
    }
    return Stop::end;
  }

  bool empty() const { return count_ == 0; }
  std::uint64_t resume() const { return resume_; }
  std::uint64_t needed() const { return needed_; }
  std::int64_t reached() const { return reached_; }

  Batch take(const Window& window) const {
    Batch batch;
    batch.format = format_.batch_format();
    batch.info = info_;
    const auto at = static_cast<std::size_t>(first_at_ - window.position);
    batch.bytes = Slice(window.memory, window.view().subspan(at, static_cast<std::size_t>(bytes_)));
    return batch;
  }

 private:
  Stop need(std::uint64_t bytes) {
    needed_ = bytes;
    return Stop::more;
  }

  // False: stop_ says why.
  bool accept(const Head& frame, ByteView rest) {
    const bool whole_there = frame.size <= rest.size();
    if (!trusted_) {
      // Its offsets mean nothing before it has proved them.
      if (!whole_there) return stop(count_ > 0 ? Stop::full : need(frame.size));
      if (!judge_.describe(resume_, rest.first(static_cast<std::size_t>(frame.size)), proof_)) {
        return stop(count_ > 0 ? Stop::full : Stop::damaged);
      }
    }
    if (frame.last < from_) {  // stepped over, unless it runs out of the window
      if (!whole_there) return stop(need(frame.size + format_.head_bytes()));
      reached_ = frame.last + 1;
      return true;
    }
    if (frame.first >= limits_.end.value()) return stop(Stop::beyond);
    const bool whole_anyway = count_ == 0 && limits_.first_whole;
    if (!whole_anyway && bytes_ + frame.size > limits_.bytes_max) return stop(Stop::full);
    if (count_ > 0 && records_ >= limits_.records_max) return stop(Stop::full);
    if (!whole_there) return stop(count_ > 0 ? Stop::full : need(frame.size));
    const ByteView whole = rest.first(static_cast<std::size_t>(frame.size));
    const auto info = format_.describe(whole);
    if (!info) return stop(count_ > 0 ? Stop::full : Stop::damaged);
    add(*info, whole.size());
    return true;
  }
  bool stop(Stop why) {
    stop_ = why;
    return false;
  }

  void add(const BatchInfo& info, std::size_t bytes) {
    if (count_ == 0) {
      first_at_ = resume_;
      info_ = info;
    } else {
      info_.last = info.last;
      info_.records += info.records;
      info_.max_timestamp = std::max(info_.max_timestamp, info.max_timestamp);
    }
    ++count_;
    records_ += static_cast<std::size_t>(info.records);
    bytes_ += bytes;
    reached_ = info.last.value() + 1;
  }

  const Judge& judge_;
  const FrameFormat& format_;
  const std::int64_t from_;
  const ReadLimits& limits_;
  const bool trusted_;
  FrameProof& proof_;
  Stop stop_ = Stop::end;
  BatchInfo info_;
  std::uint64_t first_at_ = 0, bytes_ = 0, resume_ = 0, needed_ = 0;
  std::size_t count_ = 0, records_ = 0;
  std::int64_t reached_ = 0;
};

// Where a read for `from` goes on behind the damaged frame at `position`; nothing: nowhere.
// Either right behind it, when its length leads to a frame that proves itself in that place, or
// where the sums remember a frame's start.
Result<std::optional<std::uint64_t>> step_over(const Judge& judge, std::uint64_t position,
                                               std::uint64_t size, std::int64_t from, bool wait,
                                               FrameProof& proof) {
  const FrameFormat& format = judge.format;
  const auto head_at = [&](std::uint64_t at) -> Result<std::optional<Head>> {
    if (at >= size) return std::optional<Head>();
    POLYLOG_ASSIGN(front, load(judge.segment, at, format.head_bytes(), wait));
    if (front.size < format.head_bytes()) return std::optional<Head>();
    const Head frame = format.head(front.view(), size - at);
    return frame.state == Head::State::complete ? std::optional(frame) : std::nullopt;
  };
  POLYLOG_ASSIGN(damaged, head_at(position));
  const std::optional<std::int64_t> begins = proof.next();
  proof.lost();
  if (damaged) {
    const std::uint64_t behind = position + damaged->size;
    if (begins) proof.passed(*begins + (damaged->last - damaged->first) + 1);
    POLYLOG_ASSIGN(frame, head_at(behind));
    if (frame && frame->first <= from) {
      POLYLOG_ASSIGN(whole, load(judge.segment, behind, frame->size, wait));
      POLYLOG_ASSIGN(info, format.describe(whole.view())
                               .map([](const auto& i) { return std::optional(i); })
                               .or_else([](const auto&) {
                                 return Result<std::optional<BatchInfo>>(std::nullopt);
                               }));
      if (info && proof.holds(*info, whole.view(), judge.epoch_at(info->first.value()))) {
        return std::optional(behind);
      }
    }
    POLYLOG_ASSIGN(sound,
                   judge.segment.blocks_match(position, position + format.head_bytes(), wait));
    if (!sound) proof.lost();
  }
  const auto next = judge.segment.next_frame_after(position);
  if (!next) return std::optional<std::uint64_t>();
  POLYLOG_ASSIGN(frame, head_at(*next));
  return frame && frame->first <= from ? next : std::nullopt;
}

// One contiguous region of whole frames from `segment`; nothing when no frame at or beyond `from`
// lies in it. A frame that is over the limits is an empty batch: the read ends there.
Result<std::optional<Batch>> read_region(const Judge& judge, std::uint64_t size, std::int64_t from,
                                         const ReadLimits& limits) {
  const DataSegment& segment = judge.segment;
  POLYLOG_ASSIGN(position, segment.locate(from, size, limits.wait));
  std::uint64_t bytes = std::min<std::uint64_t>(limits.bytes_max, size) + slack_bytes;
  FrameProof proof(judge.format, std::nullopt);
  bool placed = false;  // the proof knows where it begins
  while (position < size) {
    bytes = std::min(bytes, size - position);
    POLYLOG_ASSIGN(match, segment.blocks_match(position, position + bytes, limits.wait));
    if (!match && !placed) {
      POLYLOG_ASSIGN(begins, judge.proof_at(position, size, limits.wait));
      proof = begins;
      placed = true;
    }
    POLYLOG_ASSIGN(window, load(segment, position, bytes, limits.wait));
    RegionBuilder region(judge, from, limits, match, proof);
    using Stop = RegionBuilder::Stop;
    const Stop stop = region.walk(window, size);
    placed = placed || region.resume() > position;  // a sound frame was passed
    if (!region.empty()) return std::optional(region.take(window));
    if (stop == Stop::damaged) {
      // Damage before the wanted frame is stepped over.
      if (region.reached() < from) {
        POLYLOG_ASSIGN(next, step_over(judge, region.resume(), size, from, limits.wait, proof));
        if (next) {
          position = *next;
          continue;
        }
      }
      return fail(damage(segment, region.resume(), from));
    }
    if (stop == Stop::full) return std::optional(Batch());
    if (stop != Stop::more) return std::optional<Batch>();  // the end, of the file or the limits
    position = region.resume();
    bytes = std::max<std::uint64_t>(region.needed(), limits.bytes_max + slack_bytes);
  }
  return std::optional<Batch>();
}

}  // namespace

std::vector<RolledLog::ReadPlan> RolledLog::plan_from(std::int64_t offset) const {
  const std::lock_guard lock(mutex_);
  const auto beyond =
      std::upper_bound(segments_.begin(), segments_.end(), offset,
                       [](std::int64_t at, const auto& segment) { return at < segment->base; });
  std::vector<ReadPlan> plan;
  for (auto i = beyond == segments_.begin() ? beyond : std::prev(beyond); i != segments_.end();
       ++i) {
    plan.push_back({*i, (*i)->size});
  }
  return plan;
}

Result<std::vector<Batch>> RolledLog::read(Offset from, ReadLimits limits) const {
  for (;;) {
    ReadLimits within = limits;
    LeaderEpoch epoch = no_epoch;
    {
      const std::lock_guard lock(mutex_);
      const Offset end(std::min(limits.end.value(), written_end_));
      if (from.value() < start_ || from > end) {
        return fail(Errc::out_of_range, "offset " + std::to_string(from.value()) + " is outside [" +
                                            std::to_string(start_) + ", " +
                                            std::to_string(end.value()) + "]");
      }
      if (from == end) return std::vector<Batch>();
      within.end = end;
      if (!format_.carries_epochs()) {
        // A batch is of one epoch, so it ends where the next one starts.
        epoch = epochs_.at(LogPosition(from.value()));
        for (const EpochList::Entry& entry : epochs_.entries()) {
          if (entry.start.value() <= from.value()) continue;
          within.end = std::min(end, Offset(entry.start.value()));
          break;
        }
      }
    }
    auto found = read_within(from.value(), within);
    if (!found) {
      // Retention has taken the file away meanwhile: then the offset is below the start now.
      if (found.error().code == Errc::not_found && from < offsets().start) continue;
      return fail(found.error());
    }
    std::optional<Batch>& region = *found;
    if (region && region->bytes.empty()) return std::vector<Batch>();
    if (region) {
      std::vector<Batch> batches;
      batches.push_back(std::move(*region));
      if (!format_.carries_epochs()) batches.front().info.epoch = epoch;
      return batches;
    }
    if (within.end >= limits.end || within.end == from) return std::vector<Batch>();
    from = within.end;  // nothing of that epoch is left from here on
  }
}

Result<std::optional<Batch>> RolledLog::read_within(std::int64_t from,
                                                    const ReadLimits& limits) const {
  std::shared_ptr<DataSegment> segment;
  std::uint64_t size = 0;
  {
    const std::lock_guard lock(mutex_);
    segment = floor(from);
    size = segment->size;
  }
  while (segment != nullptr) {
    const Judge judge{format_, *segment, [this](std::int64_t at) { return epoch_at(at); }};
    POLYLOG_ASSIGN(region, read_region(judge, size, from, limits));
    if (region) return region;
    // Nothing there: the wanted offset lies in a gap at the segment's end.
    const std::lock_guard lock(mutex_);
    segment = after(*segment);
    if (segment != nullptr) size = segment->size;
    if (segment != nullptr && segment->base >= limits.end.value()) break;
  }
  return std::optional<Batch>();
}

// The list begins at the log's start, the frame that holds it may begin below.
LeaderEpoch RolledLog::epoch_at(std::int64_t offset) const {
  const std::lock_guard lock(mutex_);
  return epochs_.at(LogPosition(std::max(offset, start_)));
}

std::shared_ptr<DataSegment> RolledLog::floor(std::int64_t offset) const {
  const auto beyond =
      std::upper_bound(segments_.begin(), segments_.end(), offset,
                       [](std::int64_t at, const auto& segment) { return at < segment->base; });
  return beyond == segments_.begin() ? segments_.front() : *std::prev(beyond);
}

std::shared_ptr<DataSegment> RolledLog::after(const DataSegment& segment) const {
  const auto beyond =
      std::upper_bound(segments_.begin(), segments_.end(), segment.base,
                       [](std::int64_t at, const auto& other) { return at < other->base; });
  return beyond == segments_.end() ? nullptr : *beyond;
}

Result<std::optional<TimedOffset>> RolledLog::find_in(const ReadPlan& plan, Timestamp at,
                                                      std::int64_t log_start) const {
  POLYLOG_ASSIGN(floor_offset, plan.segment->time_floor(at));
  const std::int64_t from = std::max(floor_offset, log_start);
  POLYLOG_ASSIGN(position, plan.segment->locate(from, plan.size, true));
  POLYLOG_ASSIGN(file, plan.segment->data());
  const Judge judge{format_, *plan.segment, [this](std::int64_t at_in) { return epoch_at(at_in); }};
  POLYLOG_ASSIGN(proof, judge.proof_at(position, plan.size, true));
  std::optional<TimedOffset> found;
  Result<void> decoded;
  const auto visit = [&](const ScanFrame& frame) {
    const auto info = judge.describe(frame.position, frame.bytes, proof);
    if (!info) return ScanStep::corrupt;
    proof.passed(info->last.value() + 1);
    if (info->max_timestamp < at || info->last.value() < log_start) return ScanStep::next;
    decoded = format_.for_each_time(frame.bytes, [&](Offset offset, Timestamp time) {
      if (time < at || offset.value() < log_start) return true;
      found = TimedOffset{time, offset, info->epoch};
      return false;
    });
    return found || !decoded ? ScanStep::stop : ScanStep::next;
  };
  POLYLOG_ASSIGN(end, scan(*file, position, plan.size, FormatDecoder(format_), plan.size, visit));
  if (!decoded) return fail(decoded.error());
  // A damaged length may lead beyond the end: what lies between is passed over as little.
  if (end.reason == ScanEnd::Reason::corrupt || (!found && end.position < plan.size)) {
    return fail(damage(*plan.segment, end.position, from));
  }
  if (found && !format_.carries_epochs()) {
    const std::lock_guard lock(mutex_);
    found->epoch = epochs_.at(LogPosition(found->offset.value()));
  }
  return found;
}

Result<std::optional<TimedOffset>> RolledLog::offset_for_time(Timestamp at) const {
  const std::int64_t log_start = offsets().start.value();
  for (const ReadPlan& plan : plan_from(log_start)) {
    Timestamp largest = no_timestamp;
    {
      const std::lock_guard lock(mutex_);
      POLYLOG_ASSIGN(timestamp, plan.segment->largest_timestamp());
      largest = timestamp;
    }
    if (largest < at) continue;
    // Hits below the log start don't count; Kafka gives up then, later segments may have one.
    auto found = find_in(plan, at, log_start);
    if (!found && found.error().code == Errc::not_found && offsets().start.value() > log_start) {
      return offset_for_time(at);  // retention has taken the file away meanwhile
    }
    if (!found || *found) return found;
  }
  return std::optional<TimedOffset>();
}

Result<std::optional<TimedOffset>> RolledLog::offset_of_max_timestamp() const {
  const std::int64_t log_start = offsets().start.value();
  Timestamp largest = no_timestamp;
  for (const ReadPlan& plan : plan_from(log_start)) {
    const std::lock_guard lock(mutex_);
    POLYLOG_ASSIGN(timestamp, plan.segment->largest_timestamp());
    largest = std::max(largest, timestamp);
  }
  if (largest == no_timestamp) return std::optional<TimedOffset>();
  return offset_for_time(largest);
}

Result<LogChunk> RolledLog::read_chunk(LogPosition from, std::size_t bytes_max) const {
  ReadLimits limits;
  limits.bytes_max = bytes_max;
  limits.end = Offset(end().value());
  limits.first_whole = true;
  POLYLOG_ASSIGN(batches, read(Offset(from.value()), limits));
  LogChunk chunk{from, from, {}};
  if (batches.empty()) return chunk;
  chunk.start = LogPosition(std::min(from.value(), batches.front().info.first.value()));
  chunk.end = LogPosition(batches.front().info.last.value() + 1);
  chunk.bytes = batches.front().bytes;
  return chunk;
}

namespace {

// Calls f(BatchInfo, frame) -> Result<void> for each whole frame of a chunk.
template <typename F>
Result<void> for_each_frame(const FrameFormat& format, ByteView bytes, F&& f) {
  while (!bytes.empty()) {
    if (bytes.size() < format.head_bytes()) return fail(Errc::corrupt, "chunk: not a whole frame");
    const Head frame = format.head(bytes.first(format.head_bytes()), bytes.size());
    if (frame.state != Head::State::complete) {
      return fail(Errc::corrupt, "chunk: not a whole frame");
    }
    const ByteView whole = bytes.first(static_cast<std::size_t>(frame.size));
    POLYLOG_ASSIGN(info, format.describe(whole));
    POLYLOG_TRY(f(info, whole));
    bytes = bytes.subspan(whole.size());
  }
  return {};
}

}  // namespace

Result<LogPosition> RolledLog::append_chunk(const LogChunk& chunk) {
  const std::lock_guard lock(mutex_);
  POLYLOG_TRY(check_usable());
  POLYLOG_ASSERT(staged_.empty());
  std::int64_t next = written_end_;
  const auto check = [&](const BatchInfo& info, ByteView frame) -> Result<void> {
    if (!format_.crc_matches(frame)) return fail(Errc::corrupt, "chunk: bad checksum");
    if (info.first.value() < next) return fail(Errc::invalid, "chunk begins below the log end");
    next = info.last.value() + 1;
    return {};
  };
  POLYLOG_TRY(for_each_frame(format_, chunk.bytes.view(), check));
  // Frames that don't carry an epoch are of the one that was begun.
  if (!format_.carries_epochs() && !chunk.bytes.empty() && epoch_ > epochs_.latest()) {
    const std::int64_t first = std::max(chunk.start.value(), written_end_);
    POLYLOG_TRY(epoch_starts({epoch_, LogPosition(first)}));
  }
  // As few writes as there are files to write into.
  ByteView group = chunk.bytes.view().first(0);
  PartFolder parts;
  const auto gather = [&](const BatchInfo& info, ByteView frame) -> Result<void> {
    // The parts of a batch stay in one file.
    const bool rolls = !parts.open() && must_roll(info, group.size() + frame.size());
    parts.add(info, format_.part_of(frame));
    if (rolls) {
      POLYLOG_TRY(append_frames(group));
      POLYLOG_TRY(roll(info.first.value()));
      group = frame.first(0);
    }
    group = {group.data(), group.size() + frame.size()};
    return {};
  };
  POLYLOG_TRY(for_each_frame(format_, chunk.bytes.view(), gather));
  POLYLOG_TRY(append_frames(group));
  // Offsets at the end that no record has.
  staged_end_ = written_end_ = std::max(written_end_, chunk.end.value());
  return LogPosition(written_end_);
}

Result<void> RolledLog::append_frames(ByteView frames) {
  if (frames.empty()) return {};
  DataSegment& segment = active();
  POLYLOG_ASSIGN(file, segment.writable());
  if (auto wrote = file->write(segment.size, frames); !wrote) {
    if (auto cut = file->truncate(segment.size); !cut) failed_ = true;
    return wrote;
  }
  segment.held = file;
  segment.dirty = true;
  PartFolder parts;
  const auto note = [&](const BatchInfo& info, ByteView frame) -> Result<void> {
    if (const auto batch = parts.add(info, format_.part_of(frame))) {
      POLYLOG_TRY(note_state(*batch, frame, &segment));
    }
    BatchInfo noted = info;
    if (!format_.carries_epochs()) noted.epoch = epoch_;
    note_written(noted, frame, {});
    staged_end_ = written_end_ = info.last.value() + 1;
    return {};
  };
  return for_each_frame(format_, frames, note);
}

}  // namespace polylog::storage
