#include "broker/shared_log_keys.h"

#include <gtest/gtest.h>

#include "broker/settings.h"

namespace polylog::broker {
namespace {

using Values = std::map<std::string, std::string>;
using Source = ConfigEntry::Source;
constexpr auto rocketmq = storage::Layout::rocketmq;
constexpr auto kafka = storage::Layout::kafka;

const Values in_rocketmq{{"polylog.layout", "rocketmq"}};

Values with(Values values, const Values& more) {
  for (const auto& [key, value] : more) values[key] = value;
  return values;
}

storage::SharedLogConfig good(const Values& values) {
  auto config = shared_log_config(values);
  EXPECT_TRUE(config) << config.error().to_string();
  return config.value_or(storage::SharedLogConfig());
}

std::string why_not(const Values& values) {
  const auto settings = Settings::from(values);
  EXPECT_FALSE(settings);
  return settings ? "" : settings.error().context;
}

std::string why_no_topic(const Values& overrides, const Values& defaults = {}) {
  const auto config = accept_topic_config(overrides, defaults);
  EXPECT_FALSE(config);
  return config ? "" : config.error().context;
}

TopicConfig topic(const Values& overrides, const Values& defaults = {}) {
  auto config = accept_topic_config(overrides, defaults);
  EXPECT_TRUE(config) << config.error().to_string();
  return config.value_or(TopicConfig());
}

ConfigEntry described(const std::string& key, const Values& overrides, const Values& defaults,
                      std::optional<storage::Layout> layout = std::nullopt) {
  for (const ConfigEntry& entry : describe_topic_config(overrides, defaults, layout)) {
    if (entry.key->name == key) return entry;
  }
  ADD_FAILURE() << key << " is not described";
  return {};
}

TEST(SharedLogKeys, are_sorted_and_each_is_found) {
  const auto keys = shared_log_keys();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i > 0) {
      EXPECT_LT(keys[i - 1].name, keys[i].name);
    }
    EXPECT_EQ(find_shared_log_key(keys[i].name), &keys[i]);
  }
  EXPECT_EQ(find_shared_log_key("flushDisk"), nullptr);
}

TEST(SharedLogKeys, defaults_in_the_table_are_those_of_the_engine) {
  Values written;
  for (const SharedLogKey& key : shared_log_keys()) {
    if (!key.default_value.empty()) written[std::string(key.name)] = key.default_value;
  }
  const storage::SharedLogConfig none, all = good(written);
  EXPECT_EQ(all.commit_log_file_bytes, none.commit_log_file_bytes);
  EXPECT_EQ(all.queue_file_bytes, none.queue_file_bytes);
  EXPECT_EQ(all.body_bytes_max, none.body_bytes_max);
  EXPECT_EQ(all.reserved_ms, none.reserved_ms);
  EXPECT_EQ(all.delete_hours, none.delete_hours);
  EXPECT_EQ(all.disk_ratio_max, none.disk_ratio_max);
  EXPECT_EQ(all.disk_ratio_forced, none.disk_ratio_forced);
  EXPECT_EQ(all.forced_deletion, none.forced_deletion);
  EXPECT_EQ(all.index_enabled, none.index_enabled);
  EXPECT_EQ(all.index_slots, none.index_slots);
  EXPECT_EQ(all.index_entries, none.index_entries);
  EXPECT_EQ(all.queue_flush_interval_ms, none.queue_flush_interval_ms);
  EXPECT_EQ(all.files_ahead, none.files_ahead);
  EXPECT_EQ(all.delay_levels, none.delay_levels);
}

TEST(SharedLogKeys, every_field_is_set_by_its_key) {
  const auto settings = Settings::from({{"mappedFileSizeCommitLog", "8192"},
                                        {"mappedFileSizeConsumeQueue", "50"},
                                        {"maxMessageSize", "1000"},
                                        {"fileReservedTime", "2"},
                                        {"deleteWhen", "16;04; 4"},
                                        {"diskMaxUsedSpaceRatio", "60"},
                                        {"diskSpaceCleanForciblyRatio", "70"},
                                        {"cleanFileForciblyEnable", "true"},
                                        {"messageIndexEnable", "false"},
                                        {"maxHashSlotNum", "5"},
                                        {"maxIndexNum", "6"},
                                        {"flushIntervalConsumeQueue", "7"},
                                        {"mappedFilesAheadCommitLog", "0"},
                                        {"messageDelayLevel", " 1s  2m 3h 4d "},
                                        {"checkCRCOnRecover", "false"},
                                        {"flushCommitLogTimed", "false"}});
  ASSERT_TRUE(settings) << settings.error().to_string();
  const storage::SharedLogConfig& config = settings->shared_log;
  EXPECT_EQ(config.commit_log_file_bytes, 8192);
  EXPECT_EQ(config.queue_file_bytes, 60) << "whole entries";
  EXPECT_EQ(config.body_bytes_max, 1000);
  EXPECT_EQ(config.reserved_ms, 7'200'000);
  EXPECT_EQ(config.delete_hours, (std::vector<int>{4, 16}));
  EXPECT_EQ(config.disk_ratio_max, 60);
  EXPECT_EQ(config.disk_ratio_forced, 70);
  EXPECT_TRUE(config.forced_deletion);
  EXPECT_FALSE(config.index_enabled);
  EXPECT_EQ(config.index_slots, 5);
  EXPECT_EQ(config.index_entries, 6);
  EXPECT_EQ(config.queue_flush_interval_ms, 7);
  EXPECT_EQ(config.files_ahead, 0);
  EXPECT_EQ(config.delay_levels, "1s 2m 3h 4d");
}

TEST(SharedLogKeys, older_spellings_mean_the_same_and_must_not_differ) {
  EXPECT_EQ(good({{"commitLogFileSize", "5000"}}).commit_log_file_bytes, 5000);
  EXPECT_EQ(good({{"mapedFileSizeCommitLog", "5000"}}).commit_log_file_bytes, 5000);
  EXPECT_EQ(good({{"mapedFileSizeConsumeQueue", "40"}}).queue_file_bytes, 40);
  EXPECT_EQ(good({{"commitLogFileSize", "5000"}, {"mappedFileSizeCommitLog", " 5000"}})
                .commit_log_file_bytes,
            5000);
  EXPECT_EQ(why_not({{"commitLogFileSize", "5000"}, {"mappedFileSizeCommitLog", "6000"}}),
            "commitLogFileSize and mappedFileSizeCommitLog are the same setting and differ");
  EXPECT_EQ(why_not({{"mapedFileSizeConsumeQueue", "40"}, {"mappedFileSizeConsumeQueue", "60"}}),
            "mapedFileSizeConsumeQueue and mappedFileSizeConsumeQueue are the same setting and "
            "differ");
}

TEST(SharedLogKeys, values_outside_their_ranges_are_refused_by_name) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"mappedFileSizeCommitLog", "4095"}, {"mappedFileSizeCommitLog", "2147483648"},
      {"commitLogFileSize", "1g"},         {"mapedFileSizeConsumeQueue", "19"},
      {"maxMessageSize", "0"},             {"maxMessageSize", "2147483647"},
      {"fileReservedTime", "0"},           {"deleteWhen", "24"},
      {"deleteWhen", ""},                  {"deleteWhen", "04,16"},
      {"diskMaxUsedSpaceRatio", "96"},     {"diskSpaceCleanForciblyRatio", "9"},
      {"cleanFileForciblyEnable", "yes"},  {"messageIndexEnable", "1"},
      {"maxHashSlotNum", "0"},             {"maxIndexNum", "1"},
      {"maxIndexNum", "110000000"},        {"flushDiskType", "sync"},
      {"flushIntervalCommitLog", "0"},     {"flushIntervalConsumeQueue", "0"},
      {"mappedFilesAheadCommitLog", "17"}, {"messageDelayLevel", "1s 2"},
      {"messageDelayLevel", "s"},          {"messageDelayLevel", "-1s"},
      {"messageDelayLevel", " "},
  };
  for (const auto& [key, value] : cases) {
    const std::string why = why_not({{key, value}});
    EXPECT_NE(why.find(key), std::string::npos) << key << " = " << value << ": " << why;
  }
  EXPECT_EQ(why_not({{"maxMesageSize", "1"}}),
            "there is no setting 'maxMesageSize'; did you mean maxMessageSize?");
}

// --------------------------------------------------------------------- topics in such a layout

TEST(SharedLogTopics, flush_disk_type_is_the_default_of_their_layout_alone) {
  const Values sync{{"flushDiskType", "SYNC_FLUSH"}, {"polylog.flush", "never"}};
  EXPECT_EQ(topic(in_rocketmq, sync).flush.to_string(), "ack");
  EXPECT_EQ(topic({}, sync).flush.to_string(), "never");
  const Values async{{"flushDiskType", "ASYNC_FLUSH"}};
  EXPECT_EQ(topic(in_rocketmq, async).flush.to_string(), "interval:500");
  EXPECT_EQ(topic({}, async).flush.to_string(), "ack");
  const Values slower = with(async, {{"flushIntervalCommitLog", "250"}});
  EXPECT_EQ(topic(in_rocketmq, slower).flush.to_string(), "interval:250");
  EXPECT_EQ(topic(in_rocketmq, {{"polylog.flush", "never"}}).flush.to_string(), "never");
  EXPECT_EQ(topic(with(in_rocketmq, {{"polylog.flush", "never"}}), sync).flush.to_string(),
            "never")
      << "a topic's own word outranks it";
  EXPECT_EQ(topic(with(in_rocketmq, {{"flush.ms", "9"}}), sync).flush.to_string(), "interval:9");
}

TEST(SharedLogTopics, describe_shows_layout_and_flush_as_they_are) {
  const Values broker{{"polylog.layout", "rocketmq"},
                      {"flushDiskType", "ASYNC_FLUSH"},
                      {"flushIntervalCommitLog", "250"}};
  EXPECT_EQ(described("polylog.layout", {}, broker).value, "rocketmq");
  EXPECT_EQ(described("polylog.flush", {}, broker).value, "interval:250");
  EXPECT_EQ(described("polylog.flush", {}, broker).source, Source::broker);
  EXPECT_EQ(described("flush.ms", {}, broker).value, "250");
  EXPECT_EQ(described("polylog.layout", {}, broker, kafka).value, "kafka");
  EXPECT_EQ(described("polylog.layout", {}, broker, kafka).source, Source::topic);
  EXPECT_EQ(described("polylog.flush", {}, broker, kafka).value, "ack");
  EXPECT_EQ(described("flush.messages", {}, broker, kafka).value, "1");
  EXPECT_EQ(described("polylog.layout", {}, {}, rocketmq).value, "rocketmq");
  EXPECT_EQ(described("polylog.layout", {}, {}, kafka).source, Source::default_value);
}

TEST(SharedLogTopics, a_topic_stays_in_its_layout) {
  const auto resolved = resolve_topic_config({}, in_rocketmq, kafka);
  ASSERT_TRUE(resolved);
  EXPECT_EQ(resolved->layout, kafka);
  const auto moved = accept_topic_config(in_rocketmq, {}, kafka);
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().context, "a topic stays in the layout it was created in");
}

TEST(SharedLogTopics, no_topic_keeps_its_records_longer_than_the_store) {
  constexpr std::int64_t three_days_ms = 72LL * 3600 * 1000;
  EXPECT_EQ(topic(in_rocketmq).log.retention_ms, three_days_ms) << "a week is cut silently";
  EXPECT_EQ(topic(in_rocketmq, {{"log.retention.ms", "-1"}}).log.retention_ms, three_days_ms);
  EXPECT_EQ(topic(in_rocketmq, {{"log.retention.ms", "5"}}).log.retention_ms, 5);
  EXPECT_EQ(topic(in_rocketmq, {{"log.cleanup.policy", ""}}).log.retention_ms, three_days_ms);
  EXPECT_EQ(topic(with(in_rocketmq, {{"retention.ms", "259200000"}})).log.retention_ms,
            three_days_ms);
  EXPECT_EQ(why_no_topic(with(in_rocketmq, {{"retention.ms", "259200001"}})),
            "retention.ms = 259200001: the rocketmq layout keeps no record longer than "
            "fileReservedTime, 72 hours (259200000 ms)");
  EXPECT_NE(why_no_topic(with(in_rocketmq, {{"retention.ms", "-1"}})).find("fileReservedTime"),
            std::string::npos);
  const Values week{{"fileReservedTime", "168"}};
  EXPECT_EQ(topic(with(in_rocketmq, {{"retention.ms", "259200001"}}), week).log.retention_ms,
            259200001);
  EXPECT_EQ(topic({{"retention.ms", "-1"}}).log.retention_ms, -1) << "another layout";

  EXPECT_EQ(described("retention.ms", in_rocketmq, {}).value, "259200000");
  EXPECT_EQ(described("retention.ms", in_rocketmq, {}).source, Source::default_value);
  const Values hour{{"fileReservedTime", "1"}};
  EXPECT_EQ(described("retention.ms", in_rocketmq, hour).value, "3600000");
  EXPECT_EQ(described("retention.ms", in_rocketmq, hour).source, Source::broker);
}

TEST(SharedLogTopics, what_is_stored_already_is_cut_rather_than_refused) {
  const auto resolved =
      resolve_topic_config({{"retention.ms", "-1"}, {"cleanup.policy", "compact"}}, {}, rocketmq);
  ASSERT_TRUE(resolved) << resolved.error().to_string();
  EXPECT_EQ(resolved->log.retention_ms, 259200000);
  EXPECT_FALSE(resolved->compact) << "keys are not asked for where nothing compacts";
}

TEST(SharedLogTopics, compaction_and_keeping_for_ever_are_refused) {
  for (const char* const policy : {"compact", "compact,delete"}) {
    EXPECT_EQ(why_no_topic(with(in_rocketmq, {{"cleanup.policy", policy}})),
              std::string("cleanup.policy = ") + policy +
                  ": a topic in the rocketmq layout can't be compacted");
  }
  EXPECT_NE(why_no_topic(with(in_rocketmq, {{"cleanup.policy", ""}})).find("must contain delete"),
            std::string::npos);
  EXPECT_NE(why_not({{"polylog.layout", "rocketmq"}, {"log.cleanup.policy", "compact"}})
                .find("can't be compacted"),
            std::string::npos);
}

}  // namespace
}  // namespace polylog::broker
