#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "bytes/slice.h"
#include "format/kafka/compression.h"
#include "format/kafka/fields.h"
#include "record/batch.h"

// Kafka's record batch, magic 2 (Kafka 4.3 log format, "Batch header" and "Attributes"): what
// `.log` files hold and what Produce and Fetch carry. Byte table: docs/formats/kafka-log.md.
namespace polylog::format::kafka {

inline constexpr std::size_t header_bytes = 61;
// baseOffset and batchLength, which batchLength does not count.
inline constexpr std::size_t prefix_bytes = 12;
// The checksum covers everything from the attributes on; what a leader assigns lies before.
inline constexpr std::size_t crc_covers_from = 21;
inline constexpr std::int8_t current_magic = 2;

namespace header_at {
inline constexpr std::size_t base_offset = 0;
inline constexpr std::size_t batch_length = 8;
inline constexpr std::size_t leader_epoch = 12;
inline constexpr std::size_t magic = 16;
inline constexpr std::size_t crc = 17;
inline constexpr std::size_t attributes = 21;
inline constexpr std::size_t last_offset_delta = 23;
inline constexpr std::size_t base_timestamp = 27;
inline constexpr std::size_t max_timestamp = 35;
inline constexpr std::size_t producer_id = 43;
inline constexpr std::size_t producer_epoch = 51;
inline constexpr std::size_t base_sequence = 53;
inline constexpr std::size_t records_count = 57;
}  // namespace header_at

inline constexpr std::array<Field, 13> batch_header_fields{{
    {"baseOffset", header_at::base_offset, 8},
    {"batchLength", header_at::batch_length, 4},
    {"partitionLeaderEpoch", header_at::leader_epoch, 4},
    {"magic", header_at::magic, 1},
    {"crc", header_at::crc, 4},
    {"attributes", header_at::attributes, 2},
    {"lastOffsetDelta", header_at::last_offset_delta, 4},
    {"baseTimestamp", header_at::base_timestamp, 8},
    {"maxTimestamp", header_at::max_timestamp, 8},
    {"producerId", header_at::producer_id, 8},
    {"producerEpoch", header_at::producer_epoch, 2},
    {"baseSequence", header_at::base_sequence, 4},
    {"recordsCount", header_at::records_count, 4},
}};
static_assert(contiguous(batch_header_fields, header_bytes));
static_assert(header_at::crc + 4 == crc_covers_from);

// Attribute bits. Bits 7 to 15 are unused and written as zero.
inline constexpr std::int16_t codec_mask = 0x07;
inline constexpr std::int16_t log_append_time_bit = 0x08;
inline constexpr std::int16_t transactional_bit = 0x10;
inline constexpr std::int16_t control_bit = 0x20;
inline constexpr std::int16_t delete_horizon_bit = 0x40;

enum class TimestampType : std::uint8_t { create_time, log_append_time };

struct BatchHeader {
  Offset base_offset;
  std::int32_t batch_length = 0;  // bytes behind this field
  LeaderEpoch leader_epoch = no_epoch;
  std::int8_t magic = current_magic;
  std::uint32_t crc = 0;
  std::int16_t attributes = 0;
  std::int32_t last_offset_delta = 0;
  Timestamp base_timestamp = no_timestamp;  // or the delete horizon
  Timestamp max_timestamp = no_timestamp;
  ProducerId producer_id = no_producer;
  std::int16_t producer_epoch = -1;
  std::int32_t base_sequence = -1;
  std::int32_t records_count = 0;

  // Of the whole batch. REQUIRES: parsed, as the rest here.
  std::size_t size() const { return static_cast<std::size_t>(batch_length) + prefix_bytes; }
  Offset last_offset() const { return base_offset + last_offset_delta; }
  std::int32_t last_sequence() const;  // -1 without a producer's numbering; wraps to 0
  std::optional<Codec> codec() const { return codec_of(attributes & codec_mask); }
  TimestampType timestamp_type() const {
    return (attributes & log_append_time_bit) != 0 ? TimestampType::log_append_time
                                                   : TimestampType::create_time;
  }
  bool transactional() const { return (attributes & transactional_bit) != 0; }
  bool control() const { return (attributes & control_bit) != 0; }
  bool has_delete_horizon() const { return (attributes & delete_horizon_bit) != 0; }
};

// Reads the fields, checks nothing. REQUIRES: bytes.size() >= header_bytes.
BatchHeader decode_header(ByteView bytes);
void encode_header(const BatchHeader& header, std::span<std::uint8_t, header_bytes> out);

// Reads and checks the structure: enough bytes, magic, batchLength of at least a header, no
// negative offset, delta or count, no offset beyond 2^63-1. The records may lie outside `bytes`;
// the checksum is not looked at. unsupported: the message formats before magic 2. corrupt: all
// else.
Result<BatchHeader> parse_header(ByteView bytes);

// REQUIRES: exactly one whole batch, parsed.
bool crc_matches(ByteView batch);

BatchInfo to_info(const BatchHeader& header);

// Patchers of a copy of a batch's first 61 bytes. Base offset and leader epoch lie outside the
// checksum.
using HeaderBytes = std::span<std::uint8_t, header_bytes>;
void patch_base_offset(HeaderBytes header, Offset base);
void patch_leader_epoch(HeaderBytes header, LeaderEpoch epoch);
// Recomputes the checksum over the header copy and `rest`, the batch's bytes behind byte 61.
void patch_timestamps(HeaderBytes header, ByteView rest, std::int16_t attributes,
                      Timestamp max_timestamp);
void patch_crc(HeaderBytes header, ByteView rest);

// What lies at a place of a log file (Kafka log format, "What a file reader accepts"). The scan
// decides about end of data and damage by more than one field: a checksum of 0 is legitimate.
enum class FrameState {
  complete,  // a structurally sound batch; its checksum is still to be checked
  torn,      // the file ends inside the header or inside the batch it announces
  zeros,     // length 0 and magic 0: space reserved ahead of the data, or never written
  legacy,    // a message set from before magic 2; `size` allows to step over it
  corrupt,   // anything else
};

struct FrameHead {
  FrameState state = FrameState::corrupt;
  std::uint64_t size = 0;  // complete, legacy: of the batch; torn: what it would be, 0 = unknown
  BatchHeader header;      // complete only
  std::string_view why;    // a phrase for the report; empty when complete

  Offset first() const { return header.base_offset; }
  Offset last() const { return header.last_offset(); }
};

// Judges what begins at `head`, with `remaining` bytes up to the end of the file (or of what may
// be read). Only the header is looked at: a caller reads a window, and more for the checksum.
// REQUIRES: head.size() >= min(remaining, header_bytes).
FrameHead next_frame(ByteView head, std::uint64_t remaining);
inline FrameHead next_frame(ByteView rest) { return next_frame(rest, rest.size()); }

// Calls f(const BatchHeader&, ByteView batch) -> Result<void> for each of the whole batches in
// `bytes`, in order, and returns the first error. A cut last batch ends quietly, as Fetch
// answers may have one. Checksums are not looked at.
template <typename F>
Result<void> for_each_batch(ByteView bytes, F&& f) {
  while (!bytes.empty()) {
    const FrameHead frame = next_frame(bytes);
    if (frame.state == FrameState::torn) return {};
    if (frame.state != FrameState::complete) {
      return fail(frame.state == FrameState::legacy ? Errc::unsupported : Errc::corrupt,
                  std::string(frame.why));
    }
    const auto size = static_cast<std::size_t>(frame.size);
    POLYLOG_TRY(f(frame.header, bytes.first(size)));
    bytes = bytes.subspan(size);
  }
  return {};
}

}  // namespace polylog::format::kafka
