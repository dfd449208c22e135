#include "convert/group_offsets.h"

#include <gtest/gtest.h>

#include "format/kafka/group_records.h"
#include "format/kafka/records.h"

namespace polylog::convert {
namespace {

TEST(GroupOffsets, groups_go_where_kafka_looks_for_them) {
  EXPECT_EQ(partition_of_group("my-group", 50), 12);
  EXPECT_EQ(partition_of_group("console-consumer-1", 50), 24);
  EXPECT_EQ(partition_of_group("", 50), 0);
  EXPECT_EQ(partition_of_group("polygenelubricants", 50), 0);  // its hash is -2^31
  // As Java counts: U+1F600 is two UTF-16 units, d83d and de00.
  EXPECT_EQ(partition_of_group("\xf0\x9f\x98\x80", 50), (0xd83d * 31 + 0xde00) % 50);
  EXPECT_EQ(partition_of_group("\xc3\xa9", 50), 0xe9 % 50);
}

TEST(GroupOffsets, a_name_no_record_can_hold_is_refused) {
  const std::vector<GroupOffset> offsets{{std::string(40'000, 'g'), {"t", 0}, 1}};
  EXPECT_EQ(offsets_batch(offsets, Timestamp(1)).error().code, Errc::too_large);
}

TEST(GroupOffsets, read_back_from_a_batch) {
  const std::vector<GroupOffset> offsets{{"a", {"t", 0}, 7}, {"b", {"t", 1}, 0}};
  const auto batch = offsets_batch(offsets, Timestamp(1));
  ASSERT_TRUE(batch);
  std::vector<GroupOffset> found;
  ASSERT_TRUE(format::kafka::for_each_record(*batch, 1 << 20, [&](const Record& record) {
    const auto offset = decode_offset(record);
    EXPECT_TRUE(offset && *offset);
    found.push_back(**offset);
    return true;
  }));
  EXPECT_EQ(found, offsets);
}

TEST(GroupOffsets, other_records_of_the_topic_are_none) {
  Record record;
  const std::vector<std::uint8_t> group_metadata{0, 2, 0, 1, 'g'};
  const std::vector<std::uint8_t> value{0, 3};
  record.key = ByteView(group_metadata);
  record.value = ByteView(value);
  EXPECT_FALSE(*decode_offset(record));
  const std::vector<std::uint8_t> key = *format::kafka::encode_offset_commit_key({"g", {"t", 0}});
  record.key = ByteView(key);
  EXPECT_EQ(decode_offset(record).error().code, Errc::corrupt);
  record.value.reset();
  EXPECT_FALSE(*decode_offset(record));
}

TEST(GroupOffsets, rocketmqs_table_is_read_under_the_topics_names_here) {
  const auto offsets = parse_rocketmq_offsets(
      R"({"offsetTable":{"b%2Ec@g2":{1:5,0:3},"TopicTest@g1":{"0":9}}})");
  ASSERT_TRUE(offsets) << offsets.error().to_string();
  EXPECT_EQ(*offsets, (std::vector<GroupOffset>{{"g1", {"TopicTest", 0}, 9},
                                                {"g2", {"b.c", 0}, 3},
                                                {"g2", {"b.c", 1}, 5}}));
  EXPECT_TRUE(parse_rocketmq_offsets("")->empty());
  EXPECT_FALSE(parse_rocketmq_offsets("{"));
}

}  // namespace
}  // namespace polylog::convert
