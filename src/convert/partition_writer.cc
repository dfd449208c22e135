#include "convert/partition_writer.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "format/kafka/names.h"
#include "format/kafka/records.h"
#include "format/rocketmq/message.h"
#include "format/rocketmq/property_crc.h"
#include "storage/rocketmq/queue.h"

namespace polylog::convert {
namespace {

using storage::Layout;
using storage::LogChunk;
using storage::PartitionLog;
namespace kafka = format::kafka;
namespace rocketmq = format::rocketmq;

// Also where the first record shows the start already: a layout may want it noted.
Result<void> raise_start(PartitionLog& log, Offset start) {
  if (log.offsets().start > start) return {};
  return log.advance_start(start);
}

// ------------------------------------------------------------------------------ log per partition

// A layout whose logs are the partitions': a chunk is batches as they are. Small ones go together:
// each chunk costs a write.
class OwnLogWriter : public PartitionWriter {
 public:
  using PartitionWriter::PartitionWriter;

  Result<void> write(const std::vector<Batch>& batches) override {
    for (std::size_t from = 0; from < batches.size();) {
      std::size_t bytes = batches[from].bytes.size();
      std::size_t to = from + 1;
      while (to < batches.size() && bytes + batches[to].bytes.size() <= chunk_bytes_max &&
             may_join(batches[from], batches[to])) {
        bytes += batches[to++].bytes.size();
      }
      POLYLOG_TRY(write_chunk(std::span(batches).subspan(from, to - from), bytes));
      from = to;
    }
    return {};
  }

  Result<void> finish(OffsetRange range) override {
    while (log_->offsets().end < range.end) POLYLOG_TRY(pass_over(range.end));
    return raise_start(*log_, range.start);
  }

 private:
  static constexpr std::size_t chunk_bytes_max = std::size_t{4} << 20;

  virtual Result<void> pass_over(Offset end) = 0;
  virtual bool may_join(const Batch&, const Batch&) const { return true; }
  virtual Result<void> before_chunk(const Batch&) { return {}; }

  Result<void> write_chunk(std::span<const Batch> batches, std::size_t bytes) {
    POLYLOG_TRY(before_chunk(batches.front()));
    LogChunk chunk{LogPosition(batches.front().info.first.value()),
                   LogPosition(batches.back().info.last.value() + 1), batches.front().bytes};
    if (batches.size() > 1) {
      std::vector<std::uint8_t> joined;
      joined.reserve(bytes);
      for (const Batch& batch : batches) {
        const ByteView view = batch.bytes.view();
        joined.insert(joined.end(), view.begin(), view.end());
      }
      chunk.bytes = Slice::of(std::move(joined));
    }
    return log_->log()->append_chunk(chunk).map([](const auto&) {});
  }
};

class KafkaWriter final : public OwnLogWriter {
 public:
  using OwnLogWriter::OwnLogWriter;

 private:
  // An empty batch that takes the offsets, as compaction leaves behind.
  Result<void> pass_over(Offset end) override {
    kafka::BatchOptions options;
    options.base_offset = log_->offsets().end;
    options.epoch = std::max(log_->log()->epoch(), LeaderEpoch(0));
    options.last_offset_delta =
        static_cast<std::int32_t>(std::min<std::int64_t>(end - options.base_offset, INT32_MAX) - 1);
    kafka::BatchBuilder builder(options);
    POLYLOG_ASSIGN(bytes, builder.finish());
    Batch batch;
    batch.info = kafka::to_info(kafka::decode_header(bytes));
    batch.bytes = Slice::of(std::move(bytes));
    return write({batch});
  }
};

// A log that begins above 0 has its first segment named after that, as after a deletion in Kafka.
// The engine takes a directory that is there for one that a crash left half made.
Result<void> lay_first_segment(const NewPartition& partition, Offset base) {
  const std::string directory =
      fs::join(partition.store_directory, kafka::partition_directory_name(partition.id));
  POLYLOG_TRY(fs::create_directories(partition.fs, directory));
  const std::string path =
      fs::join(directory, kafka::segment_file_name(base, kafka::SegmentFile::log));
  return partition.fs.open(path, fs::OpenMode::create).map([](const auto&) {});
}

Result<std::unique_ptr<PartitionWriter>> open_kafka(const NewPartition& partition) {
  std::shared_ptr<PartitionLog> log = partition.store.find(partition.id);
  if (log == nullptr) {
    const Offset base = std::min(partition.range.start, partition.first);
    if (base > Offset(0)) POLYLOG_TRY(lay_first_segment(partition, base));
    POLYLOG_ASSIGN(made, partition.store.create(partition.id, partition.topic, partition.config));
    log = std::move(made);
  }
  return std::make_unique<KafkaWriter>(std::move(log));
}

// Frames don't carry epochs: the log notes where each begins.
class SegmentWriter final : public OwnLogWriter {
 public:
  using OwnLogWriter::OwnLogWriter;

 private:
  static LeaderEpoch epoch_of(const Batch& batch) {
    return std::max(batch.info.epoch, LeaderEpoch(0));
  }
  bool may_join(const Batch& first, const Batch& next) const override {
    return epoch_of(first) == epoch_of(next);
  }
  Result<void> before_chunk(const Batch& first) override {
    const LeaderEpoch epoch = epoch_of(first);
    if (begun_ == epoch) return {};
    begun_ = epoch;
    auto begun = log_->log()->begin_epoch(epoch);
    // One that was over when it came stands among the records of the later one.
    return begun || begun.error().code == Errc::fenced ? Result<void>() : begun;
  }

  // A chunk without frames: no file shows it, the store's notes keep the end.
  Result<void> pass_over(Offset end) override {
    const Offset before = log_->offsets().end;
    const LogChunk chunk{LogPosition(before.value()), LogPosition(end.value()), {}};
    POLYLOG_TRY(log_->log()->append_chunk(chunk).map([](const auto&) {}));
    if (log_->offsets().end == end) return {};
    return fail(Errc::unsupported, "offset " + std::to_string(before.value()) +
                                       ": the layout can't keep offsets without a record at the "
                                       "end of a partition");
  }

  std::optional<LeaderEpoch> begun_;
};

Result<std::unique_ptr<PartitionWriter>> open_segment(const NewPartition& partition) {
  std::shared_ptr<PartitionLog> log = partition.store.find(partition.id);
  if (log == nullptr) {
    POLYLOG_ASSIGN(made, partition.store.create(partition.id, partition.topic, partition.config));
    log = std::move(made);
  }
  return std::make_unique<SegmentWriter>(std::move(log));
}

// ------------------------------------------------------------------------------------ shared log

// RocketMQ's commit log: records are placed one behind the other, whoever's they are. A batch stays
// in one file where it fits.
class CommitLogWriter final : public PartitionWriter {
 public:
  CommitLogWriter(std::shared_ptr<storage::rocketmq::Queue> queue, const NewPartition& partition)
      : PartitionWriter(queue),
        queue_(std::move(queue)),
        clock_(partition.clock),
        file_bytes_(static_cast<std::uint64_t>(partition.shared.commit_log_file_bytes)),
        log_append_time_(partition.log_append_time),
        end_(log_->offsets().end) {}

  Offset end() const override { return end_; }

  Result<void> write(const std::vector<Batch>& batches) override {
    for (const Batch& batch : batches) {
      POLYLOG_TRY(put(batch.bytes.view()));
      end_ = std::max(end_, batch.info.last + 1);
    }
    return {};
  }

  Result<void> finish(OffsetRange range) override {
    POLYLOG_TRY(flush());
    POLYLOG_TRY(queue_->advance_end(range.end));
    end_ = range.end;
    return raise_start(*log_, range.start);
  }

 private:
  static constexpr std::size_t buffer_bytes_max = 1 << 20;

  std::uint64_t position() const {
    return static_cast<std::uint64_t>(log_->log()->end().value()) + buffer_.size();
  }

  Result<void> put(ByteView frames) {
    const std::uint64_t room = file_bytes_ - rocketmq::blank_bytes;
    if (frames.size() > room) return put_singly(frames, room);
    if (position() % file_bytes_ + frames.size() > room) POLYLOG_TRY(begin_file());
    POLYLOG_TRY(rocketmq::for_each_message(
        frames, [&](ByteView record, const rocketmq::Message& message) -> Result<void> {
          place(record, message);
          return {};
        }));
    return buffer_.size() < buffer_bytes_max ? Result<void>() : flush();
  }

  Result<void> put_singly(ByteView frames, std::uint64_t room) {
    return rocketmq::for_each_message(
        frames, [&](ByteView record, const rocketmq::Message& message) -> Result<void> {
          if (record.size() <= room) return put(record);
          return fail(Errc::too_large,
                      "offset " + std::to_string(message.queue_offset) + ": a record of " +
                          std::to_string(record.size()) +
                          " bytes does not fit into a commit log file (mappedFileSizeCommitLog)");
        });
  }

  // Where the source says nothing of when a broker took the record, this one does now.
  std::int64_t store_time(const rocketmq::Message& message) const {
    if (message.store_timestamp != 0) return message.store_timestamp;
    return log_append_time_ ? message.born_timestamp : clock_.now().value();
  }

  void place(ByteView record, const rocketmq::Message& message) {
    const rocketmq::Placement placement{message.queue_offset, static_cast<std::int64_t>(position()),
                                        store_time(message)};
    const std::size_t at = buffer_.size();
    buffer_.insert(buffer_.end(), record.begin(), record.end());
    const MutableBytes placed = MutableBytes(buffer_).subspan(at);
    rocketmq::patch_placement(placed, placement);
    if (rocketmq::has_property_crc_room(placed)) rocketmq::patch_property_crc(placed);
  }

  Result<void> flush() {
    if (buffer_.empty()) return {};
    LogChunk chunk;
    chunk.start = log_->log()->end();
    chunk.end = chunk.start + static_cast<std::int64_t>(buffer_.size());
    chunk.bytes = Slice::of(std::exchange(buffer_, {}));
    return log_->log()->append_chunk(chunk).map([](const auto&) {});
  }

  Result<void> begin_file() {
    POLYLOG_TRY(flush());
    LogChunk chunk;
    chunk.start = log_->log()->end();
    const std::uint64_t left = file_bytes_ - position() % file_bytes_;
    const auto blank = rocketmq::blank_record(static_cast<std::int32_t>(left));
    chunk.end = chunk.start + static_cast<std::int64_t>(left);
    chunk.bytes = Slice::copy_of(blank);
    return log_->log()->append_chunk(chunk).map([](const auto&) {});
  }

  const std::shared_ptr<storage::rocketmq::Queue> queue_;
  const Clock& clock_;
  const std::uint64_t file_bytes_;
  const bool log_append_time_;
  Offset end_;
  std::vector<std::uint8_t> buffer_;  // placed from the log's end on
};

Result<std::unique_ptr<PartitionWriter>> open_rocketmq(const NewPartition& partition) {
  std::shared_ptr<PartitionLog> log = partition.store.find(partition.id);
  if (log == nullptr) {
    POLYLOG_ASSIGN(made, partition.store.create(partition.id, partition.topic, partition.config));
    log = std::move(made);
  }
  auto queue = std::dynamic_pointer_cast<storage::rocketmq::Queue>(log);
  if (queue == nullptr) return fail(Errc::unsupported, "no store of RocketMQ's layout");
  // Also where it is there already: where it begins is settled, gaps come after it.
  POLYLOG_TRY(queue->advance_end(std::max(partition.range.start, queue->offsets().end)));
  return std::make_unique<CommitLogWriter>(std::move(queue), partition);
}

struct Opener {
  Layout layout;
  Result<std::unique_ptr<PartitionWriter>> (*open)(const NewPartition&);
};
constexpr Opener openers[] = {
    {Layout::kafka, open_kafka},
    {Layout::rocketmq, open_rocketmq},
    {Layout::segment, open_segment},
};

}  // namespace

Result<std::unique_ptr<PartitionWriter>> open_writer(Layout layout, const NewPartition& partition) {
  // What is there must be a beginning of what is to come; anything else is made again.
  if (const auto there = partition.store.find(partition.id)) {
    const OffsetRange range = there->offsets();
    const bool begins = range.start <= partition.range.start && range.end <= partition.range.end;
    if (!begins) POLYLOG_TRY(partition.store.remove(partition.id));
  }
  for (const Opener& opener : openers) {
    if (opener.layout == layout) return opener.open(partition);
  }
  return fail(Errc::unsupported, "nothing here writes that layout");
}

}  // namespace polylog::convert
