#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/kafka/api_versions_request.h"
#include "protocol/kafka/decoder.h"
#include "protocol/kafka/encoder.h"
#include "protocol/kafka/example.h"
#include "protocol/kafka/fetch_request.h"
#include "protocol/kafka/golden_frames.h"
#include "protocol/kafka/metadata_request.h"
#include "protocol/kafka/produce_request.h"

namespace polylog::protocol::kafka {
namespace {

using ::testing::HasSubstr;

Slice bytes(std::string_view hex) { return Slice::of(from_hex(hex)); }

TEST(KafkaDecoder, unknown_tagged_fields_are_skipped) {
  // name "a", version "b"; tag 5 of two bytes, tag 300 of none.
  const auto request = ApiVersionsRequest::decode(bytes("0261026202 0502ffff ac0200"), 3);
  ASSERT_TRUE(request) << request.error().to_string();
  EXPECT_EQ(request->client_software_name, "a");
  EXPECT_EQ(request->client_software_version, "b");
}

TEST(KafkaDecoder, tagged_fields_out_of_order_or_twice_are_refused) {
  EXPECT_FALSE(ApiVersionsRequest::decode(bytes("0261026202 0500 0400"), 3));
  EXPECT_FALSE(ApiVersionsRequest::decode(bytes("0261026202 0500 0500"), 3));
}

TEST(KafkaDecoder, a_tagged_field_larger_than_the_rest_is_refused) {
  EXPECT_FALSE(ApiVersionsRequest::decode(bytes("0261026201 0503ffff"), 3));
  EXPECT_FALSE(ApiVersionsRequest::decode(bytes("0261026201 05ffffffff0f"), 3));
}

TEST(KafkaDecoder, a_count_of_tagged_fields_beyond_the_rest_is_refused) {
  EXPECT_FALSE(ApiVersionsRequest::decode(bytes("02610262 ffffffff0f 0500"), 3));
}

constexpr std::string_view fetch_v12 =
    "ffffffff 00000000 00000000 00000000 00 00000000 ffffffff 01 01 01";

TEST(KafkaDecoder, a_known_tagged_field_has_to_fill_its_size) {
  const std::string start(fetch_v12);
  const auto request = FetchRequest::decode(bytes(start + "01 0003 03 6964"), 12);
  ASSERT_TRUE(request) << request.error().to_string();
  EXPECT_EQ(request->cluster_id, "id");
  EXPECT_FALSE(FetchRequest::decode(bytes(start + "01 0004 03 6964 00"), 12));
  // The string would go on behind the field's end.
  EXPECT_FALSE(FetchRequest::decode(bytes(start + "01 0002 03 6964"), 12));
  // A tag of a later version is unknown here.
  EXPECT_TRUE(FetchRequest::decode(bytes(start + "01 0101 ff"), 12));
}

TEST(KafkaDecoder, errors_name_the_message_and_the_place) {
  const auto request = FetchRequest::decode(bytes(std::string(fetch_v12) + "01 0002 0369"), 12);
  ASSERT_FALSE(request);
  EXPECT_THAT(request.error().to_string(),
              HasSubstr("FetchRequest v12: malformed at byte 32 of 33"));
}

TEST(KafkaDecoder, claimed_counts_beyond_the_bytes_are_refused) {
  // BR-65: KAFKA-14063, a count of 2^31-1 in 18 bytes.
  EXPECT_FALSE(MetadataRequest::decode(bytes("7fffffff"), 1));
  EXPECT_FALSE(MetadataRequest::decode(bytes("80000000"), 1));
  EXPECT_FALSE(MetadataRequest::decode(bytes("fffffffe"), 1));
  EXPECT_FALSE(MetadataRequest::decode(bytes("ffffffff0f 0000"), 9));
  EXPECT_FALSE(MetadataRequest::decode(bytes("ffffffff7f 0000"), 9));    // 35 bits
  EXPECT_FALSE(MetadataRequest::decode(bytes("ffffffffff01 0000"), 9));  // six groups
  // One topic less than claimed.
  EXPECT_FALSE(MetadataRequest::decode(bytes("00000003 000161 000162"), 1));
}

TEST(KafkaDecoder, claimed_lengths_beyond_the_bytes_are_refused) {
  EXPECT_FALSE(MetadataRequest::decode(bytes("00000001 7fff 61"), 1));
  EXPECT_FALSE(MetadataRequest::decode(bytes("00000001 fffe 61"), 1));  // -2
  EXPECT_FALSE(MetadataRequest::decode(bytes("00000001 ffff"), 1));     // null
  // Produce v3, one partition whose records claim 2^31-1 bytes, then -2.
  const std::string produce = "ffff ffff 00000000 00000001 000161 00000001 00000000";
  EXPECT_FALSE(ProduceRequest::decode(bytes(produce + "7fffffff 00"), 3));
  EXPECT_FALSE(ProduceRequest::decode(bytes(produce + "fffffffe 00"), 3));
  EXPECT_TRUE(ProduceRequest::decode(bytes(produce + "ffffffff"), 3));
  EXPECT_TRUE(ProduceRequest::decode(bytes(produce + "00000001 00"), 3));
}

TEST(KafkaDecoder, a_compact_string_above_the_limit_is_refused_though_it_is_there) {
  std::string name(32'768, 'x');
  ByteWriter out;
  out.unsigned_varint(static_cast<std::uint32_t>(name.size()) + 1);
  out.text(name);
  out.bytes(from_hex("0000"));
  EXPECT_FALSE(ApiVersionsRequest::decode(Slice::of(out.take_bytes()), 3));
}

// The generator's own example has the types that no message above has.
Example example() {
  Example message;
  message.ratio = -0.25;
  message.broker_id = 3;
  message.nickname = std::nullopt;
  message.blob = bytes("0102");
  message.maybe_blob = bytes("");
  message.version_field = 6;
  message.main = {.host = "h", .port = 65'535};
  message.spare = Example::Endpoint{.host = "s"};
  message.others.reset();
  return message;
}

TEST(KafkaEncoder, the_example_takes_the_bytes_of_the_protocol_guide) {
  Example message = example();
  message.flags = 7;
  message.names.emplace() = {"n", ""};
  message.ids.resize(1);
  ByteWriter out;
  ASSERT_TRUE(message.encode(out, 4));
  EXPECT_EQ(out.take_bytes(),
            from_hex("bfd0000000000000 00000003 8000000000000000"  // ratio, id, big number
                     "00 030102 01 0006"                           // null, bytes, bytes, version
                     "0268 ffff 00"                                // main
                     "01 0273 2384 00"                             // spare, present
                     "00"                                          // others, null
                     "03 0004 03 026e 01"                          // three tagged; names
                     "0111 02 00000000000000000000000000000000"    // ids
                     "0204 00000007"));                            // flags
}

TEST(KafkaEncoder, the_example_survives_every_version) {
  for (std::int16_t version = Example::min_version; version <= Example::max_version; ++version) {
    SCOPED_TRACE(version);
    Example message = example();
    if (version < 2) {
      message.nickname = "not null";
      message.spare.reset();
    }
    if (version < 3) message.others.emplace(2);
    message.ids.resize(2);
    ByteWriter first, second;
    ASSERT_TRUE(message.encode(first, version));
    const std::vector<std::uint8_t> once = first.take_bytes();
    const auto decoded = Example::decode(Slice::copy_of(once), version);
    ASSERT_TRUE(decoded) << decoded.error().to_string();
    ASSERT_TRUE(decoded->encode(second, version));
    EXPECT_EQ(second.take_bytes(), once);
    EXPECT_EQ(decoded->spare, message.spare);
    EXPECT_EQ(decoded->ids, message.ids);
    for (std::size_t size = 0; size < once.size(); ++size) {
      EXPECT_FALSE(Example::decode(Slice::copy_of(ByteView(once).first(size)), version)) << size;
    }
  }
}

TEST(KafkaEncoder, a_tagged_field_with_its_default_is_not_written) {
  ByteWriter with, without;
  Example message = example();
  ASSERT_TRUE(message.encode(without, 4));
  message.flags = 0;
  ASSERT_TRUE(message.encode(with, 4));
  EXPECT_EQ(with.size(), without.size() + 6);
}

TEST(KafkaDecoder, a_presence_byte_that_is_neither_null_nor_present_is_refused) {
  ByteWriter out;
  ASSERT_TRUE(example().encode(out, 4));
  std::vector<std::uint8_t> body = out.take_bytes();
  const std::size_t presence = 8 + 4 + 8 + 1 + 3 + 1 + 2 + 5;
  ASSERT_EQ(body[presence], 1);
  body[presence] = 2;
  EXPECT_FALSE(Example::decode(Slice::of(body), 4));
}

}  // namespace
}  // namespace polylog::protocol::kafka
