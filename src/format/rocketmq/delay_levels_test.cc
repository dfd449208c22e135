#include "format/rocketmq/delay_levels.h"

#include <gtest/gtest.h>

#include <limits>

#include "format/rocketmq/check_values.h"
#include "format/rocketmq/names.h"

namespace polylog::format::rocketmq {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

TEST(DelayLevels, standard_ones_are_18_from_a_second_to_two_hours) {
  const DelayLevels levels = DelayLevels::standard();
  EXPECT_EQ(levels.level_max(), 18);
  EXPECT_EQ(levels.duration_ms(1), 1'000);
  EXPECT_EQ(levels.duration_ms(4), 30'000);
  EXPECT_EQ(levels.duration_ms(5), 60'000);
  EXPECT_EQ(levels.duration_ms(18), 7'200'000);
  EXPECT_EQ(levels.duration_ms(0), -1);
  EXPECT_EQ(levels.duration_ms(19), -1);
}

TEST(DelayLevels, parse_all_four_units) {
  const auto levels = DelayLevels::parse(" 0s 90s  2m 3h 4d ");
  ASSERT_TRUE(levels) << levels.error().to_string();
  EXPECT_EQ(levels->level_max(), 5);
  EXPECT_EQ(levels->duration_ms(1), 0);
  EXPECT_EQ(levels->duration_ms(3), 120'000);
  EXPECT_EQ(levels->duration_ms(4), 10'800'000);
  EXPECT_EQ(levels->duration_ms(5), 345'600'000);
}

TEST(DelayLevels, of_other_forms_are_invalid) {
  for (const char* text : {"", "  ", "1", "s", "1x", "-1s", "1s,5s", "1.5s", "1s\t5s",
                           "9223372036854775808s", "9223372036854775807s", "+1s"}) {
    const auto levels = DelayLevels::parse(text);
    ASSERT_FALSE(levels) << text;
    EXPECT_EQ(levels.error().code, Errc::invalid);
  }
}

TEST(DelayLevels, above_the_largest_count_as_the_largest) {
  const DelayLevels levels = DelayLevels::standard();
  EXPECT_EQ(levels.clamp(18), 18);
  EXPECT_EQ(levels.clamp(19), 18);
  EXPECT_EQ(levels.clamp(0), 0);
  EXPECT_EQ(levels.clamp(-1), -1);
}

TEST(DelayLevels, delivery_is_the_store_time_and_the_duration) {
  const DelayLevels levels = DelayLevels::standard();
  EXPECT_EQ(levels.delivery_time(3, 1'700'000'000'123), 1'700'000'010'123);
  EXPECT_EQ(levels.delivery_time(19, 1'700'000'000'123), 1'700'000'001'123);
  EXPECT_EQ(levels.delivery_time(3, most - 1), most);
}

TEST(DelayLevels, delivery_too_far_ahead_is_due_now) {
  const DelayLevels levels = DelayLevels::standard();
  EXPECT_EQ(levels.corrected_time(3, 20'000, 10'000), 20'000);
  EXPECT_EQ(levels.corrected_time(3, 20'001, 10'000), 10'000);
  EXPECT_EQ(levels.corrected_time(3, 5, 10'000), 5);
  EXPECT_EQ(levels.corrected_time(3, most, most), most);
}

TEST(DelayLevels, are_read_from_the_property) {
  EXPECT_EQ(delay_level("DELAY\x01"
                        "3\x02"),
            3);
  EXPECT_EQ(delay_level("DELAY\x01-1"), -1);
  for (const char* text : {"", "DELAY\x01x",
                           "DELAY\x01"
                           "3x",
                           "DELAY\x01"
                           "99999999999"}) {
    EXPECT_EQ(delay_level(text), 0);
  }
}

TEST(DelayLevels, entry_of_the_schedule_topic_holds_the_time_and_others_the_tag) {
  const DelayLevels levels = DelayLevels::standard();
  Message message = check::message();
  EXPECT_EQ(entry_tags_code(message, levels), tags_code("TagA"));
  const std::string delayed = std::string(check::properties) + "DELAY\x01" + "3\x02";
  message.properties = delayed;
  EXPECT_EQ(entry_tags_code(message, levels), tags_code("TagA"));
  message.topic = schedule_topic;
  EXPECT_EQ(entry_tags_code(message, levels), message.store_timestamp + 10'000);
  const std::string beyond = "DELAY\x01" + std::string("25\x02");
  message.properties = beyond;
  EXPECT_EQ(entry_tags_code(message, levels), message.store_timestamp + 7'200'000);
  message.properties =
      "TAGS\x01x\x02"
      "DELAY\x01"
      "0\x02";
  EXPECT_EQ(entry_tags_code(message, levels), tags_code("x"));
}

TEST(DelayLevels, wait_in_the_queue_below_their_number) {
  EXPECT_EQ(delay_queue_of(1), 0);
  EXPECT_EQ(delay_level_of(17), 18);
}

}  // namespace
}  // namespace polylog::format::rocketmq
