#include "storage/kafka/segment.h"

#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "bytes/writer.h"
#include "format/kafka/records.h"
#include "storage/filelog/fixed_entries.h"

namespace polylog::storage::kafka {
namespace {

using format::kafka::OffsetIndexEntry;
using format::kafka::SegmentFile;
using format::kafka::TimeIndexEntry;

constexpr std::size_t index_entry_bytes = OffsetIndexEntry::bytes;
constexpr std::size_t time_entry_bytes = TimeIndexEntry::bytes;
// Bounds what a damaged length can make a time lookup decompress.
constexpr std::size_t decompressed_bytes_max = std::size_t{1} << 30;
constexpr std::size_t aborted_entry_bytes = format::kafka::transaction_index_entry_bytes;

// Appends encoded entries at their place in an index file, making the file when it is missing.
Result<fs::FilePtr> write_entries(SegmentContext& context, const std::string& path,
                                  std::uint64_t at, ByteView bytes) {
  POLYLOG_ASSIGN(file, context.fs.open(path, fs::OpenMode::create));
  if (!bytes.empty()) POLYLOG_TRY(file->write(at, bytes));
  return file;
}

}  // namespace

const BatchFrames batch_frames;

FrameFormat::Head BatchFrames::head(ByteView head, std::uint64_t remaining) const {
  const format::kafka::FrameHead frame = format::kafka::next_frame(head, remaining);
  using State = Head::State;
  switch (frame.state) {
    case format::kafka::FrameState::complete:
      return {State::complete, frame.size, frame.first().value(), frame.last().value()};
    case format::kafka::FrameState::zeros: return {State::zeros, 0, 0, 0};
    case format::kafka::FrameState::torn:
    case format::kafka::FrameState::legacy:
    case format::kafka::FrameState::corrupt: return {};
  }
  return {};
}

Result<BatchInfo> BatchFrames::describe(ByteView frame) const {
  return format::kafka::to_info(format::kafka::decode_header(frame));
}

bool BatchFrames::crc_matches(ByteView frame) const { return format::kafka::crc_matches(frame); }

Result<void> BatchFrames::for_each_time(ByteView frame, const VisitTime& visit) const {
  return format::kafka::for_each_record(frame, decompressed_bytes_max, [&](const Record& record) {
    return visit(record.offset, record.timestamp);
  });
}

Segment::Segment(SegmentContext context, std::string directory, std::int64_t base_offset)
    : DataSegment(context,
                  fs::join(directory,
                           format::kafka::segment_file_name(Offset(base_offset), SegmentFile::log)),
                  base_offset, base_offset),
      directory_(std::move(directory)) {}

std::string Segment::path(SegmentFile file) const {
  return fs::join(directory_, format::kafka::segment_file_name(Offset(base), file));
}

void Segment::note_frame(const BatchInfo& batch, std::uint64_t position, std::uint64_t bytes,
                         const LogConfig& config) {
  const std::lock_guard lock(entries_mutex_);
  if (position == 0) first_timestamp = batch.max_timestamp;
  if (batch.max_timestamp > max_timestamp) {
    max_timestamp = batch.max_timestamp;
    max_timestamp_offset = batch.last.value();
  }
  if (bytes_since_index_ > static_cast<std::uint64_t>(config.index_interval_bytes)) {
    index_pending_.push_back({static_cast<std::int32_t>(batch.last.value() - base),
                              static_cast<std::int32_t>(position)});
    close_index_locked();
    bytes_since_index_ = 0;
  }
  bytes_since_index_ += bytes;
}

void Segment::note_aborted(const AbortedTransaction& transaction) {
  const std::lock_guard lock(entries_mutex_);
  if (transaction.last > aborted_through_) aborted_pending_.push_back(transaction);
}

void Segment::close_index() {
  const std::lock_guard lock(entries_mutex_);
  close_index_locked();
}

void Segment::close_index_locked() {
  // REQUIRES the last entry to be known: loaded with the segment, kept up to date since.
  POLYLOG_ASSERT(last_time.has_value());
  if (max_timestamp.value() <= last_time->timestamp) return;
  last_time =
      TimeIndexEntry{max_timestamp.value(), static_cast<std::int32_t>(max_timestamp_offset - base)};
  time_pending_.push_back(*last_time);
}

bool Segment::index_full(const LogConfig& config) const {
  const auto index_max = static_cast<std::size_t>(config.segment_index_bytes) / index_entry_bytes;
  const auto time_max = static_cast<std::size_t>(config.segment_index_bytes) / time_entry_bytes;
  return index_entries + index_pending_.size() >= index_max ||
         time_entries + time_pending_.size() + 1 >= time_max;
}

Segment::Unsaved Segment::unsaved() const {
  const std::lock_guard lock(entries_mutex_);
  return {index_entries,  time_entries,  aborted_entries,
          index_pending_, time_pending_, aborted_pending_};
}

Result<std::vector<fs::FilePtr>> Segment::save(const Unsaved& unsaved) {
  ByteWriter index, time;
  for (const OffsetIndexEntry& entry : unsaved.index) index.bytes(format::kafka::encode(entry));
  for (const TimeIndexEntry& entry : unsaved.time) time.bytes(format::kafka::encode(entry));
  std::vector<fs::FilePtr> files;
  POLYLOG_ASSIGN(index_file,
                 write_entries(context_, path(SegmentFile::index),
                               unsaved.index_from * index_entry_bytes, index.take_bytes()));
  POLYLOG_ASSIGN(time_file, write_entries(context_, path(SegmentFile::timeindex),
                                          unsaved.time_from * time_entry_bytes, time.take_bytes()));
  files.push_back(index_file);
  files.push_back(time_file);
  // A sync is to cover those too that were written without one.
  if (unsaved.aborted_from > 0 || !unsaved.aborted.empty()) {
    ByteWriter aborted;
    for (const AbortedTransaction& entry : unsaved.aborted) {
      aborted.bytes(format::kafka::encode(entry));
    }
    POLYLOG_ASSIGN(aborted_file,
                   write_entries(context_, path(SegmentFile::txnindex),
                                 unsaved.aborted_from * aborted_entry_bytes, aborted.take_bytes()));
    files.push_back(aborted_file);
  }
  return files;
}

void Segment::saved(const Unsaved& unsaved) {
  const std::lock_guard lock(entries_mutex_);
  const auto drop = [](auto& pending, std::size_t count) {
    pending.erase(pending.begin(), pending.begin() + static_cast<std::ptrdiff_t>(count));
    if (pending.empty()) pending.shrink_to_fit();
  };
  drop(index_pending_, unsaved.index.size());
  drop(time_pending_, unsaved.time.size());
  drop(aborted_pending_, unsaved.aborted.size());
  index_entries += static_cast<std::uint32_t>(unsaved.index.size());
  time_entries += static_cast<std::uint32_t>(unsaved.time.size());
  aborted_entries += static_cast<std::uint32_t>(unsaved.aborted.size());
}

Result<std::uint32_t> Segment::entries_in(SegmentFile which, std::size_t entry_bytes) const {
  const auto info = context_.fs.info(path(which));
  if (!info) {
    if (info.error().code == Errc::not_found) return std::uint32_t{0};
    return fail(info.error());
  }
  return static_cast<std::uint32_t>(info->size / entry_bytes);
}

Result<std::optional<OffsetIndexEntry>> Segment::index_floor(std::int64_t relative) const {
  std::uint32_t count = 0;
  {
    const std::lock_guard lock(entries_mutex_);
    const auto beyond = std::find_if(index_pending_.begin(), index_pending_.end(),
                                     [&](const auto& e) { return e.relative_offset > relative; });
    if (beyond != index_pending_.begin()) return std::optional(*std::prev(beyond));
    count = index_entries;
  }
  if (count == 0) return std::optional<OffsetIndexEntry>();
  POLYLOG_ASSIGN(file, context_.files.open(path(SegmentFile::index)));
  const FixedEntries entries(*file, index_entry_bytes, count);
  POLYLOG_ASSIGN(at, entries.last_where([&](ByteView bytes) {
    return format::kafka::decode_offset_index_entry(bytes).relative_offset <= relative;
  }));
  if (!at) return std::optional<OffsetIndexEntry>();
  POLYLOG_ASSIGN(bytes, entries.entry(*at));
  return std::optional(format::kafka::decode_offset_index_entry(bytes));
}

Result<std::uint64_t> Segment::locate(std::int64_t offset, std::uint64_t end, bool wait) const {
  const auto entry = index_floor(offset - base);
  // An index is a hint: one that can't be read costs a longer scan, nothing else.
  if (!entry || !*entry) return std::uint64_t{0};
  const auto position = static_cast<std::uint64_t>(static_cast<std::uint32_t>((*entry)->position));
  if (position >= end) return std::uint64_t{0};
  POLYLOG_ASSIGN(file, data());
  std::array<std::uint8_t, format::kafka::header_bytes> head{};
  POLYLOG_ASSIGN(got, file->read(position, head, wait));
  if (got != head.size()) return std::uint64_t{0};
  const auto header = format::kafka::parse_header(head);
  const std::int64_t indexed = base + (*entry)->relative_offset;
  if (!header || header->last_offset().value() != indexed) return std::uint64_t{0};
  return position;
}

// The index has no checksum, and lookups pass over a whole segment by its last entry: the batch it
// names must have that time, or else the batches themselves tell.
Result<TimeIndexEntry> Segment::confirmed_time(const TimeIndexEntry& last) const {
  POLYLOG_ASSIGN(file, data());
  POLYLOG_ASSIGN(position, locate(base + last.relative_offset, size, true));
  bool same = false;
  const auto find = [&](const ScanFrame& frame) {
    const auto header = format::kafka::decode_header(frame.bytes);
    if (header.last_offset().value() - base < last.relative_offset) return ScanStep::next;
    same = header.max_timestamp.value() == last.timestamp;
    return ScanStep::stop;
  };
  const FormatDecoder decoder(batch_frames);
  POLYLOG_TRY(scan(*file, position, size, decoder, size, find).map([](const auto&) {}));
  if (same) return last;
  TimeIndexEntry largest{-1, 0};
  const auto note = [&](const ScanFrame& frame) {
    if (!format::kafka::crc_matches(frame.bytes)) return ScanStep::corrupt;
    const auto header = format::kafka::decode_header(frame.bytes);
    if (header.max_timestamp.value() > largest.timestamp) {
      largest = {header.max_timestamp.value(),
                 static_cast<std::int32_t>(header.last_offset().value() - base)};
    }
    return ScanStep::next;
  };
  POLYLOG_ASSIGN(end, scan(*file, 0, size, decoder, size, note));
  // Of what lies behind damage nothing but the index tells.
  return end.position < size && last.timestamp > largest.timestamp ? last : largest;
}

Result<TimeIndexEntry> Segment::last_time_entry() const {
  POLYLOG_ASSIGN(file, context_.files.open(path(SegmentFile::timeindex)));
  const FixedEntries entries(*file, time_entry_bytes, time_entries);
  POLYLOG_ASSIGN(bytes, entries.entry(time_entries - 1));
  return format::kafka::decode_time_index_entry(bytes);
}

// A file that grew before a power cut may have zeros where its content did not reach the disk.
Result<std::uint32_t> Segment::filled_entries(SegmentFile which, std::size_t entry_bytes,
                                              std::uint32_t count) const {
  if (count == 0) return std::uint32_t{0};
  POLYLOG_ASSIGN(file, context_.files.open(path(which)));
  const FixedEntries entries(*file, entry_bytes, count);
  const auto filled = [](ByteView bytes) {
    return std::any_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte != 0; });
  };
  POLYLOG_ASSIGN(last, entries.entry(count - 1));
  if (filled(last)) return count;
  POLYLOG_ASSIGN(at, entries.last_where(filled));
  return at ? static_cast<std::uint32_t>(*at) + 1 : 0;
}

// Of the offset index or the time index: the number of the last entry with no greater offset.
Result<std::optional<std::uint32_t>> Segment::last_at_or_below(SegmentFile which,
                                                               std::uint32_t count,
                                                               std::int64_t relative) const {
  if (count == 0) return std::optional<std::uint32_t>();
  const bool times = which == SegmentFile::timeindex;
  POLYLOG_ASSIGN(file, context_.files.open(path(which)));
  const FixedEntries entries(*file, times ? time_entry_bytes : index_entry_bytes, count);
  POLYLOG_ASSIGN(at, entries.last_where([&](ByteView bytes) {
    const std::int64_t offset =
        times ? format::kafka::decode_time_index_entry(bytes).relative_offset
              : format::kafka::decode_offset_index_entry(bytes).relative_offset;
    return offset <= relative;
  }));
  return at ? std::optional(static_cast<std::uint32_t>(*at)) : std::nullopt;
}

Result<std::optional<Segment::Resume>> Segment::cut_to_whole_entries(std::uint32_t index,
                                                                     std::uint32_t time,
                                                                     std::uint64_t end) {
  POLYLOG_ASSIGN(index_left, filled_entries(SegmentFile::index, index_entry_bytes, index_entries));
  POLYLOG_ASSIGN(time_left, filled_entries(SegmentFile::timeindex, time_entry_bytes, time_entries));
  if (index_left >= index && time_left >= time) return std::optional<Resume>();
  time_entries = time_left;
  std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (time_left < time) {
    most = -1;
    if (time_left > 0) {
      POLYLOG_ASSIGN(last, last_time_entry());
      most = last.relative_offset;
    }
  }
  Resume resume{0, base};
  POLYLOG_ASSIGN(at, last_at_or_below(SegmentFile::index, index_left, most));
  index_entries = at ? *at + 1 : 0;
  if (index_entries > 0) {
    // The batch it names confirms it.
    POLYLOG_ASSIGN(position, last_indexed());
    if (position < end) resume.position = position;
  }
  std::uint32_t times = 0;
  if (resume.position > 0) {
    POLYLOG_ASSIGN(file, data());
    std::array<std::uint8_t, format::kafka::header_bytes> head{};
    POLYLOG_TRY(file->read(resume.position, head).map([](auto) {}));
    const auto batch = format::kafka::decode_header(head);
    resume.offset = batch.base_offset.value();
    POLYLOG_ASSIGN(last, last_at_or_below(SegmentFile::timeindex, time_left,
                                          batch.last_offset().value() - base));
    times = last ? *last + 1 : 0;
  } else {
    index_entries = 0;
  }
  time_entries = times;
  last_time.reset();
  max_timestamp = no_timestamp;
  max_timestamp_offset = -1;
  POLYLOG_TRY(trim_indexes());
  return std::optional(resume);
}

Result<void> Segment::load_last_time(std::int64_t end) {
  if (time_entries == 0) return {};
  POLYLOG_ASSIGN(last, last_time_entry());
  const bool possible = last.timestamp <= max_timestamp.value() && last.relative_offset >= 0 &&
                        last.relative_offset < end - base;
  if (possible) last_time = last;
  return {};
}

Result<TimeIndexEntry> Segment::largest_time() const {
  if (!last_time) {
    TimeIndexEntry last{-1, 0};
    if (time_entries > 0) {
      POLYLOG_ASSIGN(entry, last_time_entry());
      POLYLOG_ASSIGN(sure, confirmed_time(entry));
      last = sure;
    }
    last_time = last;
  }
  if (max_timestamp.value() <= last_time->timestamp) return *last_time;
  return TimeIndexEntry{max_timestamp.value(),
                        static_cast<std::int32_t>(max_timestamp_offset - base)};
}

Result<Timestamp> Segment::largest_timestamp() const {
  return largest_time().map([](const TimeIndexEntry& entry) { return Timestamp(entry.timestamp); });
}

Result<std::optional<TimeIndexEntry>> Segment::time_entry_floor(Timestamp at) const {
  std::uint32_t count = 0;
  {
    const std::lock_guard lock(entries_mutex_);
    const auto beyond = std::find_if(time_pending_.begin(), time_pending_.end(),
                                     [&](const auto& e) { return e.timestamp > at.value(); });
    if (beyond != time_pending_.begin()) return std::optional(*std::prev(beyond));
    count = time_entries;
  }
  if (count == 0) return std::optional<TimeIndexEntry>();
  POLYLOG_ASSIGN(file, context_.files.open(path(SegmentFile::timeindex)));
  const FixedEntries entries(*file, time_entry_bytes, count);
  POLYLOG_ASSIGN(found, entries.last_where([&](ByteView bytes) {
    return format::kafka::decode_time_index_entry(bytes).timestamp <= at.value();
  }));
  // The index has no checksum. An entry's claim holds for the one before it, too, so that one is
  // taken: should either of the two be damaged, the other keeps the answer right.
  if (!found || *found == 0) return std::optional<TimeIndexEntry>();
  POLYLOG_ASSIGN(bytes, entries.entry(*found));
  POLYLOG_ASSIGN(before_bytes, entries.entry(*found - 1));
  const TimeIndexEntry entry = format::kafka::decode_time_index_entry(bytes);
  const TimeIndexEntry before = format::kafka::decode_time_index_entry(before_bytes);
  const bool rises = before.timestamp <= at.value() && before.relative_offset >= 0 &&
                     before.relative_offset <= entry.relative_offset;
  return rises ? std::optional(before) : std::nullopt;
}

Result<std::int64_t> Segment::time_floor(Timestamp at) const {
  // An entry (T, O) says that nothing before the batch ending at O is later than T. The record
  // sought may be in that very batch when T equals `at`, so the floor is taken below `at`.
  POLYLOG_ASSIGN(entry, time_entry_floor(at - 1));
  return entry ? base + entry->relative_offset : base;
}

Result<std::vector<AbortedTransaction>> Segment::aborted() const {
  std::uint32_t count = 0;
  std::vector<AbortedTransaction> pending;
  {
    const std::lock_guard lock(entries_mutex_);
    count = aborted_entries;
    pending = aborted_pending_;
  }
  std::vector<AbortedTransaction> all;
  if (count > 0) {
    POLYLOG_ASSIGN(file, context_.files.open(path(SegmentFile::txnindex)));
    const FixedEntries entries(*file, aborted_entry_bytes, count);
    for (std::uint32_t i = 0; i < count; ++i) {
      POLYLOG_ASSIGN(bytes, entries.entry(i));
      POLYLOG_ASSIGN(entry, format::kafka::decode_transaction_index_entry(bytes));
      all.push_back(entry);
    }
  }
  all.insert(all.end(), pending.begin(), pending.end());
  return all;
}

Result<void> Segment::count_entries() {
  POLYLOG_ASSIGN(index, entries_in(SegmentFile::index, index_entry_bytes));
  POLYLOG_ASSIGN(time, entries_in(SegmentFile::timeindex, time_entry_bytes));
  POLYLOG_ASSIGN(aborted, entries_in(SegmentFile::txnindex, aborted_entry_bytes));
  index_entries = index;
  time_entries = time;
  aborted_entries = aborted;
  return {};
}

Result<void> Segment::trim_indexes() {
  const auto trim = [this](SegmentFile which, std::uint64_t bytes) -> Result<void> {
    const auto info = context_.fs.info(path(which));
    if (!info || info->size <= bytes) return {};
    POLYLOG_ASSIGN(file, context_.fs.open(path(which), fs::OpenMode::write));
    return file->truncate(bytes);
  };
  POLYLOG_TRY(trim(SegmentFile::index, index_entries * index_entry_bytes));
  POLYLOG_TRY(trim(SegmentFile::timeindex, time_entries * time_entry_bytes));
  return trim(SegmentFile::txnindex, aborted_entries * aborted_entry_bytes);
}

void Segment::forget_indexes() {
  const std::lock_guard lock(entries_mutex_);
  index_entries = time_entries = aborted_entries = 0;
  index_pending_.clear();
  time_pending_.clear();
  aborted_pending_.clear();
  aborted_through_ = Offset(-1);
  last_time = TimeIndexEntry{-1, 0};
  max_timestamp = first_timestamp = no_timestamp;
  max_timestamp_offset = -1;
  bytes_since_index_ = 0;
}

void Segment::forget_beyond(std::int64_t end) {
  const std::uint32_t in_file = lasting().in_files;
  const auto entries = aborted();
  const auto below = aborted_below(end);
  forget_indexes();
  const std::uint32_t kept = entries && below ? std::min(*below, in_file) : 0;
  if (kept == 0) return;
  const std::lock_guard lock(entries_mutex_);
  aborted_entries = kept;
  aborted_through_ = (*entries)[kept - 1].last;
}

DataSegment::Lasting Segment::lasting() const {
  const std::lock_guard lock(entries_mutex_);
  return {aborted_entries, !aborted_pending_.empty()};
}

Result<std::uint32_t> Segment::aborted_below(std::int64_t offset) const {
  const auto entries = aborted();
  // An index that does not read is made again from what the scan replays.
  if (!entries) return std::uint32_t{0};
  const auto beyond = std::find_if(entries->begin(), entries->end(), [offset](const auto& entry) {
    return entry.last.value() >= offset;
  });
  return static_cast<std::uint32_t>(beyond - entries->begin());
}

bool Segment::wants_indexes() const {
  return size > 0 && (time_entries == 0 || !fs::exists(context_.fs, path(SegmentFile::index)));
}

Result<std::uint64_t> Segment::last_indexed() const {
  if (index_entries == 0) return std::uint64_t{0};
  return locate(base + std::numeric_limits<std::int32_t>::max(), size, true);
}

Result<void> Segment::load_times() {
  POLYLOG_ASSIGN(largest, largest_time());
  if (largest.timestamp > max_timestamp.value()) {
    max_timestamp = Timestamp(largest.timestamp);
    max_timestamp_offset = base + largest.relative_offset;
  }
  if (first_timestamp != no_timestamp) return {};  // a recovery point said so
  POLYLOG_ASSIGN(file, data());
  std::array<std::uint8_t, format::kafka::header_bytes> head{};
  POLYLOG_ASSIGN(got, file->read(0, head));
  if (got == head.size()) {
    first_timestamp = format::kafka::decode_header(head).max_timestamp;
  }
  return {};
}

void Segment::let_go() {
  DataSegment::let_go();
  for (const SegmentFile which :
       {SegmentFile::index, SegmentFile::timeindex, SegmentFile::txnindex}) {
    context_.files.forget(path(which));
  }
}

Result<void> Segment::remove_files() {
  for (const SegmentFile which : {SegmentFile::log, SegmentFile::index, SegmentFile::timeindex,
                                  SegmentFile::txnindex, SegmentFile::snapshot}) {
    context_.files.forget(path(which));
    if (auto removed = context_.fs.remove(path(which));
        !removed && removed.error().code != Errc::not_found) {
      return removed;
    }
  }
  return {};
}

}  // namespace polylog::storage::kafka
