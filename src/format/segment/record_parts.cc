#include "format/segment/record_parts.h"

namespace polylog::format::segment {
namespace {

constexpr std::int32_t host_bits = 0x30;  // RocketMQ's sys flag: IPv6 born and store address

bool sound(const ProducerPart& part) {
  return part.id.value() >= -1 && part.epoch >= -1 && part.base_sequence >= -1 &&
         part.index >= 0 && part.index < part.count;
}

bool sound_address(ByteView address) { return address.size() == 4 || address.size() == 16; }

bool sound(const RocketmqPart& part) {
  return sound_address(part.born_address) && sound_address(part.store_address) &&
         (part.sys_flag & host_bits) == 0;
}

std::size_t counted_size(std::size_t size) { return unsigned_size(size) + size; }

}  // namespace

Result<void> check(const ProducerPart& part) {
  if (sound(part)) return {};
  return fail(Errc::invalid, "a producer part with an impossible id, epoch, sequence or index");
}

Result<void> check(const RocketmqPart& part) {
  if (sound(part)) return {};
  return fail(Errc::invalid,
              "a RocketMQ part needs addresses of 4 or 16 bytes and a sys flag without host bits");
}

Result<void> check(const MqttPart& part) {
  if (part.qos <= 2) return {};
  return fail(Errc::invalid, "an MQTT part with a QoS above 2");
}

std::size_t encoded_size(const ProducerPart& part) {
  return zigzag_size(part.id.value()) + zigzag_size(part.epoch) + zigzag_size(part.base_sequence) +
         zigzag_size(part.index) + zigzag_size(part.count);
}

void write(const ProducerPart& part, FieldWriter& out) {
  out.zigzag(part.id.value());
  out.zigzag(part.epoch);
  out.zigzag(part.base_sequence);
  out.zigzag(part.index);
  out.zigzag(part.count);
}

Result<ProducerPart> read_producer_part(ByteView bytes) {
  FieldReader in(bytes);
  ProducerPart part;
  part.id = ProducerId(in.zigzag64());
  part.epoch = in.zigzag16();
  part.base_sequence = in.zigzag32();
  part.index = in.zigzag32();
  part.count = in.zigzag32();
  if (!in.ok() || !in.done() || !sound(part)) {
    return fail(Errc::corrupt, "the record's producer part does not fit its fields");
  }
  return part;
}

std::size_t encoded_size(const RocketmqPart& part) {
  return zigzag_size(part.flag) + zigzag_size(part.sys_flag) +
         counted_size(part.born_address.size()) + zigzag_size(part.born_port) +
         counted_size(part.store_address.size()) + zigzag_size(part.store_port) +
         zigzag_size(part.reconsume_times) + zigzag_size(part.prepared_transaction_offset) +
         counted_size(part.properties.size());
}

void write(const RocketmqPart& part, FieldWriter& out) {
  out.zigzag(part.flag);
  out.zigzag(part.sys_flag);
  out.counted(part.born_address);
  out.zigzag(part.born_port);
  out.counted(part.store_address);
  out.zigzag(part.store_port);
  out.zigzag(part.reconsume_times);
  out.zigzag(part.prepared_transaction_offset);
  out.counted(part.properties);
}

Result<RocketmqPart> read_rocketmq_part(ByteView bytes) {
  FieldReader in(bytes);
  RocketmqPart part;
  part.flag = in.zigzag32();
  part.sys_flag = in.zigzag32();
  part.born_address = in.counted();
  part.born_port = in.zigzag32();
  part.store_address = in.counted();
  part.store_port = in.zigzag32();
  part.reconsume_times = in.zigzag32();
  part.prepared_transaction_offset = in.zigzag64();
  part.properties = in.counted_text();
  if (!in.ok() || !in.done() || !sound(part)) {
    return fail(Errc::corrupt, "the record's RocketMQ part does not fit its fields");
  }
  return part;
}

std::size_t encoded_size(const MqttPart& part) {
  std::size_t size = 2;
  if (!part.topic.empty()) size += counted_size(part.topic.size());
  if (part.payload_format) size += 1;
  if (part.content_type) size += counted_size(part.content_type->size());
  if (part.response_topic) size += counted_size(part.response_topic->size());
  if (part.correlation) size += counted_size(part.correlation->size());
  if (part.client_id) size += counted_size(part.client_id->size());
  if (part.expiry_interval_s) size += unsigned_size(*part.expiry_interval_s);
  return size;
}

void write(const MqttPart& part, FieldWriter& out) {
  const auto bit = [](bool set, std::uint8_t mask) { return set ? unsigned{mask} : 0U; };
  out.u8(static_cast<std::uint8_t>(part.qos | bit(part.retain, mqtt_attributes::retain)));
  out.u8(static_cast<std::uint8_t>(
      bit(!part.topic.empty(), mqtt_fields::topic) |
      bit(part.payload_format.has_value(), mqtt_fields::payload_format) |
      bit(part.content_type.has_value(), mqtt_fields::content_type) |
      bit(part.response_topic.has_value(), mqtt_fields::response_topic) |
      bit(part.correlation.has_value(), mqtt_fields::correlation) |
      bit(part.client_id.has_value(), mqtt_fields::client_id) |
      bit(part.expiry_interval_s.has_value(), mqtt_fields::expiry_interval)));
  if (!part.topic.empty()) out.counted(part.topic);
  if (part.payload_format) out.u8(*part.payload_format);
  if (part.content_type) out.counted(*part.content_type);
  if (part.response_topic) out.counted(*part.response_topic);
  if (part.correlation) out.counted(*part.correlation);
  if (part.client_id) out.counted(*part.client_id);
  if (part.expiry_interval_s) out.length(*part.expiry_interval_s);
}

Result<MqttPart> read_mqtt_part(ByteView bytes) {
  FieldReader in(bytes);
  const std::uint8_t attributes = in.u8();
  const std::uint8_t fields = in.u8();
  if ((attributes & ~mqtt_attributes::known) != 0 || (fields & ~mqtt_fields::known) != 0) {
    return fail(Errc::unsupported, "the record's MQTT part has fields of a later version");
  }
  MqttPart part;
  part.qos = attributes & mqtt_attributes::qos_mask;
  part.retain = (attributes & mqtt_attributes::retain) != 0;
  if ((fields & mqtt_fields::topic) != 0) part.topic = in.counted_text();
  if ((fields & mqtt_fields::payload_format) != 0) part.payload_format = in.u8();
  if ((fields & mqtt_fields::content_type) != 0) part.content_type = in.counted_text();
  if ((fields & mqtt_fields::response_topic) != 0) part.response_topic = in.counted_text();
  if ((fields & mqtt_fields::correlation) != 0) part.correlation = in.counted();
  if ((fields & mqtt_fields::client_id) != 0) part.client_id = in.counted_text();
  if ((fields & mqtt_fields::expiry_interval) != 0) part.expiry_interval_s = in.length();
  if (!in.ok() || !in.done() || part.qos > 2) {
    return fail(Errc::corrupt, "the record's MQTT part does not fit its fields");
  }
  return part;
}

}  // namespace polylog::format::segment
