#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/segment/record.h"
#include "format/transcode/message_terms.h"
#include "record/record.h"

namespace polylog::format {

// Any stored record as a Kafka reader is shown it. Page: docs/formats/record-mapping.md.
class KafkaTerms {
 public:
  // Replaces what the record says in another protocol's terms by key, value and headers, and drops
  // that protocol's part. Its views live until the next call, those it had as before.
  // corrupt: as MessageTerms; an MQTT part with a payload format that MQTT does not have.
  Result<void> apply(segment::StoredRecord& record);
  std::size_t wasted_bytes() const { return messages_.wasted_bytes(); }

 private:
  Result<void> apply_mqtt(const segment::MqttPart& part, Record& record);

  MessageTerms messages_;
  std::vector<Header> headers_;
  std::string made_;
};

}  // namespace polylog::format
