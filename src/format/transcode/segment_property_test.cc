#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "format/transcode/random_records_rig.h"

// Random records through every pair that the segment layout is in, and through chains of them.

namespace polylog::format {
namespace {

std::vector<std::int64_t> append_times_of(const std::vector<Batch>& batches) {
  std::vector<std::int64_t> times;
  for (const Batch& batch : batches) {
    const kafka::BatchHeader header = kafka::decode_header(batch.bytes.view());
    const bool shown = header.timestamp_type() == kafka::TimestampType::log_append_time;
    times.insert(times.end(), static_cast<std::size_t>(header.records_count),
                 shown ? header.max_timestamp.value() : -2);
  }
  return times;
}

BatchInfo folded(const Batch& batch) {
  std::optional<BatchInfo> info;
  const Result<void> read =
      segment::for_each_frame(batch.bytes.view(), [&](ByteView frame) -> Result<void> {
        RC_ASSERT(segment::crc_matches(frame));
        const Result<segment::RecordHead> head = segment::decode_head(frame);
        RC_ASSERT(head.has_value());
        if (info) segment::fold(*info, *head);
        if (!info) info = segment::to_info(*head);
        return {};
      });
  RC_ASSERT(read.has_value());
  return info.value();
}

RocketmqTarget queue_zero() {
  RocketmqTarget target = test_target();
  target.queue_id = 0;
  return target;
}

TEST(SegmentProperty, kafka_records_come_back_equal) {
  const bool held = rc::check([] {
    const Batch batch = any_kafka_batch();
    SegmentTarget target = placed_target();
    target.append_time = Timestamp(*rc::gen::inRange<std::int64_t>(-1, 1LL << 42));
    const Result<Batch> stored = kafka_to_segment(batch, target);
    RC_ASSERT(stored.has_value());
    RC_ASSERT(stored->format == BatchFormat::segment);
    const Result<std::vector<Batch>> back = segment_to_kafka({*stored}, {});
    RC_ASSERT(back.has_value());
    RC_ASSERT(records_of(*back) == records_of(batch));
    RC_ASSERT(append_times_of(*back) == append_times_of({batch}));
    RC_ASSERT(back->front().info.epoch == batch.info.epoch);

    const BatchInfo info = folded(*stored);
    RC_ASSERT(stored->info.records == info.records);
    RC_ASSERT(stored->info.max_timestamp == info.max_timestamp);
    RC_ASSERT(stored->info.producer.id == info.producer.id);
    RC_ASSERT(stored->info.producer.last_sequence == info.producer.last_sequence);
    RC_ASSERT(stored->info.first <= info.first && info.last <= stored->info.last);
  });
  EXPECT_TRUE(held);
}

// As a producer's batch is written: unplaced, offsets given by the engine.
TEST(SegmentProperty, frames_placed_one_after_the_other_are_what_the_info_says) {
  const bool held = rc::check([] {
    Batch batch = any_kafka_batch();
    if (batch.info.last - batch.info.first + 1 != batch.info.records) return;
    const Result<Batch> unplaced = kafka_to_segment(batch, {});
    RC_ASSERT(unplaced.has_value());
    std::vector<std::uint8_t> bytes = to_vector(unplaced->bytes.view());
    std::size_t at = 0;
    for (std::int64_t i = 0; at < bytes.size(); ++i) {
      const auto rest = MutableBytes(bytes).subspan(at);
      const segment::FrameHead head = segment::next_frame(rest, rest.size());
      RC_ASSERT(head.state == segment::FrameState::complete && head.offset == Offset(0));
      segment::place(rest.first(static_cast<std::size_t>(head.size)), batch.info.first + i);
      at += static_cast<std::size_t>(head.size);
    }
    const Batch placed{BatchFormat::segment, unplaced->info, Slice::of(std::move(bytes))};
    const BatchInfo info = folded(placed);
    RC_ASSERT(placed.info.first == info.first && placed.info.last == info.last);
    RC_ASSERT(placed.info.producer.first_sequence == info.producer.first_sequence);
    RC_ASSERT(placed.info.producer.last_sequence == info.producer.last_sequence);
    RC_ASSERT(same_bytes(placed, kafka_to_segment(batch, placed_target()).value()));
  });
  EXPECT_TRUE(held);
}

TEST(SegmentProperty, kafka_to_rocketmq_is_the_same_by_way_of_a_segment) {
  const bool held = rc::check([] {
    const Batch batch = any_kafka_batch();
    const Result<Batch> segment = kafka_to_segment(batch, placed_target());
    RC_ASSERT(segment.has_value());
    const Result<Batch> around = segment_to_rocketmq(*segment, test_target());
    RC_ASSERT(around.has_value());
    RC_ASSERT(same_bytes(*around, kafka_to_rocketmq(batch, test_target()).value()));
  });
  EXPECT_TRUE(held);
}

TEST(SegmentProperty, kafka_records_survive_a_chain_through_both_other_layouts) {
  const bool held = rc::check([] {
    const Batch batch = any_kafka_batch();
    const Batch messages = kafka_to_rocketmq(batch, test_target()).value();
    const Batch segment = rocketmq_to_segment(messages, placed_target()).value();
    RC_ASSERT(folded(segment).producer.last_sequence == batch.info.producer.last_sequence);
    const Batch again = segment_to_rocketmq(segment, test_target()).value();
    RC_ASSERT(same_bytes(again, messages));
    const std::vector<Batch> back = segment_to_kafka({segment}, {}).value();
    RC_ASSERT(records_of(back) == records_of(batch));
  });
  EXPECT_TRUE(held);
}

TEST(SegmentProperty, frames_come_back_from_kafka_to_the_byte) {
  const bool held = rc::check([] {
    const Batch frames = kafka_to_segment(any_kafka_batch(), placed_target()).value();
    const std::vector<Batch> shown = segment_to_kafka({frames}, {}).value();
    RC_ASSERT(shown.size() == 1U);
    const Batch again = kafka_to_segment(shown.front(), placed_target()).value();
    // A batch that readers get has no producer.
    std::vector<segment::StoredRecord> expected = frames_of(frames);
    for (segment::StoredRecord& record : expected) record.producer.reset();
    RC_ASSERT(same_bytes(again, segment_batch(expected)));
  });
  EXPECT_TRUE(held);
}

void check_messages(TestMessage (*any)()) {
  const bool held = rc::check([any] {
    const Batch messages = rocketmq_batch(any_messages(any), LeaderEpoch(3));
    SegmentTarget target = placed_target();
    target.log_append_time = *rc::gen::arbitrary<bool>();
    const Result<Batch> stored = rocketmq_to_segment(messages, target);
    const Result<std::vector<Batch>> direct =
        rocketmq_to_kafka({messages}, {.log_append_time = target.log_append_time});
    if (!stored) {  // a producer property that is none
      RC_ASSERT(stored.error().code == Errc::corrupt && !direct.has_value());
      return;
    }
    const Result<Batch> again = segment_to_rocketmq(*stored, queue_zero());
    RC_ASSERT(again.has_value());
    RC_ASSERT(same_bytes(*again, messages));

    const Result<std::vector<Batch>> shown = segment_to_kafka({*stored}, {});
    RC_ASSERT(shown.has_value() == direct.has_value());
    if (!shown) {
      RC_ASSERT(shown.error().context == direct.error().context);
      return;
    }
    RC_ASSERT(same_bytes(*shown, *direct));
    RC_ASSERT(shown->front().info.epoch == LeaderEpoch(3));
  });
  EXPECT_TRUE(held);
}

TEST(SegmentProperty, messages_come_back_to_the_byte_and_show_the_same_from_either_layout) {
  check_messages(any_message);
}

TEST(SegmentProperty, whatever_else_a_message_holds_comes_back_to_the_byte) {
  check_messages(any_odd_message);
}

// --- MQTT ------------------------------------------------------------------------------------

// Owns what a frame's record points into.
struct Publish {
  TestRecord record;
  std::string topic;
  Bytes content_type;
  Bytes response_topic;
  Bytes correlation;
  Bytes client_id;
  segment::StoredRecord stored;
};

Bytes any_part() {
  return *rc::gen::element(Bytes(), Bytes(""), Bytes("text/plain"), Bytes("a b"), Bytes("\xff\x01"),
                           Bytes("AQ=="));
}

void fill(Publish& publish) {
  const auto text = [](const Bytes& part) {
    return part ? std::optional<std::string_view>(*part) : std::nullopt;
  };
  const auto bytes = [](const Bytes& part) {
    return part ? std::optional<ByteView>(as_bytes(*part)) : std::nullopt;
  };
  publish.record = any_record();
  publish.topic = *rc::gen::element<std::string>("", "sensors/1");
  publish.content_type = any_part();
  publish.response_topic = any_part();
  publish.correlation = any_part();
  publish.client_id = any_part();
  Record& record = publish.stored.record;
  record.timestamp = Timestamp(publish.record.timestamp);
  record.key = bytes(publish.record.key);
  record.value = bytes(publish.record.value);
  for (const auto& [name, value] : publish.record.headers) {
    record.headers.push_back({name, bytes(value)});
  }
  publish.stored.append_time = Timestamp(*rc::gen::element(-1, 5));
  publish.stored.shows_append_time = *rc::gen::arbitrary<bool>();
  segment::MqttPart part;
  part.topic = publish.topic;
  part.qos = *rc::gen::element<std::uint8_t>(0, 1, 2);
  part.retain = *rc::gen::arbitrary<bool>();
  part.payload_format = *rc::gen::element<std::optional<std::uint8_t>>(std::nullopt, 0, 1);
  part.content_type = text(publish.content_type);
  part.response_topic = text(publish.response_topic);
  part.correlation = bytes(publish.correlation);
  part.client_id = text(publish.client_id);
  part.expiry_interval_s =
      *rc::gen::element<std::optional<std::uint32_t>>(std::nullopt, 0, 4'294'967'295);
  publish.stored.mqtt = part;
}

TEST(SegmentProperty, publishes_show_the_same_from_either_layout) {
  const bool held = rc::check([] {
    std::vector<Publish> publishes(static_cast<std::size_t>(*rc::gen::inRange(1, 6)));
    std::vector<segment::StoredRecord> records;
    for (Publish& publish : publishes) {
      fill(publish);
      publish.stored.record.offset = Offset(static_cast<std::int64_t>(records.size()) * 3);
      publish.stored.shows_append_time = false;
      records.push_back(publish.stored);
    }
    const Batch frames = segment_batch(records);
    const Result<std::vector<Batch>> shown = segment_to_kafka({frames}, {});
    RC_ASSERT(shown.has_value());
    const Result<Batch> messages = segment_to_rocketmq(frames, test_target());
    RC_ASSERT(messages.has_value());
    const Result<std::vector<Batch>> around = rocketmq_to_kafka({*messages}, {});
    RC_ASSERT(around.has_value());
    RC_ASSERT(same_bytes(*around, *shown));
    // What a publish says beyond its user properties is told apart from them.
    const std::vector<TestRecord> result = records_of(*shown);
    for (std::size_t i = 0; i < result.size(); ++i) {
      const std::size_t own = result[i].headers.size() - publishes[i].record.headers.size();
      for (std::size_t h = own; h < result[i].headers.size(); ++h) {
        auto [name, value] = publishes[i].record.headers[h - own];
        const bool escaped =
            name.starts_with("mqtt.") || name.starts_with("rmq.") || name.starts_with("h:");
        RC_ASSERT(result[i].headers[h] == std::pair((escaped ? "h:" : "") + name, value));
      }
    }
  });
  EXPECT_TRUE(held);
}

TEST(SegmentProperty, either_kind_of_timestamp_is_shown_as_the_frame_says) {
  const bool held = rc::check([] {
    std::vector<Publish> publishes(static_cast<std::size_t>(*rc::gen::inRange(1, 12)));
    std::vector<segment::StoredRecord> records;
    for (Publish& publish : publishes) {
      fill(publish);
      publish.stored.record.offset = Offset(static_cast<std::int64_t>(records.size()));
      records.push_back(publish.stored);
    }
    const Result<std::vector<Batch>> shown = segment_to_kafka({segment_batch(records)}, {});
    RC_ASSERT(shown.has_value());
    const std::vector<TestRecord> result = records_of(*shown);
    const std::vector<std::int64_t> append_times = append_times_of(*shown);
    RC_ASSERT(result.size() == records.size() && append_times.size() == records.size());
    for (std::size_t i = 0; i < result.size(); ++i) {
      RC_ASSERT(result[i].timestamp == records[i].shown_time().value());
      const std::int64_t expected =
          records[i].shows_append_time ? records[i].append_time.value() : -2;
      RC_ASSERT(append_times[i] == expected);
    }
  });
  EXPECT_TRUE(held);
}

}  // namespace
}  // namespace polylog::format
