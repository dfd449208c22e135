#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/ids.h"
#include "base/result.h"
#include "bytes/slice.h"
#include "format/kafka/records.h"
#include "format/rocketmq/message.h"
#include "format/segment/record.h"
#include "record/batch.h"

// Records out of each of the three stored forms, all in the shape of a StoredRecord. A message
// keeps its own terms there (RocketmqPart); kafka_terms.h changes them.
//
// Each of them: next() fills the record and returns true, or false behind the last one. The
// record's views live until the next call; the batch's bytes must outlive the reader. One thread.
namespace polylog::format {

// The records of Kafka batches, offsets counted from batch.info.first. `append_time` is that of
// the records that do not say so themselves.
class KafkaRecords {
 public:
  KafkaRecords(const Batch& batch, Timestamp append_time, std::size_t output_max)
      : rest_(batch.bytes.view()),
        first_(batch.info.first),
        append_time_(append_time),
        output_max_(output_max) {}

  // unsupported: control records, transactions. corrupt, invalid, too_large: as RecordReader.
  Result<bool> next(segment::StoredRecord& record);

 private:
  Result<void> open_batch();

  ByteView rest_;
  const Offset first_;
  const Timestamp append_time_;
  const std::size_t output_max_;
  std::optional<kafka::RecordReader> reader_;
  std::optional<Offset> first_base_;  // of the first batch as it is stored
  std::optional<segment::ProducerPart> producer_;
};

// RocketMQ's messages, offsets as stored.
class MessageRecords {
 public:
  // `shows_append_time`: the topic wants LogAppendTime.
  MessageRecords(const Batch& batch, bool shows_append_time)
      : rest_(batch.bytes.view()), shows_append_time_(shows_append_time) {}

  // corrupt: not a sequence of whole messages.
  Result<bool> next(segment::StoredRecord& record);

 private:
  ByteView rest_;
  const bool shows_append_time_;
  rocketmq::Host born_host_;  // what the record's addresses point into
  rocketmq::Host store_host_;
};

// polylog's own segment frames, offsets as stored.
class FrameRecords {
 public:
  explicit FrameRecords(const Batch& batch) : rest_(batch.bytes.view()) {}

  // corrupt: not a sequence of whole frames. corrupt, unsupported: as segment::decode.
  Result<bool> next(segment::StoredRecord& record);

 private:
  ByteView rest_;
};

}  // namespace polylog::format
