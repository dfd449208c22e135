#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "format/rocketmq/message.h"
#include "format/rocketmq/properties.h"
#include "format/segment/record.h"
#include "format/transcode/kafka_terms.h"
#include "format/transcode/transcode.h"
#include "record/record.h"

namespace polylog::format {

// Writes records of any origin as RocketMQ's messages, one behind the other. Its buffers serve all
// of them.
class RocketmqWriter {
 public:
  explicit RocketmqWriter(const RocketmqTarget& target) : target_(target) {
    message_.queue_id = target.queue_id;
    message_.topic = target.topic;
  }

  void reserve(std::size_t bytes) { out_.reserve(bytes); }
  // A record of another protocol is changed into Kafka's terms on the way. too_large, corrupt: as
  // transcode.h says; the context names the record.
  Result<void> write(segment::StoredRecord& record);
  std::vector<std::uint8_t> take() { return std::move(out_); }

 private:
  enum class Place : std::uint8_t;
  // What headers said about RocketMQ's own fields.
  struct Natives {
    std::int32_t flag = 0;
    std::int32_t sys_flag = 0;
    std::int32_t reconsume_times = 0;
    std::int64_t prepared_offset = 0;
    std::optional<rocketmq::Host> born_host;
    std::string_view tags;  // empty = none, as the rest
    std::string_view keys;
    std::string_view unique_key;
    std::string_view sharding_key;
  };

  void set_native(const segment::StoredRecord& stored);
  void set_record(const segment::StoredRecord& stored);
  bool write_plain(const segment::StoredRecord& stored);
  bool write_plain_header(const Header& header, Place& last);
  bool write_rest(std::string_view pieces);
  bool names_unique();
  bool plain_key(const Record& record);
  void write_whole(const segment::StoredRecord& stored);
  void write_own(const segment::StoredRecord& stored);
  void write_producer(const segment::ProducerPart& part);
  std::optional<Place> take_native(std::string_view name, std::string_view value);

  void add(std::string_view name, std::string_view value);
  void add_named(std::string_view name, std::string_view value) {
    names_.push_back(name);
    add(name, value);
  }
  void add_key(ByteView key);
  void start_over() {
    natives_ = {};
    text_.clear();
    key_added_ = false;
  }

  const RocketmqTarget& target_;
  KafkaTerms terms_;
  rocketmq::Message message_;  // but for queue and topic, set for each record
  Natives natives_;
  std::string text_;
  bool key_added_ = false;
  std::vector<std::string_view> names_;  // of the properties that stand for headers
  std::vector<std::uint8_t> list_;
  std::string binary_;
  rocketmq::ProducerPart producer_;  // whose batch the two texts are of
  std::string producer_front_;       // a __KPS property up to the record's index
  std::string producer_end_;
  std::int64_t record_number_ = 0;
  std::vector<std::uint8_t> out_;
};

}  // namespace polylog::format
