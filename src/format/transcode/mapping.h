#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bytes/slice.h"
#include "format/rocketmq/message.h"
#include "record/record.h"

// What those who write and those who read a mapped record must agree on. Page: docs/formats/
// record-mapping.md.
namespace polylog::format {

// Headers that stand for RocketMQ's own fields. A Kafka reader sees them in this order: the fields
// that are not properties, then the properties in the order of their text, then `rest`.
namespace native_header {
inline constexpr std::string_view prefix = "rmq.";
inline constexpr std::string_view flag = "rmq.flag";
inline constexpr std::string_view sys_flag = "rmq.sys";
inline constexpr std::string_view born_host = "rmq.born";
inline constexpr std::string_view reconsume_times = "rmq.re";
inline constexpr std::string_view prepared_offset = "rmq.prep";
inline constexpr std::string_view tags = "rmq.tags";
inline constexpr std::string_view keys = "rmq.keys";
inline constexpr std::string_view unique_key = "rmq.uniq";
inline constexpr std::string_view rest = "rmq.p";
}  // namespace native_header

// Headers that stand for what an MQTT PUBLISH has beyond them, in this order.
namespace mqtt_header {
inline constexpr std::string_view prefix = "mqtt.";
inline constexpr std::string_view fixed = "mqtt.f";  // one byte, see mqtt_bits
inline constexpr std::string_view content_type = "mqtt.ct";
inline constexpr std::string_view response_topic = "mqtt.rt";
inline constexpr std::string_view correlation = "mqtt.cd";
inline constexpr std::string_view expiry = "mqtt.exp";  // seconds, decimal
inline constexpr std::string_view client_id = "mqtt.cid";
inline constexpr std::string_view topic = "mqtt.t";  // only when the key is not the topic
}  // namespace mqtt_header

// The byte of mqtt.f.
namespace mqtt_bits {
inline constexpr std::uint8_t qos_mask = 0x3;
inline constexpr std::uint8_t retain = 0x4;
inline constexpr std::uint8_t has_format = 0x8;
inline constexpr std::uint8_t format = 0x10;
}  // namespace mqtt_bits

// A property whose name could be taken for a header of ours, or for an escaped one, is a header
// with this in front of its name.
inline constexpr std::string_view escape_prefix = "h:";
inline bool needs_escape(std::string_view property) {
  return property.starts_with(native_header::prefix) || property.starts_with(escape_prefix);
}

// True for a header whose value is binary: as a property it is in base64.
inline bool is_binary(std::string_view name) {
  return name == mqtt_header::fixed || name == mqtt_header::correlation;
}

// True for a property that is a header of its own; all others travel together in `rest`.
bool travels_alone(std::string_view name, std::string_view value);

// True for what is never taken from a header: it describes how or where a record was stored, and
// a store acts on it.
bool is_bound_to_store(std::string_view name);

// The sys flag bits that a header may set: all that no store acts on.
inline constexpr std::int32_t sys_flag_settable = rocketmq::sys_flag::several_tags |
                                                  rocketmq::sys_flag::transaction_commit |
                                                  rocketmq::sys_flag::compression_mask;

// A key as the value of __KKEY: printable text as it is, anything else (and what begins with '=')
// as '=' and base64. Never empty.
void append_key(std::string& text, ByteView key);
// Appends the key to `out`. False: not such a value.
bool decode_key(std::string_view value, std::vector<std::uint8_t>& out);

// A record's header list in the encoding of Kafka's records: their number, then name and value of
// each, all lengths zigzag varints, -1 for a null value.
void append_header_list(std::vector<std::uint8_t>& out, const std::vector<Header>& headers);
// The views point into `bytes`. False: not exactly one such list.
bool decode_header_list(ByteView bytes, std::vector<Header>& headers);

// REQUIRES: an address of 4 or 16 bytes.
rocketmq::Host to_host(ByteView address, std::int32_t port);
// "192.0.2.1:50000", "[2001:db8::1]:50000"; one text for each host.
std::string to_text(const rocketmq::Host& host);
std::optional<rocketmq::Host> parse_host(std::string_view text);

// Expands bodies that RocketMQ clients compressed, into a buffer that it keeps.
class BodyExpander {
 public:
  // A view that lives until the next call. Nothing: not what the flags say, or beyond `bytes_max`.
  // REQUIRES: the flags say compressed.
  std::optional<ByteView> expand(std::int32_t sys_flag, ByteView body, std::size_t bytes_max);
  // What expand() has produced in all, in vain too: a bound on work.
  std::size_t produced_bytes() const { return produced_bytes_; }

 private:
  // How many bytes came out, at the front of out_.
  std::optional<std::size_t> inflate_zlib(ByteView body, std::size_t bytes_max);

  std::vector<std::uint8_t> out_;
  std::size_t produced_bytes_ = 0;
};

}  // namespace polylog::format
