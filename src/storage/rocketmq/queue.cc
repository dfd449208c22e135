#include "storage/rocketmq/queue.h"

#include <algorithm>
#include <utility>

#include "bytes/endian.h"
#include "storage/rocketmq/log.h"

namespace polylog::storage::rocketmq {

namespace stored = format::rocketmq;

namespace {

// How many entries one read of a queue takes at most: bounds memory, and a page of the file.
constexpr std::size_t entries_per_read = 2048;
constexpr std::size_t times_per_read = 256;
constexpr std::int64_t believed_bytes_max = 64 * 1024;
constexpr std::size_t mended_max = 4;  // in one read

std::int64_t min_record_bytes() { return static_cast<std::int64_t>(stored::fixed_bytes_min); }

}  // namespace

// Records that follow each other in one file under one epoch.
struct Queue::Run {
  std::int64_t offset;    // of the first
  std::int64_t position;  // of the first
  std::int64_t bytes;
  std::int32_t records;
  LeaderEpoch epoch;
};

Queue::Queue(std::shared_ptr<SharedLog> log, TopicPartition id, std::string stored_topic,
             const QueueFilesContext& files, std::string directory, const QueueNote& note)
    : log_(std::move(log)),
      id_(std::move(id)),
      stored_topic_(std::move(stored_topic)),
      note_(note),
      files_(files, std::move(directory)) {}

OffsetRange Queue::offsets() const {
  const std::lock_guard lock(log_->mutex_);
  return {Offset(std::min(start_locked(), end_)), Offset(end_)};
}

std::shared_ptr<Log> Queue::log() const { return log_; }

Result<Staged> Queue::append(Batch batch) { return log_->stage(*this, batch); }

void Queue::add(const Entry& entry, std::int64_t born_ms) {
  pending_.push_back(entry);
  added_bytes_ += static_cast<std::uint64_t>(entry.size);
  ++added_;
  born_times_.note(end_, born_ms);
  ++end_;
  last_end_ = std::max(last_end_, entry.end());
}

void Queue::cut_entries(std::int64_t end) {
  if (end >= end_) return;
  if (end <= flushed_) {
    pending_.clear();
    flushed_ = end;
  } else {
    pending_.resize(static_cast<std::size_t>(end - flushed_));
  }
  end_ = staged_end_ = end;
  first_ = std::min(first_, end);
  born_times_.cut(end);
  lost_.erase(lost_.lower_bound(end), lost_.end());
}

Result<std::vector<Queue::Entry>> Queue::entries(std::int64_t from, std::size_t count,
                                                 bool wait) const {
  std::vector<Entry> found;
  for (;;) {
    std::size_t in_files = 0;
    {
      const std::lock_guard lock(log_->mutex_);
      const std::int64_t at = from + static_cast<std::int64_t>(found.size());
      const std::int64_t left =
          std::min(static_cast<std::int64_t>(count - found.size()), end_ - at);
      if (left <= 0) return found;
      if (at >= flushed_) {
        const auto first = pending_.begin() + (at - flushed_);
        found.insert(found.end(), first, first + left);
        return found;
      }
      in_files = static_cast<std::size_t>(std::min(left, flushed_ - at));
    }
    const std::int64_t at = from + static_cast<std::int64_t>(found.size());
    POLYLOG_ASSIGN(read, files_.read(at, in_files, wait));
    found.insert(found.end(), read.begin(), read.end());
    if (read.size() < in_files) {
      if (!found.empty()) return found;  // what comes before it is sound
      return fail(Errc::corrupt, files_.directory() + ": entry " +
                                     std::to_string(at + static_cast<std::int64_t>(read.size())) +
                                     " is missing");
    }
  }
}

Offset Queue::offset_at(LogPosition position) const {
  const auto count = count_below(position);
  // Its index does not read: nothing of the queue is vouched for.
  return count ? Offset(*count) : offsets().start;
}

EpochEnd Queue::end_of_epoch(LeaderEpoch epoch) const {
  EpochEnd end;
  LogPosition log_end;
  {
    const std::lock_guard lock(log_->mutex_);
    const auto& known = log_->epochs_.entries();
    if (log_->epochs_lost_ && !known.empty() && epoch < known.front().epoch) return {};
    log_end = LogPosition(log_->written_end_);
    end = log_->epochs_.end_of(epoch, log_end);
  }
  if (end.epoch == no_epoch) return end;
  end.end = LogPosition(end.end >= log_end ? offsets().end.value() : offset_at(end.end).value());
  return end;
}

// Asked where requests run: does not wait, and says "unknown" rather than read from the device.
LeaderEpoch Queue::first_epoch() const {
  const std::int64_t start = offsets().start.value();
  {
    const std::lock_guard lock(log_->mutex_);
    const auto& known = log_->epochs_.entries();
    const bool all_one = known.empty() || (known.size() == 1 && known.front().start.value() <=
                                                                    log_->commit_log_.start());
    if (start >= end_ || all_one) return log_->epochs_.latest();
  }
  const auto first = entries(start, 1, false);
  if (!first || first->empty()) return no_epoch;
  const std::lock_guard lock(log_->mutex_);
  return log_->epochs_.at(LogPosition(first->front().physical_offset));
}

ProducerState::Check Queue::check_producer(const BatchInfo& batch) const {
  const std::lock_guard lock(log_->mutex_);
  return producers_.check(batch);
}

void Queue::expire_producers(Timestamp before) {
  const std::lock_guard lock(log_->mutex_);
  producers_.expire(before);
}

Queue::Producers Queue::producers() const {
  const std::lock_guard lock(log_->mutex_);
  return producers_.entries();
}

// Its entries know the sizes of its records: all of them while they are few, else evenly spread
// ones.
std::uint64_t Queue::measured_bytes() const {
  constexpr std::int64_t run = 64, runs = 16;
  const OffsetRange range = offsets();
  const std::int64_t records = range.end - range.start;
  const std::int64_t step = std::max(run, records / runs);
  std::uint64_t bytes = 0, seen = 0;
  for (std::int64_t at = range.start.value(); at < range.end.value(); at += step) {
    const auto count = std::min<std::int64_t>(run, range.end.value() - at);
    const auto some = entries(at, static_cast<std::size_t>(count), true);
    if (!some) continue;
    for (const Entry& entry : *some) {
      if (entry.valid() && !entry.filler()) bytes += static_cast<std::uint64_t>(entry.size);
    }
    seen += some->size();
  }
  if (seen == 0) return size_bytes();
  return seen == static_cast<std::uint64_t>(records)
             ? bytes
             : static_cast<std::uint64_t>(records) * (bytes / seen);
}

// An estimate: the records it has at the size of those that were added since the start.
std::uint64_t Queue::size_bytes() const {
  const std::lock_guard lock(log_->mutex_);
  if (added_ == 0) return 0;
  const auto records = static_cast<std::uint64_t>(end_ - std::min(start_locked(), end_));
  return records * (added_bytes_ / added_);
}

void Queue::configure(const LogConfig& config) {
  const std::lock_guard lock(log_->mutex_);
  note_.config = config;
  if (log_->sidecar_->queue(id_, note_)) log_->facts_dirty_ = true;
}

Result<void> Queue::advance_start(Offset start) {
  const std::lock_guard sync_lock(log_->sync_mutex_);
  QueueNote note;
  {
    const std::lock_guard lock(log_->mutex_);
    if (start.value() > end_) {
      return fail(Errc::out_of_range, "offset " + std::to_string(start.value()) +
                                          " is beyond the log end " + std::to_string(end_));
    }
    // A start that only the first entry shows is noted: filler before it may not outlive a crash.
    if (start.value() < start_locked() || start.value() <= note_.start) return {};
    POLYLOG_TRY(log_->check_usable());
    note = note_;
  }
  note.start = start.value();
  if (auto noted = log_->sidecar_->queue_synced(id_, note); !noted) {
    if (noted.error().code != Errc::no_space) log_->fail_log();
    return noted;
  }
  const std::lock_guard lock(log_->mutex_);
  note_.start = std::max(note_.start, note.start);
  return {};
}

Result<void> Queue::advance_end(Offset end) {
  const std::lock_guard flush_lock(log_->flush_mutex_);
  const OffsetRange range = offsets();
  const std::int64_t gap = end - range.end;
  if (gap < 0) {
    return fail(Errc::out_of_range,
                files_.directory() + " ends at " + std::to_string(range.end.value()) + " already");
  }
  // Filler stands before the first message only: it says that nothing of the queue is there.
  std::optional<Entry> last;
  if (gap > 0 && range.end.value() > 0) {
    const auto found = entries(range.end.value() - 1, 1, true);
    if (found && !found->empty() && !found->front().filler()) last = found->front();
  }
  if (last && gap > SharedLog::gap_entries_max) {
    return fail(Errc::too_large, files_.directory() + ": " + std::to_string(gap) +
                                     " offsets without a message, over " +
                                     std::to_string(SharedLog::gap_entries_max));
  }
  {
    const std::lock_guard lock(log_->mutex_);
    POLYLOG_TRY(log_->check_usable());
    positioned_ = true;
    if (gap == 0) return {};
    if (last) {
      while (end_ < end.value()) add(*last, no_timestamp.value());
      staged_end_ = end_;
      log_->list_pending(*this);
      return {};
    }
    end_ = staged_end_ = flushed_ = first_ = end.value();
  }
  return files_.begin_at(end.value());
}

Result<void> Queue::expire(Offset visible, Timestamp now) {
  LogConfig config;
  {
    const std::lock_guard lock(log_->mutex_);
    config = note_.config;
  }
  if (config.retention_suspended) return {};
  Offset start = offsets().start;
  if (config.retention_ms >= 0) {
    POLYLOG_ASSIGN(kept, offset_by_store_time(now - config.retention_ms, Bound::lower));
    start = std::max(start, kept);
  }
  if (config.retention_bytes >= 0) {
    POLYLOG_ASSIGN(kept, first_within(static_cast<std::uint64_t>(config.retention_bytes)));
    start = std::max(start, kept);
  }
  start = std::min(start, visible);
  const std::lock_guard lock(log_->mutex_);
  if (start.value() <= start_locked()) return {};
  note_.start = start.value();
  // Not synced: worked out again after a crash.
  if (log_->sidecar_->queue(id_, note_)) log_->facts_dirty_ = true;
  return {};
}

// The first offset of the newest records that come to `bytes` together.
Result<Offset> Queue::first_within(std::uint64_t bytes) const {
  const OffsetRange range = offsets();
  std::uint64_t sum = 0;
  for (std::int64_t end = range.end.value(); end > range.start.value();) {
    const std::int64_t from = std::max<std::int64_t>(
        range.start.value(), end - static_cast<std::int64_t>(entries_per_read));
    POLYLOG_ASSIGN(some, entries(from, static_cast<std::size_t>(end - from), true));
    for (auto entry = some.rbegin(); entry != some.rend(); ++entry) {
      if (!entry->valid() || entry->filler()) continue;
      std::int64_t size = entry->size;
      if (size > believed_bytes_max) {
        // One wrong bit is enough for a size that all the others together don't have.
        POLYLOG_ASSIGN(fact, fact_of(*entry));
        size = fact ? fact->end - fact->position : 0;
      }
      sum += static_cast<std::uint64_t>(size);
      if (sum > bytes) return Offset(from + (some.rend() - entry));
    }
    end = from;
  }
  return range.start;
}

// ------------------------------------------------------------------------------------- reading

// Of several entries that name one message only its own counts: the others stand for offsets
// without a message, and there may be many.
Result<void> Queue::drop_repeated(std::int64_t from, std::vector<Entry>& found, bool wait) const {
  for (std::size_t begin = 0; begin < found.size();) {
    const Entry& entry = found[begin];
    std::size_t end = begin + 1;
    while (end < found.size() && found[end].physical_offset == entry.physical_offset) ++end;
    if (end - begin > 1 && entry.valid() && !entry.filler()) {
      bool good = true;
      const auto head =
          log_->read_bytes(entry.physical_offset, stored::message_at::physical_offset, wait, good);
      if (!head && head.error().code != Errc::corrupt) return fail(head.error());
      const std::int64_t own =
          head ? load_big<std::int64_t>(head->data() + stored::message_at::queue_offset) : -1;
      for (std::size_t i = begin; head && i < end; ++i) {
        if (from + static_cast<std::int64_t>(i) != own) found[i] = stored::filler_entry;
      }
    }
    begin = end;
  }
  return {};
}

// One wrong bit is enough for a size beyond every limit: where it is large, the record is asked.
Result<void> Queue::drop_oversized(std::vector<Entry>& found, bool wait) const {
  for (Entry& entry : found) {
    if (!entry.valid() || entry.filler() || entry.size <= believed_bytes_max) continue;
    bool good = true;
    const auto head = log_->read_bytes(entry.physical_offset, sizeof entry.size, wait, good);
    if (!head && head.error().code != Errc::corrupt) return fail(head.error());
    if (!head || load_big<std::int32_t>(head->data()) != entry.size) entry = stored::filler_entry;
  }
  return {};
}

Result<std::vector<Queue::Run>> Queue::plan_runs(std::int64_t from, OffsetRange range,
                                                 const ReadLimits& limits,
                                                 std::int64_t& next) const {
  std::vector<Run> runs;
  const auto most = std::min<std::size_t>(
      entries_per_read, limits.bytes_max / static_cast<std::size_t>(min_record_bytes()) + 1);
  const auto count =
      std::min<std::size_t>(most, static_cast<std::size_t>(range.end.value() - from));
  POLYLOG_ASSIGN(found, entries(from, std::min(count, limits.records_max), limits.wait));
  next = from + static_cast<std::int64_t>(found.size());
  POLYLOG_TRY(drop_repeated(from, found, limits.wait));
  POLYLOG_TRY(drop_oversized(found, limits.wait));
  const std::lock_guard lock(log_->mutex_);
  const std::int64_t file_bytes = log_->commit_log_.file_bytes();
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Entry& entry = found[i];
    const std::int64_t offset = from + static_cast<std::int64_t>(i);
    if (entry.filler() || !entry.valid() || entry.physical_offset < log_->commit_log_.start()) {
      continue;
    }
    const bool first = runs.empty();
    if (bytes + entry.size > static_cast<std::int64_t>(limits.bytes_max) &&
        !(first && limits.first_whole)) {
      next = offset;
      break;
    }
    bytes += entry.size;
    const LeaderEpoch epoch = log_->epochs_.at(LogPosition(entry.physical_offset));
    const bool joins = !first && runs.back().epoch == epoch &&
                       runs.back().offset + runs.back().records == offset &&
                       runs.back().position + runs.back().bytes == entry.physical_offset &&
                       entry.physical_offset % file_bytes != 0;
    if (joins) {
      runs.back().bytes += entry.size;
      ++runs.back().records;
    } else {
      runs.push_back({offset, entry.physical_offset, entry.size, 1, epoch});
    }
  }
  return runs;
}

// A run's records, as far as they are what the queue says they are. Nothing: the first is not.
Result<std::optional<Batch>> Queue::read_run(const Run& run, const ReadLimits& limits) const {
  bool blocks_good = true;
  Result<Slice> bytes =
      log_->read_bytes(run.position, static_cast<std::size_t>(run.bytes), limits.wait, blocks_good);
  if (!bytes) {
    if (bytes.error().code != Errc::corrupt) return fail(std::move(bytes).error());
    return std::optional<Batch>();
  }
  Batch batch;
  batch.format = BatchFormat::rocketmq;
  std::size_t good = 0;
  ByteView rest = bytes->view();
  while (batch.info.records < run.records) {
    const stored::FrameHead head = stored::next_frame(rest, rest.size());
    if (head.state != stored::FrameState::complete) break;
    const ByteView record = rest.first(static_cast<std::size_t>(head.size));
    const Result<stored::Message> message = stored::parse(record);
    const std::int64_t offset = run.offset + batch.info.records;
    if (!message || message->queue_offset != offset || message->queue_id != id_.partition ||
        message->physical_offset != run.position + static_cast<std::int64_t>(good) ||
        message->topic != stored_topic_ || !proves_itself(record, *message, blocks_good)) {
      break;
    }
    batch.info.max_timestamp =
        std::max(batch.info.max_timestamp, Timestamp(message->born_timestamp));
    ++batch.info.records;
    good += record.size();
    rest = rest.subspan(record.size());
  }
  if (batch.info.records == 0) return std::optional<Batch>();
  batch.info.first = Offset(run.offset);
  batch.info.last = Offset(run.offset + batch.info.records - 1);
  batch.info.epoch = run.epoch;
  batch.bytes = bytes->sub(0, good);
  return std::optional(std::move(batch));
}

// All of a run, in as many batches as the records that no longer read divide it into.
Result<void> Queue::read_parts(Run part, const ReadLimits& limits,
                               std::vector<Batch>& batches) const {
  for (;;) {
    POLYLOG_ASSIGN(batch, read_run(part, limits));
    if (!batch && part.records > 1) {
      // An entry with a wrong size, further on, is enough for that.
      POLYLOG_ASSIGN(first, entries(part.offset, 1, limits.wait));
      POLYLOG_ASSIGN(
          alone, read_run({part.offset, part.position, first.front().size, 1, part.epoch}, limits));
      batch = std::move(alone);
    }
    std::int32_t taken = 1;
    if (batch) {
      taken = batch->info.records;
      batches.push_back(std::move(*batch));
    }
    if (taken >= part.records) return {};
    POLYLOG_ASSIGN(step, entries(part.offset, static_cast<std::size_t>(taken), limits.wait));
    for (const Entry& entry : step) {
      part.position += entry.size;
      part.bytes -= entry.size;
    }
    part.offset += taken;
    part.records -= taken;
  }
}

// Of the offsets in [from, to) that no batch has, those that stand alone: an entry has no checksum,
// and what it leads to no longer is all it costs.
Result<void> Queue::add_missing(std::int64_t from, std::int64_t& to, const ReadLimits& limits,
                                std::vector<Batch>& batches) const {
  std::vector<std::int64_t> alone;
  std::int64_t at = from;
  for (const Batch& batch : batches) {
    if (batch.info.first.value() == at + 1) alone.push_back(at);
    at = batch.info.last.value() + 1;
  }
  if (to == at + 1) alone.push_back(at);
  std::erase_if(alone, [this](std::int64_t offset) { return looked_for(offset); });
  if (alone.empty()) return {};
  if (!limits.wait) return fail(Errc::would_block, "a queue entry leads nowhere");
  if (alone.size() > mended_max) alone.resize(mended_max);
  for (const std::int64_t offset : alone) {
    POLYLOG_ASSIGN(record, between_neighbours(offset));
    if (!record) continue;
    POLYLOG_ASSIGN(message, stored::parse(record->view()));
    const auto behind = std::find_if(batches.begin(), batches.end(), [&](const Batch& other) {
      return other.info.first.value() > offset;
    });
    batches.insert(behind, log_->as_batch(std::move(*record), message));
  }
  std::size_t bytes = 0, fitting = 0;
  for (const Batch& batch : batches) {
    bytes += batch.bytes.size();
    if (bytes > limits.bytes_max && !(fitting == 0 && limits.first_whole)) break;
    ++fitting;
  }
  if (fitting == 0 && !batches.empty()) to = from;  // over the limit
  batches.resize(fitting);
  return {};
}

Result<std::vector<Batch>> Queue::read(Offset from, ReadLimits limits) const {
  OffsetRange range = offsets();
  range.end = std::min(range.end, limits.end);
  if (from < range.start || from > range.end) {
    return fail(Errc::out_of_range, "offset " + std::to_string(from.value()) + " is outside [" +
                                        std::to_string(range.start.value()) + ", " +
                                        std::to_string(range.end.value()) + "]");
  }
  std::vector<Batch> batches;
  std::int64_t at = from.value();
  // Records that can't be read are stepped over, as compaction's gaps are elsewhere.
  while (batches.empty() && at < range.end.value()) {
    std::int64_t next = at;
    POLYLOG_ASSIGN(runs, plan_runs(at, range, limits, next));
    for (const Run& run : runs) POLYLOG_TRY(read_parts(run, limits, batches));
    POLYLOG_TRY(add_missing(at, next, limits, batches));
    if (next == at) break;  // what comes next is over the limit
    at = next;
  }
  return batches;
}

// --------------------------------------------------------------------------------------- times

// When the message at `offset` was made, which `entry` leads to, or led to once. Nothing: it is
// damaged, or there is none.
Result<std::optional<std::int64_t>> Queue::born_at(std::int64_t offset, const Entry& entry) const {
  POLYLOG_ASSIGN(born, born_by_entry(offset, entry));
  if (born) return born;
  POLYLOG_ASSIGN(record, between_neighbours(offset));
  if (!record) return std::optional<std::int64_t>();
  return std::optional(load_big<std::int64_t>(record->data() + stored::message_at::born_timestamp));
}

// Nothing: the entry leads elsewhere, or to damage.
Result<std::optional<std::int64_t>> Queue::born_by_entry(std::int64_t offset,
                                                         const Entry& entry) const {
  constexpr std::size_t head_bytes = stored::message_at::born_host;
  const auto size = static_cast<std::size_t>(std::max(entry.size, 0));
  if (!entry.valid() || entry.filler() || size < stored::fixed_bytes_min) {
    return std::optional<std::int64_t>();
  }
  bool good = true;
  const Result<Slice> head = log_->read_bytes(entry.physical_offset, head_bytes, true, good);
  if (!head) {
    return head.error().code == Errc::corrupt ? Result<std::optional<std::int64_t>>(std::nullopt)
                                              : fail(head.error());
  }
  const std::uint8_t* const at = head->data();
  if (load_big<std::int64_t>(at + stored::message_at::queue_offset) != offset ||
      load_big<std::int32_t>(at + stored::message_at::queue_id) != id_.partition ||
      load_big<std::int64_t>(at + stored::message_at::physical_offset) != entry.physical_offset) {
    return std::optional<std::int64_t>();
  }
  if (!good) {
    POLYLOG_ASSIGN(record, log_->record_at(entry.physical_offset));
    if (!record) return std::optional<std::int64_t>();
  }
  return std::optional(load_big<std::int64_t>(at + stored::message_at::born_timestamp));
}

// First entry in [from, to) born at or after `at_ms`; `largest` becomes the largest time seen.
Result<std::optional<std::int64_t>> Queue::scan_block(std::int64_t from, std::int64_t to,
                                                      std::int64_t at_ms,
                                                      std::int64_t& largest) const {
  for (std::int64_t at = from; at < to;) {
    POLYLOG_ASSIGN(
        some, entries(at, std::min<std::size_t>(times_per_read, static_cast<std::size_t>(to - at)),
                      true));
    if (some.empty()) break;
    for (const Entry& entry : some) {
      POLYLOG_ASSIGN(born, born_at(at, entry));
      if (born) {
        largest = std::max(largest, *born);
        if (*born >= at_ms) return std::optional(at);
      }
      ++at;
    }
  }
  return std::optional<std::int64_t>();
}

// Of the entries of `block` within `range`.
Result<std::int64_t> Queue::largest_in(std::int64_t block, OffsetRange range) const {
  const std::int64_t begin = block * BornTimes::block_entries;
  const std::int64_t from = std::max(begin, range.start.value());
  const std::int64_t to = std::min(begin + BornTimes::block_entries, range.end.value());
  const bool whole = to - from == BornTimes::block_entries;
  if (whole) {
    const std::lock_guard lock(log_->mutex_);
    if (const auto known = born_times_.largest(block)) return *known;
  }
  std::int64_t largest = no_timestamp.value();
  POLYLOG_TRY(scan_block(from, to, INT64_MAX, largest).map([](const auto&) {}));
  if (whole) {
    const std::lock_guard lock(log_->mutex_);
    born_times_.learn(block, largest);
  }
  return largest;
}

Result<std::optional<TimedOffset>> Queue::offset_for_time(Timestamp at) const {
  const OffsetRange range = offsets();
  for (std::int64_t block = BornTimes::block_of(range.start.value());
       block * BornTimes::block_entries < range.end.value(); ++block) {
    POLYLOG_ASSIGN(largest, largest_in(block, range));
    if (largest < at.value()) continue;
    const std::int64_t begin = block * BornTimes::block_entries;
    std::int64_t seen = 0;
    POLYLOG_ASSIGN(offset, scan_block(std::max(begin, range.start.value()),
                                      std::min(begin + BornTimes::block_entries, range.end.value()),
                                      at.value(), seen));
    if (!offset) continue;
    POLYLOG_ASSIGN(entry, entries(*offset, 1, true));
    POLYLOG_ASSIGN(born, born_at(*offset, entry.front()));
    if (!born) continue;
    const std::lock_guard lock(log_->mutex_);
    return std::optional(TimedOffset{Timestamp(*born), Offset(*offset),
                                     log_->epochs_.at(LogPosition(entry.front().physical_offset))});
  }
  return std::optional<TimedOffset>();
}

Result<std::optional<TimedOffset>> Queue::offset_of_max_timestamp() const {
  const OffsetRange range = offsets();
  std::int64_t largest = no_timestamp.value();
  for (std::int64_t block = BornTimes::block_of(range.start.value());
       block * BornTimes::block_entries < range.end.value(); ++block) {
    POLYLOG_ASSIGN(here, largest_in(block, range));
    largest = std::max(largest, here);
  }
  if (largest == no_timestamp.value()) return std::optional<TimedOffset>();
  POLYLOG_ASSIGN(found, offset_for_time(Timestamp(largest)));
  if (found) return found;
  // Its message was damaged since its time was taken down: the largest of those that read.
  largest = no_timestamp.value();
  POLYLOG_TRY(
      scan_block(range.start.value(), range.end.value(), INT64_MAX, largest).map([](const auto&) {
      }));
  if (largest == no_timestamp.value()) return std::optional<TimedOffset>();
  return offset_for_time(Timestamp(largest));
}

Result<Offset> Queue::offset_by_store_time(Timestamp at, Bound bound) const {
  const OffsetRange range = offsets();
  POLYLOG_ASSIGN(found, narrow(range.start.value(), range.end.value(), [&](const Fact& fact) {
                   return bound == Bound::lower ? fact.stored < at.value()
                                                : fact.stored <= at.value();
                 }));
  // What does not read says nothing; the next one that does speaks for it.
  if (bound == Bound::lower) return Offset(found.low);
  return Offset(std::max(found.low - 1, range.start.value()));
}

}  // namespace polylog::storage::rocketmq
