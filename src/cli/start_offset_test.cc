#include "cli/start_offset.h"

#include <gtest/gtest.h>

namespace polylog::cli {
namespace {

using Kind = StartOffset::Kind;

TEST(StartOffset, every_form_is_understood) {
  EXPECT_EQ(parse_start_offset("beginning"), (StartOffset{Kind::beginning, 0}));
  EXPECT_EQ(parse_start_offset("start"), (StartOffset{Kind::beginning, 0}));
  EXPECT_EQ(parse_start_offset("end"), (StartOffset{Kind::end, 0}));
  EXPECT_EQ(parse_start_offset("0"), (StartOffset{Kind::offset, 0}));
  EXPECT_EQ(parse_start_offset("9223372036854775807"), (StartOffset{Kind::offset, INT64_MAX}));
  EXPECT_EQ(parse_start_offset("-10"), (StartOffset{Kind::before_end, 10}));
  EXPECT_EQ(parse_start_offset("-0"), (StartOffset{Kind::before_end, 0}));
  EXPECT_EQ(parse_start_offset("@1700000000000"), (StartOffset{Kind::time, 1700000000000}));
  EXPECT_EQ(parse_start_offset("@0"), (StartOffset{Kind::time, 0}));
}

TEST(StartOffset, anything_else_is_refused_with_the_forms_there_are) {
  for (const char* text : {"", "-", "@", "@-1", "begin", "1.5", "12x", "@now", "stored", " 1",
                           "9223372036854775808", "-9223372036854775808", "+-1"}) {
    const auto parsed = parse_start_offset(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Errc::invalid);
    EXPECT_NE(parsed.error().context.find("beginning, end"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace polylog::cli
