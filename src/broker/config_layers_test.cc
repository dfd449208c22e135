#include "broker/config_layers.h"

#include <gtest/gtest.h>

#include "broker/group_config.h"

namespace polylog::broker {
namespace {

using Values = std::map<std::string, std::string>;
using Source = ConfigSource;

const DescribedConfig& entry(const std::vector<DescribedConfig>& all, const std::string& name) {
  static const DescribedConfig none;
  for (const DescribedConfig& one : all) {
    if (one.name == name) return one;
  }
  ADD_FAILURE() << "no " << name;
  return none;
}

// "name=value@source ..." with the source's number.
std::string text(const std::vector<ConfigLayer>& layers) {
  std::string out;
  for (const ConfigLayer& layer : layers) {
    out += layer.name + "=" + layer.value + "@" +
           std::to_string(static_cast<int>(layer.source)) + " ";
  }
  return out;
}

DescribedConfig of_topic(const std::string& name, const SettingLayers& layers,
                         const Values& overrides = {}) {
  return entry(describe_topic(overrides, layers, storage::Layout::kafka), name);
}

TEST(ConfigLayers, the_most_specific_one_decides_and_all_are_shown) {
  SettingLayers layers;
  EXPECT_EQ(of_topic("retention.ms", layers).value, "604800000");
  EXPECT_EQ(of_topic("retention.ms", layers).source, Source::default_value);
  layers.fixed = {{"log.retention.hours", "1"}};
  EXPECT_EQ(of_topic("retention.ms", layers).value, "3600000");
  EXPECT_EQ(of_topic("retention.ms", layers).source, Source::fixed);
  layers.cluster = {{"log.retention.ms", "300"}};
  EXPECT_EQ(of_topic("retention.ms", layers).value, "300");
  EXPECT_EQ(of_topic("retention.ms", layers).source, Source::cluster);
  layers.node = {{"log.retention.ms", "200"}};
  EXPECT_EQ(of_topic("retention.ms", layers).value, "200");
  EXPECT_EQ(of_topic("retention.ms", layers).source, Source::node);
  const DescribedConfig own = of_topic("retention.ms", layers, {{"retention.ms", "100"}});
  EXPECT_EQ(own.value, "100");
  EXPECT_EQ(own.source, Source::topic);
  EXPECT_EQ(text(own.layers),
            "retention.ms=100@0 log.retention.ms=200@1 log.retention.ms=300@2 "
            "log.retention.hours=1@3 log.retention.hours=168@4 ");
}

TEST(ConfigLayers, flush_settings_say_which_of_them_decided) {
  SettingLayers layers;
  EXPECT_EQ(text(of_topic("flush.messages", layers).layers),
            "polylog.flush=ack@4 log.flush.interval.messages=9223372036854775807@4 ");
  layers.node = {{"log.flush.interval.ms", "50"}};
  EXPECT_EQ(of_topic("polylog.flush", layers).value, "interval:50");
  EXPECT_EQ(of_topic("polylog.flush", layers).source, Source::node);
  EXPECT_EQ(of_topic("flush.ms", layers).value, "50");
  EXPECT_EQ(of_topic("flush.ms", layers).source, Source::node);
}

TEST(ConfigLayers, a_topics_layout_is_its_own) {
  const SettingLayers layers{{}, {}, {{"polylog.layout", "rocketmq"}}};
  EXPECT_EQ(of_topic("polylog.layout", layers).value, "kafka");
  EXPECT_EQ(of_topic("polylog.layout", layers).source, Source::topic);
}

TEST(ConfigLayers, every_value_is_the_one_of_its_first_layer) {
  const SettingLayers layers{{{"log.segment.bytes", "2000000"}},
                             {{"message.max.bytes", "5000"}},
                             {{"min.insync.replicas", "2"}}};
  for (const DescribedConfig& one : describe_broker(layers)) {
    EXPECT_FALSE(one.help.empty()) << one.name;
    if (one.layers.empty()) continue;
    EXPECT_EQ(one.value, one.layers.front().value) << one.name;
    EXPECT_EQ(one.source, one.layers.front().source) << one.name;
  }
  for (const DescribedConfig& one : describe_topic({}, layers, storage::Layout::kafka)) {
    EXPECT_FALSE(one.layers.empty()) << one.name;
    EXPECT_FALSE(one.read_only) << one.name;
  }
}

TEST(ConfigLayers, a_broker_setting_is_read_only_unless_it_acts_at_once) {
  const auto all = describe_broker({});
  for (const char* name : {"log.retention.ms", "message.max.bytes", "max.connections",
                           "compression.type", "log.flush.interval.ms", "polylog.flush",
                           "producer.id.expiration.ms", "min.insync.replicas"}) {
    EXPECT_FALSE(entry(all, name).read_only) << name;
  }
  for (const char* name : {"node.id", "log.retention.hours", "num.partitions", "polylog.layout",
                           "quota.window.num", "fileReservedTime", "fetch.max.bytes"}) {
    EXPECT_TRUE(entry(all, name).read_only) << name;
  }
}

TEST(ConfigLayers, the_cluster_default_shows_what_is_set_there) {
  const SettingLayers layers{{{"log.retention.ms", "1"}}, {{"log.retention.bytes", "2"}}, {}};
  const auto all = describe_cluster(layers);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].name, "log.retention.bytes");
  EXPECT_EQ(text(all[0].layers), "log.retention.bytes=2@2 ");
}

TEST(ConfigLayers, only_dynamic_names_can_be_changed) {
  EXPECT_TRUE(check_dynamic({{"log.retention.ms", "1"}, {"max.connections", "5"}}));
  EXPECT_EQ(check_dynamic({{"node.id", "1"}, {"broker.id", "1"}}).error().context,
            "Cannot update these configs dynamically: broker.id, node.id");
  EXPECT_EQ(check_dynamic({{"log.retention.mss", "1"}}).error().context,
            "there is no setting 'log.retention.mss'; did you mean log.retention.ms?");
  EXPECT_EQ(check_dynamic({{"ssl.protocol", "x"}}).error().code, Errc::invalid);
}

TEST(ConfigLayers, changed_settings_keep_what_the_start_decided) {
  Settings fixed = Settings::from({{"log.retention.ms", "5"}}).value();
  fixed.max_connections = 100;
  fixed.shared_log.store_host = "127.0.0.1:1";
  const SettingLayers layers{{{"max.connections", "500"}}, {}, fixed.values()};
  const auto next = fixed.changed(layers.merged());
  ASSERT_TRUE(next);
  EXPECT_EQ(next->max_connections, 100) << "descriptors for more are not there";
  EXPECT_EQ(next->shared_log.store_host, "127.0.0.1:1");
  EXPECT_EQ(fixed.changed({{"max.connections", "7"}})->max_connections, 7);
  EXPECT_FALSE(fixed.changed({{"max.connections", "-7"}}));
}

TEST(GroupConfig, values_stay_within_the_brokers_bounds) {
  const auto error = [](const Values& overrides, const Values& values = {}) {
    const auto checked = check_group_configs(overrides, values);
    return checked ? "" : checked.error().context;
  };
  EXPECT_EQ(error({}), "");
  EXPECT_EQ(error({{"consumer.session.timeout.ms", "50000"}}), "");
  EXPECT_NE(error({{"consumer.session.timeout.ms", "44999"}}), "");
  EXPECT_EQ(error({{"consumer.session.timeout.ms", "6000"}},
                  {{"group.consumer.min.session.timeout.ms", "6000"}}),
            "");
  EXPECT_NE(error({{"consumer.session.timeout.ms", "60001"}}), "");
  EXPECT_NE(error({{"consumer.heartbeat.interval.ms", "x"}}), "");
  EXPECT_EQ(error({{"consumer.session.timeout.ms", "45000"},
                   {"consumer.heartbeat.interval.ms", "45000"}},
                  {{"group.consumer.max.heartbeat.interval.ms", "60000"}}),
            "consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms");
  EXPECT_EQ(error({{"consumer.session.timeout", "1"}}),
            "Unknown group config name: consumer.session.timeout; did you mean "
            "consumer.session.timeout.ms?");
}

TEST(GroupConfig, a_group_shows_its_own_value_and_the_brokers_behind_it) {
  const SettingLayers layers{{}, {}, {{"group.consumer.session.timeout.ms", "46000"}}};
  const Values own{{"consumer.session.timeout.ms", "50000"}};
  const DescribedConfig session = entry(describe_group(own, layers), "consumer.session.timeout.ms");
  EXPECT_EQ(session.value, "50000");
  EXPECT_EQ(session.source, Source::group);
  ASSERT_GE(session.layers.size(), 2U);
  EXPECT_EQ(session.layers[1].value, "46000");
  EXPECT_EQ(entry(describe_group({}, {}), "consumer.heartbeat.interval.ms").value, "5000");
}

}  // namespace
}  // namespace polylog::broker
