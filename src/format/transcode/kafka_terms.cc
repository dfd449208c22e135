#include "format/transcode/kafka_terms.h"

#include <array>
#include <charconv>

#include "format/transcode/mapping.h"

namespace polylog::format {
namespace {

// A user property whose name could be taken for a header of ours, or for an escaped one.
bool needs_mqtt_escape(std::string_view name) {
  return name.starts_with(mqtt_header::prefix) || needs_escape(name);
}

char fixed_byte(const segment::MqttPart& part) {
  unsigned bits = part.qos & mqtt_bits::qos_mask;
  if (part.retain) bits |= mqtt_bits::retain;
  if (part.payload_format) bits |= mqtt_bits::has_format;
  if (part.payload_format.value_or(0) != 0) bits |= mqtt_bits::format;
  return static_cast<char>(bits);
}

}  // namespace

Result<void> KafkaTerms::apply(segment::StoredRecord& record) {
  if (record.rocketmq) {
    POLYLOG_TRY(messages_.apply(*record.rocketmq, record.record));
    record.rocketmq.reset();
  } else if (record.mqtt) {
    POLYLOG_TRY(apply_mqtt(*record.mqtt, record.record));
    record.mqtt.reset();
  }
  return {};
}

Result<void> KafkaTerms::apply_mqtt(const segment::MqttPart& part, Record& record) {
  if (part.qos > 2 || part.payload_format.value_or(0) > 1) {
    return fail(Errc::corrupt, "a QoS or payload format that MQTT does not have");
  }
  headers_.clear();
  made_.clear();
  std::array<char, 12> digits;
  std::size_t escaped_bytes = 0;
  for (const Header& header : record.headers) {
    if (needs_mqtt_escape(header.name)) escaped_bytes += escape_prefix.size() + header.name.size();
  }
  made_.reserve(1 + digits.size() + escaped_bytes);  // views of it are kept
  const auto keep = [this](std::string_view text) {
    const std::size_t at = made_.size();
    made_ += text;
    return std::string_view(made_).substr(at);
  };
  const auto add = [this](std::string_view name, std::string_view value) {
    headers_.push_back({name, as_bytes(value)});
  };
  const char fixed = fixed_byte(part);
  add(mqtt_header::fixed, keep({&fixed, 1}));
  if (part.content_type) add(mqtt_header::content_type, *part.content_type);
  if (part.response_topic) add(mqtt_header::response_topic, *part.response_topic);
  if (part.correlation) headers_.push_back({mqtt_header::correlation, *part.correlation});
  if (part.expiry_interval_s) {
    const char* const end =
        std::to_chars(digits.data(), digits.data() + digits.size(), *part.expiry_interval_s).ptr;
    add(mqtt_header::expiry, keep({digits.data(), static_cast<std::size_t>(end - digits.data())}));
  }
  if (part.client_id) add(mqtt_header::client_id, *part.client_id);
  if (!part.topic.empty()) add(mqtt_header::topic, part.topic);
  for (const Header& header : record.headers) {
    std::string_view name = header.name;
    if (needs_mqtt_escape(name)) {
      const std::size_t at = made_.size();
      made_.append(escape_prefix).append(name);
      name = std::string_view(made_).substr(at);
    }
    headers_.push_back({name, header.value});
  }
  record.headers.swap(headers_);
  return {};
}

}  // namespace polylog::format
