#include "broker/transcoder.h"

#include "format/rocketmq/names.h"

namespace polylog::broker {

Origin parse_origin(std::string_view text) {
  return format::rocketmq::parse_host(text).value_or(Origin());
}

Result<Batch> Transcoder::to_native(const Batch& batch, const Origin& origin) const {
  if (native_ == BatchFormat::segment) return format::kafka_to_segment(batch, segment_);
  format::RocketmqTarget target = rocketmq_;
  target.born_host = origin;
  return format::kafka_to_rocketmq(batch, target);
}

Result<std::vector<Batch>> Transcoder::from_native(const std::vector<Batch>& batches) const {
  if (native_ == BatchFormat::segment) return format::segment_to_kafka(batches, kafka_);
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
