#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "base/ids.h"
#include "bytes/slice.h"
#include "format/kafka/compression.h"
#include "format/kafka/record_batch.h"
#include "record/batch.h"

// What a leader checks before it appends a client's batch (Kafka 4.3 log format, "Append path
// and produce validation", steps 1, 4 to 6 and 8 as far as they need no broker state).
namespace polylog::format::kafka {

// Named after the error of Kafka's protocol that each one is answered with.
enum class BatchFault {
  corrupt_message,                 // 2
  message_too_large,               // 10
  record_list_too_large,           // 18
  invalid_timestamp,               // 32
  unsupported_for_message_format,  // 43
  unsupported_compression_type,    // 76
  invalid_record,                  // 87
};

struct RecordFault {
  std::int32_t index = 0;  // of the record in its batch
  std::string message;
};

struct ValidationError {
  BatchFault code = BatchFault::invalid_record;
  std::vector<RecordFault> records;  // the first of them; empty when the batch itself is wrong
  std::string message;
  // The batch expands beyond rules.output_max: it may still be good under a larger limit.
  bool output_over_cap = false;
};

struct ValidationRules {
  std::int64_t max_message_bytes = 1048588;  // of the batch as received and as stored
  std::int64_t segment_bytes = 1073741824;
  TimestampType timestamp_type = TimestampType::create_time;
  std::int64_t before_max_ms = std::numeric_limits<std::int64_t>::max();
  std::int64_t after_max_ms = 3600000;
  Timestamp now;                       // the broker's clock
  bool compacted = false;              // every record needs a key
  std::optional<Codec> target;         // nothing: "producer", payloads stay as they came
  std::optional<int> level;            // of the target; its default otherwise
  std::int16_t produce_version = 3;    // zstd from 7 on
  std::size_t output_max = 256 * 1024 * 1024;  // a batch expands to no more
};

// Judges the `records` field of a Produce request for one partition. On success the Batch shares
// the slice when no byte had to change, which is nearly always; bytes change for LogAppendTime, a
// wrong maxTimestamp, and a topic with its own codec. The base offset and the leader epoch stay
// as they came (0 and -1): the engine gives them.
//
// Stricter than Kafka where no known client can notice: inner offset deltas must be 0, 1, 2, ...
// in plain batches too; bit 3 is refused on every topic; so are a transactional batch without a
// producer, a delete horizon, negative timestamps, and lz4 frames that Kafka's own reader would
// refuse.
//
// Memory beyond the input: scratch as Decompressor has it, and the whole output only where the
// codec is changed. Time is bounded by rules.output_max.
tl::expected<Batch, ValidationError> validate(const Slice& records, const ValidationRules& rules);

// What may be decompressed where a request runs; more belongs into the pool.
inline constexpr std::size_t inline_output_max = 256 * 1024;

// Estimates from what the payload itself says whether validating would take more than
// inline_output_max of output, or a costly recompression. A gzip trailer may lie: validating
// where it matters should set rules.output_max to inline_output_max and go to the pool with the
// real limit when output_over_cap comes back.
bool needs_pool(ByteView records, const ValidationRules& rules);

}  // namespace polylog::format::kafka
