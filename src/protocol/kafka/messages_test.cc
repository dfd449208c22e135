#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "protocol/kafka/all_messages.h"
#include "protocol/kafka/api.h"
#include "protocol/kafka/golden_frames.h"
#include "protocol/kafka/header.h"

namespace polylog::protocol::kafka {
namespace {

using ::testing::HasSubstr;

template <typename Message>
std::vector<GoldenFrame> frames_of() {
  std::vector<GoldenFrame> frames = golden_frames(std::string(Message::message_name) + ".txt");
  EXPECT_FALSE(frames.empty()) << Message::message_name;
  return frames;
}

// An exact-size heap block of its own, so that a sanitizer sees one byte too far.
Slice exact(ByteView bytes) { return Slice::copy_of(bytes); }

ByteView body_of(const GoldenFrame& frame) {
  return ByteView(frame.bytes).subspan(frame.header_bytes);
}

template <typename Message>
std::vector<std::uint8_t> encoded(const Message& message, std::int16_t version) {
  ByteWriter out;
  const Result<void> done = message.encode(out, version);
  EXPECT_TRUE(done) << done.error().to_string();
  return out.take().flatten();
}

template <typename F>
void for_each_message(F&& visitor) {
  for_each_request(visitor);
  for_each_response(visitor);
}

struct SurvivesARoundTrip {
  int frames = 0;
  template <typename Message>
  void operator()() {
    std::set<std::int16_t> versions;
    for (const GoldenFrame& frame : frames_of<Message>()) {
      SCOPED_TRACE(std::string(Message::message_name) + " v" + std::to_string(frame.version));
      const auto message = Message::decode(exact(body_of(frame)), frame.version);
      ASSERT_TRUE(message) << message.error().to_string();
      EXPECT_EQ(encoded(*message, frame.version), to_vector(body_of(frame)));
      versions.insert(frame.version);
      ++frames;
    }
    EXPECT_EQ(versions.size(),
              static_cast<std::size_t>(Message::max_version - Message::min_version + 1));
  }
};

TEST(KafkaMessages, every_version_written_by_kafka_survives_a_round_trip) {
  SurvivesARoundTrip check;
  for_each_message(check);
  EXPECT_GT(check.frames, 900);
}

struct FailsWhenCut {
  template <typename Message>
  void operator()() {
    for (const GoldenFrame& frame : frames_of<Message>()) {
      const ByteView body = body_of(frame);
      for (std::size_t size = 0; size < body.size(); ++size) {
        const auto message = Message::decode(exact(body.first(size)), frame.version);
        ASSERT_FALSE(message) << Message::message_name << " v" << frame.version << " at " << size;
        ASSERT_EQ(message.error().code, Errc::invalid);
      }
    }
  }
};

TEST(KafkaMessages, a_body_cut_at_any_byte_is_refused) { for_each_message(FailsWhenCut{}); }

struct ToleratesTrailingBytes {
  template <typename Message>
  void operator()() {
    const GoldenFrame frame = frames_of<Message>().back();
    std::vector<std::uint8_t> longer = to_vector(body_of(frame));
    longer.insert(longer.end(), {1, 2, 3});
    const auto message = Message::decode(exact(longer), frame.version);
    ASSERT_TRUE(message) << message.error().to_string();
    EXPECT_EQ(encoded(*message, frame.version), to_vector(body_of(frame)));
  }
};

TEST(KafkaMessages, bytes_behind_the_body_are_tolerated) {
  for_each_message(ToleratesTrailingBytes{});
}

struct RefusesOtherVersions {
  template <typename Message>
  void operator()() {
    for (const int version : {-1, Message::min_version - 1, Message::max_version + 1, 32767}) {
      const auto short_version = static_cast<std::int16_t>(version);
      const auto decoded = Message::decode(Slice(), short_version);
      ASSERT_FALSE(decoded);
      EXPECT_EQ(decoded.error().code, Errc::unsupported);
      ByteWriter out;
      const auto done = Message().encode(out, short_version);
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().code, Errc::unsupported);
      EXPECT_EQ(out.size(), 0u);
    }
  }
};

TEST(KafkaMessages, other_versions_are_unsupported) { for_each_message(RefusesOtherVersions{}); }

struct DecodesItsHeader {
  template <typename Message>
  void operator()() {
    for (const GoldenFrame& frame : frames_of<Message>()) {
      const Slice whole = exact(frame.bytes);
      const auto header = RequestHeader::decode(whole);
      ASSERT_TRUE(header) << header.error().to_string();
      EXPECT_EQ(header->api_key, Message::api_key);
      EXPECT_EQ(header->api_version, frame.version);
      EXPECT_EQ(header->header_bytes, frame.header_bytes);
      ByteWriter out;
      ASSERT_TRUE(header->encode(out));
      EXPECT_EQ(out.take_bytes(), to_vector(ByteView(frame.bytes).first(frame.header_bytes)));
      EXPECT_TRUE(Message::decode(header->body(whole), frame.version));
      for (std::size_t size = 0; size < frame.header_bytes; ++size) {
        EXPECT_FALSE(RequestHeader::decode(exact(ByteView(frame.bytes).first(size)))) << size;
      }
    }
  }
};

TEST(KafkaMessages, request_headers_written_by_kafka_survive_a_round_trip) {
  for_each_request(DecodesItsHeader{});
}

struct WritesItsHeader {
  template <typename Message>
  void operator()() {
    for (const GoldenFrame& frame : frames_of<Message>()) {
      const Slice whole = exact(frame.bytes);
      const auto header = ResponseHeader::decode(whole, Message::api_key, frame.version);
      ASSERT_TRUE(header) << header.error().to_string();
      EXPECT_EQ(header->header_bytes, frame.header_bytes);
      ByteWriter out;
      header->encode(out, Message::api_key, frame.version);
      EXPECT_EQ(out.take_bytes(), to_vector(ByteView(frame.bytes).first(frame.header_bytes)));
    }
  }
};

TEST(KafkaMessages, response_headers_written_by_kafka_survive_a_round_trip) {
  for_each_response(WritesItsHeader{});
}

struct HasCodecVersions {
  template <typename Message>
  void operator()() {
    const auto versions = codec_versions(Message::api_key);
    ASSERT_TRUE(versions);
    EXPECT_EQ(versions->first, Message::min_version);
    EXPECT_EQ(versions->last, Message::max_version);
    EXPECT_EQ(versions->first_flexible, Message::first_flexible_version);
  }
};

TEST(KafkaMessages, the_table_of_versions_agrees_with_the_messages) {
  for_each_message(HasCodecVersions{});
  EXPECT_EQ(codec_versions(ApiKey::init_producer_id),
            (CodecVersions{.first = 0, .last = 6, .last_stable = 5, .first_flexible = 2}));
  EXPECT_FALSE(codec_versions(ApiKey::leader_and_isr));
  EXPECT_FALSE(codec_versions(std::int16_t{-1}));
}

// The frames of examples.txt, built field by field: what pins names to places.
class KafkaExamples : public ::testing::Test {
 protected:
  template <typename Message>
  void expect_example(const Message& message) {
    bool found = false;
    for (const GoldenFrame& frame : golden_frames("examples.txt", true)) {
      if (frame.message != Message::message_name) continue;
      EXPECT_EQ(encoded(message, frame.version), to_vector(body_of(frame)));
      found = true;
    }
    EXPECT_TRUE(found) << Message::message_name;
  }
};

TEST_F(KafkaExamples, produce_request) {
  ProduceRequest request;
  request.acks = -1;
  request.timeout_ms = 30'000;
  ProduceRequest::TopicProduceData topic;
  topic.name = "orders";
  topic.partition_data.push_back({.index = 0, .records = Slice::copy_of(from_hex("01020304"))});
  topic.partition_data.push_back({.index = 7});
  request.topic_data.push_back(topic);
  expect_example(request);
}

TEST_F(KafkaExamples, fetch_request) {
  FetchRequest request;
  request.max_wait_ms = 500;
  request.min_bytes = 1;
  request.max_bytes = 52'428'800;
  request.isolation_level = 1;
  request.session_id = 8;
  request.session_epoch = 2;
  request.topics.push_back({.topic = "orders",
                            .partitions = {{.partition = 0,
                                            .current_leader_epoch = 3,
                                            .fetch_offset = 42,
                                            .partition_max_bytes = 1'048'576}}});
  request.forgotten_topics_data.push_back({.topic = "old", .partitions = {1, 2}});
  request.rack_id = "r1";
  expect_example(request);
}

TEST_F(KafkaExamples, fetch_response) {
  FetchResponse response;
  response.throttle_time_ms = 5;
  response.session_id = 77;
  FetchResponse::PartitionData partition;
  partition.partition_index = 3;
  partition.error_code = 74;
  partition.high_watermark = 1000;
  partition.last_stable_offset = 900;
  partition.log_start_offset = 10;
  partition.current_leader = {.leader_id = 4, .leader_epoch = 9};
  partition.aborted_transactions.emplace().push_back(
      {.producer_id = std::int64_t{1} << 40, .first_offset = 910});
  partition.records = Slice::copy_of(from_hex("ff"));
  FetchResponse::FetchableTopicResponse topic;
  for (std::uint8_t i = 0; i < 16; ++i) topic.topic_id.bytes[i] = i;
  topic.partitions.push_back(partition);
  response.responses.push_back(topic);
  response.node_endpoints.push_back({.node_id = 4, .host = "broker-4", .port = 9092});
  expect_example(response);
}

TEST_F(KafkaExamples, metadata_response) {
  MetadataResponse response;
  response.brokers.push_back({.node_id = 1, .host = "localhost", .port = 9092});
  response.controller_id = 1;
  MetadataResponse::MetadataResponseTopic topic;
  topic.name = "orders";
  topic.partitions.push_back({.error_code = 5, .leader_id = -1, .replica_nodes = {1}});
  response.topics.push_back(topic);
  expect_example(response);
}

TEST_F(KafkaExamples, api_versions_response) {
  ApiVersionsResponse response;
  response.api_keys.push_back({.api_key = 0, .min_version = 0, .max_version = 13});
  response.api_keys.push_back({.api_key = 18, .min_version = 0, .max_version = 4});
  response.finalized_features_epoch = 6;
  response.finalized_features.push_back(
      {.name = "group.version", .max_version_level = 1, .min_version_level = 1});
  expect_example(response);
}

TEST(KafkaMessages, records_share_the_frame_in_decoding_and_are_spliced_in_encoding) {
  ProduceRequest request;
  request.topic_data.push_back({.name = "t"});
  request.topic_data[0].partition_data.push_back(
      {.records = Slice::of(std::vector<std::uint8_t>(100'000, 7))});
  ByteWriter out;
  ASSERT_TRUE(request.encode(out, 9));
  const Chain chain = out.take();
  ASSERT_EQ(chain.splices.size(), 1u);
  EXPECT_EQ(chain.splices[0].slice.data(), request.topic_data[0].partition_data[0].records->data());

  const Slice body = Slice::of(chain.flatten());
  const auto decoded = ProduceRequest::decode(body, 9);
  ASSERT_TRUE(decoded) << decoded.error().to_string();
  const Slice& records = *decoded->topic_data[0].partition_data[0].records;
  EXPECT_EQ(records.size(), 100'000u);
  EXPECT_EQ(records.owner(), body.owner());
  EXPECT_GE(records.data(), body.data());
  EXPECT_LE(records.data() + records.size(), body.data() + body.size());
}

TEST(KafkaMessages, a_value_the_version_cannot_carry_is_refused_unless_ignorable) {
  DeleteTopicsRequest request;
  request.topics.push_back({.name = "t"});
  ByteWriter out;
  const auto done = request.encode(out, 5);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::unsupported);
  EXPECT_THAT(done.error().to_string(), HasSubstr("DeleteTopicsRequest v5 cannot carry topics"));

  MetadataResponse response;
  response.cluster_id = "ignorable before v2";
  EXPECT_EQ(encoded(response, 1), encoded(MetadataResponse(), 1));
  EXPECT_NE(encoded(response, 2), encoded(MetadataResponse(), 2));
}

TEST(KafkaMessages, null_is_refused_where_the_version_forbids_it) {
  MetadataRequest request;
  request.topics.reset();
  ByteWriter out;
  ASSERT_FALSE(request.encode(out, 0));
  EXPECT_TRUE(request.encode(out, 1));

  const auto null_array = from_hex("ffffffff");
  ASSERT_FALSE(MetadataRequest::decode(exact(null_array), 0));
  EXPECT_FALSE(MetadataRequest::decode(exact(null_array), 1)->topics);
}

TEST(KafkaMessages, strings_longer_than_the_protocol_allows_are_refused) {
  MetadataResponse response;
  response.cluster_id = std::string(32'767, 'x');
  ByteWriter out;
  EXPECT_TRUE(response.encode(out, 2));
  EXPECT_TRUE(response.encode(out, 12));
  response.cluster_id->push_back('x');
  EXPECT_FALSE(response.encode(out, 2));
  EXPECT_FALSE(response.encode(out, 12));
}

TEST(KafkaMessages, fields_of_other_versions_keep_their_defaults) {
  const auto request =
      FetchRequest::decode(exact(from_hex("ffffffff 00000000 00000001 0000000a 01 00000000")), 4);
  ASSERT_TRUE(request) << request.error().to_string();
  EXPECT_EQ(request->max_bytes, 10);
  EXPECT_EQ(request->session_epoch, -1);
  EXPECT_EQ(request->rack_id, "");
  EXPECT_FALSE(request->cluster_id);
}

}  // namespace
}  // namespace polylog::protocol::kafka
