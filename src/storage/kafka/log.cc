#include "storage/kafka/log.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "format/kafka/checkpoint.h"
#include "format/kafka/names.h"
#include "format/kafka/records.h"
#include "format/kafka/snapshot.h"

namespace polylog::storage::kafka {
namespace {

// Every segment in a KafkaLog was made by it or by its recovery.
Segment& of_kafka(DataSegment& segment) { return static_cast<Segment&>(segment); }

Result<fs::FilePtr> write_whole(fs::FileSystem& fs, const std::string& path, ByteView bytes) {
  POLYLOG_ASSIGN(file, fs.open(path, fs::OpenMode::create));
  Result<void> done = file->truncate(0);
  if (done && !bytes.empty()) done = file->write(0, bytes);
  if (!done) {
    // No file says more than half of one.
    static_cast<void>(fs.remove(path));
    return fail(done.error());
  }
  return file;
}

}  // namespace

KafkaLog::KafkaLog(RolledContext& context, TopicPartition id, const Uuid& topic,
                   std::string directory, const LogConfig& config)
    : RolledLog(context, batch_frames, std::move(id), topic, std::move(directory), config) {}

RolledLog::PlacedBytes KafkaLog::place(const Batch& batch, const BatchInfo& info) {
  PlacedBytes placed;
  placed.head_size = format::kafka::header_bytes;
  std::copy_n(batch.bytes.data(), placed.head_size, placed.head.begin());
  const auto head = std::span(placed.head).first<format::kafka::header_bytes>();
  format::kafka::patch_base_offset(head, info.first);
  format::kafka::patch_leader_epoch(head, info.epoch);
  placed.rest = batch.bytes.sub(placed.head_size, batch.bytes.size() - placed.head_size);
  return placed;
}

bool KafkaLog::must_roll_for(const BatchInfo& batch, std::uint64_t, std::uint64_t) const {
  return batch.last.value() - active().base > std::numeric_limits<std::int32_t>::max();
}

Result<std::shared_ptr<DataSegment>> KafkaLog::make_segment(std::int64_t base) {
  auto segment = std::make_shared<Segment>(context_.for_segments(), directory_, base);
  POLYLOG_TRY(begin_file(*segment));
  return std::shared_ptr<DataSegment>(std::move(segment));
}

std::vector<std::uint8_t> KafkaLog::sealed_state() const {
  return format::kafka::encode_snapshot(producers_);
}

Result<void> KafkaLog::note_state(const BatchInfo& batch, ByteView frame, DataSegment* segment) {
  if (batch.producer.id == no_producer) return {};
  if (!batch.control) {
    producers_.update(batch, LogPosition(0));
    return {};
  }
  if (batch.records == 0) return {};  // an emptied marker closes nothing
  POLYLOG_ASSIGN(marker, format::kafka::parse_control(frame));
  using Type = format::kafka::ControlType;
  if (marker.type != Type::commit && marker.type != Type::abort) return {};
  const auto aborted =
      producers_.end_transaction(batch, marker.type == Type::commit, marker.coordinator_epoch);
  if (aborted && segment != nullptr) of_kafka(*segment).note_aborted(*aborted);
  return {};
}

Result<void> KafkaLog::save_indexes(const std::shared_ptr<DataSegment>& segment,
                                    std::vector<fs::FilePtr>& files) {
  Segment& indexed = of_kafka(*segment);
  Segment::Unsaved unsaved;
  {
    const std::lock_guard lock(mutex_);
    unsaved = indexed.unsaved();
  }
  POLYLOG_ASSIGN(written, indexed.save(unsaved));
  const std::lock_guard lock(mutex_);
  indexed.saved(unsaved);
  // The file may be a new one.
  if (unsaved.aborted_from == 0 && !unsaved.aborted.empty()) directory_dirty_ = true;
  files.insert(files.end(), written.begin(), written.end());
  return {};
}

Result<void> KafkaLog::save_sealed_state(const Sealing& sealing, std::vector<fs::FilePtr>& files) {
  if (sealing.state.empty()) return {};
  POLYLOG_ASSIGN(file, write_whole(context_.fs, snapshot_path(sealing.end), sealing.state));
  files.push_back(std::move(file));
  return {};
}

// The epoch file is on the disk with the first batches of a new epoch; its sync is the round's.
Result<void> KafkaLog::prepare_round(DirtyLog& out) {
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    if (!epochs_dirty_) return {};
    text = format::kafka::format_epoch_checkpoint(epochs_.entries());
    epochs_dirty_ = false;
  }
  const std::string path = fs::join(directory_, format::kafka::epoch_checkpoint_file);
  auto file = write_whole(context_.fs, path + ".tmp", as_bytes(text));
  if (file) {
    if (auto renamed = context_.fs.rename(path + ".tmp", path); !renamed) {
      file = fail(renamed.error());
    }
  }
  const std::lock_guard lock(mutex_);
  if (file) {
    out.files.push_back(*file);
    directory_dirty_ = true;
  } else {
    epochs_dirty_ = true;  // every batch header says its epoch: the file can wait for room
  }
  return {};
}

Result<void> KafkaLog::write_epochs_file(const std::string& text) {
  const std::string path = fs::join(directory_, format::kafka::epoch_checkpoint_file);
  POLYLOG_ASSIGN(file, write_whole(context_.fs, path + ".tmp", as_bytes(text)));
  POLYLOG_TRY(file->sync());
  POLYLOG_TRY(context_.fs.rename(path + ".tmp", path));
  return directory_synced(context_.fs.sync_directory(directory_));
}

Result<void> KafkaLog::save_progress() {
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(epochs_dirty_, false)) return {};
    text = format::kafka::format_epoch_checkpoint(epochs_.entries());
  }
  auto wrote = write_epochs_file(text);
  if (!wrote) {
    const std::lock_guard lock(mutex_);
    epochs_dirty_ = true;
  }
  return wrote;
}

Result<void> KafkaLog::write_closing_state() {
  std::vector<std::uint8_t> snapshot;
  std::string epochs;
  std::int64_t end = 0;
  {
    const std::lock_guard lock(mutex_);
    snapshot = sealed_state();
    epochs = format::kafka::format_epoch_checkpoint(epochs_.entries());
    end = written_end_;
  }
  POLYLOG_TRY(write_whole(context_.fs, snapshot_path(end), snapshot).map([](const auto&) {}));
  const std::string path = fs::join(directory_, format::kafka::epoch_checkpoint_file);
  return write_whole(context_.fs, path, as_bytes(epochs)).map([](const auto&) {});
}

void KafkaLog::fill_point(RecoveryPoint& point) const {
  const Segment& segment = of_kafka(active());
  point.index_entries = segment.index_entries;
  point.time_entries = segment.time_entries;
}

std::optional<std::int64_t> KafkaLog::start_checkpoint() const {
  const std::lock_guard lock(mutex_);
  if (start_ <= segments_.front()->base) return std::nullopt;
  return start_;
}

std::int64_t KafkaLog::recovery_checkpoint() const {
  const std::lock_guard lock(mutex_);
  std::int64_t point = durable_end_;
  for (const auto& segment : segments_) {
    if (segment->sealed && !segment->index_synced) point = std::min(point, segment->base);
  }
  return point;
}

Result<std::vector<AbortedTransaction>> KafkaLog::aborted(OffsetRange range) const {
  std::vector<AbortedTransaction> found;
  for (const ReadPlan& plan : plan_from(range.start.value())) {
    POLYLOG_ASSIGN(entries, of_kafka(*plan.segment).aborted());
    for (const AbortedTransaction& entry : entries) {
      if (entry.last >= range.start && entry.first < range.end) found.push_back(entry);
      // What ends beyond the range can't have begun later markers inside it.
      if (entry.last_stable >= range.end) return found;
    }
  }
  return found;
}

std::string KafkaLog::snapshot_path(std::int64_t offset) const {
  return fs::join(directory_, format::kafka::segment_file_name(
                                  Offset(offset), format::kafka::SegmentFile::snapshot));
}

}  // namespace polylog::storage::kafka
