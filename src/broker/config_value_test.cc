#include "broker/config_value.h"

#include <gtest/gtest.h>

namespace polylog::broker {
namespace {

TEST(ConfigValue, integers_are_decimal_with_blanks_around_them_allowed) {
  EXPECT_EQ(parse_integer("k", " 42 ", 0, 100), 42);
  EXPECT_EQ(parse_integer("k", "-1", -1, 100), -1);
  EXPECT_EQ(parse_integer("k", "+7", 0, 100), 7);
  EXPECT_EQ(parse_integer("k", "9223372036854775807", 0, INT64_MAX), INT64_MAX);
  for (const char* bad :
       {"", " ", "1k", "0x10", "1.0", "--1", "+-1", "1 2", "9223372036854775808"}) {
    EXPECT_FALSE(parse_integer("k", bad, INT64_MIN, INT64_MAX)) << bad;
  }
}

TEST(ConfigValue, integers_outside_their_range_name_the_key_and_the_bound) {
  EXPECT_EQ(parse_integer("num.partitions", "0", 1, 10).error().context,
            "num.partitions = '0': must be at least 1");
  EXPECT_EQ(parse_integer("num.partitions", "11", 1, 10).error().context,
            "num.partitions = '11': must be at most 10");
}

TEST(ConfigValue, a_long_or_unprintable_value_is_shown_shortened) {
  const std::string text = parse_integer("k", std::string(5000, 'x'), 0, 1).error().context;
  EXPECT_LT(text.size(), 150U);
  EXPECT_EQ(parse_integer("k", "a\nb", 0, 1).error().context.find('\n'), std::string::npos);
}

TEST(ConfigValue, booleans_take_any_case_and_nothing_else) {
  EXPECT_EQ(parse_boolean("k", "TRUE"), true);
  EXPECT_EQ(parse_boolean("k", " false "), false);
  for (const char* bad : {"", "1", "yes", "truee", "tru"}) EXPECT_FALSE(parse_boolean("k", bad));
}

TEST(ConfigValue, reals_must_be_finite_and_in_range) {
  EXPECT_EQ(parse_real("k", "0.5", 0, 1), 0.5);
  EXPECT_EQ(parse_real("k", "1", 0, 1), 1.0);
  for (const char* bad : {"", "nan", "inf", "1.5", "-0.1", "0.5x"}) {
    EXPECT_FALSE(parse_real("k", bad, 0, 1)) << bad;
  }
}

TEST(ConfigValue, lists_are_split_at_commas_and_trimmed) {
  EXPECT_EQ(*parse_list("k", " a , b"), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(parse_list("k", "  ")->empty());
  EXPECT_FALSE(parse_list("k", "a,,b"));
  EXPECT_FALSE(parse_list("k", "a,"));
}

TEST(ConfigValue, words_are_exact_and_the_choice_is_listed) {
  EXPECT_EQ(parse_word("k", " lz4 ", "gzip|lz4"), "lz4");
  EXPECT_EQ(parse_word("k", "LZ4", "gzip|snappy|lz4").error().context,
            "k = 'LZ4': must be gzip, snappy or lz4");
  EXPECT_FALSE(parse_word("k", "", "gzip|lz4"));
  EXPECT_FALSE(parse_word("k", "gzip|lz4", "gzip|lz4"));
}

TEST(ConfigValue, a_mistyped_name_finds_the_one_meant) {
  const std::vector<std::string_view> known = {"retention.ms", "retention.bytes", "segment.ms",
                                               "log.dirs"};
  EXPECT_EQ(nearest_name("retention.m", known), "retention.ms");
  EXPECT_EQ(nearest_name("retnetion.ms", known), "retention.ms");
  EXPECT_EQ(nearest_name("log.retention.bytes", known), "retention.bytes");
  EXPECT_EQ(nearest_name("dirs", known), "log.dirs");
  EXPECT_EQ(nearest_name("something.else.altogether", known), "");
  EXPECT_EQ(nearest_name("", known), "");
  EXPECT_EQ(nearest_name(std::string(100000, 'x'), known), "");
}

}  // namespace
}  // namespace polylog::broker
