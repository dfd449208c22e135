#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "bytes/slice.h"
#include "format/kafka/record_batch.h"
#include "format/kafka/record_stream.h"
#include "record/record.h"

// Records in and out of one batch (Kafka 4.3 log format, "Record" and "Control batches").
namespace polylog::format::kafka {

// Decodes the records of one whole batch in order, decompressing as it goes. Does not check the
// checksum. The batch's bytes must outlive it; used by one thread.
//
// Strict: record fields consume their length exactly, offset deltas rise and stay within
// lastOffsetDelta, and after recordsCount records nothing is left. Gaps are legal (compaction).
// A record's timestamp is the batch's maxTimestamp under LogAppendTime, else baseTimestamp plus
// its delta, which holds with a delete horizon too.
class RecordReader {
 public:
  // corrupt, unsupported: as parse_header(); corrupt also for an unassigned codec and a batch
  // that is cut. `output_max` caps what a compressed batch may expand to.
  static Result<RecordReader> open(ByteView batch, std::size_t output_max);

  const BatchHeader& header() const { return header_; }

  // Fills `record`, reusing its header list; its views live until the next call (for a batch
  // that is not compressed: as long as the batch's bytes). False when all have been read.
  // invalid: malformed records. corrupt, too_large: as Decompressor.
  Result<bool> next(Record& record);

 private:
  RecordReader(const BatchHeader& header, Codec codec, ByteView payload, std::size_t output_max);

  BatchHeader header_;
  RecordStream stream_;
  std::int32_t read_ = 0;
  std::int32_t last_delta_ = -1;
  bool ended_ = false;
};

// Calls f(const Record&) -> bool for each record of one batch; false stops early.
template <typename F>
Result<void> for_each_record(ByteView batch, std::size_t output_max, F&& f) {
  POLYLOG_ASSIGN(reader, RecordReader::open(batch, output_max));
  Record record;
  for (;;) {
    POLYLOG_ASSIGN(more, reader.next(record));
    if (!more || !f(static_cast<const Record&>(record))) return {};
  }
}

struct BatchOptions {
  Codec codec = Codec::none;
  std::optional<int> level;                 // default_level() otherwise
  Offset base_offset{0};
  LeaderEpoch epoch = no_epoch;
  ProducerId producer_id = no_producer;
  std::int16_t producer_epoch = -1;
  std::int32_t base_sequence = -1;
  bool transactional = false;
  bool control = false;
  std::optional<Timestamp> append_time;     // set: LogAppendTime, at this time
  std::optional<Timestamp> delete_horizon;  // set: bit 6, and the reference of deltas
  // Kept when compaction removes records at the end; the last record's offset otherwise.
  std::optional<std::int32_t> last_offset_delta;
  // Largest timestamp when it is not that of the records given: an emptied batch keeps its own.
  std::optional<Timestamp> max_timestamp;
};

// Builds one batch, magic 2, checksum included.
class BatchBuilder {
 public:
  explicit BatchBuilder(const BatchOptions& options) : options_(options) {}

  // Adds a record at the next offset; the record's own offset is not looked at. The views are
  // copied. invalid: a timestamp below -1. too_large: the batch would exceed 2^31-1 bytes.
  Result<void> add(const Record& record);
  // Adds a record at its own offset. invalid: not beyond the one before, below the base, or
  // too far above it.
  Result<void> add_at_offset(const Record& record);

  // Makes room for a batch of so many bytes, uncompressed.
  void reserve(std::size_t bytes) { batch_.reserve(bytes); }

  std::int32_t count() const { return count_; }
  std::size_t uncompressed_bytes() const { return std::max(header_bytes, batch_.size()); }

  // The batch; the builder is empty afterwards and may be used again with the same options.
  // Errors as compress(). Without records: an empty batch, as compaction leaves behind.
  Result<std::vector<std::uint8_t>> finish();

 private:
  Result<void> append(const Record& record, std::int64_t delta);

  BatchOptions options_;
  std::vector<std::uint8_t> batch_;  // room for the header, then the records; empty at first
  std::int32_t count_ = 0;
  std::int64_t last_delta_ = -1;
  Timestamp base_timestamp_ = no_timestamp;
  Timestamp max_timestamp_ = no_timestamp;
};

// Key types of control records. Others exist and may come: readers skip them.
enum class ControlType : std::int16_t {
  abort = 0,
  commit = 1,
  leader_change = 2,
  snapshot_header = 3,
  snapshot_footer = 4,
  kraft_version = 5,
  kraft_voters = 6,
};

struct ControlRecord {
  ControlType type = ControlType::abort;  // possibly a value without a name here
  std::int32_t coordinator_epoch = -1;    // of abort and commit
  bool is_end_transaction() const {
    return type == ControlType::abort || type == ControlType::commit;
  }
};

inline constexpr std::size_t marker_bytes = 78;

// The first record of a control batch. REQUIRES: header says control. invalid: no record, a key
// shorter than 4 bytes, a marker's value shorter than 6.
Result<ControlRecord> parse_control(ByteView batch);

struct Marker {
  bool commit = false;
  Offset offset{0};
  LeaderEpoch epoch = no_epoch;
  ProducerId producer_id = no_producer;
  std::int16_t producer_epoch = -1;
  std::int32_t coordinator_epoch = -1;
  Timestamp timestamp = no_timestamp;
};

// The batch that ends a transaction; always marker_bytes long.
std::vector<std::uint8_t> build_marker(const Marker& marker);

}  // namespace polylog::format::kafka
