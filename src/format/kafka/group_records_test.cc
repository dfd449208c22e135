#include "format/kafka/group_records.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "bytes/writer.h"
#include "format/kafka/golden_vectors.h"
#include "format/page_table.h"

namespace polylog::format::kafka {
namespace {

using golden::from_hex;
using Bytes = std::vector<std::uint8_t>;

// All of these were written by Kafka 4.4.0's own classes.
constexpr std::string_view offset_key_hex = "0001 000167 00066f7264657273 00000003";
constexpr std::string_view group_key_hex = "0002 000167";
constexpr std::string_view offset_hex[] = {
    "0000 000000000000002a 00046e6f7465 0000000000000102",
    "0001 000000000000002a 00046e6f7465 0000000000000102 0000000000000203",
    "0002 000000000000002a 00046e6f7465 0000000000000102",
    "0003 000000000000002a 00000005 00046e6f7465 0000000000000102",
    "0004 000000000000002a 00000005 056e6f7465 0000000000000102"
    "01 00 10 0102030405060708090a0b0c0d0e0f10",
};
constexpr std::string_view offset_default_expiry_hex =
    "0001 000000000000002a 0000 0000000000000102 ffffffffffffffff";
constexpr std::string_view offset_without_id_hex =
    "0004 000000000000002a 00000005 056e6f7465 0000000000000102 00";
constexpr std::string_view group_hex[] = {
    "0000 0008636f6e73756d6572 00000007 000572616e6765 00026d31 00000001"
    "00026d31 0003617070 000a2f3132372e302e302e31 0000afc8 00000002 0102 00000001 03",
    "0001 0008636f6e73756d6572 00000007 000572616e6765 00026d31 00000001"
    "00026d31 0003617070 000a2f3132372e302e302e31 000493e0 0000afc8 00000002 0102 00000001 03",
    "0002 0008636f6e73756d6572 00000007 000572616e6765 00026d31 0000000000000102 00000001"
    "00026d31 0003617070 000a2f3132372e302e302e31 000493e0 0000afc8 00000002 0102 00000001 03",
    "0003 0008636f6e73756d6572 00000007 000572616e6765 00026d31 0000000000000102 00000001"
    "00026d31 00026931 0003617070 000a2f3132372e302e302e31 000493e0 0000afc8 00000002 0102"
    "00000001 03",
    "0004 09636f6e73756d6572 00000007 0672616e6765 036d31 0000000000000102 02"
    "036d31 036931 04617070 0b2f3132372e302e302e31 000493e0 0000afc8 03 0102 02 03 00 00",
};
constexpr std::string_view empty_group_hex =
    "0003 0008636f6e73756d6572 00000008 ffff ffff 0000000000000102 00000000";

OffsetCommit golden_offset(int version) {
  OffsetCommit offset;
  offset.offset = 42;
  offset.metadata = "note";
  offset.committed = Timestamp(258);
  if (version >= 3) offset.leader_epoch = LeaderEpoch(5);
  if (version == 1) offset.expires = Timestamp(515);
  for (std::uint8_t i = 0; version >= 4 && i < 16; ++i) {
    offset.topic_id.bytes[i] = static_cast<std::uint8_t>(i + 1);
  }
  return offset;
}

GroupMetadata golden_group(int version) {
  GroupMetadata group;
  group.protocol_type = "consumer";
  group.generation = 7;
  group.protocol = "range";
  group.leader = "m1";
  if (version >= 2) group.state_since = Timestamp(258);
  GroupMember member;
  member.id = "m1";
  if (version >= 3) member.instance_id = "i1";
  member.client_id = "app";
  member.host = "/127.0.0.1";
  if (version >= 1) member.rebalance_timeout_ms = 300'000;
  member.session_timeout_ms = 45'000;
  member.subscription = {1, 2};
  member.assignment = {3};
  group.members.push_back(member);
  return group;
}

TEST(GroupRecords, keys_are_kafkas_own) {
  EXPECT_EQ(*encode_offset_commit_key({"g", {"orders", 3}}), from_hex(offset_key_hex));
  const OffsetCommitKey key{"g", {"orders", 3}};
  EXPECT_EQ(*decode_offset_commit_key(from_hex(offset_key_hex)), key);
  Bytes oldest = from_hex(offset_key_hex);
  oldest[1] = 0;
  EXPECT_EQ(*decode_offset_commit_key(oldest), key);
  EXPECT_EQ(*encode_group_metadata_key("g"), from_hex(group_key_hex));
  EXPECT_EQ(*decode_group_metadata_key(from_hex(group_key_hex)), "g");
  EXPECT_EQ(*group_key_type(from_hex(group_key_hex)), group_metadata_key);
  EXPECT_FALSE(group_key_type(Bytes{0}));
}

TEST(GroupRecords, a_committed_offset_of_every_version_reads) {
  for (int version = 0; version <= offset_commit_value_max; ++version) {
    const auto read = decode_offset_commit(from_hex(offset_hex[version]));
    ASSERT_TRUE(read) << version;
    EXPECT_EQ(*read, golden_offset(version)) << version;
  }
}

TEST(GroupRecords, committed_offsets_are_written_as_kafka_writes_them) {
  for (const int version : {1, 3, 4}) {
    EXPECT_EQ(*encode_offset_commit(golden_offset(version)), from_hex(offset_hex[version]))
        << version;
  }
}

// KAFKA-7403: read back as a time in the past, it made offsets vanish after a restart.
TEST(GroupRecords, the_default_expiry_is_no_time) {
  const auto read = decode_offset_commit(from_hex(offset_default_expiry_hex));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->expires, std::nullopt);
  const auto without_id = decode_offset_commit(from_hex(offset_without_id_hex));
  ASSERT_TRUE(without_id);
  EXPECT_TRUE(without_id->topic_id.is_zero());
}

TEST(GroupRecords, a_group_of_every_version_reads) {
  for (int version = 0; version <= group_metadata_value_max; ++version) {
    const auto read = decode_group_metadata(from_hex(group_hex[version]));
    ASSERT_TRUE(read) << version;
    EXPECT_EQ(*read, golden_group(version)) << version;
  }
  EXPECT_EQ(*encode_group_metadata(golden_group(3)), from_hex(group_hex[3]));
}

TEST(GroupRecords, an_empty_group_has_neither_protocol_nor_leader) {
  GroupMetadata group;
  group.protocol_type = "consumer";
  group.generation = 8;
  group.state_since = Timestamp(258);
  EXPECT_EQ(*encode_group_metadata(group), from_hex(empty_group_hex));
  EXPECT_EQ(*decode_group_metadata(from_hex(empty_group_hex)), group);
}

TEST(GroupRecords, cut_and_overlong_records_are_refused) {
  std::vector<Bytes> records{from_hex(offset_key_hex), from_hex(group_key_hex)};
  for (const auto hex : offset_hex) records.push_back(from_hex(hex));
  for (const auto hex : group_hex) records.push_back(from_hex(hex));
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto reads = [i](ByteView bytes) {
      if (i == 0) return decode_offset_commit_key(bytes).has_value();
      if (i == 1) return decode_group_metadata_key(bytes).has_value();
      if (i < 7) return decode_offset_commit(bytes).has_value();
      return decode_group_metadata(bytes).has_value();
    };
    EXPECT_TRUE(reads(records[i])) << i;
    for (std::size_t size = 0; size < records[i].size(); ++size) {
      EXPECT_FALSE(reads(ByteView(records[i]).first(size))) << i << " cut to " << size;
    }
    Bytes longer = records[i];
    longer.push_back(0);
    EXPECT_FALSE(reads(longer)) << i;
  }
}

TEST(GroupRecords, later_versions_and_impossible_counts_are_refused) {
  EXPECT_EQ(decode_offset_commit(Bytes{0, 5}).error().code, Errc::unsupported);
  EXPECT_EQ(decode_group_metadata(Bytes{0, 5}).error().code, Errc::unsupported);
  EXPECT_EQ(decode_group_metadata(Bytes{0xff, 0xff}).error().code, Errc::corrupt);
  Bytes many = from_hex(empty_group_hex);
  many[many.size() - 4] = 0x7f;  // members
  EXPECT_EQ(decode_group_metadata(many).error().code, Errc::corrupt);
}

TEST(GroupRecords, what_no_record_can_hold_is_not_written) {
  const std::string longest(group_text_bytes_max, 'x');
  EXPECT_TRUE(encode_group_metadata_key(longest));
  EXPECT_EQ(encode_group_metadata_key(longest + "x").error().code, Errc::too_large);
  OffsetCommit offset = golden_offset(4);
  offset.metadata = longest + "x";
  EXPECT_EQ(encode_offset_commit(offset).error().code, Errc::too_large);
}

// docs/formats/kafka-consumer-offsets.md must say what the code does.
template <std::size_t N>
void expect_page_says(const std::array<GroupRecordField, N>& fields, int table) {
  std::vector<std::vector<std::string>> rows{{"field", "type", "versions"}, {"---", "---", "---"}};
  for (const GroupRecordField& field : fields) {
    const std::string first = std::to_string(field.first_version);
    const std::string last = std::to_string(field.last_version);
    rows.push_back({std::string(field.name), std::string(field.type),
                    first == last ? first : first + " to " + last});
  }
  EXPECT_EQ(page::cells_of("kafka-consumer-offsets.md", "| field | type | versions", table), rows);
}

TEST(GroupRecords, tables_of_the_page_equal_the_code) {
  expect_page_says(offset_commit_fields, 0);
  expect_page_says(group_metadata_fields, 1);
}

TEST(Subscription, topics_of_known_and_later_versions_read) {
  ByteWriter out;
  out.i16(0);
  out.i32(2);
  for (const std::string_view topic : {"a", "orders"}) {
    out.i16(static_cast<std::int16_t>(topic.size()));
    out.text(topic);
  }
  out.i32(-1);  // user data
  Bytes bytes = out.take_bytes();
  const std::vector<std::string> topics{"a", "orders"};
  EXPECT_EQ(subscribed_topics(bytes), topics);
  bytes[1] = 9;  // a version nobody knows yet, with something behind it
  bytes.push_back(1);
  EXPECT_EQ(subscribed_topics(bytes), topics);
}

TEST(Subscription, anything_else_is_no_subscription) {
  EXPECT_EQ(subscribed_topics(Bytes{}), std::nullopt);
  EXPECT_EQ(subscribed_topics(Bytes{0}), std::nullopt);
  EXPECT_EQ(subscribed_topics(Bytes{0xff, 0xff, 0, 0, 0, 0}), std::nullopt);
  EXPECT_EQ(subscribed_topics(Bytes{0, 0, 0x7f, 0xff, 0xff, 0xff}), std::nullopt);
  EXPECT_EQ(subscribed_topics(Bytes{0, 0, 0, 0, 0, 1, 0, 9, 'a'}), std::nullopt);
}

}  // namespace
}  // namespace polylog::format::kafka
