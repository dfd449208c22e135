#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/kafka/records.h"
#include "format/rocketmq/message.h"
#include "format/rocketmq/properties.h"
#include "format/segment/record.h"
#include "format/transcode/transcode.h"

// Records and messages that own their bytes, for the tests of all pairs.
namespace polylog::format {

using Bytes = std::optional<std::string>;  // nothing = null

struct TestRecord {
  Bytes key;
  Bytes value;
  std::vector<std::pair<std::string, Bytes>> headers;
  std::int64_t timestamp = 1'700'000'000'000;
  std::int64_t offset = -1;  // -1: dense
  bool operator==(const TestRecord&) const = default;
};

struct TestMessage {
  std::string body;
  std::string properties;
  std::int32_t flag = 0;
  std::int32_t sys_flag = 0;
  std::int64_t born_timestamp = 1'700'000'000'000;
  rocketmq::Host born_host{{10, 0, 0, 1}, false, 50000};
  std::int32_t reconsume_times = 0;
  std::int64_t prepared_offset = 0;
  std::int64_t queue_offset = 0;
  std::int64_t store_timestamp = 0;
  rocketmq::Host store_host{{192, 0, 2, 1}, false, 10911};
};

// One Kafka batch.
Batch kafka_batch(const std::vector<TestRecord>& records, const kafka::BatchOptions& options = {});
// One batch of messages; queue offsets as given.
Batch rocketmq_batch(const std::vector<TestMessage>& messages, LeaderEpoch epoch = no_epoch);

// Placed frames, at the records' own offsets.
Batch segment_batch(const std::vector<segment::StoredRecord>& records,
                    LeaderEpoch epoch = no_epoch);

RocketmqTarget test_target();
// Frames at their records' offsets, as a conversion of a whole directory wants them.
SegmentTarget placed_target();

// All records, with their offsets; a failed assertion ends the program when bytes are not sound.
std::vector<TestRecord> records_of(const Batch& batch);
std::vector<TestRecord> records_of(const std::vector<Batch>& batches);
std::vector<TestMessage> messages_of(const Batch& batch);
// Views into the batch.
std::vector<segment::StoredRecord> frames_of(const Batch& batch);

bool same_bytes(const Batch& a, const Batch& b);
bool same_bytes(const std::vector<Batch>& a, const std::vector<Batch>& b);

// name=value, sorted by name: what RocketMQ's map of them holds.
std::vector<std::pair<std::string, std::string>> property_map(std::string_view text);

// "a=b;c=d" as property text.
std::string property_text(std::string_view readable);

}  // namespace polylog::format
