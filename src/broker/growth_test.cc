#include <gtest/gtest.h>

#include "broker/broker_fakes.h"
#include "broker/broker_impl.h"

// Topics that get more partitions: what goes wrong on the way, and what a crash leaves.
namespace polylog::broker {
namespace {

using TopicError = Broker::TopicError;
using TopicOutcome = Broker::TopicOutcome;

struct GrowthTest : testing::Test {
  TopicOutcome grow(std::int32_t partitions, bool validate_only = false) {
    return world.wait(world.broker().grow_topic("t", partitions, validate_only));
  }
  std::size_t partitions() { return world.broker().find("t")->partitions.size(); }
  static Settings quick() {
    Settings settings;
    settings.checkpoint_interval_ms = 5;  // of a background that most tests don't start
    return settings;
  }
  FakeDisk disk;
  World world{disk, quick()};
};

TEST_F(GrowthTest, new_partitions_have_the_topics_settings_and_take_records) {
  world.make("t", {{"retention.ms", "1000"}}, 1);
  const auto first = world.broker().find("t", 0);
  ASSERT_TRUE(first->append(batch_of(2)));
  const Uuid id = world.broker().find("t")->id;
  const TopicOutcome outcome = grow(3);
  EXPECT_EQ(outcome.error, TopicError::none) << outcome.message;
  EXPECT_EQ(outcome.topic, world.broker().find("t"));
  EXPECT_EQ(outcome.topic->id, id);
  EXPECT_EQ(partitions(), 3U);
  EXPECT_EQ(world.broker().find("t", 0), first) << "whoever has it keeps it";
  EXPECT_EQ(disk.rows.at("t").partitions, 3);
  const auto& directory = disk.directories.at({"t", 2});
  EXPECT_EQ(directory.topic, id);
  EXPECT_EQ(directory.partition->config.retention_ms, 1000);
  const auto last = world.broker().find("t", 2);
  ASSERT_TRUE(last->append(batch_of(3)));
  world.sync_round();
  EXPECT_EQ(last->high_watermark(), Offset(3));
  EXPECT_EQ(first->high_watermark(), Offset(2));
}

TEST_F(GrowthTest, what_is_no_growth_is_refused) {
  EXPECT_EQ(grow(2).error, TopicError::unknown);
  world.make("t", {}, 3);
  for (const std::int32_t count : {INT32_MIN, -1, 0, 2, 3, 10'001, INT32_MAX}) {
    EXPECT_EQ(grow(count).error, TopicError::invalid_partitions) << count;
  }
  EXPECT_EQ(grow(4, true).error, TopicError::none);
  EXPECT_EQ(partitions(), 3U);
  EXPECT_EQ(disk.directories.size(), 3U);
}

TEST_F(GrowthTest, of_two_growths_at_once_the_second_finds_what_the_first_made) {
  world.make("t");
  auto first = world.start(world.broker().grow_topic("t", 3, false));
  auto second = world.start(world.broker().grow_topic("t", 2, false));
  auto third = world.start(world.broker().grow_topic("t", 4, false));
  EXPECT_EQ(second.get().error, TopicError::invalid_partitions);
  EXPECT_EQ(first.get().error, TopicError::none);
  EXPECT_EQ(third.get().error, TopicError::none);
  EXPECT_EQ(partitions(), 4U);
  EXPECT_EQ(disk.directories.size(), 4U);
}

TEST_F(GrowthTest, observers_are_told_what_became_of_topics_and_not_of_what_was_found) {
  world.make("t");
  std::vector<std::string> told;
  const auto note = [&told](const Topic& topic, Broker::TopicEvent event) {
    told.push_back(topic.name + std::to_string(topic.partitions.size()) +
                   (event == Broker::TopicEvent::created   ? " created"
                    : event == Broker::TopicEvent::deleted ? " deleted"
                                                           : " grown"));
  };
  world.broker().observe_topics(note);
  grow(3, true);
  grow(3);
  grow(3);
  world.make("u");
  world.wait(world.broker().delete_topic("t"));
  EXPECT_EQ(told, (std::vector<std::string>{"t3 grown", "u1 created", "t3 deleted"}));
}

TEST_F(GrowthTest, a_catalogue_that_can_not_commit_fails_the_growth) {
  world.make("t");
  disk.catalog_error = Errc::no_space;
  EXPECT_EQ(grow(2).error, TopicError::storage);
  EXPECT_EQ(partitions(), 1U);
  EXPECT_EQ(disk.directories.size(), 1U);
  disk.catalog_error.reset();
  EXPECT_EQ(grow(2).error, TopicError::none);
}

// The catalogue says four, and so does the broker.
TEST_F(GrowthTest, partitions_that_find_no_room_refuse_writes_and_are_made_later) {
  world.make("t");
  disk.create_error = Errc::no_space;
  disk.create_error_from = 2;
  const TopicOutcome outcome = grow(4);
  EXPECT_EQ(outcome.error, TopicError::storage);
  EXPECT_NE(outcome.message.find("has 4 partitions from now on"), std::string::npos);
  EXPECT_EQ(world.reports.size(), 1U);
  EXPECT_EQ(disk.rows.at("t").partitions, 4);
  ASSERT_EQ(partitions(), 4U);
  EXPECT_TRUE(world.broker().find("t", 1)->append(batch_of(1)));
  const auto missing = world.broker().find("t", 3);
  EXPECT_EQ(missing->append(batch_of(1)).error().code, Errc::no_space);
  EXPECT_EQ(grow(4).error, TopicError::invalid_partitions);
  disk.create_error.reset();
  world.broker().start_background();
  world.run_until([&] { return world.broker().find("t", 3) != missing; });
  EXPECT_TRUE(world.broker().find("t", 3)->append(batch_of(1)));
  EXPECT_TRUE(world.broker().find("t", 2)->append(batch_of(1)));
  EXPECT_EQ(disk.directories.size(), 4U);
}

TEST_F(GrowthTest, a_topic_with_partitions_that_found_no_room_is_deleted_as_a_whole) {
  world.make("t");
  disk.create_error = Errc::no_space;
  disk.create_error_from = 2;
  EXPECT_EQ(grow(4).error, TopicError::storage);
  EXPECT_EQ(world.wait(world.broker().delete_topic("t")).error, TopicError::none);
  EXPECT_TRUE(disk.directories.empty());
  EXPECT_TRUE(disk.rows.empty());
}

TEST_F(GrowthTest, a_topic_that_grew_is_deleted_as_a_whole) {
  world.make("t");
  EXPECT_EQ(grow(3).error, TopicError::none);
  EXPECT_EQ(world.wait(world.broker().delete_topic("t")).error, TopicError::none);
  EXPECT_TRUE(disk.directories.empty());
  EXPECT_TRUE(disk.rows.empty());
}

TEST(SharedGrowth, a_topic_in_the_shared_log_grows_too) {
  FakeDisk disk;
  disk.shared = std::make_unique<SharedFakeDisk>();
  World world(disk);
  const auto first = world.make("t", {{"polylog.layout", "rocketmq"}}, 1);
  EXPECT_EQ(world.wait(world.broker().grow_topic("t", 2, false)).error, TopicError::none);
  const auto second = world.broker().find("t", 1);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(&second->log_state(), &first->log_state());
  ASSERT_TRUE(second->append(batch_of(2)));
  world.sync_round();
  EXPECT_EQ(second->high_watermark(), Offset(2));
  EXPECT_EQ(first->high_watermark(), Offset(0));
}

// Every point where a growth can be cut off: afterwards the topic has as many partitions as before
// or all, and the records it had. What was answered with success is there.
TEST(GrowthCrash, a_growth_cut_off_anywhere_is_not_begun_or_whole_after_the_restart) {
  for (int changes = 0; changes <= 3; ++changes) {
    FakeDisk disk;
    Uuid id;
    {
      World world(disk);
      ASSERT_TRUE(world.make("t", {{"retention.ms", "77"}}, 2)->append(batch_of(2)));
      world.sync_round();
      id = world.broker().find("t")->id;
      disk.power.changes_left = changes;
      const auto outcome = world.wait(world.broker().grow_topic("t", 4, false));
      EXPECT_EQ(outcome.error == TopicError::none, changes == 3);
      const std::size_t served = world.broker().find("t")->partitions.size();
      EXPECT_EQ(served, changes == 0 ? 2U : 4U) << "as the catalogue has it";
    }
    disk.power.changes_left = INT32_MAX;
    World world(disk);
    const auto topic = world.broker().find("t");
    ASSERT_NE(topic, nullptr);
    EXPECT_EQ(topic->id, id);
    EXPECT_EQ(topic->config.log.retention_ms, 77);
    EXPECT_FALSE(topic->config.log.retention_suspended);
    const std::size_t expected = changes == 0 ? 2 : 4;
    EXPECT_EQ(topic->partitions.size(), expected) << changes;
    EXPECT_EQ(disk.directories.size(), expected) << changes;
    EXPECT_EQ(disk.rows.at("t").partitions, static_cast<std::int32_t>(expected)) << changes;
    for (const auto& [where, directory] : disk.directories) EXPECT_EQ(directory.topic, id);
    EXPECT_EQ(world.broker().find("t", 0)->high_watermark(), Offset(2));
  }
}

TEST(Usage, directories_and_their_volume_are_told_with_what_is_in_them) {
  FakeDisk disk;
  World world(disk);
  const auto partition = world.make("t");
  const auto usage = world.wait(world.broker().usage({partition}));
  ASSERT_EQ(usage.size(), 1U);
  EXPECT_EQ(usage[0].directory, "/data/kafka");
  ASSERT_EQ(usage[0].partitions.size(), 1U);
  EXPECT_EQ(usage[0].partitions[0].first, (TopicPartition{"t", 0}));
  EXPECT_FALSE(usage[0].volume) << "this file system does not know its size";
}

}  // namespace
}  // namespace polylog::broker
