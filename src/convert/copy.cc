#include "convert/copy.h"

#include <algorithm>
#include <map>
#include <utility>

#include "format/kafka/records.h"

namespace polylog::convert {
namespace {

using storage::Layout;
using storage::PartitionLog;

constexpr std::size_t read_bytes = std::size_t{4} << 20;
constexpr std::size_t decompressed_bytes_max = std::size_t{1} << 30;

Result<std::vector<Batch>> read_some(const PartitionLog& log, Offset from, Offset end) {
  storage::ReadLimits limits;
  limits.bytes_max = read_bytes;
  limits.end = end;
  limits.first_whole = true;
  return log.read(from, limits);
}

// A batch that begins below `from`, without the frames there. Kafka's are never divided.
Result<Batch> without_below(Batch batch, Offset from) {
  if (batch.format == BatchFormat::kafka || batch.info.first >= from) return batch;
  std::size_t skip = 0;
  std::int32_t records = 0;
  POLYLOG_TRY(for_each_frame(batch.format, batch.bytes.view(), [&](const FrameView& frame) {
    if (frame.first < from) skip += frame.bytes.size();
    if (frame.first >= from && records++ == 0) batch.info.first = frame.first;
    return Result<void>();
  }));
  batch.info.records = records;
  batch.bytes = batch.bytes.sub(skip, batch.bytes.size() - skip);
  return batch;
}

std::uint64_t total_bytes(const std::vector<Batch>& batches) {
  std::uint64_t bytes = 0;
  for (const Batch& batch : batches) bytes += batch.bytes.size();
  return bytes;
}

// Some of the source's records, changed: what was read from `at` on, and where the next read goes.
struct Portion {
  std::vector<Batch> batches;
  Offset next;
};

Result<Portion> take_portion(const PartitionLog& log, Offset at, Offset end, BatchFormat to,
                             const Surroundings& around) {
  POLYLOG_ASSIGN(read, read_some(log, at, end));
  Portion portion{{}, end};
  if (read.empty()) return portion;
  POLYLOG_ASSIGN(changed, change(read, to, around));
  portion.next = read.back().info.last + 1;
  const bool may_stop_short = to == BatchFormat::kafka && read.front().format != to;
  if (may_stop_short && !changed.empty()) portion.next = changed.back().info.last + 1;
  for (Batch& batch : changed) {
    if (batch.info.last < at) continue;
    POLYLOG_ASSIGN(rest, without_below(std::move(batch), at));
    portion.batches.push_back(std::move(rest));
  }
  return portion;
}

}  // namespace

Result<void> copy_partition(const DataDirectory& source, Target& target, const PlannedTopic& topic,
                            std::int32_t partition, const broker::Settings& settings,
                            const CopyStep& step) {
  const std::shared_ptr<PartitionLog> log = source.find(topic.from, partition);
  const OffsetRange range = log == nullptr ? OffsetRange() : log->offsets();
  Target::Partition made;
  made.layout = topic.to.layout;
  made.id = {topic.to.record.name, partition};
  made.topic = topic.to.record.id;
  made.config = topic.config.log;
  made.log_append_time = topic.config.timestamp_type == broker::TimestampType::log_append_time;
  made.range = range;
  made.first = range.start;
  if (!range.empty()) {
    POLYLOG_ASSIGN(read, read_some(*log, range.start, range.end));
    if (!read.empty()) made.first = read.front().info.first;
  }
  POLYLOG_ASSIGN(writer, target.writer(made));
  const Surroundings around = surroundings_of(topic, partition, settings);
  const BatchFormat to = format_of(topic.to.layout);
  Offset at = std::max(range.start, writer->end());
  while (at < range.end) {
    POLYLOG_ASSIGN(portion, take_portion(*log, at, range.end, to, around));
    POLYLOG_TRY(writer->write(portion.batches));
    const std::uint64_t bytes = total_bytes(portion.batches);
    POLYLOG_TRY(target.wrote(writer->log().log(), bytes));
    at = portion.next;
    POLYLOG_TRY(step(at, bytes));
  }
  POLYLOG_TRY(writer->finish(range));
  if (log != nullptr) target.reach_epoch(writer->log().log(), log->log()->epoch());
  POLYLOG_TRY(target.wrote(writer->log().log(), 0));
  return step(range.end, 0);
}

Result<void> write_group_offsets(const std::vector<GroupOffset>& offsets, Target& target,
                                 const Uuid& topic, const storage::LogConfig& config,
                                 Timestamp now) {
  std::vector<std::vector<GroupOffset>> by_partition(offsets_partitions);
  for (const GroupOffset& offset : offsets) {
    const std::int32_t partition = partition_of_group(offset.group, offsets_partitions);
    by_partition[static_cast<std::size_t>(partition)].push_back(offset);
  }
  storage::Store& store = target.store(Layout::kafka);
  for (std::int32_t i = 0; i < offsets_partitions; ++i) {
    const TopicPartition id{offsets_topic, i};
    const auto& its = by_partition[static_cast<std::size_t>(i)];
    // What an earlier run left is written again: it may lack some.
    const auto there = store.find(id);
    if (there != nullptr && there->offsets().end > Offset(0)) POLYLOG_TRY(store.remove(id));
    Target::Partition made;
    made.layout = Layout::kafka;
    made.id = id;
    made.topic = topic;
    made.config = config;
    POLYLOG_ASSIGN(writer, target.writer(made));
    if (!its.empty()) {
      POLYLOG_ASSIGN(bytes, offsets_batch(its, now));
      Batch batch;
      batch.info = format::kafka::to_info(format::kafka::decode_header(bytes));
      batch.bytes = Slice::of(std::move(bytes));
      POLYLOG_TRY(writer->write({batch}));
    }
    POLYLOG_TRY(target.wrote(writer->log().log(), 0));
  }
  return {};
}

Result<std::vector<GroupOffset>> read_group_offsets(const DataDirectory& directory) {
  std::map<std::pair<std::string, TopicPartition>, std::int64_t> latest;
  storage::Store* const store = directory.store(Layout::kafka);
  for (std::int32_t i = 0; store != nullptr && i < offsets_partitions; ++i) {
    const auto log = store->find({offsets_topic, i});
    if (log == nullptr) continue;
    const OffsetRange range = log->offsets();
    for (Offset at = range.start; at < range.end;) {
      POLYLOG_ASSIGN(read, read_some(*log, at, range.end));
      if (read.empty()) break;
      Result<void> decoded;
      const auto note = [&](const Record& record) {
        auto offset = decode_offset(record);
        if (!offset) decoded = fail(offset.error());
        if (offset && *offset) latest[{(*offset)->group, (*offset)->partition}] = (*offset)->offset;
        return decoded.has_value();
      };
      const auto note_all = [&](const FrameView& frame) {
        auto read_out = format::kafka::for_each_record(frame.bytes, decompressed_bytes_max, note);
        return read_out ? decoded : read_out;
      };
      for (const Batch& batch : read) {
        POLYLOG_TRY(for_each_frame(BatchFormat::kafka, batch.bytes.view(), note_all));
      }
      at = read.back().info.last + 1;
    }
  }
  std::vector<GroupOffset> offsets;
  for (const auto& [key, offset] : latest) offsets.push_back({key.first, key.second, offset});
  return offsets;
}

}  // namespace polylog::convert
