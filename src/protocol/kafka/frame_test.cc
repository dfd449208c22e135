#include "protocol/kafka/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "protocol/kafka/api.h"
#include "protocol/kafka/errors.h"
#include "protocol/kafka/golden_frames.h"
#include "protocol/kafka/header.h"
#include "protocol/kafka/limits.h"

namespace polylog::protocol::kafka {
namespace {

using ::testing::HasSubstr;

Result<std::size_t> size_of(std::string_view hex) {
  const std::vector<std::uint8_t> prefix = from_hex(hex);
  return frame_size(std::span<const std::uint8_t, frame_size_bytes>(prefix), frame_bytes_max);
}

TEST(KafkaFrame, the_size_is_read_up_to_the_limit) {
  EXPECT_EQ(size_of("0000000e"), 14u);
  EXPECT_EQ(size_of("06400000"), frame_bytes_max);
  EXPECT_EQ(size_of("06400001").error().code, Errc::too_large);
  EXPECT_EQ(size_of("7fffffff").error().code, Errc::too_large);
}

TEST(KafkaFrame, negative_and_tiny_sizes_are_invalid) {
  EXPECT_EQ(size_of("ffffffff").error().code, Errc::invalid);
  EXPECT_EQ(size_of("80000000").error().code, Errc::invalid);
  EXPECT_EQ(size_of("00000000").error().code, Errc::invalid);
  EXPECT_EQ(size_of("00000007").error().code, Errc::invalid);
  EXPECT_EQ(size_of("00000008"), 8u);
}

TEST(KafkaFrame, the_greeting_of_another_protocol_is_named) {
  EXPECT_THAT(size_of("16030100").error().to_string(), HasSubstr("TLS"));
  EXPECT_THAT(size_of("47455420").error().to_string(), HasSubstr("HTTP"));
  EXPECT_THAT(size_of("504f5354").error().to_string(), HasSubstr("HTTP"));
  EXPECT_THAT(size_of("101c0004").error().to_string(), HasSubstr("MQTT"));
  EXPECT_THAT(size_of("7fffffff").error().to_string(), Not(HasSubstr("seems")));
}

TEST(KafkaFrame, the_size_is_filled_in_over_spliced_slices_too) {
  ByteWriter out;
  begin_frame(out);
  ResponseHeader{.correlation_id = 1}.encode(out, 1, 4);
  out.slice(Slice::of(std::vector<std::uint8_t>(10'000, 9)));
  ASSERT_TRUE(end_frame(out));
  const std::vector<std::uint8_t> flat = out.take().flatten();
  EXPECT_EQ(flat.size(), 4u + 4u + 10'000u);
  EXPECT_EQ(load_big<std::int32_t>(flat.data()), 10'004);
}

TEST(KafkaHeader, an_unknown_api_key_is_unsupported) {
  for (const std::string_view key : {"0004", "005d", "7fff", "ffff"}) {
    const auto header =
        RequestHeader::decode(Slice::of(from_hex(std::string(key) + "0000 00000001 ffff")));
    ASSERT_FALSE(header) << key;
    EXPECT_EQ(header.error().code, Errc::unsupported) << key;
  }
}

TEST(KafkaHeader, a_version_out_of_range_still_gives_a_header) {
  const auto header =
      RequestHeader::decode(Slice::of(from_hex("0012 0063 00000001 000161 00 0000")));
  ASSERT_TRUE(header) << header.error().to_string();
  EXPECT_EQ(header->api_version, 99);
  EXPECT_EQ(header->client_id, "a");
  EXPECT_EQ(header->header_bytes, 12u);
}

TEST(KafkaHeader, tagged_fields_of_the_header_are_skipped) {
  const auto header =
      RequestHeader::decode(Slice::of(from_hex("0003 0009 00000001 ffff 01 0002 abcd")));
  ASSERT_TRUE(header) << header.error().to_string();
  EXPECT_FALSE(header->client_id);
  EXPECT_EQ(header->header_bytes, 15u);
}

TEST(KafkaHeader, the_answer_to_api_versions_has_the_oldest_header) {
  ByteWriter out;
  ResponseHeader{.correlation_id = 5}.encode(out, 18, 4);
  EXPECT_EQ(out.take_bytes(), from_hex("00000005"));
  ResponseHeader{.correlation_id = 5}.encode(out, 3, 9);
  EXPECT_EQ(out.take_bytes(), from_hex("0000000500"));
}

TEST(KafkaErrors, the_table_is_kafkas) {
  std::ifstream in = open_golden("errors.txt");
  int code = 0, count = 0;
  for (std::string kafka_name, class_name; in >> code >> kafka_name >> class_name; ++count) {
    const auto error = static_cast<ErrorCode>(code);
    EXPECT_EQ(name(error), kafka_name);
    EXPECT_EQ(retriable(error), class_name == "retriable") << kafka_name;
  }
  EXPECT_EQ(count, 135);
  EXPECT_EQ(to_wire(ErrorCode::unknown_topic_or_partition), 3);
  EXPECT_EQ(to_wire(ErrorCode::share_session_limit_reached), 133);
  for (const int unknown : {-2, 134, -32768, 32767}) {
    EXPECT_EQ(name(static_cast<ErrorCode>(unknown)), "UNKNOWN_ERROR_CODE");
  }
}

TEST(KafkaApi, keys_have_kafkas_names) {
  EXPECT_EQ(name(ApiKey::produce), "Produce");
  EXPECT_EQ(name(ApiKey::offset_for_leader_epoch), "OffsetForLeaderEpoch");
  EXPECT_EQ(name(ApiKey::delete_share_group_offsets), "DeleteShareGroupOffsets");
  EXPECT_EQ(name(static_cast<ApiKey>(93)), "");
  EXPECT_EQ(name(static_cast<ApiKey>(-1)), "");
}

}  // namespace
}  // namespace polylog::protocol::kafka
