#include "broker/topic_config.h"

#include <gtest/gtest.h>

#include "broker/topic_keys.h"

namespace polylog::broker {
namespace {

using Values = std::map<std::string, std::string>;
using Kind = FlushPolicy::Kind;

TopicConfig good(const Values& overrides, const Values& defaults = {}) {
  auto config = resolve_topic_config(overrides, defaults);
  EXPECT_TRUE(config) << config.error().to_string();
  return config.value_or(TopicConfig{});
}

Error bad(const Values& overrides, const Values& defaults = {}) {
  auto config = resolve_topic_config(overrides, defaults);
  EXPECT_FALSE(config);
  return config ? Error{} : config.error();
}

ConfigEntry described(const std::string& key, const Values& overrides,
                      const Values& defaults = {}) {
  for (const ConfigEntry& entry : describe_topic_config(overrides, defaults)) {
    if (entry.key->name == key) return entry;
  }
  ADD_FAILURE() << key << " is not described";
  return {};
}

TEST(TopicConfig, without_any_setting_everything_is_at_kafkas_default_and_synced_on_ack) {
  const TopicConfig config = good({});
  EXPECT_EQ(config.log, storage::LogConfig{});
  EXPECT_EQ(config.log.segment_bytes, 1073741824);
  EXPECT_EQ(config.log.retention_ms, 604800000);
  EXPECT_EQ(config.flush, (FlushPolicy{Kind::ack, 0}));
  EXPECT_EQ(config.layout, storage::Layout::kafka);
  EXPECT_EQ(config.max_message_bytes, 1048588);
  EXPECT_EQ(config.timestamp_type, TimestampType::create_time);
  EXPECT_EQ(config.timestamp_before_max_ms, INT64_MAX);
  EXPECT_EQ(config.timestamp_after_max_ms, 3600000);
  EXPECT_EQ(config.compression_type, "producer");
  EXPECT_EQ(config.gzip_level, -1);
  EXPECT_EQ(config.lz4_level, 9);
  EXPECT_EQ(config.zstd_level, 3);
  EXPECT_FALSE(config.compact);
  EXPECT_TRUE(config.delete_policy);
}

TEST(TopicConfig, keys_and_synonyms_are_sorted_and_belong_together) {
  const auto keys = topic_keys();
  for (std::size_t i = 1; i < keys.size(); ++i) {
    EXPECT_LT(keys[i - 1].key.name, keys[i].key.name);
  }
  for (const TopicKey& key : keys) {
    EXPECT_EQ(find_topic_key(key.key.name), &key);
    EXPECT_TRUE(check_topic_value(key, key.key.name, key.key.default_value)) << key.key.name;
    if (key.key.broker_name.empty()) continue;
    bool found = false;
    for (const BrokerSynonym& synonym : broker_synonyms()) {
      found |= synonym.name == key.key.broker_name && synonym.topic_key == key.key.name;
    }
    EXPECT_TRUE(found) << key.key.broker_name;
  }
  for (const BrokerSynonym& synonym : broker_synonyms()) {
    EXPECT_NE(find_topic_key(synonym.topic_key), nullptr) << synonym.name;
  }
}

TEST(TopicConfig, all_of_kafkas_topic_keys_are_known) {
  for (const char* name :
       {"cleanup.policy", "compression.type", "compression.gzip.level", "compression.lz4.level",
        "compression.zstd.level", "delete.retention.ms", "file.delete.delay.ms", "flush.messages",
        "flush.ms", "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas", "index.interval.bytes", "local.retention.bytes",
        "local.retention.ms", "max.compaction.lag.ms", "max.message.bytes",
        "message.timestamp.after.max.ms", "message.timestamp.before.max.ms",
        "message.timestamp.type", "min.cleanable.dirty.ratio", "min.compaction.lag.ms",
        "min.insync.replicas", "preallocate", "remote.log.copy.disable",
        "remote.log.delete.on.disable", "remote.storage.enable", "retention.bytes", "retention.ms",
        "segment.bytes", "segment.index.bytes", "segment.jitter.ms", "segment.ms",
        "unclean.leader.election.enable"}) {
    EXPECT_NE(find_topic_key(name), nullptr) << name;
  }
}

TEST(TopicConfig, overrides_reach_the_engine) {
  const TopicConfig config = good({{"segment.bytes", "2097152"},
                                   {"segment.ms", "1000"},
                                   {"segment.jitter.ms", "10"},
                                   {"segment.index.bytes", "4096"},
                                   {"index.interval.bytes", "0"},
                                   {"retention.bytes", "5"},
                                   {"retention.ms", "0"},
                                   {"file.delete.delay.ms", "7"}});
  EXPECT_EQ(config.log, (storage::LogConfig{.segment_bytes = 2097152,
                                            .segment_ms = 1000,
                                            .segment_jitter_ms = 10,
                                            .segment_index_bytes = 4096,
                                            .index_interval_bytes = 0,
                                            .retention_bytes = 5,
                                            .retention_ms = 0,
                                            .file_delete_delay_ms = 7,
                                            .retention_suspended = false}));
}

TEST(TopicConfig, overrides_reach_the_broker) {
  const TopicConfig config = good({{"max.message.bytes", "0"},
                                   {"min.insync.replicas", "2"},
                                   {"message.timestamp.type", "LogAppendTime"},
                                   {"message.timestamp.before.max.ms", "1"},
                                   {"message.timestamp.after.max.ms", "2"},
                                   {"compression.type", "zstd"},
                                   {"compression.gzip.level", "9"},
                                   {"compression.lz4.level", "17"},
                                   {"compression.zstd.level", "-131072"},
                                   {"polylog.layout", "segment"}});
  EXPECT_EQ(config.max_message_bytes, 0);
  EXPECT_EQ(config.min_insync_replicas, 2);
  EXPECT_EQ(config.timestamp_type, TimestampType::log_append_time);
  EXPECT_EQ(config.timestamp_before_max_ms, 1);
  EXPECT_EQ(config.timestamp_after_max_ms, 2);
  EXPECT_EQ(config.compression_type, "zstd");
  EXPECT_EQ(config.gzip_level, 9);
  EXPECT_EQ(config.lz4_level, 17);
  EXPECT_EQ(config.zstd_level, -131072);
  EXPECT_EQ(config.layout, storage::Layout::segment);
}

TEST(TopicConfig, values_outside_kafkas_ranges_are_refused) {
  const std::pair<const char*, const char*> cases[] = {
      {"cleanup.policy", "purge"},          {"cleanup.policy", "delete,"},
      {"compression.type", "ZSTD"},         {"compression.type", "none"},
      {"compression.gzip.level", "0"},      {"compression.gzip.level", "10"},
      {"compression.lz4.level", "0"},       {"compression.lz4.level", "18"},
      {"compression.zstd.level", "23"},     {"delete.retention.ms", "-1"},
      {"file.delete.delay.ms", "-1"},       {"flush.messages", "0"},
      {"flush.ms", "-1"},                   {"index.interval.bytes", "-1"},
      {"local.retention.ms", "-3"},         {"max.compaction.lag.ms", "0"},
      {"max.message.bytes", "-1"},          {"max.message.bytes", "2147483648"},
      {"message.timestamp.type", "Create"}, {"min.cleanable.dirty.ratio", "1.1"},
      {"min.insync.replicas", "0"},         {"preallocate", "maybe"},
      {"retention.ms", "-2"},               {"retention.bytes", "-2"},
      {"segment.bytes", "1048575"},         {"segment.index.bytes", "3"},
      {"segment.jitter.ms", "-1"},          {"segment.ms", "0"},
      {"polylog.flush", "sometimes"},       {"polylog.layout", "parquet"},
      {"internal.segment.bytes", "13"},     {"leader.replication.throttled.replicas", "1"},
      {"follower.replication.throttled.replicas", "1:a"},
  };
  for (const auto& [key, value] : cases) {
    const Error error = bad({{key, value}});
    EXPECT_EQ(error.code, Errc::invalid) << key << " = " << value;
    EXPECT_NE(error.context.find(key), std::string::npos) << error.context;
  }
}

TEST(TopicConfig, an_unknown_key_is_refused_with_the_one_meant) {
  EXPECT_EQ(bad({{"retention.m", "1"}}).context,
            "there is no topic setting 'retention.m'; did you mean retention.ms?");
  EXPECT_EQ(bad({{"log.retention.hours", "1"}}).context,
            "there is no topic setting 'log.retention.hours'; did you mean retention.ms?");
  EXPECT_EQ(bad({{"xyzzy.plugh.something", "1"}}).context,
            "there is no topic setting 'xyzzy.plugh.something'");
  EXPECT_EQ(bad({{"message.format.version", "3.0"}}).context,
            "message.format.version has been gone since Kafka 4.0");
}

TEST(TopicConfig, small_segments_are_for_tests_under_the_internal_key) {
  EXPECT_EQ(good({{"internal.segment.bytes", "14"}}).log.segment_bytes, 14);
  EXPECT_EQ(good({{"internal.segment.bytes", "500"}, {"segment.bytes", "1048576"}})
                .log.segment_bytes,
            500);
  EXPECT_EQ(good({{"segment.bytes", "1048576"}}).log.segment_bytes, 1048576);
  for (const ConfigKey& key : topic_config_keys()) EXPECT_NE(key.name, "internal.segment.bytes");
}

TEST(TopicConfig, the_most_specific_broker_unit_supplies_the_default) {
  EXPECT_EQ(good({}, {{"log.retention.hours", "1"}}).log.retention_ms, 3600000);
  EXPECT_EQ(good({}, {{"log.retention.hours", "1"}, {"log.retention.minutes", "1"}})
                .log.retention_ms,
            60000);
  EXPECT_EQ(good({}, {{"log.retention.hours", "1"},
                      {"log.retention.minutes", "1"},
                      {"log.retention.ms", "1"}})
                .log.retention_ms,
            1);
  EXPECT_EQ(good({}, {{"log.retention.hours", "-1"}}).log.retention_ms, -1);
  EXPECT_EQ(good({}, {{"log.retention.hours", "2147483647"}}).log.retention_ms,
            2147483647LL * 3600000);
  EXPECT_EQ(good({}, {{"log.roll.hours", "2"}}).log.segment_ms, 7200000);
  EXPECT_EQ(good({}, {{"log.roll.jitter.hours", "2"}}).log.segment_jitter_ms, 7200000);
  EXPECT_EQ(good({{"retention.ms", "9"}}, {{"log.retention.hours", "1"}}).log.retention_ms, 9);
  EXPECT_EQ(good({}, {{"message.max.bytes", "99"}}).max_message_bytes, 99);
  EXPECT_TRUE(resolve_topic_config({}, {{"num.partitions", "a setting of another kind"}}));
}

TEST(TopicConfig, broker_values_are_checked_under_the_name_they_were_given) {
  EXPECT_EQ(bad({}, {{"log.retention.ms", "0"}}).context,
            "log.retention.ms = 0: must be -1 or at least 1");
  EXPECT_NE(bad({}, {{"log.retention.hours", "0"}}).context.find("log.retention.hours"),
            std::string::npos);
  EXPECT_NE(bad({}, {{"log.roll.hours", "0"}}).context.find("log.roll.hours"), std::string::npos);
  EXPECT_NE(bad({}, {{"log.retention.hours", "2147483648"}}).context.find("log.retention.hours"),
            std::string::npos);
  EXPECT_NE(bad({}, {{"log.segment.bytes", "10"}}).context.find("log.segment.bytes"),
            std::string::npos);
}

TEST(TopicConfig, flush_settings_of_kafka_mean_a_policy) {
  const auto flush = [](const Values& overrides, const Values& defaults = {}) {
    return good(overrides, defaults).flush.to_string();
  };
  EXPECT_EQ(flush({{"flush.messages", "1"}}), "ack");
  EXPECT_EQ(flush({{"flush.messages", "500"}}), "ack");
  EXPECT_EQ(flush({{"flush.ms", "250"}}), "interval:250");
  EXPECT_EQ(flush({{"flush.ms", "0"}}), "ack");
  EXPECT_EQ(flush({{"flush.ms", "250"}, {"flush.messages", "1"}}), "ack");
  EXPECT_EQ(flush({{"flush.messages", "9223372036854775807"}}), "ack");
  EXPECT_EQ(flush({{"polylog.flush", "never"}}), "never");
  EXPECT_EQ(flush({{"polylog.flush", " interval:5 "}}), "interval:5");
  EXPECT_EQ(flush({{"polylog.flush", "interval:5"}, {"flush.ms", "5"}}), "interval:5");
  EXPECT_EQ(flush({}, {{"log.flush.interval.ms", "7"}}), "interval:7");
  EXPECT_EQ(flush({}, {{"log.flush.scheduler.interval.ms", "8"}}), "interval:8");
  EXPECT_EQ(flush({}, {{"polylog.flush", "never"}}), "never");
}

TEST(TopicConfig, a_topics_flush_setting_outranks_the_brokers) {
  const auto flush = [](const Values& overrides, const Values& defaults) {
    return good(overrides, defaults).flush.to_string();
  };
  EXPECT_EQ(flush({{"polylog.flush", "never"}}, {{"log.flush.interval.messages", "1"}}), "never");
  EXPECT_EQ(flush({{"flush.ms", "9"}}, {{"polylog.flush", "never"}}), "interval:9");
  EXPECT_EQ(flush({{"flush.ms", "9"}}, {{"log.flush.interval.messages", "1"}}), "ack");
  EXPECT_EQ(flush({{"flush.messages", "1"}}, {{"polylog.flush", "interval:9"}}), "ack");
  EXPECT_EQ(flush({{"polylog.flush", "ack"}}, {{"polylog.flush", "never"}}), "ack");
}

TEST(TopicConfig, flush_settings_that_contradict_each_other_are_refused) {
  EXPECT_EQ(bad({{"polylog.flush", "never"}, {"flush.messages", "1"}}).context,
            "polylog.flush = never contradicts flush.messages or flush.ms, which mean ack");
  EXPECT_EQ(bad({{"polylog.flush", "ack"}, {"flush.ms", "100"}}).code, Errc::invalid);
  EXPECT_EQ(bad({}, {{"polylog.flush", "never"}, {"log.flush.interval.ms", "5"}}).code,
            Errc::invalid);
  EXPECT_EQ(bad({{"polylog.flush", "interval:0"}}).code, Errc::invalid);
  EXPECT_EQ(bad({{"polylog.flush", "interval:"}}).code, Errc::invalid);
}

TEST(TopicConfig, compaction_is_taken_and_stops_deletion) {
  const TopicConfig config = good({{"cleanup.policy", "compact"}, {"retention.ms", "1"}});
  EXPECT_TRUE(config.compact);
  EXPECT_FALSE(config.delete_policy);
  EXPECT_EQ(config.log.retention_ms, -1);
  EXPECT_EQ(config.log.retention_bytes, -1);
  const TopicConfig both = good({{"cleanup.policy", "compact, delete"}, {"retention.ms", "1"}});
  EXPECT_TRUE(both.compact);
  EXPECT_TRUE(both.delete_policy);
  EXPECT_EQ(both.log.retention_ms, 1);
  const TopicConfig neither = good({{"cleanup.policy", ""}, {"retention.bytes", "1"}});
  EXPECT_FALSE(neither.compact || neither.delete_policy);
  EXPECT_EQ(neither.log.retention_bytes, -1);
}

TEST(TopicConfig, settings_are_checked_against_each_other) {
  EXPECT_EQ(bad({{"min.compaction.lag.ms", "2"}, {"max.compaction.lag.ms", "1"}}).code,
            Errc::invalid);
  good({{"min.compaction.lag.ms", "2"}, {"max.compaction.lag.ms", "2"}});
  EXPECT_EQ(bad({{"local.retention.ms", "2"}, {"retention.ms", "1"}}).code, Errc::invalid);
  EXPECT_EQ(bad({{"local.retention.bytes", "-1"}, {"retention.bytes", "1"}}).code, Errc::invalid);
  good({{"local.retention.ms", "2"}, {"retention.ms", "-1"}});
  good({{"local.retention.ms", "-2"}, {"retention.ms", "1"}});
  EXPECT_EQ(bad({{"remote.storage.enable", "true"}}).code, Errc::unsupported);
  good({{"remote.storage.enable", "false"}});
}

TEST(TopicConfig, describe_shows_value_and_source) {
  const Values own = {{"retention.ms", " 5 "}};
  const Values broker = {{"log.retention.hours", "1"}, {"log.segment.bytes", "1048576"}};
  EXPECT_EQ(described("retention.ms", own, broker).value, "5");
  EXPECT_EQ(described("retention.ms", own, broker).source, ConfigEntry::Source::topic);
  EXPECT_EQ(described("retention.ms", {}, broker).value, "3600000");
  EXPECT_EQ(described("segment.bytes", own, broker).source, ConfigEntry::Source::broker);
  EXPECT_EQ(described("segment.ms", own, broker).value, "604800000");
  EXPECT_EQ(described("segment.ms", own, broker).source, ConfigEntry::Source::default_value);
  EXPECT_EQ(describe_topic_config(own, broker).size(), topic_config_keys().size());
}

TEST(TopicConfig, describe_shows_the_flush_settings_in_agreement) {
  const std::string largest = "9223372036854775807";
  EXPECT_EQ(described("flush.messages", {}).value, "1");
  EXPECT_EQ(described("flush.ms", {}).value, largest);
  EXPECT_EQ(described("polylog.flush", {{"flush.ms", "9"}}).value, "interval:9");
  EXPECT_EQ(described("polylog.flush", {{"flush.ms", "9"}}).source, ConfigEntry::Source::topic);
  EXPECT_EQ(described("flush.messages", {{"flush.ms", "9"}}).value, largest);
  EXPECT_EQ(described("flush.ms", {{"polylog.flush", "interval:9"}}).value, "9");
  EXPECT_EQ(described("flush.messages", {{"polylog.flush", "never"}},
                      {{"log.flush.interval.messages", "1"}})
                .value,
            largest);
  EXPECT_EQ(described("flush.messages", {{"flush.messages", "500"}}).value, "500");
}

}  // namespace
}  // namespace polylog::broker
