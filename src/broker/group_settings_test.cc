#include "broker/group_settings.h"

#include <gtest/gtest.h>

#include "broker/settings.h"

namespace polylog::broker {
namespace {

using Values = std::map<std::string, std::string>;

TEST(GroupSettings, without_any_kafkas_defaults_hold) {
  const GroupSettings settings = group_settings({}).value();
  EXPECT_EQ(settings.offsets_partitions, 50);
  EXPECT_EQ(settings.retention_ms, 7LL * 24 * 3600 * 1000);
  EXPECT_EQ(settings.initial_rebalance_delay_ms, 3000);
  EXPECT_EQ(settings.session_timeout_min_ms, 6000);
  EXPECT_EQ(settings.consumer_session_timeout_ms, 45'000);
  EXPECT_EQ(settings.consumer_assignors, (std::vector<std::string>{"uniform", "range"}));
  EXPECT_TRUE(settings.consumer_protocol);
  EXPECT_EQ(settings.consumer_migration, GroupMigration::bidirectional);
}

TEST(GroupSettings, every_default_in_the_table_is_the_one_in_force) {
  for (const GroupSettingKey& key : group_setting_keys()) {
    const Values values{{std::string(key.name), std::string(key.default_value)}};
    EXPECT_TRUE(group_settings(values)) << key.name;
    EXPECT_TRUE(Settings::from(values)) << key.name;
  }
}

TEST(GroupSettings, what_is_set_acts) {
  const GroupSettings settings =
      Settings::from({{"offsets.retention.minutes", "1"},
                      {"group.max.size", "3"},
                      {"group.consumer.assignors", "range"},
                      {"group.consumer.migration.policy", "disabled"},
                      {"group.coordinator.rebalance.protocols", "classic"}})
          .value()
          .groups;
  EXPECT_EQ(settings.retention_ms, 60'000);
  EXPECT_EQ(settings.members_max, 3);
  EXPECT_EQ(settings.consumer_assignors, std::vector<std::string>{"range"});
  EXPECT_EQ(settings.consumer_migration, GroupMigration::disabled);
  EXPECT_FALSE(settings.consumer_protocol);
}

TEST(GroupSettings, values_outside_their_range_or_each_other_are_refused) {
  const Values bad[] = {
      {{"offsets.topic.num.partitions", "0"}},
      {{"offset.metadata.max.bytes", "32768"}},
      {{"group.min.session.timeout.ms", "1800001"}},
      {{"group.consumer.session.timeout.ms", "44999"}},
      {{"group.consumer.heartbeat.interval.ms", "15001"}},
      {{"group.consumer.assignors", "sticky"}},
      {{"group.consumer.assignors", ""}},
      {{"group.consumer.migration.policy", "sideways"}},
      {{"group.coordinator.rebalance.protocols", "consumer"}},
      {{"group.coordinator.rebalance.protocols", "classic,share"}},
  };
  for (const Values& values : bad) {
    EXPECT_FALSE(Settings::from(values)) << values.begin()->first;
  }
}

}  // namespace
}  // namespace polylog::broker
