#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "format/rocketmq/message.h"
#include "record/batch.h"

// The only place where a record changes its stored form. What goes where: docs/formats/
// record-mapping.md. Lossless on everything the target can hold; what it can't is refused whole.
// Pure: any thread.
//
// Three readers (record_readers.h) and three writers (kafka_writer.h, rocketmq_writer.h,
// segment_writer.h) meet in format/segment's StoredRecord, which has room for all of it.
namespace polylog::format {

// --- to RocketMQ's messages ------------------------------------------------------------------

struct RocketmqTarget {
  std::string topic;  // as stored: see rocketmq::to_stored_topic
  std::int32_t queue_id = 0;
  rocketmq::Host born_host;   // the client's address
  rocketmq::Host store_host;  // ours
  std::size_t body_bytes_max = rocketmq::body_bytes_max_default;
  std::size_t output_max = std::size_t{256} << 20;  // of a compressed batch
};

// One message per record, back to back, physical offsets zero (the engine's). Store timestamps:
// when a broker took the record as far as the source says so, else zero. The result's info
// describes the same records.
// too_large: a body over the limit or properties over 32,767 bytes; the context names record and
// limit.

// Offsets are counted from batch.info.first. The batch has been validated.
// unsupported: control records or a transactional batch. corrupt, invalid: as RecordReader.
Result<Batch> kafka_to_rocketmq(const Batch& batch, const RocketmqTarget& target);

// The frames' own offsets. What was a message is that message again, its hosts and properties
// included; any other record becomes what kafka_to_rocketmq would make of it.
// corrupt, unsupported: a frame that does not decode.
Result<Batch> segment_to_rocketmq(const Batch& batch, const RocketmqTarget& target);

// --- to segment frames -----------------------------------------------------------------------

struct SegmentTarget {
  // When the broker took the batch. None: what the source says (a message's store time), if it
  // does. A Kafka batch under LogAppendTime always goes by its own.
  Timestamp append_time = no_timestamp;
  bool log_append_time = false;  // of messages: readers are shown the append time
  // Frames at their records' own offsets. Otherwise unplaced: the engine gives the offsets.
  bool placed = false;
  std::size_t record_bytes_max = std::numeric_limits<std::int32_t>::max();  // of one frame
  std::size_t output_max = std::size_t{256} << 20;                          // of a compressed batch
};

// One frame per record, back to back. The result's info describes the same records, its largest
// timestamp as readers are shown them.
// too_large: a frame over the limit; the context names record and limit.

// Offsets are counted from batch.info.first. The batch has been validated. Headers stay headers,
// whatever their names.
// unsupported: control records or a transactional batch. corrupt, invalid: as RecordReader.
Result<Batch> kafka_to_segment(const Batch& batch, const SegmentTarget& target);

// The messages' own offsets. Each frame keeps the whole message, save topic and queue.
// corrupt: a message that does not parse, or whose __KPS does not.
Result<Batch> rocketmq_to_segment(const Batch& batch, const SegmentTarget& target);

// --- to Kafka's batches ----------------------------------------------------------------------

struct KafkaTarget {
  // Of messages: timestamps are the store's, and marked so. Segment frames say it for themselves.
  bool log_append_time = false;
  std::size_t output_max = std::size_t{64} << 20;  // compressed bodies can expand a lot
};

// Kafka batches, uncompressed, with the records' own offsets (gaps stay): `batches` are in offset
// order; adjacent ones of one leader epoch become one batch, cut at a record boundary at about
// 1 MiB, and where the append time changes if that is the records' timestamp. Once more than
// `output_max` bytes have come out the rest is left for the next read. Control records do not
// arise.
// corrupt: a message or frame that does not parse, or whose properties of ours do not, or offsets
// that do not rise. unsupported: a frame of a later version.
Result<std::vector<Batch>> rocketmq_to_kafka(const std::vector<Batch>& batches,
                                             const KafkaTarget& target);
Result<std::vector<Batch>> segment_to_kafka(const std::vector<Batch>& batches,
                                            const KafkaTarget& target);

}  // namespace polylog::format
