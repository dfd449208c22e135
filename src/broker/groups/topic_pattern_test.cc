#include "broker/groups/topic_pattern.h"

#include <gtest/gtest.h>

namespace polylog::broker::groups {
namespace {

TEST(TopicPattern, matches_whole_names) {
  const auto pattern = TopicPattern::compile("orders-.*");
  ASSERT_TRUE(pattern) << pattern.error().to_string();
  EXPECT_TRUE(pattern->matches("orders-eu"));
  EXPECT_TRUE(pattern->matches("orders-"));
  EXPECT_FALSE(pattern->matches("my-orders-eu"));
  EXPECT_FALSE(pattern->matches("orders"));
}

TEST(TopicPattern, alternatives_are_whole_names_too) {
  const auto pattern = TopicPattern::compile("a|b.*");
  ASSERT_TRUE(pattern);
  EXPECT_TRUE(pattern->matches("a"));
  EXPECT_TRUE(pattern->matches("bc"));
  EXPECT_FALSE(pattern->matches("ac"));
}

TEST(TopicPattern, bad_and_unbounded_expressions_are_refused_with_a_reason) {
  for (const char* bad : {"(", "a**", "[z-a]", "(?=look)", "\\1"}) {
    const auto pattern = TopicPattern::compile(bad);
    ASSERT_FALSE(pattern) << bad;
    EXPECT_EQ(pattern.error().code, Errc::invalid);
    EXPECT_FALSE(pattern.error().context.empty());
  }
  EXPECT_FALSE(TopicPattern::compile("((((a{1,100}){1,100}){1,100}){1,100})"));
}

TEST(TopicPattern, an_expression_made_to_backtrack_takes_no_time) {
  const auto pattern = TopicPattern::compile("(a*)*b");
  ASSERT_TRUE(pattern);
  EXPECT_FALSE(pattern->matches(std::string(249, 'a')));
}

}  // namespace
}  // namespace polylog::broker::groups
