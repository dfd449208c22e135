#include "cli/kafka_tools/arguments.h"

#include <gtest/gtest.h>

#include <climits>

namespace polylog::cli::kafka_tools {
namespace {

const std::vector<Flag> flags = {
    {"topic", Flag::Value::required, "A topic"},
    {"state", Flag::Value::optional, "A state", "list describe"},
    {"list", Flag::Value::none, "List"},
    {"describe", Flag::Value::none, "Describe"},
    {"shift-by", Flag::Value::required, "Records"},
};

std::string refusal(const std::vector<std::string>& words) {
  const auto parsed = Arguments::parse(flags, words);
  return parsed ? "" : parsed.error().context;
}

TEST(KafkaToolsArguments, values_stand_behind_or_after_an_equals_sign) {
  const auto parsed = Arguments::parse(flags, {"--topic", "a", "--topic=b=c", "-topic", "d"});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->values("topic"), (std::vector<std::string>{"a", "b=c", "d"}));
  EXPECT_FALSE(parsed->has("list"));
}

TEST(KafkaToolsArguments, a_required_value_may_begin_with_a_dash) {
  const auto parsed = Arguments::parse(flags, {"--shift-by", "-5"});
  ASSERT_TRUE(parsed);
  const auto number = parsed->number("shift-by", -10, 10);
  ASSERT_TRUE(number);
  EXPECT_EQ(*number, -5);
}

TEST(KafkaToolsArguments, an_optional_value_leaves_the_next_flag_alone) {
  const auto bare = Arguments::parse(flags, {"--state", "--list"});
  ASSERT_TRUE(bare);
  EXPECT_TRUE(bare->has("state"));
  EXPECT_TRUE(bare->values("state").empty());
  EXPECT_TRUE(bare->has("list"));
  const auto valued = Arguments::parse(flags, {"--list", "--state", "Stable"});
  ASSERT_TRUE(valued);
  EXPECT_EQ(valued->values("state"), std::vector<std::string>{"Stable"});
}

TEST(KafkaToolsArguments, words_that_belong_to_no_flag_are_passed_over) {
  const auto parsed = Arguments::parse(flags, {"stray", "--list", "other"});
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(parsed->has("list"));
}

TEST(KafkaToolsArguments, refusals_have_joptsimples_words) {
  EXPECT_EQ(refusal({"--frob"}), "frob is not a recognized option");
  EXPECT_EQ(refusal({"--top", "a"}), "top is not a recognized option");
  EXPECT_EQ(refusal({"--topic"}), "Option topic requires an argument");
  EXPECT_EQ(refusal({"--list=yes"}), "list takes no value");
  EXPECT_EQ(refusal({"--state"}),
            "Option(s) [state] are unavailable given other options on the command line");
  EXPECT_EQ(refusal({"--state", "--describe"}), "");
}

TEST(KafkaToolsArguments, numbers_are_whole_and_in_range) {
  const auto parsed = Arguments::parse(flags, {"--shift-by", "abc", "--topic", "99"});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->number("shift-by", 0, 10).error().context,
            "Cannot parse argument 'abc' of option shift-by");
  EXPECT_FALSE(parsed->number("topic", 0, 10));
  const auto topic = parsed->number("topic", 0, INT_MAX);
  ASSERT_TRUE(topic);
  EXPECT_EQ(*topic, 99);
  const auto none = parsed->number("list", 0, 10);
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->has_value());
}

TEST(KafkaToolsArguments, one_value_is_asked_for_and_several_are_refused) {
  const auto parsed = Arguments::parse(flags, {"--topic", "a", "--topic", "b"});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->value("topic").error().context,
            "Found multiple arguments for option topic, but you asked for only one");
}

}  // namespace
}  // namespace polylog::cli::kafka_tools
