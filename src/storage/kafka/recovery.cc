#include "storage/kafka/recovery.h"

#include <algorithm>
#include <limits>

#include "format/kafka/checkpoint.h"
#include "format/kafka/names.h"
#include "format/kafka/snapshot.h"
#include "storage/filelog/producer_note.h"

namespace polylog::storage::kafka {
namespace {

using format::kafka::SegmentFile;
using format::kafka::SegmentFileName;

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

Result<void> LogRecovery::run() {
  const std::lock_guard lock(log_.mutex_);
  POLYLOG_TRY(finish_interrupted());
  POLYLOG_TRY(load_segments());
  if (log_.segments_.empty()) {
    POLYLOG_ASSIGN(segment, log_.make_segment(std::max<std::int64_t>(evidence_.log_start, 0)));
    log_.segments_.push_back(std::move(segment));
  }
  POLYLOG_TRY(load_epochs());
  POLYLOG_ASSIGN(start, choose_start());
  POLYLOG_TRY(scan_from(start));
  return finish();
}

void LogRecovery::note(const std::string& text) {
  report_.notes.push_back(log_.directory_ + ": " + text);
}

// Kafka log format, "Interrupted operations".
Result<void> LogRecovery::finish_interrupted() {
  fs::FileSystem& fs = log_.context_.fs;
  POLYLOG_ASSIGN(names, fs.list(log_.directory_));
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
      POLYLOG_TRY(remove_if_there(fs, fs::join(log_.directory_, name)));
    } else {
      files.emplace_back(name, *file);
    }
  }
  std::vector<std::pair<std::string, SegmentFileName>> swaps;
  for (auto& file : files) {
    if (smallest_cleaned && file.second.offset >= *smallest_cleaned) {
      POLYLOG_TRY(remove_if_there(fs, fs::join(log_.directory_, file.first)));
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
    POLYLOG_ASSIGN(data, fs.open(fs::join(log_.directory_, name), fs::OpenMode::read));
    POLYLOG_ASSIGN(info, data->info());
    Offset end = file.offset;
    POLYLOG_TRY(scan(*data, 0, info.size, BatchDecoder(), info.size, [&](const ScanFrame& frame) {
                  end = format::kafka::decode_header(frame.bytes).last_offset() + 1;
                  return ScanStep::next;
                }).map([](const auto&) {}));
    low = std::min(low, file.offset);
    high = std::max(high, end);
  }
  POLYLOG_ASSIGN(names, fs.list(log_.directory_));
  for (const std::string& name : names) {
    POLYLOG_ASSIGN(file, format::kafka::parse_segment_file_name(name));
    if (file && file->stage == format::kafka::FileStage::live && file->offset >= low &&
        file->offset < high) {
      POLYLOG_TRY(remove_if_there(fs, fs::join(log_.directory_, name)));
    }
  }
  for (const auto& [name, file] : swaps) {
    const std::string to = format::kafka::segment_file_name(file.offset, file.file);
    POLYLOG_TRY(fs.rename(fs::join(log_.directory_, name), fs::join(log_.directory_, to)));
  }
  note("finished an interrupted segment replacement");
  return fs.sync_directory(log_.directory_);
}

Result<void> LogRecovery::load_segments() {
  fs::FileSystem& fs = log_.context_.fs;
  POLYLOG_ASSIGN(names, fs.list(log_.directory_));
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
      POLYLOG_TRY(remove_if_there(fs, fs::join(log_.directory_, name)));
    }
  }
  for (const std::int64_t base : bases) {
    POLYLOG_ASSIGN(segment, load_segment(base));
    log_.segments_.push_back(std::move(segment));
  }
  for (std::size_t i = 0; i + 1 < log_.segments_.size(); ++i) log_.segments_[i]->sealed = true;
  return {};
}

Result<std::shared_ptr<Segment>> LogRecovery::load_segment(std::int64_t base) {
  auto segment = std::make_shared<Segment>(
      SegmentContext{log_.context_.fs, log_.context_.clock, log_.context_.files}, log_.directory_,
      base);
  POLYLOG_ASSIGN(info, log_.context_.fs.info(segment->path(format::kafka::SegmentFile::log)));
  segment->size = info.size;
  segment->inode = info.inode;
  POLYLOG_TRY(segment->count_entries());
  if (const FileNote* known = file_note(*segment)) {
    segment->sums = known->sums;
    segment->expect(known->sums);
    if (info.size < known->sums.size()) {
      note(segment->path(SegmentFile::log) + " is " +
           std::to_string(known->sums.size() - info.size) +
           " bytes shorter than what was durable; what is left is served");
      segment->sums.clear();
    }
  }
  return segment;
}

const FileNote* LogRecovery::file_note(const Segment& segment) const {
  if (evidence_.note == nullptr) return nullptr;
  const auto found = evidence_.note->files.find(segment.base);
  if (found == evidence_.note->files.end()) return nullptr;
  // Another inode is another file: ours was replaced.
  return found->second.inode == segment.inode ? &found->second : nullptr;
}

std::uint64_t LogRecovery::durable_bytes(const Segment& segment) const {
  if (evidence_.clean) return segment.size;
  const FileNote* const known = file_note(segment);
  return known == nullptr ? 0 : std::min(known->sums.size(), segment.size);
}

Result<void> LogRecovery::load_epochs() {
  const std::string path = fs::join(log_.directory_, format::kafka::epoch_checkpoint_file);
  auto bytes = fs::read_file(log_.context_.fs, path, small_file_bytes_max);
  if (!bytes) {
    return bytes.error().code == Errc::not_found ? Result<void>() : fail(bytes.error());
  }
  auto entries = format::kafka::parse_epoch_checkpoint(as_text(*bytes));
  if (!entries) {
    // Epochs are in every batch header too; the scan brings back those it passes.
    note("leader-epoch-checkpoint does not read (" + entries.error().context + ")");
    log_.epochs_dirty_ = true;
    return {};
  }
  log_.epochs_ = EpochList(std::move(*entries));
  return {};
}

bool LogRecovery::use_recovery_point(Start& start) {
  if (evidence_.note == nullptr || !evidence_.note->recovery) return false;
  const RecoveryPoint& point = *evidence_.note->recovery;
  for (std::size_t i = 0; i < log_.segments_.size(); ++i) {
    Segment& segment = *log_.segments_[i];
    if (segment.base != point.base) continue;
    const FileNote* const known = file_note(segment);
    // An empty file has no sums yet: its inode tells that it is the same one.
    if (known == nullptr || segment.size < point.position || known->sums.size() < point.position) {
      return false;
    }
    auto producers = decode_producers(point.producers);
    if (!producers) return false;
    log_.producers_ = std::move(*producers);
    start = {i, point.position, point.offset};
    segment.max_timestamp = point.max_timestamp;
    segment.max_timestamp_offset = point.max_timestamp_offset;
    segment.first_timestamp = point.first_timestamp;
    log_.epochs_ = EpochList(point.epochs);
    producers_from_ = point.offset;
    if (segment.index_entries < point.index_entries || segment.time_entries < point.time_entries) {
      // Index files are not synced on their own: this one lost entries and is made again.
      start.position = 0;
      start.offset = segment.base;
      return true;
    }
    const auto aborted = segment.aborted_below(point.offset);
    return aborted && trim_indexes(segment, point.index_entries, point.time_entries, *aborted);
  }
  return false;
}

Result<LogRecovery::Start> LogRecovery::choose_start() {
  Start start;
  if (use_recovery_point(start)) return start;
  log_.producers_.clear();
  start = {log_.segments_.size() - 1, 0, log_.segments_.back()->base};
  std::int64_t limit = std::numeric_limits<std::int64_t>::max();
  if (!evidence_.clean) {
    while (start.segment > 0 && log_.segments_[start.segment]->base > evidence_.recovery_point) {
      --start.segment;
    }
    start.offset = log_.segments_[start.segment]->base;
    limit = start.offset;
  } else if (log_.segments_.back()->sums.size() > 0) {
    POLYLOG_ASSIGN(position, log_.segments_.back()->last_indexed());
    start.position = position;
    if (position > 0) start.offset = 0;
  }
  POLYLOG_ASSIGN(snapshot, load_snapshot(limit));
  producers_from_ = snapshot.value_or(evidence_.clean ? limit : 0);
  // Without a snapshot at or above the start, the scan goes back to where the state is known.
  while (start.segment > 0 && producers_from_ < log_.segments_[start.segment]->base) {
    --start.segment;
    start.position = 0;
    start.offset = log_.segments_[start.segment]->base;
  }
  return start;
}

Result<std::optional<std::int64_t>> LogRecovery::load_snapshot(std::int64_t limit) {
  for (auto offset = snapshots_.rbegin(); offset != snapshots_.rend(); ++offset) {
    if (*offset > limit) continue;
    const std::string path = log_.snapshot_path(*offset);
    POLYLOG_ASSIGN(bytes, fs::read_file(log_.context_.fs, path, small_file_bytes_max));
    auto producers = format::kafka::decode_snapshot(bytes);
    if (!producers) {
      note(path + " does not read and is passed over");
      continue;
    }
    log_.producers_ = std::move(*producers);
    return std::optional(*offset);
  }
  return std::optional<std::int64_t>();
}

Result<void> LogRecovery::trim_indexes(Segment& segment, std::uint32_t index, std::uint32_t time,
                                       std::uint32_t aborted) {
  segment.index_entries = std::min(segment.index_entries, index);
  segment.time_entries = std::min(segment.time_entries, time);
  segment.aborted_entries = std::min(segment.aborted_entries, aborted);
  segment.last_time.reset();
  POLYLOG_TRY(segment.trim_index_files());
  return segment.largest_time().map([](const auto&) {});
}

Result<void> LogRecovery::scan_from(const Start& start) {
  next_ = start.offset;
  for (std::size_t i = 0; i < log_.segments_.size(); ++i) {
    Segment& segment = *log_.segments_[i];
    if (i < start.segment) {
      if (segment.wants_indexes()) POLYLOG_TRY(rebuild_indexes(segment));
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

// True when what is missing between this segment's end and the next one's base was never
// durable: then nothing behind it was either, only the names had reached the disk. A gap below
// the durable end is one that compaction left.
bool LogRecovery::never_reached(std::size_t index) const {
  if (evidence_.clean || index + 1 >= log_.segments_.size()) return false;
  if (next_ >= log_.segments_[index + 1]->base) return false;
  if (evidence_.note != nullptr) return next_ >= evidence_.note->durable.value();
  return std::all_of(log_.segments_.begin() + static_cast<std::ptrdiff_t>(index) + 1,
                     log_.segments_.end(), [](const auto& later) { return later->size == 0; });
}

ScanStep LogRecovery::visit(Segment& segment, const ScanFrame& frame) {
  const auto header = format::kafka::decode_header(frame.bytes);
  const std::int64_t last = header.last_offset().value();
  if (header.base_offset.value() < std::max(next_, segment.base) ||
      last - segment.base > std::numeric_limits<std::int32_t>::max() ||
      !format::kafka::crc_matches(frame.bytes)) {
    return ScanStep::corrupt;
  }
  const BatchInfo info = format::kafka::to_info(header);
  if (last >= producers_from_) {
    // A marker that does not parse has a good checksum: it was written that way.
    if (auto noted = log_.note_state(info, frame.bytes, &segment); !noted) return ScanStep::corrupt;
  }
  if (info.epoch > log_.epochs_.latest() && info.epoch != no_epoch) {
    log_.epochs_.assign(info.epoch, LogPosition(info.first.value()));
    log_.epochs_dirty_ = true;
  }
  if (frame.position >= segment.sums.size() && segment.sums.size() == frame.position) {
    segment.sums.add_frame(frame.bytes);
  }
  segment.note_batch(info, frame.position, frame.bytes.size(), log_.config_);
  next_ = last + 1;
  return ScanStep::next;
}

Result<void> LogRecovery::scan_segment(std::size_t index, std::uint64_t position) {
  const std::shared_ptr<Segment> segment = log_.segments_[index];
  const std::uint64_t size = segment->size;
  const std::uint64_t from = position;
  if (position == 0) {
    if (segment->index_entries > 0 && !evidence_.clean) ++report_.indexes_rebuilt;
    // Transactions that ended below what the scan replays are known from the index alone.
    POLYLOG_ASSIGN(aborted, segment->aborted_below(producers_from_));
    POLYLOG_TRY(trim_indexes(*segment, 0, 0, aborted));
  } else {
    POLYLOG_TRY(segment->load_times());
  }
  POLYLOG_ASSIGN(file, segment->data());
  while (index < log_.segments_.size()) {
    POLYLOG_ASSIGN(end, scan(*file, position, size, BatchDecoder(), size,
                             [&](const ScanFrame& frame) { return visit(*segment, frame); }));
    if (end.position >= size) break;
    POLYLOG_ASSIGN(again, handle_damage(index, end, position));
    if (!again) break;
  }
  report_.bytes_scanned += size - from;
  const std::uint64_t durable = std::max(durable_bytes(*segment), from);
  if (!evidence_.clean && segment->size > durable) POLYLOG_TRY(rewrite(*segment, durable));
  segment->durable_bytes = segment->size;
  segment->durable_tail = segment->sums.tail();
  if (segment->sealed) {
    segment->close_time_index();
    save_indexes(*segment);
  }
  return {};
}

// Written when there is room for it; until then the entries serve from memory.
void LogRecovery::save_indexes(Segment& segment) {
  const Segment::Unsaved unsaved = segment.unsaved();
  if (auto saved = segment.save(unsaved); saved) segment.saved(unsaved);
}

Result<bool> LogRecovery::handle_damage(std::size_t index, const ScanEnd& end,
                                        std::uint64_t& position) {
  Segment& segment = *log_.segments_[index];
  const FileNote* const known = file_note(segment);
  // After an orderly stop everything was durable.
  const std::uint64_t durable = evidence_.clean    ? segment.size
                                : known == nullptr ? 0
                                                   : known->sums.size();
  if (end.position >= durable) {
    POLYLOG_TRY(cut(index, end.position));
    return false;
  }
  const auto next = segment.next_frame_after(end.position);
  position = std::min(next.value_or(durable), segment.size);
  note(segment.path(SegmentFile::log) + ": bytes " + std::to_string(end.position) + " to " +
       std::to_string(position) + " were durable and no longer read; offsets from " +
       std::to_string(next_) + " up to the next good batch are lost, the rest is served");
  damaged_tail_ = position >= segment.size && index + 1 == log_.segments_.size();
  return position < segment.size;
}

Result<void> LogRecovery::cut(std::size_t index, std::uint64_t position) {
  const std::shared_ptr<Segment> segment = log_.segments_[index];
  report_.bytes_truncated += segment->size - position;
  POLYLOG_ASSIGN(file, segment->data());
  POLYLOG_TRY(file->truncate(position));
  segment->size = position;
  segment->held = file;
  segment->dirty = true;
  // What lies behind a torn batch was written after it and is as little durable.
  while (log_.segments_.size() > index + 1) {
    report_.bytes_truncated += log_.segments_.back()->size;
    POLYLOG_TRY(log_.segments_.back()->remove_files());
    log_.segments_.pop_back();
  }
  segment->sealed = false;
  log_.directory_dirty_ = true;
  return {};
}

Result<void> LogRecovery::rebuild_indexes(Segment& segment) {
  ++report_.indexes_rebuilt;
  POLYLOG_TRY(trim_indexes(segment, 0, 0, segment.aborted_entries));
  POLYLOG_ASSIGN(file, segment.data());
  POLYLOG_TRY(
      scan(*file, 0, segment.size, BatchDecoder(), segment.size, [&](const ScanFrame& frame) {
        const auto header = format::kafka::decode_header(frame.bytes);
        segment.note_batch(format::kafka::to_info(header), frame.position, frame.bytes.size(),
                           log_.config_);
        return ScanStep::next;
      }).map([](const auto&) {}));
  report_.bytes_scanned += segment.size;
  segment.close_time_index();
  save_indexes(segment);
  return {};
}

// A file without sums (another program wrote it) gets them once, so that later damage shows.
Result<void> LogRecovery::sum_up(Segment& segment) {
  segment.sums.clear();
  POLYLOG_ASSIGN(file, segment.data());
  POLYLOG_ASSIGN(
      end, scan(*file, 0, segment.size, BatchDecoder(), segment.size, [&](const ScanFrame& frame) {
        segment.sums.add_frame(frame.bytes);
        return ScanStep::next;
      }));
  report_.bytes_scanned += end.position;
  return {};
}

// Pages that look clean after a failed sync or a kill are not believed: written again, they are
// dirty again, and the sync that follows covers them.
Result<void> LogRecovery::rewrite(Segment& segment, std::uint64_t from) {
  POLYLOG_ASSIGN(file, segment.data());
  std::vector<std::uint8_t> chunk(std::min<std::uint64_t>(segment.size - from, 1 << 20));
  for (std::uint64_t at = from; at < segment.size;) {
    const auto want =
        static_cast<std::size_t>(std::min<std::uint64_t>(chunk.size(), segment.size - at));
    POLYLOG_ASSIGN(got, file->read(at, MutableBytes(chunk).first(want)));
    if (got == 0)
      return fail(Errc::io,
                  segment.path(format::kafka::SegmentFile::log) + " shrank while it was read");
    POLYLOG_TRY(file->write(at, ByteView(chunk).first(got)));
    at += got;
  }
  segment.held = std::move(file);
  segment.dirty = true;
  return {};
}

Result<void> LogRecovery::finish() {
  fs::FileSystem& fs = log_.context_.fs;
  std::int64_t end = std::max(next_, log_.segments_.back()->base);
  // Lost batches at the very end still had their offsets: they are not given again.
  if (evidence_.note != nullptr) end = std::max(end, evidence_.note->durable.value());
  if (evidence_.clean) end = std::max(end, evidence_.recovery_point);
  if (damaged_tail_) {
    // Nothing is written behind bytes that don't read: the log goes on in a segment of its own.
    log_.segments_.back()->close_time_index();
    log_.segments_.back()->sealed = true;
    POLYLOG_ASSIGN(segment, log_.make_segment(end));
    log_.segments_.push_back(std::move(segment));
  }
  if (end < evidence_.log_start) {
    for (const auto& segment : log_.segments_) POLYLOG_TRY(segment->remove_files());
    log_.segments_.clear();
    log_.producers_.clear();
    end = evidence_.log_start;
    POLYLOG_ASSIGN(segment, log_.make_segment(end));
    log_.segments_.push_back(std::move(segment));
    note("ended below its log start offset; begins again at " + std::to_string(end));
  }
  for (const std::int64_t offset : snapshots_) {
    if (offset <= end) continue;
    POLYLOG_TRY(remove_if_there(fs, log_.snapshot_path(offset)));
  }
  log_.staged_end_ = log_.written_end_ = log_.durable_end_ = end;
  log_.start_ = std::max(evidence_.log_start, log_.segments_.front()->base);
  if (log_.epochs_.truncate_end(LogPosition(end))) log_.epochs_dirty_ = true;
  if (log_.epochs_.truncate_start(LogPosition(log_.start_))) log_.epochs_dirty_ = true;
  log_.epoch_ = log_.epochs_.latest();
  log_.unclean_ = !evidence_.clean;
  log_.announced_before_ = evidence_.announced;
  Segment& last = *log_.segments_.back();
  last.sealed = false;
  if (last.size > 0) POLYLOG_TRY(last.load_times());
  return {};
}

}  // namespace polylog::storage::kafka
