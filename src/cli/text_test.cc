#include "cli/text.h"

#include <gtest/gtest.h>

namespace polylog::cli {
namespace {

using namespace std::string_view_literals;

TEST(Text, utf8_ends_at_the_first_byte_that_is_none) {
  EXPECT_EQ(utf8_prefix("plain"), 5u);
  EXPECT_EQ(utf8_prefix("h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"), 12u);
  EXPECT_EQ(utf8_prefix("a\xff"), 1u);
  EXPECT_EQ(utf8_prefix("a\xc3"), 1u);     // cut
  EXPECT_EQ(utf8_prefix("\xc0\x80"), 0u);  // longer than needed
  EXPECT_EQ(utf8_prefix("\xe0\x80\x80"), 0u);
  EXPECT_EQ(utf8_prefix("\xed\xa0\x80"), 0u);      // a surrogate
  EXPECT_EQ(utf8_prefix("\xf4\x90\x80\x80"), 0u);  // above U+10FFFF
}

TEST(Text, base64_is_padded) {
  EXPECT_EQ(to_base64(as_bytes("")), "");
  EXPECT_EQ(to_base64(as_bytes("f")), "Zg==");
  EXPECT_EQ(to_base64(as_bytes("fo")), "Zm8=");
  EXPECT_EQ(to_base64(as_bytes("foo")), "Zm9v");
  EXPECT_EQ(to_base64(as_bytes("\xff\xfe\xfd\xfc")), "//79/A==");
}

TEST(Text, quoted_bytes_stay_on_one_line) {
  EXPECT_EQ(quoted(std::nullopt), "null");
  EXPECT_EQ(quoted(as_bytes("")), "\"\"");
  EXPECT_EQ(quoted(as_bytes("a\n\"b\"\\\x01\x7f\xff\xc3\xa9")),
            "\"a\\n\\\"b\\\"\\\\\\x01\\x7f\\xff\xc3\xa9\"");
}

TEST(Text, times_are_utc_with_milliseconds) {
  EXPECT_EQ(format_time(Timestamp(1700000000007)), "2023-11-14T22:13:20.007Z");
  EXPECT_EQ(format_time(Timestamp(0)), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(format_time(no_timestamp), "-1");
  EXPECT_EQ(format_time(Timestamp(INT64_MAX)), "9223372036854775807");
}

TEST(Text, tables_are_as_wide_as_their_cells) {
  EXPECT_EQ(format_table({{"A", "LONG"}, {"abc", "x"}, {"d", ""}}), "A    LONG\nabc  x\nd\n");
}

TEST(Text, an_integer_is_the_whole_text) {
  EXPECT_EQ(parse_integer("-12"), -12);
  EXPECT_EQ(parse_integer("+12"), 12);
  for (const char* text : {"", "+", "+-1", "1 ", "0x1", "99999999999999999999"}) {
    EXPECT_EQ(parse_integer(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace polylog::cli
