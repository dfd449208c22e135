#include <algorithm>

#include "format/kafka/records.h"
#include "storage/kafka/log.h"

// Reading a KafkaLog: by offset, by time, and whole chunks for replication.
namespace polylog::storage::kafka {
namespace {

// What is read beyond the asked bytes so that the batches before the wanted one, which the
// sparse index makes us step over, don't need a read of their own.
constexpr std::uint64_t slack_bytes = 16 * 1024;
// Bounds what a damaged length can make a time lookup decompress.
constexpr std::size_t decompressed_bytes_max = std::size_t{1} << 30;

struct Window {
  std::shared_ptr<std::uint8_t[]> memory;
  std::uint64_t position = 0;
  std::size_t size = 0;
  ByteView view() const { return {memory.get(), size}; }
};

Result<Window> load(const Segment& segment, std::uint64_t position, std::uint64_t bytes,
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

Error damage(const Segment& segment, std::uint64_t position, std::int64_t offset) {
  return {Errc::corrupt, segment.path(format::kafka::SegmentFile::log) + " is damaged at byte " +
                             std::to_string(position) + ", offset " + std::to_string(offset)};
}

// Walks whole batches of a window: skips those below `from`, keeps what fits.
class RegionBuilder {
 public:
  RegionBuilder(std::int64_t from, const ReadLimits& limits, bool trusted)
      : from_(from), limits_(limits), trusted_(trusted) {}

  enum class Stop { full, end, more, damaged };

  // `more`: the batch at resume() needs needed() bytes in one piece.
  Stop walk(const Window& window, std::uint64_t file_end) {
    ByteView rest = window.view();
    resume_ = window.position;
    while (resume_ < file_end) {
      if (rest.size() < std::min<std::uint64_t>(format::kafka::header_bytes, file_end - resume_)) {
        return need(format::kafka::header_bytes);
      }
      const auto frame = format::kafka::next_frame(rest, file_end - resume_);
      if (frame.state != format::kafka::FrameState::complete) return Stop::damaged;
      if (!accept(frame, rest)) return stop_;
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
    batch.format = BatchFormat::kafka;
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
  bool accept(const format::kafka::FrameHead& frame, ByteView rest) {
    const std::int64_t last = frame.last().value();
    if (last < from_) {  // stepped over, unless it runs out of the window
      if (frame.size > rest.size()) return stop(need(frame.size + format::kafka::header_bytes));
      reached_ = last + 1;
      return true;
    }
    if (frame.first() >= limits_.end) return stop(Stop::full);
    const bool whole_anyway = count_ == 0 && limits_.first_whole;
    if (!whole_anyway && bytes_ + frame.size > limits_.bytes_max) return stop(Stop::full);
    if (count_ > 0 && records_ >= limits_.records_max) return stop(Stop::full);
    if (frame.size > rest.size()) {
      return stop(count_ > 0 ? Stop::full : need(frame.size));
    }
    // The sums vouch for a block as a whole; where they don't, each batch answers for itself.
    if (!trusted_ &&
        !format::kafka::crc_matches(rest.first(static_cast<std::size_t>(frame.size)))) {
      return stop(count_ > 0 ? Stop::full : Stop::damaged);
    }
    add(frame);
    return true;
  }
  bool stop(Stop why) {
    stop_ = why;
    return false;
  }

  void add(const format::kafka::FrameHead& frame) {
    const BatchInfo info = format::kafka::to_info(frame.header);
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
    bytes_ += frame.size;
    reached_ = info.last.value() + 1;
  }

  const std::int64_t from_;
  const ReadLimits& limits_;
  const bool trusted_;
  Stop stop_ = Stop::end;
  BatchInfo info_;
  std::uint64_t first_at_ = 0, bytes_ = 0, resume_ = 0, needed_ = 0;
  std::size_t count_ = 0, records_ = 0;
  std::int64_t reached_ = 0;
};

// One contiguous region of whole batches from `segment`, or an empty one when nothing at or
// beyond `from` lies in it.
Result<std::optional<Batch>> read_region(const Segment& segment, std::uint64_t size,
                                         std::int64_t from, const ReadLimits& limits) {
  POLYLOG_ASSIGN(position, segment.locate(from, size, limits.wait));
  std::uint64_t bytes = std::min<std::uint64_t>(limits.bytes_max, size) + slack_bytes;
  while (position < size) {
    bytes = std::min(bytes, size - position);
    POLYLOG_ASSIGN(match, segment.blocks_match(position, position + bytes, limits.wait));
    POLYLOG_ASSIGN(window, load(segment, position, bytes, limits.wait));
    RegionBuilder region(from, limits, match);
    using Stop = RegionBuilder::Stop;
    const Stop stop = region.walk(window, size);
    if (!region.empty()) return std::optional(region.take(window));
    if (stop == Stop::damaged) {
      // Damage before the wanted batch is stepped over where the sums remember a frame start.
      const auto next = segment.next_frame_after(region.resume());
      if (region.reached() < from && next && *next < size) {
        POLYLOG_ASSIGN(head, load(segment, *next, format::kafka::header_bytes, limits.wait));
        const auto frame = format::kafka::next_frame(head.view(), size - *next);
        if (frame.state == format::kafka::FrameState::complete && frame.first().value() <= from) {
          position = *next;
          continue;
        }
      }
      return fail(damage(segment, region.resume(), from));
    }
    if (stop != Stop::more) return std::optional<Batch>();
    position = region.resume();
    bytes = std::max<std::uint64_t>(region.needed(), limits.bytes_max + slack_bytes);
  }
  return std::optional<Batch>();
}

}  // namespace

std::vector<KafkaLog::ReadPlan> KafkaLog::plan_from(std::int64_t offset) const {
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

Result<std::vector<Batch>> KafkaLog::read(Offset from, ReadLimits limits) const {
  std::shared_ptr<Segment> segment;
  std::uint64_t size = 0;
  {
    const std::lock_guard lock(mutex_);
    const Offset end(std::min(limits.end.value(), written_end_));
    if (from.value() < start_ || from > end) {
      return fail(Errc::out_of_range, "offset " + std::to_string(from.value()) + " is outside [" +
                                          std::to_string(start_) + ", " +
                                          std::to_string(end.value()) + "]");
    }
    if (from == end) return std::vector<Batch>();
    segment = floor(from.value());
    size = segment->size;
  }
  while (segment != nullptr) {
    POLYLOG_ASSIGN(region, read_region(*segment, size, from.value(), limits));
    if (region) {
      std::vector<Batch> batches;
      batches.push_back(std::move(*region));
      return batches;
    }
    // Nothing there: the wanted offset lies in a gap at the segment's end, or over the limits.
    const std::lock_guard lock(mutex_);
    segment = after(*segment);
    if (segment != nullptr) size = segment->size;
    if (segment != nullptr && segment->base >= limits.end.value()) break;
  }
  return std::vector<Batch>();
}

std::shared_ptr<Segment> KafkaLog::floor(std::int64_t offset) const {
  const auto beyond =
      std::upper_bound(segments_.begin(), segments_.end(), offset,
                       [](std::int64_t at, const auto& segment) { return at < segment->base; });
  return beyond == segments_.begin() ? segments_.front() : *std::prev(beyond);
}

std::shared_ptr<Segment> KafkaLog::after(const Segment& segment) const {
  const auto beyond =
      std::upper_bound(segments_.begin(), segments_.end(), segment.base,
                       [](std::int64_t at, const auto& other) { return at < other->base; });
  return beyond == segments_.end() ? nullptr : *beyond;
}

Result<std::optional<TimedOffset>> KafkaLog::find_in(const ReadPlan& plan, Timestamp at,
                                                     std::int64_t log_start) const {
  POLYLOG_ASSIGN(floor_offset, plan.segment->time_floor(at));
  const std::int64_t from = std::max(floor_offset, log_start);
  POLYLOG_ASSIGN(position, plan.segment->locate(from, plan.size, true));
  POLYLOG_ASSIGN(file, plan.segment->data());
  std::optional<TimedOffset> found;
  Result<void> decoded;
  const auto visit = [&](const ScanFrame& frame) {
    const auto header = format::kafka::decode_header(frame.bytes);
    if (header.max_timestamp < at || header.last_offset().value() < log_start) {
      return ScanStep::next;
    }
    decoded = format::kafka::for_each_record(
        frame.bytes, decompressed_bytes_max, [&](const Record& record) {
          if (record.timestamp < at || record.offset.value() < log_start) return true;
          found = TimedOffset{record.timestamp, record.offset, header.leader_epoch};
          return false;
        });
    return found || !decoded ? ScanStep::stop : ScanStep::next;
  };
  POLYLOG_ASSIGN(end, scan(*file, position, plan.size, BatchDecoder(), plan.size, visit));
  if (!decoded) return fail(decoded.error());
  if (end.reason == ScanEnd::Reason::corrupt)
    return fail(damage(*plan.segment, end.position, from));
  return found;
}

Result<std::optional<TimedOffset>> KafkaLog::offset_for_time(Timestamp at) const {
  const std::int64_t log_start = offsets().start.value();
  for (const ReadPlan& plan : plan_from(log_start)) {
    TimedOffset largest;
    {
      const std::lock_guard lock(mutex_);
      POLYLOG_ASSIGN(entry, plan.segment->largest_time());
      largest.timestamp = Timestamp(entry.timestamp);
    }
    if (largest.timestamp < at) continue;
    // Hits below the log start don't count; Kafka gives up then, later segments may have one.
    POLYLOG_ASSIGN(found, find_in(plan, at, log_start));
    if (found) return found;
  }
  return std::optional<TimedOffset>();
}

Result<std::optional<TimedOffset>> KafkaLog::offset_of_max_timestamp() const {
  const std::int64_t log_start = offsets().start.value();
  Timestamp largest = no_timestamp;
  for (const ReadPlan& plan : plan_from(log_start)) {
    const std::lock_guard lock(mutex_);
    POLYLOG_ASSIGN(entry, plan.segment->largest_time());
    largest = std::max(largest, Timestamp(entry.timestamp));
  }
  if (largest == no_timestamp) return std::optional<TimedOffset>();
  return offset_for_time(largest);
}

Result<LogChunk> KafkaLog::read_chunk(LogPosition from, std::size_t bytes_max) const {
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

Result<LogPosition> KafkaLog::append_chunk(const LogChunk& chunk) {
  const std::lock_guard lock(mutex_);
  POLYLOG_TRY(check_usable());
  POLYLOG_ASSERT(staged_.empty());
  std::int64_t next = written_end_;
  POLYLOG_TRY(format::kafka::for_each_batch(
      chunk.bytes.view(),
      [&](const format::kafka::BatchHeader& header, ByteView batch) -> Result<void> {
        if (!format::kafka::crc_matches(batch)) return fail(Errc::corrupt, "chunk: bad checksum");
        if (header.base_offset.value() < next) {
          return fail(Errc::invalid, "chunk begins below the log end");
        }
        next = header.last_offset().value() + 1;
        return {};
      }));
  return format::kafka::for_each_batch(
             chunk.bytes.view(),
             [&](const format::kafka::BatchHeader& header, ByteView batch) -> Result<void> {
               const BatchInfo info = format::kafka::to_info(header);
               if (must_roll(info, batch.size())) POLYLOG_TRY(roll(info.first.value()));
               Segment& segment = active();
               POLYLOG_ASSIGN(file, segment.data());
               if (auto wrote = file->write(segment.size, batch); !wrote) {
                 if (auto cut = file->truncate(segment.size); !cut) failed_ = true;
                 return wrote;
               }
               segment.held = file;
               segment.dirty = true;
               POLYLOG_TRY(note_state(info, batch, &segment));
               note_written(info, batch.first(format::kafka::header_bytes),
                            batch.subspan(format::kafka::header_bytes));
               staged_end_ = written_end_ = info.last.value() + 1;
               return {};
             })
      .map([&] { return LogPosition(written_end_); });
}

}  // namespace polylog::storage::kafka
