#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "bytes/slice.h"
#include "format/segment/fields.h"
#include "format/segment/frame.h"
#include "record/batch.h"
#include "record/record.h"

// How polylog fills the metadata and protocol_data of a frame: version 1 of a compact encoding
// that keeps everything the canonical record has (docs/formats/segment-file.md holds the table,
// docs/decisions/segment-record-encoding.md the reasons). Pure; any thread.
namespace polylog::format::segment {

inline constexpr std::uint8_t record_version = 1;

// Fixed places at the front of the metadata; as positions in the frame they are 16 further on.
namespace metadata_at {
inline constexpr std::size_t version = 0;  // u8
inline constexpr std::size_t flags = 1;    // u8
inline constexpr std::size_t crc = 2;      // u32, big-endian as the frame
inline constexpr std::size_t rest = 6;     // varints from here
}  // namespace metadata_at
inline constexpr std::array<Field, 3> metadata_fields{{
    {"version", metadata_at::version, 1},
    {"flags", metadata_at::flags, 1},
    {"crc", metadata_at::crc, 4},
}};
static_assert(contiguous(metadata_fields, metadata_at::rest));

// Where a record stands in the batch of an idempotent producer: every record of the batch has it,
// so that recovery can drop a batch that reached the disk in part.
struct ProducerPart {
  ProducerId id = no_producer;
  std::int16_t epoch = -1;
  std::int32_t base_sequence = -1;  // of the batch's first record
  std::int32_t index = 0;           // of this record in the batch
  std::int32_t count = 1;           // records of the batch
  bool operator==(const ProducerPart&) const = default;
};

// A RocketMQ message as it was: with the frame's data as its body everything that message.h's
// Message holds, save what a store assigns.
struct RocketmqPart {
  std::int32_t flag = 0;
  std::int32_t sys_flag = 0;  // without the two host bits
  ByteView born_address;      // 4 or 16 bytes
  std::int32_t born_port = 0;
  ByteView store_address;     // 4 or 16 bytes
  std::int32_t store_port = 0;
  std::int32_t reconsume_times = 0;
  std::int64_t prepared_transaction_offset = 0;
  std::string_view properties;  // the text, whole
};

// What an MQTT PUBLISH has beyond topic key, payload and user properties (= headers).
struct MqttPart {
  std::string_view topic;  // empty: the key is the topic
  std::uint8_t qos = 0;
  bool retain = false;
  std::optional<std::uint8_t> payload_format;
  std::optional<std::string_view> content_type;
  std::optional<std::string_view> response_topic;
  std::optional<ByteView> correlation;
  std::optional<std::string_view> client_id;
  std::optional<std::uint32_t> expiry_interval_s;  // as received
};

// One record in full. Views point into the bytes it was decoded from. With a RocketmqPart, key,
// value and headers are what the message says in its own terms: data is the stored body, and
// `record.key` and `record.headers` stay empty (format/transcode derives them).
struct StoredRecord {
  Record record;  // timestamp: when its producer made it; the offset is the frame's
  Timestamp append_time = no_timestamp;  // when a broker took it
  bool shows_append_time = false;        // the topic wanted LogAppendTime when it was written
  std::optional<Timestamp> expires;      // absolute
  std::optional<ProducerPart> producer;
  std::optional<RocketmqPart> rocketmq;
  std::optional<MqttPart> mqtt;

  // What time lookups and Kafka readers go by.
  Timestamp shown_time() const { return shows_append_time ? append_time : record.timestamp; }
};

// Appends a frame to `out`, unplaced: offset 0, and a checksum that covers everything else.
// place() gives it its offset. too_large: over 2^31-1 bytes; invalid: a header name over 2^31-1
// bytes, a RocketMQ part with an address that is neither 4 nor 16 bytes or with host bits in its
// sys flag, a QoS above 2, a producer part with id, epoch or sequence below -1 or an index outside
// its batch.
Result<void> encode(const StoredRecord& record, std::vector<std::uint8_t>& out);

// Gives an unplaced frame its offset: writes it and continues the checksum over its eight bytes.
// REQUIRES: a whole frame as encode() made it, not yet placed.
void place(MutableBytes frame, Offset offset);

// CRC-32C over the frame's bytes from the total length on without the checksum itself, then over
// the offset. False too when the frame is none of ours.
bool crc_matches(ByteView frame);

// Whether a frame's metadata is ours by version and flags. RobustMQ's begins with the text of a
// shard name.
bool is_ours(const Frame& frame);

// What an engine needs of a record, without opening key, headers and parts beyond the producer's.
struct RecordHead {
  Offset offset;
  Timestamp shown_time = no_timestamp;
  std::optional<ProducerPart> producer;
};
// unsupported: not ours, another version or flags of a later one. corrupt: no frame, or its fields
// don't fit. The checksum is not compared.
Result<RecordHead> decode_head(ByteView frame);
Result<StoredRecord> decode(ByteView frame);

// What one record contributes to a batch's description; `info` of several frames together is made
// by folding them in order. A record of another producer leaves the batch's stamp as it is.
BatchInfo to_info(const RecordHead& head);
void fold(BatchInfo& batch, const RecordHead& next);

// Calls f(ByteView frame) -> Result<void> for each whole frame in `bytes`. corrupt: what is not a
// sequence of whole frames.
template <typename F>
Result<void> for_each_frame(ByteView bytes, F&& f) {
  while (!bytes.empty()) {
    const FrameHead head =
        next_frame(bytes.first(bytes.size() < frame_head_bytes ? bytes.size() : frame_head_bytes),
                   bytes.size());
    if (head.state != FrameState::complete) return fail(Errc::corrupt, "not a whole frame");
    POLYLOG_TRY(f(bytes.first(static_cast<std::size_t>(head.size))));
    bytes = bytes.subspan(static_cast<std::size_t>(head.size));
  }
  return {};
}

}  // namespace polylog::format::segment
