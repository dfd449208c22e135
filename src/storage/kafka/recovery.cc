#include "storage/kafka/recovery.h"

#include <algorithm>
#include <limits>

#include "format/kafka/checkpoint.h"
#include "format/kafka/names.h"
#include "format/kafka/snapshot.h"

namespace polylog::storage::kafka {
namespace {

using format::kafka::SegmentFile;
using format::kafka::SegmentFileName;

// Every segment here was made by load_segment() or by the log.
Segment& of_kafka(DataSegment& segment) { return static_cast<Segment&>(segment); }

constexpr std::size_t small_file_bytes_max = std::size_t{256} << 20;

Result<void> remove_if_there(fs::FileSystem& fs, const std::string& path) {
  auto removed = fs.remove(path);
  if (!removed && removed.error().code == Errc::not_found) return {};
  return removed;
}

}  // namespace

Result<void> KafkaLog::recover(const Evidence& evidence, Recovery& report) {
  LogRecovery recovery(*this, evidence, report);
  return recovery.run();
}

// Kafka log format, "Interrupted operations".
Result<void> LogRecovery::finish_interrupted() {
  fs::FileSystem& fs = log_.context_.fs;
  POLYLOG_ASSIGN(names, fs.list(log_.directory()));
  using Stage = format::kafka::FileStage;
  std::vector<std::pair<std::string, SegmentFileName>> files;
  std::optional<Offset> smallest_cleaned;
  for (const std::string& name : names) {
    POLYLOG_ASSIGN(file, format::kafka::parse_segment_file_name(name));
    if (!file || file->stage == Stage::live) continue;
    if (file->stage == Stage::cleaned) {
      smallest_cleaned = std::min(smallest_cleaned.value_or(file->offset), file->offset);
    }
    if (file->stage != Stage::swap) {
      POLYLOG_TRY(remove_if_there(fs, fs::join(log_.directory(), name)));
    } else {
      files.emplace_back(name, *file);
    }
  }
  std::vector<std::pair<std::string, SegmentFileName>> swaps;
  for (auto& file : files) {
    if (smallest_cleaned && file.second.offset >= *smallest_cleaned) {
      POLYLOG_TRY(remove_if_there(fs, fs::join(log_.directory(), file.first)));
    } else {
      swaps.push_back(std::move(file));
    }
  }
  return swaps.empty() ? Result<void>() : finish_swap(swaps);
}

Result<void> LogRecovery::finish_swap(
    const std::vector<std::pair<std::string, SegmentFileName>>& swaps) {
  fs::FileSystem& fs = log_.context_.fs;
  Offset low(std::numeric_limits<std::int64_t>::max()), high(0);
  for (const auto& [name, file] : swaps) {
    if (file.file != SegmentFile::log) continue;
    POLYLOG_ASSIGN(data, fs.open(fs::join(log_.directory(), name), fs::OpenMode::read));
    POLYLOG_ASSIGN(info, data->info());
    Offset end = file.offset;
    POLYLOG_TRY(scan(*data, 0, info.size, FormatDecoder(batch_frames), info.size,
                     [&](const ScanFrame& frame) {
                       end = format::kafka::decode_header(frame.bytes).last_offset() + 1;
                       return ScanStep::next;
                     })
                    .map([](const auto&) {}));
    low = std::min(low, file.offset);
    high = std::max(high, end);
  }
  POLYLOG_ASSIGN(names, fs.list(log_.directory()));
  for (const std::string& name : names) {
    POLYLOG_ASSIGN(file, format::kafka::parse_segment_file_name(name));
    if (file && file->stage == format::kafka::FileStage::live && file->offset >= low &&
        file->offset < high) {
      POLYLOG_TRY(remove_if_there(fs, fs::join(log_.directory(), name)));
    }
  }
  for (const auto& [name, file] : swaps) {
    const std::string to = format::kafka::segment_file_name(file.offset, file.file);
    POLYLOG_TRY(fs.rename(fs::join(log_.directory(), name), fs::join(log_.directory(), to)));
  }
  note("finished an interrupted segment replacement");
  return fs.sync_directory(log_.directory());
}

Result<void> LogRecovery::load_segments() {
  fs::FileSystem& fs = log_.context_.fs;
  POLYLOG_ASSIGN(names, fs.list(log_.directory()));
  std::vector<std::int64_t> bases;
  std::vector<std::pair<std::string, SegmentFileName>> others;
  for (const std::string& name : names) {
    POLYLOG_ASSIGN(file, format::kafka::parse_segment_file_name(name));
    if (!file) continue;
    if (file->file == SegmentFile::log) {
      bases.push_back(file->offset.value());
    } else if (file->file == SegmentFile::snapshot) {
      snapshots_.push_back(file->offset.value());
    } else {
      others.emplace_back(name, *file);
    }
  }
  std::sort(bases.begin(), bases.end());
  std::sort(snapshots_.begin(), snapshots_.end());
  for (const auto& [name, file] : others) {
    if (!std::binary_search(bases.begin(), bases.end(), file.offset.value())) {
      POLYLOG_TRY(remove_if_there(fs, fs::join(log_.directory(), name)));
    }
  }
  for (const std::int64_t base : bases) {
    POLYLOG_ASSIGN(segment, load_segment(base));
    segments().push_back(std::move(segment));
  }
  return {};
}

Result<std::shared_ptr<Segment>> LogRecovery::load_segment(std::int64_t base) {
  auto segment = std::make_shared<Segment>(log_.context_.for_segments(), log_.directory(), base);
  POLYLOG_TRY(load_data(*segment));
  POLYLOG_TRY(segment->count_entries());
  return segment;
}

Result<void> LogRecovery::load_epochs() {
  const std::string path = fs::join(log_.directory(), format::kafka::epoch_checkpoint_file);
  auto bytes = fs::read_file(log_.context_.fs, path, small_file_bytes_max);
  if (!bytes) {
    return bytes.error().code == Errc::not_found ? Result<void>() : fail(bytes.error());
  }
  auto entries = format::kafka::parse_epoch_checkpoint(as_text(*bytes));
  if (!entries) {
    // Epochs are in every batch header too; the scan brings back those it passes.
    note("leader-epoch-checkpoint does not read (" + entries.error().context + ")");
    epochs_changed();
    return {};
  }
  epochs() = EpochList(std::move(*entries));
  return {};
}

Result<bool> LogRecovery::use_point(DataSegment& data, const RecoveryPoint& point, Start& start) {
  Segment& segment = of_kafka(data);
  const auto aborted = segment.aborted_below(point.offset);
  if (!aborted) return false;
  if (!trim_indexes(segment, point.index_entries, point.time_entries, *aborted)) return false;
  const auto resume =
      segment.cut_to_whole_entries(point.index_entries, point.time_entries, point.position);
  if (!resume) return false;
  if (*resume) {
    ++report_.indexes_rebuilt;
    start.position = (*resume)->position;
    start.offset = (*resume)->offset;
    return true;
  }
  return segment.load_last_time(point.offset).has_value() && segment.largest_time().has_value();
}

Result<LogRecovery::Start> LogRecovery::start_without_point() {
  Start start{segments().size() - 1, 0, segments().back()->base};
  std::int64_t limit = std::numeric_limits<std::int64_t>::max();
  if (!evidence_.clean) {
    while (start.segment > 0 && segments()[start.segment]->base > evidence_.recovery_point) {
      --start.segment;
    }
    start.offset = segments()[start.segment]->base;
    limit = start.offset;
  } else if (segments().back()->sums.size() > 0) {
    POLYLOG_ASSIGN(position, of_kafka(*segments().back()).last_indexed());
    start.position = position;
    if (position > 0) start.offset = 0;
  }
  POLYLOG_ASSIGN(snapshot, load_snapshot(limit));
  producers_from_ = snapshot.value_or(evidence_.clean ? limit : 0);
  // Without a snapshot at or above the start, the scan goes back to where the state is known.
  while (start.segment > 0 && producers_from_ < segments()[start.segment]->base) {
    --start.segment;
    start.position = 0;
    start.offset = segments()[start.segment]->base;
  }
  return start;
}

// As Kafka does: one that does not read goes, and the next older one counts.
Result<std::optional<std::int64_t>> LogRecovery::load_snapshot(std::int64_t limit) {
  for (auto offset = snapshots_.rbegin(); offset != snapshots_.rend(); ++offset) {
    if (*offset > limit) continue;
    POLYLOG_ASSIGN(snapshot, read_snapshot(*offset));
    if (!snapshot) continue;
    producers() = std::move(*snapshot);
    return std::optional(*offset);
  }
  return std::optional<std::int64_t>();
}

Result<std::optional<ProducerState>> LogRecovery::read_snapshot(std::int64_t offset) {
  const std::string path = log_.snapshot_path(offset);
  POLYLOG_ASSIGN(bytes, fs::read_file(log_.context_.fs, path, small_file_bytes_max));
  auto snapshot = format::kafka::decode_snapshot(bytes);
  if (snapshot) return std::optional(std::move(*snapshot));
  note(path + " does not read and is removed (" + snapshot.error().context + ")");
  POLYLOG_TRY(remove_if_there(log_.context_.fs, path));
  return std::optional<ProducerState>();
}

Result<void> LogRecovery::trim_indexes(Segment& segment, std::uint32_t index, std::uint32_t time,
                                       std::uint32_t aborted) {
  segment.index_entries = std::min(segment.index_entries, index);
  segment.time_entries = std::min(segment.time_entries, time);
  segment.aborted_entries = std::min(segment.aborted_entries, aborted);
  segment.last_time.reset();
  return segment.trim_indexes();
}

Result<void> LogRecovery::prepare_scan(DataSegment& data, std::uint64_t position) {
  Segment& segment = of_kafka(data);
  if (position > 0) return segment.load_times();
  if (segment.index_entries > 0 && !evidence_.clean) ++report_.indexes_rebuilt;
  // Transactions that ended below what the scan replays are known from the index alone.
  POLYLOG_ASSIGN(aborted, segment.aborted_below(producers_from_));
  POLYLOG_TRY(trim_indexes(segment, 0, 0, aborted));
  return segment.largest_time().map([](const auto&) {});
}

bool LogRecovery::wants_indexes(const DataSegment& segment) const {
  return static_cast<const Segment&>(segment).wants_indexes();
}

Result<void> LogRecovery::drop_indexes(DataSegment& segment) {
  Segment& of = of_kafka(segment);
  POLYLOG_TRY(trim_indexes(of, 0, 0, of.aborted_entries));
  return of.largest_time().map([](const auto&) {});
}

void LogRecovery::save_indexes(DataSegment& data) {
  Segment& segment = of_kafka(data);
  const Segment::Unsaved unsaved = segment.unsaved();
  if (auto saved = segment.save(unsaved); saved) segment.saved(unsaved);
}

bool LogRecovery::possible(const DataSegment& segment, const BatchInfo& frame) const {
  return frame.last.value() - segment.base <= std::numeric_limits<std::int32_t>::max();
}

Result<void> LogRecovery::load_times(DataSegment& segment) {
  return of_kafka(segment).load_times();
}

// A snapshot beyond the end describes batches that are gone. One that the crash came before the
// sync of may be there by name alone; Kafka's recovery point stays below it until then.
Result<void> LogRecovery::finish_layout(std::int64_t end) {
  for (const std::int64_t offset : snapshots_) {
    if (offset > end) {
      POLYLOG_TRY(remove_if_there(log_.context_.fs, log_.snapshot_path(offset)));
    } else if (!evidence_.clean && offset >= evidence_.recovery_point) {
      POLYLOG_TRY(read_snapshot(offset).map([](const auto&) {}));
    }
  }
  return {};
}

}  // namespace polylog::storage::kafka
