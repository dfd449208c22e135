#include <set>

#include <gtest/gtest.h>

#include "broker/broker_fakes.h"
#include "broker/broker_impl.h"

namespace polylog::broker {
namespace {

using TopicError = Broker::TopicError;
using TopicOutcome = Broker::TopicOutcome;

NewTopic topic_of(const std::string& name, std::int32_t partitions = 1) {
  NewTopic request;
  request.name = name;
  request.partitions = partitions;
  return request;
}

struct TopicsTest : testing::Test {
  TopicOutcome create(NewTopic request) {
    return world.wait(world.broker().create_topic(std::move(request)));
  }
  TopicOutcome remove(const std::string& name) {
    return world.wait(world.broker().delete_topic(name));
  }
  FakeDisk disk;
  World world{disk};
};

TEST(TopicName, kafkas_rules) {
  EXPECT_TRUE(check_topic_name("a.B-9_x"));
  EXPECT_TRUE(check_topic_name(std::string(249, 'a')));
  EXPECT_TRUE(check_topic_name("..."));
  for (const std::string& bad : {std::string(), std::string("."), std::string(".."),
                                 std::string(250, 'a'), std::string("a b"), std::string("a/b"),
                                 std::string("\xc3\xa4"), std::string("a\0b", 3)}) {
    const auto result = check_topic_name(bad);
    ASSERT_FALSE(result) << bad;
    EXPECT_EQ(result.error().code, Errc::invalid);
  }
}

TEST_F(TopicsTest, a_created_topic_is_found_by_name_and_by_id_and_is_in_the_catalogue) {
  NewTopic request = topic_of("orders", 3);
  request.configs["retention.ms"] = "1000";
  const TopicOutcome outcome = create(std::move(request));
  ASSERT_EQ(outcome.error, TopicError::none) << outcome.message;
  ASSERT_NE(outcome.topic, nullptr);
  EXPECT_EQ(world.broker().find("orders"), outcome.topic);
  EXPECT_EQ(world.broker().find(outcome.topic->id), outcome.topic);
  EXPECT_EQ(outcome.topic->partitions.size(), 3U);
  EXPECT_EQ(world.broker().find("orders", 2)->id(), (TopicPartition{"orders", 2}));
  EXPECT_EQ(world.broker().find("orders", 3), nullptr);
  EXPECT_EQ(world.broker().find("orders", -1), nullptr);
  EXPECT_EQ(disk.rows.at("orders").partitions, 3);
  EXPECT_EQ(disk.rows.at("orders").configs.at("retention.ms"), "1000");
  const auto& directory = disk.directories.at({"orders", 1});
  EXPECT_EQ(directory.topic, outcome.topic->id);
  EXPECT_EQ(directory.partition->config.retention_ms, 1000);
}

TEST_F(TopicsTest, validate_only_makes_nothing) {
  NewTopic request = topic_of("orders");
  request.validate_only = true;
  const TopicOutcome outcome = create(std::move(request));
  EXPECT_EQ(outcome.error, TopicError::none);
  EXPECT_EQ(outcome.topic, nullptr);
  EXPECT_TRUE(disk.rows.empty());
  EXPECT_TRUE(disk.directories.empty());
}

TEST_F(TopicsTest, what_is_wrong_with_a_request_is_said) {
  EXPECT_EQ(create(topic_of("a b")).error, TopicError::invalid_name);
  EXPECT_EQ(create(topic_of("t", 0)).error, TopicError::invalid_partitions);
  EXPECT_EQ(create(topic_of("t", -2)).error, TopicError::invalid_partitions);
  EXPECT_EQ(create(topic_of("t", 10'001)).error, TopicError::invalid_partitions);
  NewTopic replicas = topic_of("t");
  replicas.replication_factor = 3;
  const TopicOutcome refused = create(std::move(replicas));
  EXPECT_EQ(refused.error, TopicError::invalid_replication_factor);
  EXPECT_EQ(refused.message, "Replication factor: 3 larger than available brokers: 1.");
  NewTopic none = topic_of("t");
  none.replication_factor = 0;
  EXPECT_EQ(create(std::move(none)).error, TopicError::invalid_replication_factor);
  NewTopic config = topic_of("t");
  config.configs["no.such.setting"] = "1";
  EXPECT_EQ(create(std::move(config)).error, TopicError::invalid_config);
  NewTopic internal = topic_of("t");
  internal.configs[deleting_mark] = "true";
  EXPECT_EQ(create(std::move(internal)).error, TopicError::invalid_config);
  EXPECT_TRUE(disk.rows.empty());
}

TEST_F(TopicsTest, another_layout_is_not_available_in_this_build) {
  NewTopic request = topic_of("t");
  request.configs["polylog.layout"] = "rocketmq";
  const TopicOutcome outcome = create(std::move(request));
  EXPECT_EQ(outcome.error, TopicError::invalid_config);
  EXPECT_EQ(outcome.message, "layout rocketmq is not available in this build");
}

TEST_F(TopicsTest, names_that_differ_only_in_dots_and_underscores_collide) {
  EXPECT_EQ(create(topic_of("a.b_c")).error, TopicError::none);
  EXPECT_EQ(create(topic_of("a.b_c")).error, TopicError::exists);
  EXPECT_EQ(create(topic_of("a_b.c")).error, TopicError::invalid_name);
  EXPECT_EQ(create(topic_of("a-b-c")).error, TopicError::none);
}

TEST_F(TopicsTest, of_two_creations_at_once_the_second_finds_that_it_exists) {
  auto first = world.start(world.broker().create_topic(topic_of("t")));
  auto second = world.start(world.broker().create_topic(topic_of("t")));
  auto twin = world.start(world.broker().create_topic(topic_of("other")));
  EXPECT_EQ(second.get().error, TopicError::exists);
  EXPECT_EQ(first.get().error, TopicError::none);
  EXPECT_EQ(twin.get().error, TopicError::none);
}

TEST_F(TopicsTest, a_full_disk_leaves_nothing_of_a_creation) {
  disk.create_error = Errc::no_space;
  disk.create_error_from = 2;
  EXPECT_EQ(create(topic_of("t", 4)).error, TopicError::storage);
  EXPECT_TRUE(disk.rows.empty());
  EXPECT_TRUE(disk.directories.empty());
  EXPECT_EQ(world.broker().find("t"), nullptr);
  disk.create_error.reset();
  EXPECT_EQ(create(topic_of("t", 4)).error, TopicError::none);
}

TEST_F(TopicsTest, a_catalogue_that_can_not_commit_fails_the_creation) {
  disk.catalog_error = Errc::no_space;
  EXPECT_EQ(create(topic_of("t")).error, TopicError::storage);
  EXPECT_TRUE(disk.directories.empty());
  disk.catalog_error.reset();
  EXPECT_EQ(create(topic_of("t")).error, TopicError::none);
}

TEST_F(TopicsTest, a_deleted_topic_is_gone_and_its_waiters_are_woken) {
  create(topic_of("t", 2));
  const auto partition = world.broker().find("t", 0);
  Partition::Appended appended = *partition->append(batch_of(1));
  auto waits = world.start(partition->acknowledged(appended, Acks::all, forever));
  Signal signal(world.reactor.context());
  partition->subscribe(&signal);
  auto fetch = world.start(signal.wait(forever));
  const TopicOutcome outcome = remove("t");
  EXPECT_EQ(outcome.error, TopicError::none);
  EXPECT_EQ(world.broker().find("t"), nullptr);
  EXPECT_EQ(world.broker().find(outcome.topic->id), nullptr);
  EXPECT_TRUE(world.broker().topics().empty());
  EXPECT_TRUE(disk.rows.empty());
  EXPECT_TRUE(disk.directories.empty());
  world.turn();
  ASSERT_TRUE(waits.done());
  EXPECT_EQ(waits.get().error().code, Errc::not_found);
  EXPECT_TRUE(fetch.done());
  partition->unsubscribe(&signal);
  EXPECT_EQ(partition->append(batch_of(1)).error().code, Errc::not_found);
  EXPECT_FALSE(partition->read(Offset(0), {}, Isolation::read_uncommitted));
  EXPECT_EQ(remove("t").error, TopicError::unknown);
}

TEST_F(TopicsTest, a_topic_made_again_has_another_id_and_is_empty) {
  const Uuid before = create(topic_of("t")).topic->id;
  ASSERT_TRUE(world.broker().find("t", 0)->append(batch_of(3)));
  world.sync_round();
  remove("t");
  EXPECT_NE(create(topic_of("t")).topic->id, before);
  EXPECT_EQ(world.broker().find("t", 0)->high_watermark(), Offset(0));
}

TEST_F(TopicsTest, a_deletion_that_can_not_be_noted_leaves_the_topic_as_it_was) {
  create(topic_of("t"));
  disk.catalog_error = Errc::no_space;
  EXPECT_EQ(remove("t").error, TopicError::storage);
  ASSERT_NE(world.broker().find("t", 0), nullptr);
  EXPECT_TRUE(world.broker().find("t", 0)->append(batch_of(1)));
}

TEST_F(TopicsTest, files_that_can_not_be_removed_yet_do_not_undo_a_deletion) {
  create(topic_of("t"));
  disk.remove_error = Errc::io;
  EXPECT_EQ(remove("t").error, TopicError::none);
  EXPECT_EQ(world.broker().find("t"), nullptr);
  EXPECT_EQ(world.reports.size(), 1U);
  EXPECT_EQ(create(topic_of("t")).error, TopicError::exists);
  EXPECT_EQ(remove("t").error, TopicError::unknown);
}

TEST_F(TopicsTest, altering_reaches_catalogue_topic_and_engine) {
  create(topic_of("t", 2));
  const std::map<std::string, std::string> configs{{"retention.ms", "5000"}};
  const auto outcome = world.wait(world.broker().alter_topic("t", configs));
  EXPECT_EQ(outcome.error, TopicError::none) << outcome.message;
  EXPECT_EQ(disk.rows.at("t").configs, configs);
  EXPECT_EQ(world.broker().find("t")->config.log.retention_ms, 5000);
  EXPECT_EQ(world.broker().find("t")->overrides, configs);
  const auto& directory = disk.directories.at({"t", 1});
  EXPECT_EQ(directory.partition->config.retention_ms, 5000);
  const std::map<std::string, std::string> bad{{"retention.ms", "soon"}};
  EXPECT_EQ(world.wait(world.broker().alter_topic("t", bad)).error, TopicError::invalid_config);
  EXPECT_EQ(world.wait(world.broker().alter_topic("u", configs)).error, TopicError::unknown);
}

TEST_F(TopicsTest, a_topic_whose_policy_lacks_delete_loses_nothing_by_age) {
  NewTopic request = topic_of("t");
  request.configs = {{"cleanup.policy", "compact"}, {"retention.ms", "1000"}};
  EXPECT_EQ(create(std::move(request)).error, TopicError::none);
  const auto& directory = disk.directories.at({"t", 0});
  EXPECT_EQ(directory.partition->config.retention_ms, -1);
}

TEST_F(TopicsTest, producer_ids_are_never_given_twice_and_share_a_reservation) {
  std::vector<Pending<Result<ProducerId>>> pending;
  for (int i = 0; i < 50; ++i) {
    pending.push_back(world.start(world.broker().next_producer_id()));
  }
  std::set<std::int64_t> seen;
  for (auto& one : pending) seen.insert((*one.get()).value());
  EXPECT_EQ(seen.size(), 50U);
  EXPECT_EQ(disk.reservations, 1);
  for (int i = 50; i < 1001; ++i) {
    seen.insert((*world.wait(world.broker().next_producer_id())).value());
  }
  EXPECT_EQ(seen.size(), 1001U);
  EXPECT_EQ(disk.reservations, 2);
}

TEST_F(TopicsTest, a_reservation_that_fails_fails_all_who_share_it_and_the_next_tries_again) {
  disk.catalog_error = Errc::no_space;
  auto first = world.start(world.broker().next_producer_id());
  auto second = world.start(world.broker().next_producer_id());
  EXPECT_FALSE(first.get());
  EXPECT_FALSE(second.get());
  EXPECT_EQ(disk.reservations, 1);
  disk.catalog_error.reset();
  EXPECT_TRUE(world.wait(world.broker().next_producer_id()));
}

// ------------------------------------------------------------------------- crash and restart

// Every point where a creation can be cut off: afterwards the topic is either not there at all or
// whole, and nothing without settings is left behind.
TEST(TopicCrash, a_creation_cut_off_anywhere_is_whole_or_absent_after_the_restart) {
  for (int changes = 0; changes <= 4; ++changes) {
    FakeDisk disk;
    {
      World world(disk);
      disk.power.changes_left = changes;
      const auto outcome = world.wait(world.broker().create_topic(topic_of("t", 3)));
      EXPECT_EQ(outcome.error == TopicError::none, changes == 4);
    }
    disk.power.changes_left = INT32_MAX;
    World world(disk);
    const auto topic = world.broker().find("t");
    EXPECT_EQ(topic != nullptr, changes >= 1) << changes;
    EXPECT_EQ(disk.directories.size(), topic ? 3U : 0U);
    if (topic) {
      EXPECT_FALSE(topic->config.log.retention_suspended);
      EXPECT_EQ(topic->partitions.size(), 3U);
      EXPECT_EQ(disk.directories.at({"t", 2}).topic, topic->id);
    }
  }
}

// Every point where a deletion can be cut off: afterwards the topic is there with all its records
// or gone for good. It never comes back, and never in part.
TEST(TopicCrash, a_deletion_cut_off_anywhere_is_not_begun_or_finished_after_the_restart) {
  for (int changes = 0; changes <= 5; ++changes) {
    FakeDisk disk;
    {
      World world(disk);
      world.make("t", {}, 3);
      for (std::int32_t i = 0; i < 3; ++i) {
        ASSERT_TRUE(world.broker().find("t", i)->append(batch_of(2)));
      }
      world.sync_round();
      disk.power.changes_left = changes;
      const auto outcome = world.wait(world.broker().delete_topic("t"));
      EXPECT_EQ(outcome.error == TopicError::none, changes >= 1);
    }
    disk.power.changes_left = INT32_MAX;
    World world(disk);
    if (changes == 0) {
      ASSERT_NE(world.broker().find("t"), nullptr);
      for (std::int32_t i = 0; i < 3; ++i) {
        EXPECT_EQ(world.broker().find("t", i)->high_watermark(), Offset(2));
      }
    } else {
      EXPECT_EQ(world.broker().find("t"), nullptr) << changes;
      EXPECT_TRUE(disk.directories.empty()) << changes;
      EXPECT_TRUE(disk.rows.empty()) << changes;
      EXPECT_EQ(world.wait(world.broker().create_topic(topic_of("t"))).error, TopicError::none);
    }
  }
}

Uuid id_of(std::uint8_t first) {
  Uuid id;
  id.bytes[0] = first;
  return id;
}

TEST(TopicLoad, directories_without_settings_are_adopted_with_retention_suspended) {
  FakeDisk disk;
  disk.add({"foreign", 0}, id_of(9));
  disk.add({"foreign", 2}, id_of(9));
  {
    World world(disk);
    const auto topic = world.broker().find("foreign");
    ASSERT_NE(topic, nullptr);
    EXPECT_EQ(topic->id, id_of(9));
    EXPECT_TRUE(topic->config.log.retention_suspended);
    EXPECT_TRUE(topic->overrides.empty());
    ASSERT_EQ(topic->partitions.size(), 3U) << "the one that was missing is made";
    EXPECT_TRUE(disk.directories.contains({"foreign", 1}));
    EXPECT_TRUE(disk.directories.at({"foreign", 0}).partition->config.retention_suspended);
    EXPECT_EQ(world.notes.size(), 2U);
  }
  World again(disk);
  EXPECT_TRUE(again.notes.empty());
  EXPECT_TRUE(again.broker().find("foreign")->config.log.retention_suspended);
  EXPECT_EQ(again.wait(again.broker().alter_topic("foreign", {})).error, TopicError::none);
  EXPECT_FALSE(again.broker().find("foreign")->config.log.retention_suspended);
  EXPECT_FALSE(disk.directories.at({"foreign", 0}).partition->config.retention_suspended);
}

TEST(TopicLoad, kafkas_metadata_log_and_absurd_partition_numbers_are_left_alone) {
  FakeDisk disk;
  disk.add({"__cluster_metadata", 0}, id_of(1));
  disk.add({"t", 2'000'000'000}, id_of(2));
  disk.add({"bad name", 0}, id_of(3));
  World world(disk);
  EXPECT_TRUE(world.broker().topics().empty());
  EXPECT_EQ(disk.directories.size(), 3U);
  EXPECT_EQ(world.notes.size(), 2U);
}

TEST(TopicLoad, partitions_that_another_broker_added_are_served) {
  FakeDisk disk;
  { World(disk).make("t", {}, 1); }
  disk.add({"t", 1}, disk.rows.at("t").id);
  World world(disk);
  EXPECT_EQ(world.broker().find("t")->partitions.size(), 2U);
  EXPECT_EQ(disk.rows.at("t").partitions, 2);
}

TEST(TopicLoad, directories_with_another_topic_id_are_believed) {
  FakeDisk disk;
  { World(disk).make("t", {{"retention.ms", "77"}}, 1); }
  disk.directories.clear();
  disk.add({"t", 0}, id_of(42));
  World world(disk);
  EXPECT_EQ(world.broker().find("t")->id, id_of(42));
  EXPECT_EQ(world.broker().find("t")->config.log.retention_ms, 77);
  EXPECT_EQ(disk.rows.at("t").id, id_of(42));
}

TEST(TopicLoad, a_deletion_is_not_finished_on_directories_of_another_topic) {
  FakeDisk disk;
  { World(disk).make("t"); }
  disk.rows.at("t").configs[deleting_mark] = "true";
  disk.directories.at({"t", 0}).topic = id_of(42);
  World world(disk);
  ASSERT_NE(world.broker().find("t"), nullptr);
  EXPECT_EQ(world.broker().find("t")->id, id_of(42));
  EXPECT_TRUE(world.broker().find("t")->config.log.retention_suspended);
}

TEST(TopicLoad, settings_that_are_not_usable_do_not_keep_a_topic_from_being_served) {
  FakeDisk disk;
  { World(disk).make("t"); }
  disk.rows.at("t").configs["from.the.future"] = "1";
  World world(disk);
  ASSERT_NE(world.broker().find("t"), nullptr);
  EXPECT_TRUE(world.broker().find("t")->config.log.retention_suspended);
  EXPECT_EQ(world.notes.size(), 1U);
}

TEST(TopicLoad, a_full_disk_does_not_keep_the_broker_from_starting) {
  FakeDisk disk;
  { World(disk).make("t", {}, 2); }
  disk.directories.erase({"t", 1});
  disk.create_error = Errc::no_space;
  Settings settings;
  settings.checkpoint_interval_ms = 5;
  World world(disk, settings);
  const auto partition = world.broker().find("t", 1);
  ASSERT_NE(partition, nullptr);
  EXPECT_TRUE(world.broker().find("t", 0)->append(batch_of(1)));
  EXPECT_EQ(partition->high_watermark(), Offset(0));
  EXPECT_TRUE(partition->read(Offset(0), {}, Isolation::read_uncommitted));
  EXPECT_EQ(partition->append(batch_of(1)).error().code, Errc::no_space);

  disk.create_error.reset();
  world.broker().start_background();
  world.run_until([&] { return world.broker().find("t", 1) != partition; });
  EXPECT_TRUE(world.broker().find("t", 1)->append(batch_of(1)));
}

}  // namespace
}  // namespace polylog::broker
