#include "format/transcode/transcode.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "format/rocketmq/properties.h"
#include "format/transcode/kafka_writer.h"
#include "format/transcode/record_readers.h"
#include "format/transcode/rocketmq_writer.h"
#include "format/transcode/segment_writer.h"

namespace polylog::format {
namespace {

// What comes out of a batch with `record_bytes` beyond what its records take as they are: right
// when nothing is compressed, a start otherwise.
std::size_t output_estimate(const Batch& batch, std::size_t record_bytes) {
  constexpr std::size_t record_bytes_min = 7;
  const std::size_t size = batch.bytes.size();
  const auto records = static_cast<std::size_t>(std::max(batch.info.records, 0));
  return size + std::min(records, size / record_bytes_min) * record_bytes;
}

std::size_t message_extra_bytes(const RocketmqTarget& target) {
  constexpr std::size_t properties_bytes_usual = 16;
  return rocketmq::fixed_bytes_min + target.topic.size() + properties_bytes_usual;
}

// Frame, fixed metadata, two times and a producer part, less what a Kafka record has of it.
constexpr std::size_t frame_extra_bytes = 56;

template <typename Reader>
Result<Batch> to_rocketmq(Reader reader, const Batch& batch, const RocketmqTarget& target) {
  RocketmqWriter writer(target);
  writer.reserve(output_estimate(batch, message_extra_bytes(target)));
  segment::StoredRecord record;
  for (;;) {
    POLYLOG_ASSIGN(more, reader.next(record));
    if (!more) break;
    POLYLOG_TRY(writer.write(record));
  }
  return Batch{BatchFormat::rocketmq, batch.info, Slice::of(writer.take())};
}

Batch finished(SegmentWriter& writer, const Batch& batch) {
  BatchInfo info = batch.info;
  info.max_timestamp = writer.max_timestamp();
  return {BatchFormat::segment, info, Slice::of(writer.take())};
}

std::size_t bytes_of(const std::vector<Batch>& batches) {
  std::size_t bytes = 0;
  for (const Batch& batch : batches) bytes += batch.bytes.size();
  return bytes;
}

// Adds the batches' records until the writer has enough.
template <typename Reader>
Result<void> add_all(Reader reader, LeaderEpoch epoch, KafkaWriter& writer) {
  segment::StoredRecord record;
  while (!writer.full()) {
    POLYLOG_ASSIGN(more, reader.next(record));
    if (!more) break;
    POLYLOG_TRY(writer.write(record, epoch));
  }
  return {};
}

// Messages that polylog made of an idempotent producer's batch say so in a property.
Result<std::optional<segment::ProducerPart>> producer_of(const segment::RocketmqPart& message) {
  const auto text = rocketmq::find_property(message.properties, rocketmq::property::kafka_producer);
  if (!text) return std::nullopt;
  POLYLOG_ASSIGN(part, rocketmq::parse_producer_part(*text));
  return segment::ProducerPart{part.id, part.epoch, part.base_sequence, part.index, part.count};
}

}  // namespace

Result<Batch> kafka_to_rocketmq(const Batch& batch, const RocketmqTarget& target) {
  return to_rocketmq(KafkaRecords(batch, no_timestamp, target.output_max), batch, target);
}

Result<Batch> segment_to_rocketmq(const Batch& batch, const RocketmqTarget& target) {
  return to_rocketmq(FrameRecords(batch), batch, target);
}

Result<Batch> kafka_to_segment(const Batch& batch, const SegmentTarget& target) {
  KafkaRecords reader(batch, target.append_time, target.output_max);
  SegmentWriter writer(target);
  writer.reserve(output_estimate(batch, frame_extra_bytes));
  segment::StoredRecord record;
  for (;;) {
    POLYLOG_ASSIGN(more, reader.next(record));
    if (!more) break;
    POLYLOG_TRY(writer.write(record));
  }
  return finished(writer, batch);
}

Result<Batch> rocketmq_to_segment(const Batch& batch, const SegmentTarget& target) {
  MessageRecords reader(batch, target.log_append_time);
  SegmentWriter writer(target);
  writer.reserve(batch.bytes.size());
  segment::StoredRecord record;
  for (;;) {
    POLYLOG_ASSIGN(more, reader.next(record));
    if (!more) break;
    POLYLOG_ASSIGN(producer, producer_of(*record.rocketmq));
    record.producer = producer;
    if (target.append_time != no_timestamp) record.append_time = target.append_time;
    POLYLOG_TRY(writer.write(record));
  }
  return finished(writer, batch);
}

Result<std::vector<Batch>> rocketmq_to_kafka(const std::vector<Batch>& batches,
                                             const KafkaTarget& target) {
  KafkaWriter writer(target.output_max, bytes_of(batches));
  for (const Batch& batch : batches) {
    POLYLOG_TRY(add_all(MessageRecords(batch, target.log_append_time), batch.info.epoch, writer));
  }
  return writer.finish();
}

Result<std::vector<Batch>> segment_to_kafka(const std::vector<Batch>& batches,
                                            const KafkaTarget& target) {
  KafkaWriter writer(target.output_max, bytes_of(batches));
  for (const Batch& batch : batches) {
    POLYLOG_TRY(add_all(FrameRecords(batch), batch.info.epoch, writer));
  }
  return writer.finish();
}

}  // namespace polylog::format
