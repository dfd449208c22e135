#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "format/segment/field_io.h"
#include "format/segment/record.h"

// What record.h's encoding is made of inside: flags of the metadata and the parts of the protocol
// data. Byte tables: docs/formats/segment-file.md.
namespace polylog::format::segment {

namespace record_flags {
inline constexpr std::uint8_t has_key = 0x01;
inline constexpr std::uint8_t null_value = 0x02;
inline constexpr std::uint8_t has_headers = 0x04;
inline constexpr std::uint8_t has_append_time = 0x08;
inline constexpr std::uint8_t shows_append_time = 0x10;
inline constexpr std::uint8_t expires = 0x20;
inline constexpr std::uint8_t known = 0x3f;
}  // namespace record_flags

// Tags rise in a record, each at most once. Readers skip those they don't know.
namespace part_tag {
inline constexpr std::uint32_t producer = 1;
inline constexpr std::uint32_t rocketmq = 2;
inline constexpr std::uint32_t mqtt = 3;
}  // namespace part_tag

// First byte of the MQTT part: QoS in the low two bits.
namespace mqtt_attributes {
inline constexpr std::uint8_t qos_mask = 0x03;
inline constexpr std::uint8_t retain = 0x04;
inline constexpr std::uint8_t known = 0x07;
}  // namespace mqtt_attributes
// Second byte: which of the fields follow, in this order.
namespace mqtt_fields {
inline constexpr std::uint8_t topic = 0x01;
inline constexpr std::uint8_t payload_format = 0x02;
inline constexpr std::uint8_t content_type = 0x04;
inline constexpr std::uint8_t response_topic = 0x08;
inline constexpr std::uint8_t correlation = 0x10;
inline constexpr std::uint8_t client_id = 0x20;
inline constexpr std::uint8_t expiry_interval = 0x40;
inline constexpr std::uint8_t known = 0x7f;
}  // namespace mqtt_fields

// invalid: values that no reader would take.
Result<void> check(const ProducerPart& part);
Result<void> check(const RocketmqPart& part);
Result<void> check(const MqttPart& part);

// Bytes of a part without its tag and length.
std::size_t encoded_size(const ProducerPart& part);
std::size_t encoded_size(const RocketmqPart& part);
std::size_t encoded_size(const MqttPart& part);

void write(const ProducerPart& part, FieldWriter& out);
void write(const RocketmqPart& part, FieldWriter& out);
void write(const MqttPart& part, FieldWriter& out);

// Each takes a part's bytes, exactly. corrupt; unsupported: bits of a later version.
Result<ProducerPart> read_producer_part(ByteView bytes);
Result<RocketmqPart> read_rocketmq_part(ByteView bytes);
Result<MqttPart> read_mqtt_part(ByteView bytes);

}  // namespace polylog::format::segment
