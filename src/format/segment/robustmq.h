#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "bytes/slice.h"
#include "format/segment/fields.h"
#include "format/segment/record.h"
#include "record/record.h"

// How RobustMQ 0.4.11 fills a frame (its `StorageRecordMetadata` and `StorageRecordProtocolData`,
// read at tag v0.4.11; tests/golden/robustmq). Only read, never written. Pure; any thread. Byte
// table: docs/formats/segment-file.md, "RobustMQ's filling".
namespace polylog::format::segment {

inline constexpr std::string_view robustmq_release = "0.4.11";

// The archive in the metadata ends with these fields.
inline constexpr std::size_t robustmq_root_bytes = 80;
inline constexpr std::array<Field, 9> robustmq_root_fields{{
    {"offset", 0, 8},
    {"shard", 8, 8},
    {"segment", 16, 4},
    {"headers", 20, 12},
    {"key", 32, 12},
    {"tags", 44, 12},
    {"created", 56, 8},
    {"expires", 64, 8},
    {"dataCrc", 72, 4},
}};
static_assert(contiguous(robustmq_root_fields, 76));  // and four bytes of padding

// The `mqtt` part of the JSON in the protocol data.
struct RobustmqMqtt {
  std::string client_id;
  bool retain = false;
  std::optional<std::uint8_t> payload_format;
  std::optional<std::string> response_topic;
  std::optional<std::vector<std::uint8_t>> correlation;
  std::optional<std::string> content_type;
  std::vector<std::pair<std::string, std::string>> user_properties;
};

// One record. Views point into the frame; what comes out of the JSON is a copy.
struct RobustmqRecord {
  // The timestamp is when the broker wrote it, full seconds in ms. The value is never null, nor is
  // a header's.
  Record record;
  std::string_view shard;
  std::uint32_t segment = 0;
  std::vector<std::string_view> tags;
  std::optional<Timestamp> expires;
  std::optional<RobustmqMqtt> mqtt;
  // Other parts of the JSON by name ("nats", "mq9", "amqp"): polylog has no place for them.
  std::vector<std::string> other_parts;
};

// corrupt: not a frame, not such an archive or JSON, offsets that differ, or a CRC-32 of the data
// other than the stored one.
Result<RobustmqRecord> decode_robustmq(ByteView frame);

// Name of the header that a tag becomes.
inline constexpr std::string_view robustmq_tag_header = "robustmq.tag";

// The same record in polylog's terms, for writing it into any layout: tags become headers, MQTT
// user properties too, behind the record's own; the QoS, which RobustMQ doesn't store, is 1. The
// views point into the frame and into `record`.
StoredRecord to_stored(const RobustmqRecord& record);

}  // namespace polylog::format::segment
