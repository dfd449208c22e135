#include "cli/time_text.h"

#include <gtest/gtest.h>

namespace polylog::cli {
namespace {

TEST(TimeText, a_time_without_a_zone_is_utc) {
  EXPECT_EQ(parse_datetime("1970-01-01T00:00:00.000"), 0);
  EXPECT_EQ(parse_datetime("2023-11-14T22:13:20.000"), 1700000000000);
  EXPECT_EQ(parse_datetime("2023-11-14T22:13:20.123Z"), 1700000000123);
  EXPECT_EQ(parse_datetime("2023-11-14T22:13:20.1"), 1700000000100);
  EXPECT_EQ(parse_datetime("2023-11-14T22:13:20.123456"), 1700000000123);
  EXPECT_EQ(parse_datetime("2023-11-14T22:13"), 1699999980000);
}

TEST(TimeText, zones_are_taken_off) {
  EXPECT_EQ(parse_datetime("2023-11-15T00:13:20+02:00"), 1700000000000);
  EXPECT_EQ(parse_datetime("2023-11-15T00:13:20+02"), 1700000000000);
  EXPECT_EQ(parse_datetime("2023-11-14T17:43:20-0430"), 1700000000000);
}

TEST(TimeText, what_is_no_time_is_refused) {
  for (const char* text : {"", "junk", "2023-11-14", "2023-11-14 22:13:20", "2023-02-30T00:00:00",
                           "2023-11-14T24:00:00", "2023-11-14T22:13:20.", "2023-11-14T22:13:20+2",
                           "2023-11-14T22:13:20.000Zjunk", "23-11-14T22:13:20"}) {
    EXPECT_FALSE(parse_datetime(text)) << text;
  }
}

TEST(TimeText, durations_as_java_writes_them) {
  EXPECT_EQ(parse_duration("PT0S"), 0);
  EXPECT_EQ(parse_duration("P1D"), 86400000);
  EXPECT_EQ(parse_duration("PT1H"), 3600000);
  EXPECT_EQ(parse_duration("P2DT3H4M5.5S"), 183845500);
  EXPECT_EQ(parse_duration("-PT1M"), -60000);
  EXPECT_EQ(parse_duration("PT-1M"), -60000);
}

TEST(TimeText, what_is_no_duration_is_refused) {
  for (const char* text : {"", "P", "PT", "P1DT", "1D", "P1H", "PT1D", "PT1M1H", "PT1.5M", "PT1",
                           "P1Y", "PT1S1S", "P1D1D", "PT99999999999999999999S"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

}  // namespace
}  // namespace polylog::cli
