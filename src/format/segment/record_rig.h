#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/segment/record.h"

// For tests: records in full, their stored bytes, and what makes two of them equal.
namespace polylog::format::segment::rig {

using Bytes = std::vector<std::uint8_t>;

inline Bytes from_hex(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(digit(hex[i]) << 4 | digit(hex[i + 1])));
  }
  return bytes;
}

// key "k", value "v".
inline StoredRecord plain() {
  StoredRecord record;
  record.record.offset = Offset(5);
  record.record.timestamp = Timestamp(1'700'000'000'000);
  record.record.key = as_bytes("k");
  record.record.value = as_bytes("v");
  return record;
}
// plain() as it is stored, put together from the byte table by hand; the checksum was computed by
// another program.
inline constexpr std::string_view plain_hex =
    "0000000000000005"  // offset
    "0000000f0000000e"  // total length, metadata length
    "010160cdafeb"      // version, flags, checksum
    "80a0abfef962"      // create time
    "016b"              // key
    "00000000"          // no protocol data
    "0000000176";       // data

// A null value, every other field of the metadata, a producer and MQTT.
inline StoredRecord full() {
  StoredRecord record;
  record.record.offset = Offset(0x0102030405);
  record.record.timestamp = Timestamp(1'700'000'000'000);
  record.record.key = ByteView();
  record.record.headers = {{"a", as_bytes("b")}, {"a", std::nullopt}, {"", ByteView()}};
  record.append_time = Timestamp(1'700'000'000'007);
  record.shows_append_time = true;
  record.expires = Timestamp(1'699'999'999'000);
  record.producer = ProducerPart{ProducerId(4711), 3, 2'147'483'646, 2, 3};
  record.mqtt = MqttPart{.topic = "a/b",
                         .qos = 1,
                         .retain = true,
                         .payload_format = std::uint8_t{1},
                         .content_type = "ct",
                         .response_topic = "rt",
                         .correlation = as_bytes(std::string_view("\0\xff", 2)),
                         .client_id = "id",
                         .expiry_interval_s = 300};
  return record;
}
inline constexpr std::string_view full_hex =
    "0000000102030405"      // offset
    "0000003d0000001a"      // total length, metadata length
    "013f7963b564"          // version, flags, checksum
    "80a0abfef9620ecf0f"    // create time, then 7 later, then 1000 earlier
    "00"                    // empty key
    "03016102620161010000"  // three headers: a=b, a null, the empty one empty
    "00000023"              // protocol data
    "010a"                  // producer:
    "ce4906fcffffff0f0406"  // id, epoch, base sequence, index, count
    "0315"                  // MQTT:
    "057f03612f62"          // attributes, fields, topic
    "010263740272740200ff"  // format, content type, response topic, correlation
    "026964ac02"            // client id, expiry interval
    "00000000";             // no data

// A RocketMQ message.
inline StoredRecord message() {
  static constexpr std::uint8_t born[] = {10, 0, 0, 1};
  static constexpr std::uint8_t store[] = {192, 168, 1, 2};
  StoredRecord record;
  record.record.timestamp = Timestamp(1'700'000'000'000);
  record.record.value = as_bytes("body");
  record.append_time = Timestamp(1'700'000'000'003);
  record.rocketmq = RocketmqPart{.flag = -1,
                                 .sys_flag = 8,
                                 .born_address = born,
                                 .born_port = 50000,
                                 .store_address = store,
                                 .store_port = 10911,
                                 .reconsume_times = 2,
                                 .prepared_transaction_offset = std::int64_t{1} << 40,
                                 .properties = "TAGS\x01"
                                               "a\x02"};
  return record;
}
inline constexpr std::string_view message_hex =
    "0000000000000000"    // offset
    "000000340000000d"    // total length, metadata length
    "010895923a14"        // version, flags, checksum
    "80a0abfef96206"      // create time, then 3 later
    "00000023"            // protocol data
    "0221"                // RocketMQ:
    "0110"                // flag, sys flag
    "040a000001a08d06"    // born address and port
    "04c0a80102beaa01"    // store address and port
    "04808080808040"      // reconsume times, prepared transaction offset
    "0754414753016102"    // properties
    "00000004626f6479";  // data

inline bool same(const std::optional<ByteView>& a, const std::optional<ByteView>& b) {
  return a.has_value() == b.has_value() && (!a || as_text(*a) == as_text(*b));
}

inline bool same(const std::vector<Header>& a, const std::vector<Header>& b) {
  bool equal = a.size() == b.size();
  for (std::size_t i = 0; equal && i < a.size(); ++i) {
    equal = a[i].name == b[i].name && same(a[i].value, b[i].value);
  }
  return equal;
}

inline bool same(const RocketmqPart& a, const RocketmqPart& b) {
  return a.flag == b.flag && a.sys_flag == b.sys_flag &&
         as_text(a.born_address) == as_text(b.born_address) && a.born_port == b.born_port &&
         as_text(a.store_address) == as_text(b.store_address) && a.store_port == b.store_port &&
         a.reconsume_times == b.reconsume_times &&
         a.prepared_transaction_offset == b.prepared_transaction_offset &&
         a.properties == b.properties;
}

inline bool same(const MqttPart& a, const MqttPart& b) {
  return a.topic == b.topic && a.qos == b.qos && a.retain == b.retain &&
         a.payload_format == b.payload_format && a.content_type == b.content_type &&
         a.response_topic == b.response_topic && same(a.correlation, b.correlation) &&
         a.client_id == b.client_id && a.expiry_interval_s == b.expiry_interval_s;
}

template <typename Part>
bool same(const std::optional<Part>& a, const std::optional<Part>& b) {
  return a.has_value() == b.has_value() && (!a || same(*a, *b));
}

inline bool same(const StoredRecord& a, const StoredRecord& b) {
  return a.record.offset == b.record.offset && a.record.timestamp == b.record.timestamp &&
         same(a.record.key, b.record.key) && same(a.record.value, b.record.value) &&
         same(a.record.headers, b.record.headers) && a.append_time == b.append_time &&
         a.shows_append_time == b.shows_append_time && a.expires == b.expires &&
         a.producer == b.producer && same(a.rocketmq, b.rocketmq) && same(a.mqtt, b.mqtt);
}

// The record as it is stored at its own offset.
inline Bytes stored(const StoredRecord& record) {
  Bytes frame;
  if (!encode(record, frame)) return {};
  place(frame, record.record.offset);
  return frame;
}

}  // namespace polylog::format::segment::rig
