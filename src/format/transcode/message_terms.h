#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/segment/record.h"
#include "format/transcode/mapping.h"
#include "record/record.h"

namespace polylog::format {

// What a RocketMQ message says, as a Kafka reader is shown it (docs/formats/record-mapping.md,
// "RocketMQ message to Kafka record"). Its buffers serve all messages; a record's views live until
// the next one.
class MessageTerms {
 public:
  // Fills key, value, and headers from the part and the stored body, which `record.value` holds.
  // corrupt: a property of ours that is malformed.
  Result<void> apply(const segment::RocketmqPart& part, Record& record);
  // By bodies that did not expand and are shown as they are: a bound on work.
  std::size_t wasted_bytes() const { return wasted_bytes_; }

 private:
  enum class Kind : std::uint8_t { tags, keys, unique_key, rest, alone, dropped };
  struct Property {
    std::string_view name;
    std::string_view value;
    Kind kind;
  };
  // The properties with a meaning of their own; the last of a name counts.
  struct Known {
    std::optional<std::string_view> kafka_key;
    std::optional<std::string_view> kafka_headers;
    std::optional<std::string_view> kafka_producer;
    std::optional<std::string_view> null_value;
    std::optional<std::string_view> keys;
    std::optional<std::string_view> sharding_key;
    bool unique_key = false;
  };

  void read_properties(std::string_view text);
  bool take_known(std::string_view name, std::string_view value);
  void drop_repeated();
  Result<void> set_value(const segment::RocketmqPart& part, Record& record);
  Result<void> set_key(Record& record);
  void set_headers(const segment::RocketmqPart& part, Record& record);
  void add_fields(const segment::RocketmqPart& part, std::vector<Header>& headers);
  void add_alone(const Property& property, std::vector<Header>& headers);
  void add_rest(std::vector<Header>& headers);
  void add_number(std::string_view name, std::int64_t value, std::vector<Header>& headers) {
    if (value != 0) add_digits(name, value, headers);
  }
  void add_digits(std::string_view name, std::int64_t value, std::vector<Header>& headers);
  std::string_view keep(std::string_view text) {
    const std::size_t at = made_.size();
    made_ += text;
    return std::string_view(made_).substr(at);
  }

  std::vector<Property> properties_;
  std::vector<std::uint32_t> order_;
  Known known_;
  std::int32_t flags_shown_ = 0;
  std::string made_;  // names and values that are nowhere in the message; never reallocated
  std::vector<std::uint8_t> key_;
  std::vector<std::uint8_t> list_;
  BodyExpander expander_;
  std::size_t wasted_bytes_ = 0;
};

}  // namespace polylog::format
