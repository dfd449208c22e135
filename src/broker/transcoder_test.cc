#include "broker/transcoder.h"

#include <gtest/gtest.h>

namespace polylog::broker {
namespace {

TEST(Origin, is_an_address_and_a_port) {
  const Origin v4 = parse_origin("192.0.2.7:9092");
  EXPECT_FALSE(v4.v6);
  EXPECT_EQ(v4.port, 9092);
  EXPECT_EQ(v4.address[0], 192);
  EXPECT_EQ(v4.address[3], 7);
  EXPECT_EQ(v4.address[4], 0);
  const Origin v6 = parse_origin("[2001:db8::1]:65535");
  EXPECT_TRUE(v6.v6);
  EXPECT_EQ(v6.port, 65535);
  EXPECT_EQ(v6.address[0], 0x20);
  EXPECT_EQ(v6.address[15], 1);
}

TEST(Origin, of_anything_else_is_unknown) {
  for (const char* const text : {"", "localhost:9092", "192.0.2.7", "192.0.2.7:", "192.0.2.7:x",
                                 "192.0.2.7:65536", "192.0.2.7:-1", "2001:db8::1:1", "[]:1",
                                 "192.0.2.7:1 ", "[192.0.2.7]:1"}) {
    EXPECT_EQ(parse_origin(text), Origin{}) << text;
  }
}

TEST(StoredTopic, is_the_name_itself_in_kafkas_form) {
  EXPECT_EQ(stored_topic(BatchFormat::kafka, std::string(249, '.')).value(),
            std::string(249, '.'));
}

TEST(StoredTopic, has_rocketmqs_characters_and_its_limit) {
  EXPECT_EQ(stored_topic(BatchFormat::rocketmq, "orders.eu-1_x").value(), "orders%2Eeu-1_x");
  EXPECT_TRUE(stored_topic(BatchFormat::rocketmq, std::string(127, 'a')));
  EXPECT_EQ(stored_topic(BatchFormat::rocketmq, std::string(128, 'a')).error().code,
            Errc::too_large);
  EXPECT_EQ(stored_topic(BatchFormat::rocketmq, std::string(43, '.')).error().code,
            Errc::too_large);
}

TEST(StoredTopic, is_refused_where_rocketmq_keeps_its_own) {
  for (const char* const name : {"SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "rmq_sys_x"}) {
    const auto stored = stored_topic(BatchFormat::rocketmq, name);
    ASSERT_FALSE(stored) << name;
    EXPECT_EQ(stored.error().code, Errc::invalid);
    EXPECT_TRUE(stored_topic(BatchFormat::kafka, name));
  }
}

}  // namespace
}  // namespace polylog::broker
