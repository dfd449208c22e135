#include "format/kafka/consumer_protocol.h"

#include <gtest/gtest.h>

#include "format/kafka/golden_vectors.h"

namespace polylog::format::kafka {
namespace {

using golden::from_hex;

// Worked out from the schemas, field by field.
constexpr std::string_view subscription_hex =
    "0003 00000001 0001 61 00000002 beef 00000001 0001 61 00000002 00000000 00000002"
    "00000007 0002 7231";
constexpr std::string_view assignment_hex = "0001 00000001 0001 61 00000001 00000003 ffffffff";

TEST(ConsumerProtocol, subscriptions_are_read_and_written) {
  const auto read = decode_subscription(from_hex(subscription_hex));
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->version, 3);
  EXPECT_EQ(read->topics, std::vector<std::string>{"a"});
  EXPECT_EQ(read->user_data, from_hex("beef"));
  EXPECT_EQ(read->owned, (std::vector<TopicPartitions>{{"a", {0, 2}}}));
  EXPECT_EQ(read->generation, 7);
  EXPECT_EQ(read->rack_id, "r1");
  EXPECT_EQ(encode(*read), from_hex(subscription_hex));
}

TEST(ConsumerProtocol, a_subscription_of_version_0_has_topics_only) {
  const auto read = decode_subscription(from_hex("0000 00000001 0001 61 ffffffff"));
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_TRUE(read->owned.empty());
  EXPECT_FALSE(read->rack_id.has_value());
}

TEST(ConsumerProtocol, later_versions_are_read_as_far_as_they_are_known) {
  const auto read =
      decode_subscription(from_hex("0009 00000000 ffffffff 00000000 00000001 ffff 0102030405"));
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->generation, 1);
}

TEST(ConsumerProtocol, assignments_are_read_and_written) {
  const auto read = decode_assignment(from_hex(assignment_hex));
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->version, 1);
  EXPECT_EQ(read->partitions, (std::vector<TopicPartitions>{{"a", {3}}}));
  EXPECT_EQ(encode(*read), from_hex(assignment_hex));
}

TEST(ConsumerProtocol, what_is_torn_does_not_read) {
  for (const std::string_view hex : {subscription_hex, assignment_hex}) {
    const auto bytes = from_hex(hex);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const ByteView torn = ByteView(bytes).first(size);
      EXPECT_FALSE(hex == subscription_hex ? decode_subscription(torn).has_value()
                                           : decode_assignment(torn).has_value())
          << size;
    }
  }
  EXPECT_FALSE(decode_subscription(from_hex("ffff 00000000 ffffffff")));
  EXPECT_FALSE(decode_subscription(from_hex("0000 7fffffff")));
}

}  // namespace
}  // namespace polylog::format::kafka
