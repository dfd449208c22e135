#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "format/transcode/segment_writer.h"
#include "format/transcode/transcode.h"
#include "format/transcode/transcode_rig.h"

namespace polylog::format {
namespace {

using segment::MqttPart;
using segment::ProducerPart;
using segment::StoredRecord;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

kafka::BatchOptions producer_options() {
  kafka::BatchOptions options;
  options.producer_id = ProducerId(9'000'000'000);
  options.producer_epoch = 4;
  options.base_sequence = 17;
  return options;
}

StoredRecord text_record(std::int64_t offset, std::string_view value) {
  StoredRecord stored;
  stored.record.offset = Offset(offset);
  stored.record.timestamp = Timestamp(1'700'000'000'000);
  stored.record.value = as_bytes(value);
  return stored;
}

std::vector<TestRecord> seen(const std::vector<Batch>& batches, const KafkaTarget& target = {}) {
  const Result<std::vector<Batch>> result = segment_to_kafka(batches, target);
  EXPECT_TRUE(result.has_value()) << result.error().context;
  return result ? records_of(*result) : std::vector<TestRecord>();
}

template <typename T>
Error refusal(const Result<T>& result) {
  EXPECT_FALSE(result.has_value());
  return result ? Error{} : result.error();
}

// --- Kafka to segment ------------------------------------------------------------------------

TEST(KafkaToSegment, each_record_is_a_frame_with_everything_it_has) {
  SegmentTarget target = placed_target();
  target.append_time = Timestamp(1'800'000'000'000);
  const Batch batch = kafka_batch({{{}, std::nullopt, {}},
                                   {"", "", {{"a", std::nullopt}, {"a", ""}}},
                                   {"\xff", "v", {{"rmq.tags", "t"}}, -1}});
  const Result<Batch> result = kafka_to_segment(batch, target);
  ASSERT_TRUE(result.has_value());
  const std::vector<StoredRecord> frames = frames_of(*result);
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_FALSE(frames[0].record.key || frames[0].record.value);
  EXPECT_TRUE(frames[1].record.key && frames[1].record.key->empty());
  EXPECT_TRUE(frames[1].record.value && frames[1].record.value->empty());
  ASSERT_EQ(frames[1].record.headers.size(), 2U);
  EXPECT_FALSE(frames[1].record.headers[0].value.has_value());
  EXPECT_TRUE(frames[1].record.headers[1].value.has_value());
  EXPECT_EQ(frames[2].record.headers[0].name, "rmq.tags");
  EXPECT_EQ(frames[2].record.timestamp, no_timestamp);
  EXPECT_EQ(frames[2].record.offset, Offset(2));
  for (const StoredRecord& frame : frames) {
    EXPECT_EQ(frame.append_time, target.append_time);
    EXPECT_FALSE(frame.shows_append_time || frame.producer || frame.rocketmq || frame.mqtt);
  }
}

TEST(KafkaToSegment, frames_are_unplaced_unless_asked_for_and_count_from_the_batchs_offset) {
  Batch batch = kafka_batch({{{}, "a", {}}, {{}, "b", {}}});
  batch.info.first = Offset(1000);
  batch.info.last = Offset(1001);
  const Batch unplaced = kafka_to_segment(batch, {}).value();
  EXPECT_EQ(frames_of(unplaced)[1].record.offset, Offset(0));
  EXPECT_EQ(unplaced.info.first, Offset(1000));
  const Batch placed = kafka_to_segment(batch, placed_target()).value();
  EXPECT_EQ(frames_of(placed)[1].record.offset, Offset(1001));
}

TEST(KafkaToSegment, each_record_says_which_part_of_its_producers_batch_it_is) {
  const Batch batch =
      kafka_batch({{{}, "a", {}}, {{}, "b", {}}, {"k", {}, {}}}, producer_options());
  const Result<Batch> result = kafka_to_segment(batch, {});
  ASSERT_TRUE(result.has_value());
  std::int32_t index = 0;
  for (const StoredRecord& frame : frames_of(*result)) {
    EXPECT_EQ(frame.producer, (ProducerPart{ProducerId(9'000'000'000), 4, 17, index++, 3}));
  }
  EXPECT_EQ(result->info.producer.first_sequence, 17);
  EXPECT_EQ(result->info.producer.last_sequence, 19);
}

TEST(KafkaToSegment, a_compacted_batch_ends_with_the_sequence_its_producer_goes_on_from) {
  kafka::BatchOptions options = producer_options();
  options.last_offset_delta = 9;
  const Batch batch = kafka_batch({{"a", "1", {}, 0, 2}, {"b", "2", {}, 0, 5}}, options);
  const std::vector<StoredRecord> frames =
      frames_of(kafka_to_segment(batch, placed_target()).value());
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0].producer, (ProducerPart{options.producer_id, 4, 25, 0, 2}));
  EXPECT_EQ(frames[1].producer, (ProducerPart{options.producer_id, 4, 25, 1, 2}));
  EXPECT_EQ(batch.info.producer.last_sequence, 26);
  // Behind 2147483647 comes 0.
  options.base_sequence = std::numeric_limits<std::int32_t>::max() - 8;
  const Batch wrapped = kafka_batch({{"a", "1", {}, 0, 2}, {"b", "2", {}, 0, 5}}, options);
  ASSERT_EQ(wrapped.info.producer.last_sequence, 0);
  EXPECT_EQ(
      frames_of(kafka_to_segment(wrapped, placed_target()).value())[0].producer->base_sequence,
      std::numeric_limits<std::int32_t>::max());
}

TEST(KafkaToSegment, an_append_time_that_readers_are_shown_stays_theirs) {
  kafka::BatchOptions options;
  options.append_time = Timestamp(500);
  const Batch batch = kafka_batch({{{}, "a", {}, 400}, {{}, "b", {}, 300}}, options);
  SegmentTarget target = placed_target();
  target.append_time = Timestamp(900);
  const Result<Batch> result = kafka_to_segment(batch, target);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->info.max_timestamp, Timestamp(500));
  for (const StoredRecord& frame : frames_of(*result)) {
    EXPECT_TRUE(frame.shows_append_time);
    EXPECT_EQ(frame.append_time, Timestamp(500));
    EXPECT_EQ(frame.shown_time(), Timestamp(500));
  }
}

TEST(KafkaToSegment, control_records_and_transactions_are_refused) {
  kafka::BatchOptions options = producer_options();
  options.transactional = true;
  EXPECT_EQ(refusal(kafka_to_segment(kafka_batch({{{}, "v", {}}}, options), {})).code,
            Errc::unsupported);
  options.control = true;
  EXPECT_EQ(refusal(kafka_to_segment(kafka_batch({{{}, "v", {}}}, options), {})).code,
            Errc::unsupported);
}

TEST(SegmentWriter, a_record_that_no_frame_can_hold_is_refused_and_named) {
  const SegmentTarget target;
  SegmentWriter writer(target);
  StoredRecord record = text_record(0, "good");
  ASSERT_TRUE(writer.write(record));
  record.mqtt.emplace();
  record.mqtt->qos = 3;
  const Result<void> refused = writer.write(record);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::invalid);
  EXPECT_THAT(refused.error().context, HasSubstr("record 1: an MQTT part with a QoS above 2"));
}

TEST(KafkaToSegment, a_frame_at_the_limit_passes_and_one_byte_more_is_refused) {
  const Batch batch = kafka_batch({{{}, "v", {}}, {{}, std::string(1000, 'v'), {}}});
  SegmentTarget target;
  const Batch stored = kafka_to_segment(batch, target).value();
  const std::size_t small = segment::next_frame(stored.bytes.view(), stored.bytes.size()).size;
  target.record_bytes_max = stored.bytes.size() - small;
  EXPECT_TRUE(kafka_to_segment(batch, target).has_value());
  --target.record_bytes_max;
  const Error error = refusal(kafka_to_segment(batch, target));
  EXPECT_EQ(error.code, Errc::too_large);
  EXPECT_THAT(error.context,
              AllOf(HasSubstr("record 1"), HasSubstr(std::to_string(target.record_bytes_max))));
}

TEST(KafkaToSegment, a_batch_that_expands_beyond_the_limit_is_refused) {
  kafka::BatchOptions options;
  options.codec = kafka::Codec::zstd;
  const Batch batch = kafka_batch({{{}, std::string(100'000, 'x'), {}}}, options);
  SegmentTarget target;
  EXPECT_TRUE(kafka_to_segment(batch, target).has_value());
  target.output_max = 50'000;
  EXPECT_EQ(refusal(kafka_to_segment(batch, target)).code, Errc::too_large);
}

TEST(KafkaToSegment, what_rocketmqs_layout_refuses_is_no_matter_here) {
  const std::string long_key(100'000, 'k');
  const Batch batch = kafka_batch({{long_key, "v", {{"n", std::string(100'000, '\xff')}}}});
  const Batch frames = kafka_to_segment(batch, placed_target()).value();
  EXPECT_EQ(seen({frames}), records_of(batch));
  const Error error = refusal(segment_to_rocketmq(frames, test_target()));
  EXPECT_EQ(error.code, Errc::too_large);
  EXPECT_THAT(error.context, AllOf(HasSubstr("record 0"), HasSubstr("32767")));
  RocketmqTarget target = test_target();
  target.body_bytes_max = 1;
  EXPECT_EQ(refusal(segment_to_rocketmq(segment_batch({text_record(0, "ab")}), target)).code,
            Errc::too_large);
}

// --- RocketMQ and segment --------------------------------------------------------------------

TEST(RocketmqToSegment, a_frame_keeps_the_message_in_its_own_terms) {
  TestMessage message;
  message.body = "body";
  message.properties = property_text("TAGS=TagA;KEYS=K1;WAIT=true") + "junk";
  message.flag = 3;
  message.sys_flag = 0x301;
  message.born_host = {{0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9}, true, 4711};
  message.queue_offset = 12;
  message.store_timestamp = 1'700'000'000'999;
  const Result<Batch> result = rocketmq_to_segment(rocketmq_batch({message}), placed_target());
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->format, BatchFormat::segment);
  EXPECT_EQ(result->info.max_timestamp, Timestamp(message.born_timestamp));
  const StoredRecord frame = frames_of(*result).at(0);
  EXPECT_EQ(frame.record.offset, Offset(12));
  EXPECT_EQ(frame.record.timestamp, Timestamp(message.born_timestamp));
  EXPECT_EQ(frame.append_time, Timestamp(message.store_timestamp));
  EXPECT_FALSE(frame.shows_append_time || frame.record.key || frame.producer || frame.mqtt);
  EXPECT_THAT(frame.record.headers, IsEmpty());
  EXPECT_EQ(as_text(frame.record.value.value()), "body");
  ASSERT_TRUE(frame.rocketmq.has_value());
  EXPECT_EQ(frame.rocketmq->properties, message.properties);
  EXPECT_EQ(frame.rocketmq->flag, 3);
  EXPECT_EQ(frame.rocketmq->sys_flag, 0x301);
  EXPECT_EQ(frame.rocketmq->born_address.size(), 16U);
  EXPECT_EQ(frame.rocketmq->born_port, 4711);
  EXPECT_EQ(frame.rocketmq->store_address.size(), 4U);
}

TEST(RocketmqToSegment, the_append_time_is_the_stores_unless_the_broker_just_took_it) {
  TestMessage message;
  message.store_timestamp = 500;
  SegmentTarget target = placed_target();
  target.log_append_time = true;
  const Batch stored = rocketmq_to_segment(rocketmq_batch({message}), target).value();
  EXPECT_EQ(stored.info.max_timestamp, Timestamp(500));
  EXPECT_EQ(seen({stored}).at(0).timestamp, 500);
  target.append_time = Timestamp(600);
  EXPECT_EQ(seen({rocketmq_to_segment(rocketmq_batch({message}), target).value()}).at(0).timestamp,
            600);
}

TEST(RocketmqToSegment, a_producer_property_is_the_frames_producer_too) {
  TestMessage message;
  message.properties = property_text("__KPS=7:0:5:1:3");
  const Batch stored = rocketmq_to_segment(rocketmq_batch({message}), placed_target()).value();
  EXPECT_EQ(frames_of(stored).at(0).producer, (ProducerPart{ProducerId(7), 0, 5, 1, 3}));
  message.properties = property_text("__KPS=7:0:5:3:3");
  EXPECT_EQ(refusal(rocketmq_to_segment(rocketmq_batch({message}), placed_target())).code,
            Errc::corrupt);
}

TEST(RocketmqToSegment, bytes_that_are_no_messages_are_corrupt) {
  Batch batch = rocketmq_batch({TestMessage()});
  batch.bytes = batch.bytes.sub(0, batch.bytes.size() - 1);
  EXPECT_EQ(refusal(rocketmq_to_segment(batch, placed_target())).code, Errc::corrupt);
}

TEST(SegmentToRocketmq, what_was_no_message_goes_to_the_given_queue_with_its_append_time) {
  StoredRecord record = text_record(7, "v");
  record.append_time = Timestamp(500);
  const Result<Batch> result = segment_to_rocketmq(segment_batch({record}), test_target());
  ASSERT_TRUE(result.has_value());
  const Result<rocketmq::Message> message = rocketmq::parse(result->bytes.view());
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->queue_id, 3);
  EXPECT_EQ(message->topic, "packages");
  EXPECT_EQ(message->queue_offset, 7);
  EXPECT_EQ(message->store_timestamp, 500);
  EXPECT_EQ(message->born_host, test_target().born_host);
  EXPECT_EQ(message->store_host, test_target().store_host);
}

// --- MQTT ------------------------------------------------------------------------------------

StoredRecord publish() {
  StoredRecord stored = text_record(0, "21.5");
  stored.record.key = as_bytes("sensors/1");
  stored.record.headers = {{"unit", as_bytes("C")}, {"rmq.tags", as_bytes("x")}};
  MqttPart& part = stored.mqtt.emplace();
  part.topic = "sensors/one";
  part.qos = 2;
  part.retain = true;
  part.payload_format = 1;
  part.content_type = "text/plain";
  part.response_topic = "answers/1";
  part.correlation = as_bytes("\xff\xfe");
  part.client_id = "meter";
  part.expiry_interval_s = 3600;
  return stored;
}

TEST(SegmentToKafka, a_publish_shows_its_fields_as_headers_before_its_user_properties) {
  const TestRecord record = seen({segment_batch({publish()})}).at(0);
  EXPECT_EQ(record.key, "sensors/1");
  EXPECT_EQ(record.value, "21.5");
  EXPECT_THAT(record.headers, ElementsAre(Pair("mqtt.f", "\x1e"), Pair("mqtt.ct", "text/plain"),
                                          Pair("mqtt.rt", "answers/1"), Pair("mqtt.cd", "\xff\xfe"),
                                          Pair("mqtt.exp", "3600"), Pair("mqtt.cid", "meter"),
                                          Pair("mqtt.t", "sensors/one"), Pair("unit", "C"),
                                          Pair("h:rmq.tags", "x")));
  StoredRecord bare = text_record(0, "v");
  bare.mqtt.emplace();
  EXPECT_THAT(seen({segment_batch({bare})}).at(0).headers,
              ElementsAre(Pair("mqtt.f", std::string(1, '\0'))));
}

TEST(SegmentToRocketmq, a_publish_shows_its_fields_as_properties_and_binary_ones_as_base64) {
  const Result<Batch> result = segment_to_rocketmq(segment_batch({publish()}), test_target());
  ASSERT_TRUE(result.has_value());
  EXPECT_THAT(
      property_map(messages_of(*result).at(0).properties),
      ElementsAre(Pair("KEYS", "sensors/1"), Pair("__KKEY", "sensors/1"), Pair("mqtt.cd", "//4="),
                  Pair("mqtt.cid", "meter"), Pair("mqtt.ct", "text/plain"),
                  Pair("mqtt.exp", "3600"), Pair("mqtt.f", "Hg=="), Pair("mqtt.rt", "answers/1"),
                  Pair("mqtt.t", "sensors/one"), Pair("rmq.tags", "x"), Pair("unit", "C")));
}

TEST(SegmentToKafka, a_payload_format_that_mqtt_does_not_have_is_corrupt) {
  StoredRecord record = publish();
  record.mqtt->payload_format = 2;
  const Batch batch = segment_batch({record});
  EXPECT_EQ(refusal(segment_to_kafka({batch}, {})).code, Errc::corrupt);
  EXPECT_EQ(refusal(segment_to_rocketmq(batch, test_target())).code, Errc::corrupt);
}

TEST(SegmentToKafka, a_frame_of_two_protocols_is_corrupt) {
  const Batch message = rocketmq_to_segment(rocketmq_batch({TestMessage()}), {}).value();
  StoredRecord both = frames_of(message).at(0);
  both.mqtt.emplace();
  EXPECT_EQ(refusal(segment_to_kafka({segment_batch({both})}, {})).code, Errc::corrupt);
}

// --- segment to Kafka ------------------------------------------------------------------------

std::vector<StoredRecord> numbered(std::int64_t first, std::size_t count, std::string_view value) {
  std::vector<StoredRecord> records;
  for (std::size_t i = 0; i < count; ++i) records.push_back(text_record(first++, value));
  return records;
}

TEST(SegmentToKafka, adjacent_batches_of_one_epoch_become_one_and_gaps_stay) {
  const LeaderEpoch one{1};
  const LeaderEpoch two{2};
  const auto batches = segment_to_kafka(
      {segment_batch(numbered(10, 2, "a"), one), segment_batch(numbered(20, 1, "a"), one),
       Batch{BatchFormat::segment, {}, {}}, segment_batch(numbered(21, 3, "a"), two)},
      {});
  ASSERT_TRUE(batches.has_value());
  ASSERT_EQ(batches->size(), 2U);
  EXPECT_EQ(batches->at(0).info.first, Offset(10));
  EXPECT_EQ(batches->at(0).info.last, Offset(20));
  EXPECT_EQ(batches->at(0).info.epoch, one);
  EXPECT_EQ(batches->at(1).info.epoch, two);
  std::vector<std::int64_t> offsets;
  for (const TestRecord& record : records_of(*batches)) offsets.push_back(record.offset);
  EXPECT_THAT(offsets, ElementsAre(10, 11, 20, 21, 22, 23));
  EXPECT_TRUE(segment_to_kafka({}, {}).value().empty());
}

TEST(SegmentToKafka, batches_are_cut_at_a_mebibyte_and_what_is_larger_stands_alone) {
  const std::string usual(100'000, 'b');
  const std::string large(3'000'000, 'L');
  std::vector<StoredRecord> records = numbered(0, 30, usual);
  records[17].record.value = as_bytes(large);
  const auto batches = segment_to_kafka({segment_batch(records)}, {});
  ASSERT_TRUE(batches.has_value());
  EXPECT_EQ(batches->size(), 5U);
  std::size_t alone = 0;
  for (const Batch& batch : *batches) {
    if (batch.bytes.size() <= std::size_t{1} << 20) continue;
    EXPECT_EQ(batch.info.records, 1);
    ++alone;
  }
  EXPECT_EQ(alone, 1U);
  // More than 2^31 offsets do not fit into one batch either.
  EXPECT_EQ(segment_to_kafka(
                {segment_batch({text_record(0, "a"), text_record(std::int64_t{1} << 40, "b")})}, {})
                .value()
                .size(),
            2U);
}

TEST(SegmentToKafka, output_beyond_the_limit_is_left_for_the_next_read) {
  const std::string value(100'000, 'b');
  KafkaTarget target;
  target.output_max = 250'000;
  EXPECT_EQ(seen({segment_batch(numbered(0, 10, value))}, target).size(), 3U);
  target.output_max = 0;
  EXPECT_EQ(seen({segment_batch(numbered(0, 10, value))}, target).size(), 1U);
}

TEST(SegmentToKafka, records_share_a_batch_only_with_one_kind_of_timestamp_and_one_append_time) {
  std::vector<StoredRecord> records = numbered(0, 6, "v");
  for (StoredRecord& record : records) record.append_time = Timestamp(500);
  records[2].shows_append_time = records[3].shows_append_time = true;
  records[4].shows_append_time = true;
  records[4].append_time = Timestamp(600);
  const auto batches = segment_to_kafka({segment_batch(records)}, {});
  ASSERT_TRUE(batches.has_value());
  std::vector<std::int32_t> sizes;
  for (const Batch& batch : *batches) sizes.push_back(batch.info.records);
  EXPECT_THAT(sizes, ElementsAre(2, 2, 1, 1));
  const auto type = [&](std::size_t i) {
    return kafka::decode_header(batches->at(i).bytes.view()).timestamp_type();
  };
  EXPECT_EQ(type(0), kafka::TimestampType::create_time);
  EXPECT_EQ(type(1), kafka::TimestampType::log_append_time);
  EXPECT_EQ(type(3), kafka::TimestampType::create_time);
  EXPECT_EQ(batches->at(2).info.max_timestamp, Timestamp(600));
}

TEST(SegmentToKafka, offsets_that_do_not_rise_are_corrupt) {
  const Batch batch = segment_batch({text_record(5, "a")});
  const Error error = refusal(segment_to_kafka({batch, batch}, {}));
  EXPECT_EQ(error.code, Errc::corrupt);
  EXPECT_THAT(error.context, HasSubstr("offset 5"));
}

TEST(SegmentToKafka, frames_cut_anywhere_are_corrupt) {
  const Batch batch = segment_batch({text_record(0, "a"), publish()});
  const auto first =
      static_cast<std::size_t>(segment::next_frame(batch.bytes.view(), batch.bytes.size()).size);
  for (std::size_t size = 1; size < batch.bytes.size(); ++size) {
    if (size == first) continue;
    const Batch cut{BatchFormat::segment, batch.info, batch.bytes.sub(0, size)};
    EXPECT_EQ(refusal(segment_to_kafka({cut}, {})).code, Errc::corrupt) << size;
    EXPECT_EQ(refusal(segment_to_rocketmq(cut, test_target())).code, Errc::corrupt) << size;
  }
}

TEST(SegmentToKafka, flipped_bits_end_in_an_error_or_in_a_record_never_beyond_the_bytes) {
  const Batch batch = segment_batch({publish()});
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < 8 * batch.bytes.size(); ++bit) {
    std::vector<std::uint8_t> bytes = to_vector(batch.bytes.view());
    bytes[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] ^ (1U << (bit % 8)));
    const Batch flipped{BatchFormat::segment, batch.info, Slice::of(std::move(bytes))};
    const auto shown = segment_to_kafka({flipped}, {});
    if (shown) {
      EXPECT_EQ(records_of(*shown).size(), 1U) << bit;
    } else {
      ++refused;
    }
  }
  EXPECT_GT(refused, 100U);
}

TEST(SegmentToKafka, frames_that_are_not_polylogs_are_refused) {
  std::vector<std::uint8_t> bytes;
  const std::string metadata(40, '\xa0');
  ASSERT_TRUE(segment::encode({Offset(0), as_bytes(metadata), {}, as_bytes("v")}, bytes));
  const Batch foreign{BatchFormat::segment, {}, Slice::of(std::move(bytes))};
  EXPECT_FALSE(segment_to_kafka({foreign}, {}).has_value());
  EXPECT_FALSE(segment_to_rocketmq(foreign, test_target()).has_value());
}

TEST(SegmentToKafka, a_malformed_property_of_ours_is_corrupt_as_in_the_message) {
  for (const char* text : {"__KKEY==x", "__KHDRS=????", "__NULL=2"}) {
    TestMessage message;
    message.properties = property_text(text);
    message.queue_offset = 8;
    const Batch stored = rocketmq_to_segment(rocketmq_batch({message}), placed_target()).value();
    const Error error = refusal(segment_to_kafka({stored}, {}));
    EXPECT_EQ(error.code, Errc::corrupt) << text;
    EXPECT_THAT(error.context, HasSubstr("queue offset 8"));
  }
}

TEST(SegmentToKafka, a_negative_time_is_none) {
  TestMessage message;
  message.born_timestamp = -7;
  EXPECT_EQ(
      seen({rocketmq_to_segment(rocketmq_batch({message}), placed_target()).value()})[0].timestamp,
      -1);
}

}  // namespace
}  // namespace polylog::format
