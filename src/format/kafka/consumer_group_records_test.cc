#include "format/kafka/consumer_group_records.h"

#include <gtest/gtest.h>

#include <string_view>

#include "format/kafka/golden_vectors.h"

namespace polylog::format::kafka {
namespace {

using golden::from_hex;
using Bytes = std::vector<std::uint8_t>;

// All of these were written by Kafka 4.4.0's own classes.
constexpr std::string_view epoch_hex = "0000 00000007 01 00 08 1122334455667788";
constexpr std::string_view epoch_plain_hex = "0000 00000007 00";
constexpr std::string_view member_hex =
    "0000 03 6931 00 04 617070 0b 2f3132372e302e302e31 03 02 61 02 62 01 000493e0"
    "08 756e69666f726d 01 00 01 00";
constexpr std::string_view member_classic_hex =
    "0000 00 02 72 04 617070 0b 2f3132372e302e302e31 02 02 61 00 0000ea60 00"
    "01 00 13 01 0000afc8 02 06 72616e6765 05 00010203 00 00";
constexpr std::string_view target_epoch_hex = "0000 00000007 01 00 08 0000018bcfe56800";
constexpr std::string_view target_hex =
    "0000 02 0102030405060708090a0b0c0d0e0f10 03 00000000 00000002 00 00";
constexpr std::string_view current_hex =
    "0000 00000007 00000006 01"
    "02 0102030405060708090a0b0c0d0e0f10 03 00000000 00000002 01 00 09 03 00000005 00000007"
    "02 0102030405060708090a0b0c0d0e0f10 02 00000001 01 00 05 02 00000004 00";
constexpr std::string_view regex_hex =
    "0000 03 07 6f7264657273 06 6f74686572 000000000000002a 0000018bcfe56800 00";

constexpr Uuid topic{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};

GroupEpochValue epoch_value() { return {7, 0x1122334455667788}; }

MemberMetadataValue member_value() {
  MemberMetadataValue value;
  value.instance_id = "i1";
  value.client_id = "app";
  value.client_host = "/127.0.0.1";
  value.topics = {"a", "b"};
  value.regular_expression = "";
  value.rebalance_timeout_ms = 300000;
  value.assignor = "uniform";
  return value;
}

MemberMetadataValue classic_member_value() {
  MemberMetadataValue value;
  value.rack_id = "r";
  value.client_id = "app";
  value.client_host = "/127.0.0.1";
  value.topics = {"a"};
  value.rebalance_timeout_ms = 60000;
  value.classic = ClassicMemberValue{45000, {{"range", {0, 1, 2, 3}}}};
  return value;
}

CurrentAssignmentValue current_value() {
  CurrentAssignmentValue value;
  value.epoch = 7;
  value.previous_epoch = 6;
  value.state = 1;
  value.assigned = {{topic, {0, 2}, std::vector<std::int32_t>{5, 7}}};
  value.revoking = {{topic, {1}, std::vector<std::int32_t>{4}}};
  return value;
}

// Writes and reads `value` against the bytes Kafka has for it.
template <typename Value, typename Decode>
void expect_golden(const Value& value, std::string_view hex, Decode&& decode) {
  const Bytes bytes = from_hex(hex);
  EXPECT_EQ(encode(value), bytes);
  const auto read = decode(ByteView(bytes));
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, value);
}

TEST(ConsumerGroupRecords, keys_are_kafkas_bytes) {
  using Record = ConsumerGroupRecord;
  const std::vector<std::pair<ConsumerGroupKey, std::string_view>> keys{
      {{Record::group_epoch, "orders", ""}, "0003 0006 6f7264657273"},
      {{Record::partition_metadata, "orders", ""}, "0004 0006 6f7264657273"},
      {{Record::member_metadata, "orders", "m1"}, "0005 0006 6f7264657273 0002 6d31"},
      {{Record::target_epoch, "orders", ""}, "0006 0006 6f7264657273"},
      {{Record::target_assignment, "orders", "m1"}, "0007 0006 6f7264657273 0002 6d31"},
      {{Record::current_assignment, "orders", "m1"}, "0008 0006 6f7264657273 0002 6d31"},
      {{Record::regular_expression, "orders", "o.*"}, "0010 0006 6f7264657273 0003 6f2e2a"},
  };
  for (const auto& [key, hex] : keys) {
    const Bytes bytes = from_hex(hex);
    EXPECT_EQ(encode_key(key), bytes);
    EXPECT_TRUE(is_consumer_group_key(bytes));
    const auto read = decode_consumer_group_key(bytes);
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(*read, key);
  }
}

TEST(ConsumerGroupRecords, other_keys_are_unsupported_and_torn_ones_corrupt) {
  EXPECT_FALSE(is_consumer_group_key(from_hex("0002 0001 61")));
  EXPECT_FALSE(is_consumer_group_key(from_hex("0009 0001 61")));
  EXPECT_FALSE(is_consumer_group_key(from_hex("03")));
  EXPECT_EQ(decode_consumer_group_key(from_hex("0002 0001 61")).error().code, Errc::unsupported);
  for (const std::string_view torn :
       {"", "00", "0003", "0003 0002 61", "0003 ffff", "0005 0001 61", "0003 0001 61 00"}) {
    const auto read = decode_consumer_group_key(from_hex(torn));
    ASSERT_FALSE(read) << torn;
    EXPECT_EQ(read.error().code, Errc::corrupt) << torn;
  }
}

TEST(ConsumerGroupRecords, values_are_kafkas_bytes) {
  expect_golden(epoch_value(), epoch_hex, decode_group_epoch);
  expect_golden(GroupEpochValue{7, 0}, epoch_plain_hex, decode_group_epoch);
  expect_golden(member_value(), member_hex, decode_member_metadata);
  expect_golden(classic_member_value(), member_classic_hex, decode_member_metadata);
  expect_golden(TargetEpochValue{7, 1700000000000}, target_epoch_hex, decode_target_epoch);
  expect_golden(TargetAssignmentValue{{{topic, {0, 2}, std::nullopt}}}, target_hex,
                decode_target_assignment);
  expect_golden(current_value(), current_hex, decode_current_assignment);
  expect_golden(RegularExpressionValue{{"orders", "other"}, 42, 1700000000000}, regex_hex,
                decode_regular_expression);
}

TEST(ConsumerGroupRecords, every_torn_or_longer_value_is_corrupt) {
  const auto expect_corrupt = [](std::string_view hex, auto&& decode) {
    Bytes bytes = from_hex(hex);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const auto read = decode(ByteView(bytes).first(size));
      ASSERT_FALSE(read) << size << " bytes of " << hex;
      EXPECT_EQ(read.error().code, Errc::corrupt);
    }
    bytes.push_back(0);
    EXPECT_FALSE(decode(ByteView(bytes)));
  };
  expect_corrupt(epoch_hex, decode_group_epoch);
  expect_corrupt(member_hex, decode_member_metadata);
  expect_corrupt(member_classic_hex, decode_member_metadata);
  expect_corrupt(target_epoch_hex, decode_target_epoch);
  expect_corrupt(target_hex, decode_target_assignment);
  expect_corrupt(current_hex, decode_current_assignment);
  expect_corrupt(regex_hex, decode_regular_expression);
}

TEST(ConsumerGroupRecords, a_later_version_is_unsupported) {
  EXPECT_EQ(decode_group_epoch(from_hex("0001 00000007 00")).error().code, Errc::unsupported);
}

TEST(ConsumerGroupRecords, unknown_tagged_fields_are_skipped) {
  const auto epoch =
      decode_group_epoch(from_hex("0000 00000007 02 00 08 0000000000000005 03 01 ff"));
  ASSERT_TRUE(epoch) << epoch.error().to_string();
  EXPECT_EQ(*epoch, (GroupEpochValue{7, 5}));
  const auto regex = decode_regular_expression(
      from_hex("0000 01 0000000000000001 0000000000000002 01 05 02 abcd"));
  ASSERT_TRUE(regex) << regex.error().to_string();
  EXPECT_EQ(regex->version, 1);
}

TEST(ConsumerGroupRecords, assignments_of_older_brokers_have_no_epochs) {
  const auto read = decode_current_assignment(
      from_hex("0000 00000007 00000006 00"
               "02 0102030405060708090a0b0c0d0e0f10 02 00000001 00 01 00"));
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_FALSE(read->assigned.at(0).epochs.has_value());
}

TEST(ConsumerGroupRecords, impossible_counts_allocate_nothing) {
  EXPECT_EQ(decode_target_assignment(from_hex("0000 ffffffff0f 00")).error().code, Errc::corrupt);
  EXPECT_EQ(decode_regular_expression(from_hex("0000 ffffff7f")).error().code, Errc::corrupt);
}

}  // namespace
}  // namespace polylog::format::kafka
