#include "broker/transcoder.h"

#include <arpa/inet.h>

#include <charconv>
#include <utility>

#include "format/rocketmq/names.h"

namespace polylog::broker {

Origin parse_origin(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return {};
  std::string host(text.substr(0, colon));
  Origin origin;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data() + colon + 1, last, origin.port);
  if (error != std::errc() || end != last || origin.port < 0 || origin.port > 65535) return {};
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    origin.v6 = true;
  }
  const int family = origin.v6 ? AF_INET6 : AF_INET;
  if (inet_pton(family, host.c_str(), origin.address.data()) != 1) return {};
  return origin;
}

Result<Batch> Transcoder::to_native(const Batch& batch, const Origin& origin) const {
  format::RocketmqTarget target = target_;
  target.born_host = origin;
  return format::kafka_to_rocketmq(batch, target);
}

Result<std::vector<Batch>> Transcoder::from_native(const std::vector<Batch>& batches) const {
  return format::rocketmq_to_kafka(batches, kafka_);
}

std::size_t total_bytes(const std::vector<Batch>& batches) {
  std::size_t bytes = 0;
  for (const Batch& batch : batches) bytes += batch.bytes.size();
  return bytes;
}

Result<std::string> stored_topic(BatchFormat native, const std::string& topic) {
  if (native != BatchFormat::rocketmq) return topic;
  POLYLOG_ASSIGN(stored, format::rocketmq::to_stored_topic(topic));
  if (format::rocketmq::is_internal_topic(stored)) {
    return fail(Errc::invalid, "the name " + topic + " is one of RocketMQ's own");
  }
  return stored;
}

}  // namespace polylog::broker
