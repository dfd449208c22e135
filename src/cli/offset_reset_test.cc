#include "cli/offset_reset.h"

#include <gtest/gtest.h>

#include "cli/group_report.h"

namespace polylog::cli {
namespace {

TEST(ResetLines, are_read_with_and_without_a_group) {
  const auto lines = parse_reset_lines("orders,0,5\r\n\n# a remark\nbilling,\"a,b\",1,7\n");
  ASSERT_TRUE(lines);
  ASSERT_EQ(lines->size(), 2u);
  EXPECT_EQ((*lines)[0].group, "");
  EXPECT_EQ((*lines)[0].where, (TopicPartition{"orders", 0}));
  EXPECT_EQ((*lines)[0].offset, 5);
  EXPECT_EQ((*lines)[1].group, "billing");
  EXPECT_EQ((*lines)[1].where, (TopicPartition{"a,b", 1}));
  EXPECT_EQ((*lines)[1].offset, 7);
}

TEST(ResetLines, what_is_printed_is_read_back) {
  const TopicPartition where{"orders", 12};
  const auto lines = parse_reset_lines(format_reset_line(where, 99));
  ASSERT_TRUE(lines);
  ASSERT_EQ(lines->size(), 1u);
  EXPECT_EQ(lines->front().where, where);
  EXPECT_EQ(lines->front().offset, 99);
}

TEST(ResetLines, a_wrong_line_is_named) {
  for (const char* text : {"orders,0", "orders,x,1", "orders,0,-1", "orders,0,1,2,3", ",0,1",
                           "orders,99999999999,1", "\"orders,0,1", "orders,0,1x"}) {
    const auto lines = parse_reset_lines(std::string("ok,0,0\n") + text);
    ASSERT_FALSE(lines) << text;
    EXPECT_NE(lines.error().context.find("line 2"), std::string::npos) << lines.error().context;
  }
}

TEST(GroupReport, ages_are_as_exact_as_they_need_be) {
  EXPECT_EQ(format_age(0), "0.0s");
  EXPECT_EQ(format_age(75250), "75.2s");
  EXPECT_EQ(format_age(12300000), "3h25m");
  EXPECT_EQ(format_age(187200000), "2d4h");
}

}  // namespace
}  // namespace polylog::cli
