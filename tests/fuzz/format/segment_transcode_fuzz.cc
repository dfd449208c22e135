#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "bytes/reader.h"
#include "format/kafka/record_batch.h"
#include "format/rocketmq/message.h"
#include "format/segment/record.h"
#include "format/transcode/transcode.h"

// The input is read three times: as segment frames, as the parts of one record of any protocol, and
// as a piece of a commit log. What a Kafka reader is shown of frames must come back equal when it
// is stored as frames again, and show the same by way of RocketMQ's messages.

using namespace polylog;
using namespace polylog::format;

namespace {

constexpr std::size_t output_max = std::size_t{1} << 20;

KafkaTarget kafka_target() {
  KafkaTarget target;
  target.output_max = output_max;
  return target;
}

RocketmqTarget rocketmq_target() {
  RocketmqTarget target;
  target.topic = "t";
  target.body_bytes_max = std::size_t{64} << 20;
  return target;
}

bool same(const std::vector<Batch>& a, const std::vector<Batch>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (as_text(a[i].bytes.view()) != as_text(b[i].bytes.view())) return false;
  }
  return true;
}

void show(const Batch& frames) {
  const Result<std::vector<Batch>> shown = segment_to_kafka({frames}, kafka_target());
  const Result<Batch> messages = segment_to_rocketmq(frames, rocketmq_target());
  if (!shown) return;
  SegmentTarget placed;
  placed.placed = true;
  bool append_times = false;
  for (const Batch& batch : *shown) {
    POLYLOG_ASSERT(kafka::crc_matches(batch.bytes.view()));
    append_times |= kafka::decode_header(batch.bytes.view()).timestamp_type() ==
                    kafka::TimestampType::log_append_time;
    const Result<Batch> stored = kafka_to_segment(batch, placed);
    POLYLOG_ASSERT(stored.has_value());
    const Result<std::vector<Batch>> again = segment_to_kafka({*stored}, KafkaTarget());
    POLYLOG_ASSERT(again.has_value() && same(*again, {batch}));
  }
  // Messages say nothing of the kind of timestamp; what of them is cut off here is no matter.
  if (!messages || append_times) return;
  const Result<std::vector<Batch>> around = rocketmq_to_kafka({*messages}, kafka_target());
  POLYLOG_ASSERT(around.has_value() && same(*around, *shown));
}

void round_trip(const Batch& messages) {
  const Result<Batch> frames = rocketmq_to_segment(messages, SegmentTarget{.placed = true});
  if (!frames) return;
  show(*frames);
  const Result<Batch> again = segment_to_rocketmq(*frames, rocketmq_target());
  POLYLOG_ASSERT(again.has_value() || again.error().code == Errc::too_large);
  if (!again) return;
  // Topic, queue and physical offset are the target's.
  const Result<Batch> twice = rocketmq_to_segment(*again, SegmentTarget{.placed = true});
  POLYLOG_ASSERT(twice.has_value());
  POLYLOG_ASSERT(as_text(twice->bytes.view()) == as_text(frames->bytes.view()));
}

std::optional<ByteView> nullable(ByteReader& reader) {
  const std::uint8_t size = reader.u8();
  if (size == 0xff) return std::nullopt;
  return reader.bytes(size);
}

std::optional<std::string_view> nullable_text(ByteReader& reader) {
  const std::optional<ByteView> bytes = nullable(reader);
  return bytes ? std::optional(as_text(*bytes)) : std::nullopt;
}

segment::RocketmqPart message_part(ByteReader& reader) {
  segment::RocketmqPart part;
  part.flag = reader.i8();
  part.sys_flag = reader.i16() & ~0x30;
  part.born_address = reader.bytes((reader.u8() & 1) != 0 ? 16 : 4);
  part.store_address = reader.bytes(4);
  part.reconsume_times = reader.i8();
  part.properties = reader.text(reader.u8());
  return part;
}

segment::MqttPart publish_part(ByteReader& reader) {
  segment::MqttPart part;
  const std::uint8_t bits = reader.u8();
  part.qos = bits & 3;
  part.retain = (bits & 4) != 0;
  if ((bits & 8) != 0) part.payload_format = bits >> 6;
  if ((bits & 16) != 0) part.expiry_interval_s = reader.u32();
  part.topic = reader.text(reader.u8());
  part.content_type = nullable_text(reader);
  part.response_topic = nullable_text(reader);
  part.correlation = nullable(reader);
  part.client_id = nullable_text(reader);
  return part;
}

Batch frame_of(ByteView parts) {
  ByteReader reader(parts);
  segment::StoredRecord stored;
  const std::uint8_t bits = reader.u8();
  stored.record.timestamp = Timestamp(reader.i8());
  stored.shows_append_time = (bits & 1) != 0;
  if ((bits & 2) != 0) stored.append_time = Timestamp(reader.i8());
  if ((bits & 4) != 0) stored.producer = {ProducerId(reader.u8()), 0, 7, 1, 2};
  if ((bits & 8) != 0) {
    stored.rocketmq = message_part(reader);
    stored.record.value.emplace();
  } else {
    if ((bits & 16) != 0) stored.mqtt = publish_part(reader);
    stored.record.key = nullable(reader);
    stored.record.value = nullable(reader);
    const unsigned headers = reader.u8() & 7;
    for (unsigned i = 0; i < headers; ++i) {
      const std::string_view name = reader.text(reader.u8());
      stored.record.headers.push_back({name, nullable(reader)});
    }
  }
  if (!reader.ok()) return {};
  if (stored.rocketmq) stored.record.value = reader.bytes(reader.remaining());
  std::vector<std::uint8_t> bytes;
  if (!segment::encode(stored, bytes)) return {};
  segment::place(bytes, Offset(3));
  POLYLOG_ASSERT(segment::crc_matches(bytes));
  return {BatchFormat::segment, {}, Slice::of(std::move(bytes))};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteView input(data, size);
  show({BatchFormat::segment, {}, Slice::unowned(input)});
  if (const Batch frame = frame_of(input); !frame.bytes.empty()) show(frame);
  round_trip({BatchFormat::rocketmq, {}, Slice::unowned(input)});
  return 0;
}
