#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/transcode/transcode.h"
#include "record/batch.h"

namespace polylog::broker {

// Who sent a record, for layouts that keep it: an address and a port.
using Origin = format::rocketmq::Host;
// "192.0.2.1:9092" or "[2001:db8::1]:9092"; anything else is 0.0.0.0:0, which means unknown.
Origin parse_origin(std::string_view text);

// Changes batches between Kafka's form and the one a partition is stored in. A value: any thread,
// so that large batches can be changed where waiting is allowed.
class Transcoder {
 public:
  // From this size on (of the batch, or of what is read) the work belongs into the pool.
  static constexpr std::size_t inline_bytes_max = 256 * 1024;

  // REQUIRES: `native` is not Kafka's own form.
  Transcoder(BatchFormat native, format::RocketmqTarget rocketmq, format::SegmentTarget segment,
             bool log_append_time)
      : native_(native), rocketmq_(std::move(rocketmq)), segment_(segment) {
    kafka_.log_append_time = log_append_time;
  }

  // Of a checked Kafka batch. unsupported, invalid: a record that the layout can't hold;
  // too_large: over one of its limits, which the context names.
  Result<Batch> to_native(const Batch& batch, const Origin& origin) const;
  // Of what PartitionLog::read returned: Kafka batches with the records' own offsets.
  Result<std::vector<Batch>> from_native(const std::vector<Batch>& batches) const;

 private:
  BatchFormat native_;
  format::RocketmqTarget rocketmq_;
  format::SegmentTarget segment_;
  format::KafkaTarget kafka_;
};

std::size_t total_bytes(const std::vector<Batch>& batches);

// The name a topic has in a store of that form. invalid, too_large: it can have none there.
Result<std::string> stored_topic(BatchFormat native, const std::string& topic);

}  // namespace polylog::broker
