#include "format/rocketmq/config_json.h"

#include <gtest/gtest.h>

#include <limits>

namespace polylog::format::rocketmq {
namespace {

constexpr std::string_view topics_text = R"({
	"dataVersion":{"counter":2,"stateVersion":1,"timestamp":1700000000123},
	"topicConfigTable":{
		"TopicTest":{"attributes":{"queue.type":"BatchCQ"},"order":true,"perm":4,"readQueueNums":8,
			"topicFilterType":"SINGLE_TAG","topicName":"TopicTest","topicSysFlag":1,
			"writeQueueNums":9,"later":{"x":[1,2]}},
		"plain":{}
	},
	"newer":"thing"
})";

template <typename T>
T parsed(const Result<T>& result) {
  EXPECT_TRUE(result) << result.error().to_string();
  return result.value_or(T{});
}

TEST(TopicTables, have_the_members_of_the_format) {
  const TopicTable table = parsed(parse_topics(topics_text));
  EXPECT_EQ(table.version, (DataVersion{2, 1, 1'700'000'000'123}));
  ASSERT_EQ(table.topics.size(), 2U);
  const TopicConfig& topic = table.topics.at("TopicTest");
  EXPECT_EQ(topic.attributes, (Attributes{{"queue.type", "BatchCQ"}}));
  EXPECT_TRUE(topic.order);
  EXPECT_EQ(topic.perm, 4);
  EXPECT_EQ(topic.read_queue_nums, 8);
  EXPECT_EQ(topic.write_queue_nums, 9);
  EXPECT_EQ(topic.topic_sys_flag, 1);
  EXPECT_EQ(table.topics.at("plain"), TopicConfig{});
}

TEST(TopicTables, keep_unknown_members_when_rewritten) {
  const TopicTable table = parsed(parse_topics(topics_text));
  EXPECT_EQ(table.others, (OtherMembers{{"newer", "\"thing\""}}));
  EXPECT_EQ(table.topics.at("TopicTest").others, (OtherMembers{{"later", "{\"x\":[1,2]}"}}));
  EXPECT_EQ(parsed(parse_topics(format_topics(table))), table);
}

TEST(TopicTables, are_written_sorted_and_indented_by_tabs) {
  TopicTable table;
  table.version = {1, 0, 5};
  table.topics["a"] = {.read_queue_nums = 4, .write_queue_nums = 4};
  EXPECT_EQ(format_topics(table),
            "{\n\t\"dataVersion\":{\n\t\t\"counter\":1,\n\t\t\"stateVersion\":0,\n"
            "\t\t\"timestamp\":5\n\t},\n\t\"topicConfigTable\":{\n\t\t\"a\":{\n"
            "\t\t\t\"attributes\":{},\n\t\t\t\"order\":false,\n\t\t\t\"perm\":6,\n"
            "\t\t\t\"readQueueNums\":4,\n\t\t\t\"topicFilterType\":\"SINGLE_TAG\",\n"
            "\t\t\t\"topicName\":\"a\",\n\t\t\t\"topicSysFlag\":0,\n"
            "\t\t\t\"writeQueueNums\":4\n\t\t}\n\t}\n}\n");
}

TEST(GroupTables, keep_all_they_have) {
  const GroupTable table = parsed(parse_subscription_groups(R"({"dataVersion":{"counter":7},
      "forbiddenTable":{"g":{"t":1}},
      "subscriptionGroupTable":{"g":{"attributes":{"k":"v"},"brokerId":3,
      "consumeBroadcastEnable":false,"consumeEnable":false,"consumeFromMinEnable":false,
      "consumeMessageOrderly":true,"consumeTimeoutMinute":16,"groupName":"g",
      "groupRetryPolicy":{"type":"CUSTOMIZED"},"groupSysFlag":2,
      "notifyConsumerIdsChangedEnable":false,"retryMaxTimes":5,"retryQueueNums":2,
      "whichBrokerWhenConsumeSlowly":4}}})"));
  GroupConfig expected;
  expected.consume_enable = false;
  expected.consume_from_min_enable = false;
  expected.consume_broadcast_enable = false;
  expected.consume_message_orderly = true;
  expected.notify_consumer_ids_changed_enable = false;
  expected.retry_queue_nums = 2;
  expected.retry_max_times = 5;
  expected.broker_id = 3;
  expected.which_broker_when_consume_slowly = 4;
  expected.group_sys_flag = 2;
  expected.consume_timeout_minute = 16;
  expected.attributes = {{"k", "v"}};
  expected.others = {{"groupRetryPolicy", R"({"type":"CUSTOMIZED"})"}};
  ASSERT_EQ(table.groups.count("g"), 1U);
  EXPECT_EQ(table.groups.at("g"), expected);
  EXPECT_EQ(table.others, (OtherMembers{{"forbiddenTable", R"({"g":{"t":1}})"}}));
  EXPECT_EQ(parsed(parse_subscription_groups(format_subscription_groups(table))), table);
}

TEST(ConsumerOffsets, have_bare_numbers_as_keys) {
  const ConsumerOffsetTable table = parsed(parse_consumer_offsets(
      R"({"offsetTable":{"t@g":{0:12, 1 :9,"2":-1},"%RETRY%g@g":{}},
          "groupTopicMap":{"g":["t"]}})"));
  EXPECT_EQ(table.version, DataVersion{});
  ASSERT_EQ(table.offsets.size(), 2U);
  EXPECT_EQ(table.offsets.at("t@g"), (QueueOffsets{{0, 12}, {1, 9}, {2, -1}}));
  EXPECT_TRUE(table.others.empty());
  EXPECT_EQ(parsed(parse_consumer_offsets(format_consumer_offsets(table))), table);
}

TEST(DelayOffsets, are_written_as_strict_json) {
  const DelayOffsetTable table =
      parsed(parse_delay_offsets("{\"dataVersion\":{},\"offsetTable\":{1:100,\n\t2:0,18:7}}"));
  EXPECT_EQ(table.offsets, (QueueOffsets{{1, 100}, {2, 0}, {18, 7}}));
  const std::string text = format_delay_offsets(table);
  EXPECT_NE(text.find("\"18\":7"), std::string::npos) << text;
  EXPECT_EQ(parsed(parse_delay_offsets(text)), table);
}

TEST(ConfigTables, quotes_in_texts_do_not_confuse_the_keys) {
  const TopicTable table = parsed(parse_topics(
      R"({"topicConfigTable":{"a\"1:2\\":{"topicFilterType":"{3:4,\\\"5\":6"}},"b":{7:[8,-9]}})"));
  ASSERT_EQ(table.topics.count("a\"1:2\\"), 1U);
  EXPECT_EQ(table.topics.at("a\"1:2\\").topic_filter_type, "{3:4,\\\"5\":6");
  EXPECT_EQ(table.others, (OtherMembers{{"b", "{\"7\":[8,-9]}"}}));
}

TEST(ConfigTables, null_members_keep_their_defaults) {
  const TopicTable table = parsed(parse_topics(
      R"({"dataVersion":null,"topicConfigTable":{"a":{"attributes":null,"perm":null}}})"));
  EXPECT_EQ(table.topics.at("a"), TopicConfig{});
  EXPECT_EQ(parsed(parse_topics("{}")), TopicTable{});
}

TEST(ConfigTables, numbers_are_kept_to_the_last_digit) {
  DelayOffsetTable table;
  table.offsets = {{1, std::numeric_limits<std::int64_t>::max()},
                   {2, std::numeric_limits<std::int64_t>::min()}};
  EXPECT_EQ(parsed(parse_delay_offsets(format_delay_offsets(table))), table);
}

TEST(ConfigTables, names_and_texts_of_any_kind_survive) {
  TopicTable table;
  table.topics["\xe6\x94\xaf \"\\\n\x01"].topic_filter_type = "\t/\xf0\x9f\x98\x80";
  EXPECT_EQ(parsed(parse_topics(format_topics(table))), table);
}

TEST(ConfigTables, that_are_no_such_table_are_corrupt) {
  for (const char* text :
       {"", " ", "[]", "1", "{", "{}x", "{\"topicConfigTable\":[]}",
        "{\"topicConfigTable\":{\"a\":1}}", "{\"topicConfigTable\":{\"a\":{\"perm\":\"6\"}}}",
        "{\"topicConfigTable\":{\"a\":{\"perm\":2147483648}}}",
        "{\"topicConfigTable\":{\"a\":{\"perm\":1.5}}}",
        "{\"topicConfigTable\":{\"a\":{\"order\":1}}}",
        "{\"topicConfigTable\":{\"a\":{\"attributes\":{\"k\":1}}}}",
        "{\"dataVersion\":{\"counter\":9223372036854775808}}", "{\"dataVersion\":3}",
        "{\"a\":\"\xff\"}"}) {
    const auto table = parse_topics(text);
    ASSERT_FALSE(table) << text;
    EXPECT_EQ(table.error().code, Errc::corrupt);
  }
  for (const char* text :
       {"{\"offsetTable\":{\"t@g\":[]}}", "{\"offsetTable\":{\"t@g\":{\"x\":1}}}",
        "{\"offsetTable\":{\"t@g\":{-1:1}}}", "{\"offsetTable\":{\"t@g\":{2147483648:1}}}",
        "{\"offsetTable\":{\"t@g\":{0:null}}}", "{\"offsetTable\":{\"t@g\":{0:\"1\"}}}"}) {
    EXPECT_EQ(parse_consumer_offsets(text).error().code, Errc::corrupt) << text;
  }
  EXPECT_EQ(parse_topics("{\"topicConfigTable\":{\"a\":{\"perm\":true}}}").error().context,
            "topics.json.topicConfigTable.a.perm is not a whole number in its range");
}

TEST(ConfigTables, nested_without_end_are_corrupt) {
  std::string text = "{\"x\":";
  text.append(100'000, '[');
  EXPECT_EQ(parse_topics(text).error().code, Errc::corrupt);
}

TEST(DataVersions, rise) {
  DataVersion version{1, 2, 3};
  version.next(10);
  EXPECT_EQ(version, (DataVersion{2, 2, 10}));
}

}  // namespace
}  // namespace polylog::format::rocketmq
