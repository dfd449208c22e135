#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <deque>
#include <string>
#include <utility>

#include "format/segment/record.h"
#include "format/segment/record_rig.h"

// Random records through the encoding and back.
namespace polylog::format::segment {
namespace {

using rig::Bytes;

// A record and what its views point into.
struct AnyRecord {
  StoredRecord record;
  std::deque<std::string> held;

  std::string_view text() {
    held.push_back(*rc::gen::scale(2.0, rc::gen::string<std::string>()));
    return held.back();
  }
  ByteView bytes() { return as_bytes(text()); }
  ByteView address() {
    const std::size_t size = *rc::gen::element<std::size_t>(4, 16);
    held.push_back(*rc::gen::container<std::string>(size, rc::gen::arbitrary<char>()));
    return as_bytes(held.back());
  }
};

bool coin() { return *rc::gen::arbitrary<bool>(); }
template <typename T>
T any() {
  return *rc::gen::arbitrary<T>();
}
// Small and large ones: rapidcheck's numbers grow with the size of the test alone.
Timestamp any_time() {
  return Timestamp(coin() ? any<std::int64_t>() : 1'700'000'000'000 + any<std::int16_t>());
}
std::int32_t any_int() { return coin() ? any<std::int32_t>() : *rc::gen::inRange(0, INT32_MAX); }

ProducerPart any_producer() {
  ProducerPart part;
  part.id = ProducerId(*rc::gen::inRange<std::int64_t>(-1, INT64_MAX));
  part.epoch = *rc::gen::inRange<std::int16_t>(-1, INT16_MAX);
  part.base_sequence = *rc::gen::inRange(-1, INT32_MAX);
  part.count = *rc::gen::inRange(1, INT32_MAX);
  part.index = *rc::gen::inRange(0, part.count);
  return part;
}

RocketmqPart any_rocketmq(AnyRecord& any_record) {
  RocketmqPart part;
  part.flag = any_int();
  part.sys_flag = any_int() & ~0x30;
  part.born_address = any_record.address();
  part.born_port = any_int();
  part.store_address = any_record.address();
  part.store_port = any_int();
  part.reconsume_times = any_int();
  part.prepared_transaction_offset = any_time().value();
  part.properties = any_record.text();
  return part;
}

MqttPart any_mqtt(AnyRecord& any_record) {
  MqttPart part;
  part.topic = any_record.text();
  part.qos = *rc::gen::inRange<std::uint8_t>(0, 3);
  part.retain = coin();
  if (coin()) part.payload_format = any<std::uint8_t>();
  if (coin()) part.content_type = any_record.text();
  if (coin()) part.response_topic = any_record.text();
  if (coin()) part.correlation = any_record.bytes();
  if (coin()) part.client_id = any_record.text();
  if (coin()) part.expiry_interval_s = *rc::gen::inRange<std::uint32_t>(0, UINT32_MAX);
  return part;
}

void fill(AnyRecord& out) {
  StoredRecord& record = out.record;
  record.record.offset = Offset(*rc::gen::inRange<std::int64_t>(0, INT64_MAX));
  record.record.timestamp = any_time();
  if (coin()) record.record.key = out.bytes();
  if (coin()) record.record.value = out.bytes();
  const int headers = *rc::gen::weightedElement<int>({{4, 0}, {2, 1}, {2, 3}, {1, 200}});
  for (int i = 0; i < headers; ++i) {
    record.record.headers.push_back({out.text(), std::nullopt});
    if (coin()) record.record.headers.back().value = out.bytes();
  }
  if (coin()) record.append_time = any_time();
  record.shows_append_time = coin();
  if (coin()) record.expires = any_time();
  if (coin()) record.producer = any_producer();
  if (coin()) record.rocketmq = any_rocketmq(out);
  if (coin()) record.mqtt = any_mqtt(out);
}

TEST(SegmentRecordProperty, any_record_comes_back_equal) {
  const bool held = rc::check([] {
    AnyRecord any_record;
    fill(any_record);
    const StoredRecord& record = any_record.record;
    const Bytes frame = rig::stored(record);
    RC_ASSERT(crc_matches(frame));
    const FrameHead front = next_frame(ByteView(frame).first(frame_head_bytes), frame.size());
    RC_ASSERT(front.state == FrameState::complete && front.size == frame.size());
    RC_ASSERT(front.offset == record.record.offset);
    const auto back = decode(frame);
    RC_ASSERT(back.has_value());
    RC_ASSERT(rig::same(*back, record));
    const auto head = decode_head(frame);
    RC_ASSERT(head.has_value());
    RC_ASSERT(head->offset == record.record.offset);
    RC_ASSERT(head->shown_time == record.shown_time());
    RC_ASSERT(head->producer == record.producer);
  });
  EXPECT_TRUE(held);
}

TEST(SegmentRecordProperty, any_changed_byte_is_noticed) {
  const bool held = rc::check([] {
    AnyRecord any_record;
    fill(any_record);
    Bytes frame = rig::stored(any_record.record);
    const std::size_t at = *rc::gen::inRange<std::size_t>(0, frame.size());
    frame[at] = static_cast<std::uint8_t>(frame[at] ^ *rc::gen::inRange(1, 256));
    RC_ASSERT(!crc_matches(frame));
  });
  EXPECT_TRUE(held);
}

}  // namespace
}  // namespace polylog::format::segment
