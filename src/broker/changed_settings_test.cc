#include <gtest/gtest.h>

#include "broker/broker_fakes.h"
#include "broker/quotas/rules.h"

// Settings and quotas that change while the broker runs.
namespace polylog::broker {
namespace {

using Values = std::map<std::string, std::string>;
using Kind = meta::ConfigScope::Kind;

const meta::ConfigScope all_brokers{Kind::brokers, ""};
const meta::ConfigScope this_broker{Kind::broker, "1"};

Broker::ConfigChange to(Values values) {
  return [values = std::move(values)](const Values&) { return Result<Values>(values); };
}

NewTopic topic(const std::string& name, Values configs = {}) {
  NewTopic request;
  request.name = name;
  request.partitions = 1;
  request.configs = std::move(configs);
  return request;
}

std::int64_t retention_of(Broker& broker, const std::string& name) {
  return broker.find(name, 0)->config().log.retention_ms;
}

TEST(ChangedSettings, act_at_once_on_topics_without_a_setting_of_their_own) {
  FakeDisk disk;
  World world(disk);
  Broker& broker = world.broker();
  world.wait(broker.create_topic(topic("plain")));
  world.wait(broker.create_topic(topic("own", {{"retention.ms", "7"}})));
  ASSERT_TRUE(world.wait(broker.change_settings(all_brokers, to({{"log.retention.ms", "5"}}),
                                                false)));
  EXPECT_EQ(retention_of(broker, "plain"), 5);
  EXPECT_EQ(retention_of(broker, "own"), 7);
  ASSERT_TRUE(world.wait(broker.change_settings(this_broker, to({{"log.retention.ms", "6"}}),
                                                false)));
  EXPECT_EQ(retention_of(broker, "plain"), 6);
  world.wait(broker.create_topic(topic("later")));
  EXPECT_EQ(retention_of(broker, "later"), 6);
  ASSERT_TRUE(world.wait(broker.change_settings(this_broker, to({}), false)));
  EXPECT_EQ(retention_of(broker, "plain"), 5);
  EXPECT_EQ(disk.scoped.size(), 1U);
}

TEST(ChangedSettings, are_there_again_after_a_restart) {
  FakeDisk disk;
  {
    World world(disk);
    world.wait(world.broker().create_topic(topic("t")));
    world.wait(world.broker().change_settings(all_brokers, to({{"message.max.bytes", "77"}}),
                                              false));
    const meta::ConfigScope group{Kind::group, "g"};
    world.wait(world.broker().change_settings(
        group, to({{"consumer.session.timeout.ms", "50000"}}), false));
  }
  World again(disk);
  EXPECT_EQ(again.broker().find("t", 0)->config().max_message_bytes, 77);
  EXPECT_EQ(again.broker().settings().values().at("message.max.bytes"), "77");
  EXPECT_EQ(again.broker().group_config("g", "consumer.session.timeout.ms"), "50000");
  EXPECT_EQ(again.broker().group_config("h", "consumer.session.timeout.ms"), std::nullopt);
  EXPECT_EQ(again.broker().configured_groups(), std::vector<std::string>{"g"});
}

TEST(ChangedSettings, what_nothing_can_follow_any_longer_does_not_keep_the_broker_from_starting) {
  FakeDisk disk;
  disk.scoped[all_brokers] = {{"log.retention.ms", "9"}, {"no.longer.known", "1"},
                              {"message.max.bytes", "many"}};
  disk.scoped[{Kind::broker, "2"}] = {{"log.retention.ms", "3"}};
  World world(disk);
  world.wait(world.broker().create_topic(topic("t")));
  EXPECT_EQ(retention_of(world.broker(), "t"), 9);
  EXPECT_EQ(world.broker().setting_layers().cluster.size(), 1U);
}

TEST(ChangedSettings, are_refused_when_they_make_no_sense_and_then_change_nothing) {
  FakeDisk disk;
  World world(disk);
  Broker& broker = world.broker();
  world.wait(broker.create_topic(topic("t", {{"max.compaction.lag.ms", "10"}})));
  for (const Values& bad : {Values{{"node.id", "3"}}, Values{{"log.retention.ms", "soon"}},
                            Values{{"unheard.of", "1"}}, Values{{"log.retention.hours", "1"}},
                            Values{{"log.cleaner.min.compaction.lag.ms", "11"}}}) {
    const auto refused = world.wait(broker.change_settings(all_brokers, to(bad), false));
    ASSERT_FALSE(refused) << bad.begin()->first;
    EXPECT_EQ(refused.error().code, Errc::invalid) << refused.error().to_string();
  }
  EXPECT_TRUE(disk.scoped.empty());
  EXPECT_TRUE(broker.setting_layers().cluster.empty());
}

TEST(ChangedSettings, a_change_that_is_only_checked_changes_nothing) {
  FakeDisk disk;
  World world(disk);
  world.wait(world.broker().create_topic(topic("t")));
  EXPECT_TRUE(world.wait(
      world.broker().change_settings(all_brokers, to({{"log.retention.ms", "5"}}), true)));
  EXPECT_TRUE(disk.scoped.empty());
  EXPECT_NE(retention_of(world.broker(), "t"), 5);
  const auto outcome = world.wait(world.broker().change_topic("t", to({{"flush.ms", "1"}}), true));
  EXPECT_EQ(outcome.error, Broker::TopicError::none);
  EXPECT_TRUE(world.broker().find("t")->overrides.empty());
}

TEST(ChangedSettings, a_failed_write_changes_nothing) {
  FakeDisk disk;
  World world(disk);
  disk.catalog_error = Errc::no_space;
  const auto failed = world.wait(
      world.broker().change_settings(all_brokers, to({{"log.retention.ms", "5"}}), false));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::no_space);
  EXPECT_TRUE(world.broker().setting_layers().cluster.empty());
}

TEST(ChangedSettings, of_many_changes_at_a_time_none_is_lost) {
  FakeDisk disk;
  World world(disk);
  Broker& broker = world.broker();
  world.wait(broker.create_topic(topic("t")));
  const auto add = [](std::string key, std::string value) -> Broker::ConfigChange {
    return [key = std::move(key), value = std::move(value)](const Values& now) {
      Values next = now;
      next[key] = value;
      return Result<Values>(std::move(next));
    };
  };
  const std::vector<std::string> keys = {"retention.ms",      "retention.bytes",
                                         "segment.ms",        "max.message.bytes",
                                         "segment.bytes",     "index.interval.bytes"};
  std::vector<Pending<Broker::TopicOutcome>> topics;
  for (const std::string& key : keys) {
    topics.push_back(world.start(broker.change_topic("t", add(key, "5000000"), false)));
  }
  for (auto& one : topics) EXPECT_EQ(one.get().error, Broker::TopicError::none);
  EXPECT_EQ(broker.find("t")->overrides.size(), keys.size());
  std::vector<Pending<Result<void>>> brokers;
  for (const char* key : {"log.retention.ms", "log.retention.bytes", "log.roll.ms"}) {
    brokers.push_back(
        world.start(broker.change_settings(all_brokers, add(key, "5000000"), false)));
  }
  for (auto& one : brokers) EXPECT_TRUE(one.get());
  EXPECT_EQ(broker.setting_layers().cluster.size(), 3U);
}

TEST(ChangedSettings, observers_hear_of_it_when_it_is_in_force) {
  FakeDisk disk;
  World world(disk);
  std::vector<std::int32_t> seen;
  world.broker().observe_settings(
      [&] { seen.push_back(world.broker().settings().max_connections); });
  world.wait(world.broker().change_settings(all_brokers, to({{"max.connections", "5"}}), false));
  EXPECT_EQ(seen, std::vector<std::int32_t>{5});
}

TEST(ChangedSettings, quotas_are_kept_and_in_force_at_once) {
  FakeDisk disk;
  const auto entity = quotas::make_entity({{"client-id", "c"}}).value();
  {
    World world(disk);
    EXPECT_FALSE(world.broker().quotas().limited());
    std::vector<meta::QuotaChange> changes{{entity, quotas::producer_byte_rate, 5.0}};
    ASSERT_TRUE(world.wait(world.broker().change_quotas(std::move(changes))));
    EXPECT_TRUE(world.broker().quotas().limited(quotas::Kind::produce));
  }
  World again(disk);
  EXPECT_TRUE(again.broker().quotas().limited(quotas::Kind::produce));
  EXPECT_EQ(again.broker().quotas().limits().size(), 1U);
}

}  // namespace
}  // namespace polylog::broker
