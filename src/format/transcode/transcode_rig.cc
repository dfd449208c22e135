#include "format/transcode/transcode_rig.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/assert.h"

namespace polylog::format {
namespace {

std::optional<ByteView> view_of(const Bytes& bytes) {
  if (!bytes) return std::nullopt;
  return as_bytes(*bytes);
}

Bytes bytes_of(const std::optional<ByteView>& view) {
  if (!view) return std::nullopt;
  return std::string(as_text(*view));
}

}  // namespace

Batch kafka_batch(const std::vector<TestRecord>& records, const kafka::BatchOptions& options) {
  kafka::BatchBuilder builder(options);
  for (const TestRecord& own : records) {
    Record record;
    record.key = view_of(own.key);
    record.value = view_of(own.value);
    for (const auto& [name, value] : own.headers) record.headers.push_back({name, view_of(value)});
    record.timestamp = Timestamp(own.timestamp);
    record.offset = Offset(own.offset);
    POLYLOG_ASSERT(own.offset < 0 ? builder.add(record) : builder.add_at_offset(record));
  }
  Result<std::vector<std::uint8_t>> bytes = builder.finish();
  POLYLOG_ASSERT(bytes.has_value());
  const Result<kafka::BatchHeader> header = kafka::parse_header(*bytes);
  POLYLOG_ASSERT(header.has_value());
  return {BatchFormat::kafka, kafka::to_info(*header), Slice::of(*std::move(bytes))};
}

Batch rocketmq_batch(const std::vector<TestMessage>& messages, LeaderEpoch epoch) {
  std::vector<std::uint8_t> bytes;
  for (const TestMessage& own : messages) {
    rocketmq::Message message;
    message.flag = own.flag;
    message.sys_flag = own.sys_flag;
    message.born_timestamp = own.born_timestamp;
    message.born_host = own.born_host;
    message.reconsume_times = own.reconsume_times;
    message.prepared_transaction_offset = own.prepared_offset;
    message.queue_offset = own.queue_offset;
    message.store_timestamp = own.store_timestamp;
    message.store_host = own.store_host;
    message.body = as_bytes(own.body);
    message.topic = "packages";
    message.properties = own.properties;
    POLYLOG_ASSERT(rocketmq::encode(message, bytes).has_value());
  }
  Batch batch{BatchFormat::rocketmq, {}, Slice::of(std::move(bytes))};
  batch.info.first = Offset(messages.front().queue_offset);
  batch.info.last = Offset(messages.back().queue_offset);
  batch.info.records = static_cast<std::int32_t>(messages.size());
  batch.info.epoch = epoch;
  return batch;
}

Batch segment_batch(const std::vector<segment::StoredRecord>& records, LeaderEpoch epoch) {
  std::vector<std::uint8_t> bytes;
  Batch batch{BatchFormat::segment, {}, {}};
  for (const segment::StoredRecord& record : records) {
    const std::size_t start = bytes.size();
    POLYLOG_ASSERT(segment::encode(record, bytes).has_value());
    const MutableBytes frame = MutableBytes(bytes).subspan(start);
    segment::place(frame, record.record.offset);
    const Result<segment::RecordHead> head = segment::decode_head(frame);
    POLYLOG_ASSERT(head.has_value());
    if (start == 0) batch.info = segment::to_info(*head);
    if (start != 0) segment::fold(batch.info, *head);
  }
  batch.info.epoch = epoch;
  batch.bytes = Slice::of(std::move(bytes));
  return batch;
}

RocketmqTarget test_target() {
  RocketmqTarget target;
  target.topic = "packages";
  target.queue_id = 3;
  target.born_host = {{192, 0, 2, 7}, false, 40000};
  target.store_host = {{192, 0, 2, 1}, false, 10911};
  return target;
}

SegmentTarget placed_target() {
  SegmentTarget target;
  target.placed = true;
  return target;
}

std::vector<TestRecord> records_of(const Batch& batch) { return records_of(std::vector{batch}); }

std::vector<TestRecord> records_of(const std::vector<Batch>& batches) {
  constexpr std::size_t output_max = 512 << 20;
  std::vector<TestRecord> records;
  for (const Batch& batch : batches) {
    POLYLOG_ASSERT(kafka::crc_matches(batch.bytes.view()));
    const Result<void> read =
        kafka::for_each_record(batch.bytes.view(), output_max, [&](const Record& record) {
          TestRecord own;
          own.key = bytes_of(record.key);
          own.value = bytes_of(record.value);
          for (const Header& header : record.headers) {
            own.headers.emplace_back(header.name, bytes_of(header.value));
          }
          own.timestamp = record.timestamp.value();
          own.offset = record.offset.value();
          records.push_back(std::move(own));
          return true;
        });
    POLYLOG_ASSERT(read.has_value());
  }
  return records;
}

std::vector<TestMessage> messages_of(const Batch& batch) {
  std::vector<TestMessage> messages;
  const Result<void> read = rocketmq::for_each_message(
      batch.bytes.view(), [&](ByteView, const rocketmq::Message& message) -> Result<void> {
        POLYLOG_ASSERT(rocketmq::crc_matches(message));
        TestMessage own;
        own.body = as_text(message.body);
        own.properties = message.properties;
        own.flag = message.flag;
        own.sys_flag = message.sys_flag;
        own.born_timestamp = message.born_timestamp;
        own.born_host = message.born_host;
        own.reconsume_times = message.reconsume_times;
        own.prepared_offset = message.prepared_transaction_offset;
        own.queue_offset = message.queue_offset;
        own.store_timestamp = message.store_timestamp;
        own.store_host = message.store_host;
        messages.push_back(std::move(own));
        return {};
      });
  POLYLOG_ASSERT(read.has_value());
  return messages;
}

std::vector<segment::StoredRecord> frames_of(const Batch& batch) {
  std::vector<segment::StoredRecord> records;
  const Result<void> read =
      segment::for_each_frame(batch.bytes.view(), [&](ByteView frame) -> Result<void> {
        Result<segment::StoredRecord> record = segment::decode(frame);
        POLYLOG_ASSERT(record.has_value());
        records.push_back(*std::move(record));
        return {};
      });
  POLYLOG_ASSERT(read.has_value());
  return records;
}

bool same_bytes(const Batch& a, const Batch& b) {
  return a.format == b.format && as_text(a.bytes.view()) == as_text(b.bytes.view());
}

bool same_bytes(const std::vector<Batch>& a, const std::vector<Batch>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Batch& one, const Batch& other) { return same_bytes(one, other); });
}

std::vector<std::pair<std::string, std::string>> property_map(std::string_view text) {
  std::map<std::string, std::string> map;
  rocketmq::for_each_property(text, [&](std::string_view name, std::string_view value) {
    // The record's own checksum, which each store makes anew.
    if (name != rocketmq::property::crc32) map[std::string(name)] = value;
    return true;
  });
  return {map.begin(), map.end()};
}

std::string property_text(std::string_view readable) {
  std::string text(readable);
  bool in_name = true;
  for (char& c : text) {
    if (c == '=' && in_name) {
      c = '\x01';
      in_name = false;
    } else if (c == ';') {
      c = '\x02';
      in_name = true;
    }
  }
  if (!text.empty()) text += '\x02';
  return text;
}

}  // namespace polylog::format
