#include "convert/layouts.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "format/rocketmq/names.h"
#include "format/rocketmq/properties.h"
#include "format/rocketmq/property_crc.h"
#include "format/segment/record.h"
#include "format/transcode/transcode.h"

namespace polylog::convert {
namespace {

namespace kafka = format::kafka;
namespace rocketmq = format::rocketmq;
namespace segment = format::segment;

using Batches = std::vector<Batch>;

Error at_offset(const Error& error, Offset offset) {
  return {error.code, "offset " + std::to_string(offset.value()) + ": " + error.context};
}

// Batches of the other layouts carry no epoch where nobody noted one; in Kafka's files every batch
// that a leader took has one.
Result<Batches> with_epochs(Result<Batches> made) {
  if (!made) return made;
  for (Batch& batch : *made) {
    std::vector<std::uint8_t> bytes = to_vector(batch.bytes.view());
    POLYLOG_TRY(for_each_frame(BatchFormat::kafka, bytes, [&](const FrameView& frame) {
      std::uint8_t* const head = bytes.data() + (frame.bytes.data() - bytes.data());
      const kafka::HeaderBytes header(head, kafka::header_bytes);
      const LeaderEpoch epoch = kafka::decode_header(header).leader_epoch;
      kafka::patch_leader_epoch(header, std::max(epoch, LeaderEpoch(0)));
      return Result<void>();
    }));
    batch.bytes = Slice::of(std::move(bytes));
    batch.info.epoch = std::max(batch.info.epoch, LeaderEpoch(0));
  }
  return made;
}

// Of Kafka batches, one by one, so that an error can say where it is.
template <typename F>
Result<Batches> one_by_one(const Batches& batches, F&& change_one) {
  Batches changed;
  for (const Batch& several : batches) {
    const std::uint8_t* const begin = several.bytes.data();
    POLYLOG_TRY(kafka::for_each_batch(
        several.bytes.view(),
        [&](const kafka::BatchHeader& header, ByteView bytes) -> Result<void> {
          // What a store has let pass must not be given a good checksum here.
          if (!kafka::crc_matches(bytes)) {
            return fail(at_offset({Errc::corrupt, "the batch does not match its checksum"},
                                  header.base_offset));
          }
          if (header.records_count == 0) return {};  // compaction has emptied it
          Batch one;
          one.info = kafka::to_info(header);
          one.bytes =
              several.bytes.sub(static_cast<std::size_t>(bytes.data() - begin), bytes.size());
          Result<Batch> made = change_one(one);
          if (!made) return fail(at_offset(made.error(), header.base_offset));
          changed.push_back(std::move(*made));
          return {};
        }));
  }
  return changed;
}

// Of others: an error names the batch's first offset, and the record in it.
template <typename F>
Result<Batches> each(const Batches& batches, F&& change_one) {
  Batches changed;
  for (const Batch& one : batches) {
    Result<Batch> made = change_one(one);
    if (!made) return fail(at_offset(made.error(), one.info.first));
    changed.push_back(std::move(*made));
  }
  return changed;
}

Result<format::RocketmqTarget> rocketmq_target(const Surroundings& around) {
  format::RocketmqTarget target;
  POLYLOG_ASSIGN(topic, rocketmq::to_stored_topic(around.topic));
  target.topic = std::move(topic);
  target.queue_id = around.partition;
  target.store_host = around.store_host;
  target.body_bytes_max = around.body_bytes_max;
  return target;
}

format::SegmentTarget segment_target(const Surroundings& around) {
  format::SegmentTarget target;
  target.log_append_time = around.log_append_time;
  target.placed = true;
  return target;
}

Result<Batches> from_kafka_to_rocketmq(const Batches& batches, const Surroundings& around) {
  POLYLOG_ASSIGN(target, rocketmq_target(around));
  return one_by_one(batches,
                    [&](const Batch& one) { return format::kafka_to_rocketmq(one, target); });
}

Result<Batches> from_kafka_to_segment(const Batches& batches, const Surroundings& around) {
  const format::SegmentTarget target = segment_target(around);
  return one_by_one(batches,
                    [&](const Batch& one) { return format::kafka_to_segment(one, target); });
}

Result<Batches> from_rocketmq_to_segment(const Batches& batches, const Surroundings& around) {
  const format::SegmentTarget target = segment_target(around);
  return each(batches, [&](const Batch& one) { return format::rocketmq_to_segment(one, target); });
}

Result<Batches> from_segment_to_rocketmq(const Batches& batches, const Surroundings& around) {
  POLYLOG_ASSIGN(target, rocketmq_target(around));
  return each(batches, [&](const Batch& one) { return format::segment_to_rocketmq(one, target); });
}

Result<Batches> from_segment_to_kafka(const Batches& batches, const Surroundings& around) {
  format::KafkaTarget target;
  target.log_append_time = around.log_append_time;
  return with_epochs(format::segment_to_kafka(batches, target));
}

Result<Batches> from_rocketmq_to_kafka(const Batches& batches, const Surroundings& around) {
  format::KafkaTarget target;
  target.log_append_time = around.log_append_time;
  return with_epochs(format::rocketmq_to_kafka(batches, target));
}

struct Change {
  BatchFormat from, to;
  Result<Batches> (*run)(const Batches&, const Surroundings&);
};
constexpr Change changes[] = {
    {BatchFormat::kafka, BatchFormat::rocketmq, from_kafka_to_rocketmq},
    {BatchFormat::kafka, BatchFormat::segment, from_kafka_to_segment},
    {BatchFormat::rocketmq, BatchFormat::kafka, from_rocketmq_to_kafka},
    {BatchFormat::rocketmq, BatchFormat::segment, from_rocketmq_to_segment},
    {BatchFormat::segment, BatchFormat::kafka, from_segment_to_kafka},
    {BatchFormat::segment, BatchFormat::rocketmq, from_segment_to_rocketmq},
};

Result<void> for_each_kafka_frame(ByteView bytes, const OnFrame& f) {
  return kafka::for_each_batch(
      bytes, [&](const kafka::BatchHeader& header, ByteView batch) {
        return f({batch, header.base_offset, header.last_offset(), header.records_count,
                  header.producer_id});
      });
}

Result<void> for_each_rocketmq_frame(ByteView bytes, const OnFrame& f) {
  return rocketmq::for_each_message(
      bytes, [&](ByteView record, const rocketmq::Message& message) -> Result<void> {
        FrameView frame{record, Offset(message.queue_offset), Offset(message.queue_offset)};
        const auto text =
            rocketmq::find_property(message.properties, rocketmq::property::kafka_producer);
        if (text) {
          if (const auto part = rocketmq::parse_producer_part(*text)) frame.producer = part->id;
        }
        return f(frame);
      });
}

Result<void> for_each_segment_frame(ByteView bytes, const OnFrame& f) {
  return segment::for_each_frame(bytes, [&](ByteView record) -> Result<void> {
    POLYLOG_ASSIGN(head, segment::decode_head(record));
    FrameView frame{record, head.offset, head.offset};
    if (head.producer) frame.producer = head.producer->id;
    return f(frame);
  });
}

}  // namespace

BatchFormat format_of(storage::Layout layout) {
  switch (layout) {
    case storage::Layout::kafka: return BatchFormat::kafka;
    case storage::Layout::rocketmq: return BatchFormat::rocketmq;
    case storage::Layout::segment: return BatchFormat::segment;
  }
  return BatchFormat::kafka;
}

Result<std::vector<Batch>> change(const std::vector<Batch>& batches, BatchFormat to,
                                  const Surroundings& surroundings) {
  if (batches.empty() || batches.front().format == to) return batches;
  for (const Change& known : changes) {
    if (known.from == batches.front().format && known.to == to) {
      return known.run(batches, surroundings);
    }
  }
  return fail(Errc::unsupported, "nothing here changes records between these two layouts");
}

Result<void> for_each_frame(BatchFormat format, ByteView bytes, const OnFrame& f) {
  switch (format) {
    case BatchFormat::kafka: return for_each_kafka_frame(bytes, f);
    case BatchFormat::rocketmq: return for_each_rocketmq_frame(bytes, f);
    case BatchFormat::segment: return for_each_segment_frame(bytes, f);
  }
  return {};
}

Result<std::vector<std::uint8_t>> comparable(BatchFormat format, ByteView frame) {
  std::vector<std::uint8_t> bytes = to_vector(frame);
  if (format != BatchFormat::rocketmq) return bytes;
  POLYLOG_ASSIGN(message, rocketmq::parse(frame));
  rocketmq::patch_placement(bytes, {message.queue_offset, 0, message.store_timestamp});
  if (rocketmq::has_property_crc_room(bytes)) rocketmq::patch_property_crc(bytes);
  return bytes;
}

}  // namespace polylog::convert
