#pragma once

#include <cstdint>

#include "base/ids.h"
#include "bytes/slice.h"

namespace polylog {

// In which stored form a batch's bytes are.
enum class BatchFormat : std::uint8_t { kafka, rocketmq, segment };

// Who produced a batch and where in the producer's own numbering it stands (idempotence).
struct ProducerStamp {
  ProducerId id = no_producer;
  std::int16_t epoch = -1;
  std::int32_t first_sequence = -1;
  std::int32_t last_sequence = -1;  // wraps: after 2147483647 comes 0
};

// What routing, watermarks and idempotence need to know without opening the records.
struct BatchInfo {
  Offset first;              // of the first record; from a client: 0
  Offset last;               // of the last record, inclusive: first == last for one record
  std::int32_t records = 0;  // really present; 0 is legal after compaction
  Timestamp max_timestamp = no_timestamp;
  ProducerStamp producer;
  LeaderEpoch epoch = no_epoch;
  bool transactional = false;
  bool control = false;
};

// Tagged bytes: what moves through the broker. `bytes` is 1..n whole frames of `format`,
// contiguous; `info` describes all of them together (first of the first, last of the last).
struct Batch {
  BatchFormat format = BatchFormat::kafka;
  BatchInfo info;
  Slice bytes;
};

}  // namespace polylog
