#include <chrono>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "broker/broker_fakes.h"

// Partitions of one store that share one log: who is told of what, and what goes wrong for all.
namespace polylog::broker {
namespace {

using Appended = Partition::Appended;

const std::map<std::string, std::string> in_rocketmq{{"polylog.layout", "rocketmq"}};

std::map<std::string, std::string> flushed(const std::string& policy) {
  return {{"polylog.layout", "rocketmq"}, {"polylog.flush", policy}};
}

// Whether a reader was told that there is news.
class Reader {
 public:
  Reader(World& world, std::shared_ptr<Partition> partition)
      : world_(world), partition_(std::move(partition)), signal_(world.reactor.context()) {
    partition_->subscribe(&signal_);
  }
  ~Reader() { partition_->unsubscribe(&signal_); }
  // Takes the news with it.
  bool told() { return world_.wait(signal_.wait(INT64_MIN)); }

 private:
  World& world_;
  std::shared_ptr<Partition> partition_;
  Signal signal_;
};

struct SharedLogTest : testing::Test {
  SharedLogTest() {
    disk.shared = std::make_unique<SharedFakeDisk>();
    world.emplace(disk);
    a = world->make("a", in_rocketmq, 2);
    b = world->broker().find("a", 1);
  }
  Appended append(Partition& partition, Batch batch) {
    const Result<Appended> appended = partition.append(std::move(batch));
    EXPECT_TRUE(appended) << appended.error().to_string();
    return appended.value_or(Appended{});
  }
  Pending<Result<void>> acked(Partition& partition, Appended appended) {
    return world->start(partition.acknowledged(appended, Acks::all, forever));
  }
  SharedFakeLog& log() { return *disk.shared->log; }
  int lookups() const {
    int count = 0;
    for (const auto& [id, queue] : disk.shared->queues) count += queue.partition->position_lookups;
    return count;
  }

  FakeDisk disk;
  std::optional<World> world;
  std::shared_ptr<Partition> a, b;
};

TEST_F(SharedLogTest, partitions_share_one_state_one_write_and_one_sync) {
  EXPECT_EQ(&a->log_state(), &b->log_state());
  const Appended first = append(*a, batch_of(2));
  const Appended second = append(*b, batch_of(3));
  EXPECT_EQ(first.base, Offset(0));
  EXPECT_EQ(second.base, Offset(0));
  EXPECT_EQ(first.end, LogPosition(200));
  EXPECT_EQ(second.end, LogPosition(500));
  world->turn();
  EXPECT_EQ(log().writes, 1);
  EXPECT_EQ(a->high_watermark(), Offset(0)) << "written, but not durable";
  EXPECT_EQ(b->high_watermark(), Offset(0));
  world->sync_round();
  EXPECT_EQ(log().file->syncs, 1);
  EXPECT_EQ(a->high_watermark(), Offset(2));
  EXPECT_EQ(b->high_watermark(), Offset(3)) << "an offset, not a position";
  EXPECT_EQ(a->last_stable(), Offset(2));
}

TEST_F(SharedLogTest, only_partitions_whose_records_passed_are_woken) {
  Reader reads_a(*world, a), reads_b(*world, b);
  append(*a, batch_of(1));
  world->turn();
  EXPECT_FALSE(reads_a.told()) << "nothing can be seen yet";
  world->sync_round();
  EXPECT_TRUE(reads_a.told());
  EXPECT_FALSE(reads_b.told());
  append(*b, batch_of(1));
  world->sync_round();
  EXPECT_FALSE(reads_a.told());
  EXPECT_TRUE(reads_b.told());
  EXPECT_EQ(lookups(), 0) << "the bounds come from what passed";
}

TEST_F(SharedLogTest, what_is_appended_after_a_sync_began_stays_unseen_by_it) {
  append(*a, batch_of(1));
  world->turn();
  log().file->on_sync = [this] {
    log().file->on_sync = nullptr;
    const Result<Appended> later = b->append(batch_of(1));
    EXPECT_TRUE(later);
    EXPECT_TRUE(a->append(batch_of(1)));
  };
  world->durability().run_round();
  world->turn();
  EXPECT_EQ(a->high_watermark(), Offset(1));
  EXPECT_EQ(b->high_watermark(), Offset(0));
  world->sync_round();
  EXPECT_EQ(a->high_watermark(), Offset(2));
  EXPECT_EQ(b->high_watermark(), Offset(1));
}

TEST_F(SharedLogTest, topics_of_different_flush_policies_live_on_one_log) {
  const auto never = world->make("never", flushed("never"));
  const auto timed = world->make("timed", flushed("interval:20"));
  Reader reads_never(*world, never), reads_a(*world, a);
  append(*never, batch_of(2));
  world->turn();
  EXPECT_EQ(never->high_watermark(), Offset(2));
  EXPECT_TRUE(reads_never.told());
  EXPECT_FALSE(world->durability().run_round()) << "nobody asked for a sync";

  append(*timed, batch_of(1));
  world->turn();
  EXPECT_EQ(timed->high_watermark(), Offset(1));
  EXPECT_FALSE(world->durability().run_round()) << "not yet";
  world->clock.advance_ms(20);
  world->run_until([&] { return world->durability().run_round(); });
  world->turn();
  EXPECT_EQ(log().durable, LogPosition(300));

  auto waits = acked(*a, append(*a, batch_of(1)));
  append(*never, batch_of(1));
  world->turn();
  EXPECT_TRUE(reads_never.told());
  EXPECT_FALSE(waits.done());
  EXPECT_FALSE(reads_a.told());
  world->sync_round();
  EXPECT_TRUE(waits.done()) << "the append that wants a sync gets it, whoever came after it";
  EXPECT_TRUE(reads_a.told());
  EXPECT_FALSE(reads_never.told()) << "it was seen when it was written";
}

TEST_F(SharedLogTest, a_failed_sync_is_final_for_every_partition_of_the_store) {
  const auto kafka = world->make("k");
  auto first = acked(*a, append(*a, batch_of(1)));
  auto second = acked(*b, append(*b, batch_of(1)));
  world->turn();
  log().file->sync_error = Errc::io;
  world->sync_round();
  EXPECT_EQ(first.get().error().code, Errc::io);
  EXPECT_EQ(second.get().error().code, Errc::io);
  EXPECT_EQ(a->append(batch_of(1)).error().code, Errc::unavailable);
  EXPECT_EQ(b->append(batch_of(1)).error().code, Errc::unavailable);
  EXPECT_EQ(a->high_watermark(), Offset(0));
  EXPECT_TRUE(a->read(Offset(0), {}, Isolation::read_uncommitted)) << "reads go on";
  EXPECT_TRUE(kafka->append(batch_of(1))) << "another store's log was not in doubt";
}

TEST_F(SharedLogTest, a_failed_write_takes_what_all_had_staged_and_nothing_else) {
  append(*a, batch_of(1));
  world->sync_round();
  const Appended lost = append(*a, batch_of(2));
  auto first = acked(*a, lost);
  auto second = acked(*b, append(*b, batch_of(3)));
  log().write_error = Errc::no_space;
  world->turn();
  EXPECT_EQ(first.get().error().code, Errc::no_space);
  EXPECT_EQ(second.get().error().code, Errc::no_space);
  world->sync_round();
  EXPECT_EQ(a->high_watermark(), Offset(1));
  EXPECT_EQ(b->high_watermark(), Offset(0));

  const Appended again = append(*b, batch_of(2));
  EXPECT_EQ(again.base, Offset(0));
  world->sync_round();
  EXPECT_EQ(b->high_watermark(), Offset(2));
  EXPECT_EQ(a->high_watermark(), Offset(1)) << "the positions it had lost are another's now";
  EXPECT_FALSE(a->is_acknowledged(lost, Acks::all));
}

TEST_F(SharedLogTest, an_append_whose_roll_fails_may_take_the_others_of_its_turn_with_it) {
  auto waits = acked(*a, append(*a, batch_of(1)));
  log().append_drops = Errc::no_space;
  EXPECT_EQ(b->append(batch_of(1)).error().code, Errc::no_space);
  EXPECT_EQ(waits.get().error().code, Errc::no_space);
  append(*b, batch_of(4));
  world->sync_round();
  EXPECT_EQ(a->high_watermark(), Offset(0));
  EXPECT_EQ(b->high_watermark(), Offset(4));
}

TEST_F(SharedLogTest, what_a_roll_wrote_before_a_write_failed_is_seen_and_synced) {
  Reader reads_a(*world, a);
  append(*a, batch_of(1));
  log().append_rolls = Errc::no_space;
  log().write_error = Errc::no_space;
  EXPECT_FALSE(b->append(batch_of(1)));
  world->sync_round();
  EXPECT_EQ(a->high_watermark(), Offset(1));
  EXPECT_TRUE(reads_a.told());
  EXPECT_EQ(b->high_watermark(), Offset(0));
}

TEST_F(SharedLogTest, deleting_a_topic_leaves_the_log_to_the_others) {
  const auto other = world->make("b", in_rocketmq);
  auto waits = acked(*other, append(*other, batch_of(1)));
  append(*a, batch_of(1));
  append(*other, batch_of(1));
  Reader reads_a(*world, a), reads_other(*world, other);
  world->turn();
  append(*b, batch_of(1));  // staged when its topic goes
  EXPECT_EQ(world->wait(world->broker().delete_topic("a")).error, Broker::TopicError::none);
  EXPECT_TRUE(reads_a.told()) << "readers look again";
  EXPECT_EQ(a->append(batch_of(1)).error().code, Errc::not_found);
  a.reset();
  b.reset();
  world->sync_round();
  ASSERT_TRUE(waits.done());
  EXPECT_TRUE(waits.get());
  EXPECT_EQ(other->high_watermark(), Offset(2));
  EXPECT_TRUE(reads_other.told());

  const auto again = world->make("a", in_rocketmq);
  EXPECT_EQ(again->high_watermark(), Offset(0));
  auto later = acked(*again, append(*again, batch_of(2)));
  world->sync_round();
  ASSERT_TRUE(later.done());
  EXPECT_TRUE(later.get());
  EXPECT_EQ(again->high_watermark(), Offset(2));
}

TEST_F(SharedLogTest, the_log_outlives_its_last_topic) {
  LogState& state = a->log_state();
  EXPECT_EQ(world->wait(world->broker().delete_topic("a")).error, Broker::TopicError::none);
  const auto next = world->make("next", in_rocketmq);
  EXPECT_EQ(&next->log_state(), &state);
  auto waits = acked(*next, append(*next, batch_of(1)));
  world->sync_round();
  ASSERT_TRUE(waits.done());
  EXPECT_TRUE(waits.get());
}

TEST_F(SharedLogTest, an_epochs_end_is_an_offset_of_the_partition) {
  append(*a, batch_of(4));
  append(*b, batch_of(1));
  world->sync_round();
  const LeaderEpoch first = a->epoch();
  EXPECT_EQ(a->end_of_epoch(first), (EpochEnd{first, LogPosition(4)}));
  EXPECT_EQ(b->end_of_epoch(first), (EpochEnd{first, LogPosition(1)}));
  a.reset();
  b.reset();
  world.reset();

  world.emplace(disk);
  a = world->broker().find("a", 0);
  b = world->broker().find("a", 1);
  EXPECT_EQ(a->high_watermark(), Offset(4));
  const LeaderEpoch second = a->epoch();
  EXPECT_EQ(second, first + 1);
  EXPECT_EQ(a->end_of_epoch(second), (EpochEnd{second, LogPosition(4)}))
      << "not begun yet: it ends where the partition does, not at byte 500";
  EXPECT_EQ(a->end_of_epoch(first), (EpochEnd{first, LogPosition(4)}));
  append(*b, batch_of(2));
  world->sync_round();
  EXPECT_EQ(b->end_of_epoch(first), (EpochEnd{first, LogPosition(1)}));
  EXPECT_EQ(b->end_of_epoch(second), (EpochEnd{second, LogPosition(3)}));
  EXPECT_EQ(a->end_of_epoch(second), (EpochEnd{second, LogPosition(4)}));
}

TEST_F(SharedLogTest, a_stricter_policy_never_takes_back_what_was_shown) {
  const auto topic = world->make("t", flushed("never"));
  append(*topic, batch_of(2));
  world->turn();
  EXPECT_EQ(topic->high_watermark(), Offset(2));
  EXPECT_EQ(world->wait(world->broker().alter_topic("t", in_rocketmq)).error,
            Broker::TopicError::none);
  EXPECT_EQ(topic->high_watermark(), Offset(2));
  append(*topic, batch_of(1));
  world->turn();
  EXPECT_EQ(topic->high_watermark(), Offset(2));
  world->sync_round();
  EXPECT_EQ(topic->high_watermark(), Offset(3));

  EXPECT_EQ(world->wait(world->broker().alter_topic("t", flushed("never"))).error,
            Broker::TopicError::none);
  append(*topic, batch_of(1));
  world->turn();
  EXPECT_EQ(topic->high_watermark(), Offset(4));
  EXPECT_EQ(lookups(), 0);
}

TEST_F(SharedLogTest, a_stricter_policy_covers_what_was_staged_before_it) {
  const auto topic = world->make("t", flushed("never"));
  append(*topic, batch_of(1));
  topic->configure(std::make_shared<const TopicConfig>(a->config()));
  world->turn();
  EXPECT_TRUE(world->durability().run_round());
  world->turn();
  EXPECT_EQ(topic->high_watermark(), Offset(1));
}

TEST_F(SharedLogTest, bounds_after_a_start_are_those_of_the_disk) {
  append(*a, batch_of(2));
  world->sync_round();
  append(*a, batch_of(1));
  append(*b, batch_of(1));
  world->turn();
  a.reset();
  b.reset();
  world.reset();
  world.emplace(disk);  // on a log whose last records no sync has covered
  a = world->broker().find("a", 0);
  b = world->broker().find("a", 1);
  EXPECT_EQ(a->high_watermark(), Offset(2));
  EXPECT_EQ(b->high_watermark(), Offset(0));
  append(*b, batch_of(1));
  world->sync_round();
  EXPECT_EQ(a->high_watermark(), Offset(3));
  EXPECT_EQ(b->high_watermark(), Offset(2));
}

TEST_F(SharedLogTest, records_deleted_by_hand_are_durable_when_it_is_answered) {
  append(*a, batch_of(3));
  world->sync_round();
  auto deleted = world->start(world->broker().delete_records(a, Offset(2)));
  world->run_until([&] {
    world->durability().run_round();
    return deleted.done();
  });
  EXPECT_EQ(deleted.get().value_or(Offset(-1)), Offset(2));
  EXPECT_EQ(a->log_start(), Offset(2));
  EXPECT_EQ(b->log_start(), Offset(0));
}

// ------------------------------------------------------------------------ one store per layout

TEST_F(SharedLogTest, each_topic_lives_in_the_store_of_its_layout) {
  world->make("k");
  EXPECT_TRUE(disk.directories.contains({"k", 0}));
  EXPECT_TRUE(disk.shared->queues.contains({"a", 1}));
  EXPECT_EQ(disk.rows.at("a").layout, "rocketmq");
  EXPECT_EQ(disk.rows.at("k").layout, "kafka");
  EXPECT_NE(&world->broker().store(storage::Layout::kafka),
            &world->broker().store(storage::Layout::rocketmq));
  NewTopic segment;
  segment.name = "s";
  segment.configs["polylog.layout"] = "segment";
  EXPECT_EQ(world->wait(world->broker().create_topic(segment)).message,
            "layout segment is not available in this build");

  auto moved = world->wait(world->broker().alter_topic("k", in_rocketmq));
  EXPECT_EQ(moved.error, Broker::TopicError::invalid_config);
  EXPECT_EQ(moved.message, "a topic stays in the layout it was created in");
  EXPECT_EQ(world->wait(world->broker().alter_topic("a", {})).error, Broker::TopicError::none)
      << "not to name the layout is not to change it";
  EXPECT_EQ(world->broker().find("a")->config.layout, storage::Layout::rocketmq);

  EXPECT_EQ(world->wait(world->broker().delete_topic("a")).error, Broker::TopicError::none);
  EXPECT_TRUE(disk.shared->queues.empty());
  EXPECT_TRUE(world->broker().close());
  EXPECT_EQ(disk.closed, 1);
  EXPECT_EQ(disk.shared->closed, 1);
}

Settings settings_of(const std::map<std::string, std::string>& values) {
  auto settings = Settings::from(values);
  EXPECT_TRUE(settings) << settings.error().to_string();
  return settings.value_or(Settings());
}

TEST(SharedLogLoad, a_topic_keeps_its_layout_when_the_default_changes) {
  FakeDisk disk;
  disk.shared = std::make_unique<SharedFakeDisk>();
  { World(disk).make("k"); }
  {
    World world(disk, settings_of({{"polylog.layout", "rocketmq"}}));
    world.make("r");
    EXPECT_TRUE(disk.shared->queues.contains({"r", 0}));
    EXPECT_EQ(world.broker().find("k")->config.layout, storage::Layout::kafka);
    EXPECT_TRUE(world.broker().find("k", 0)->append(batch_of(1)));
    world.sync_round();
  }
  World world(disk);
  EXPECT_TRUE(world.notes.empty());
  EXPECT_EQ(world.broker().find("r")->config.layout, storage::Layout::rocketmq);
  EXPECT_EQ(world.broker().find("k", 0)->high_watermark(), Offset(1));
}

TEST(SharedLogLoad, topics_that_rocketmq_made_are_adopted_if_kafka_clients_can_name_them) {
  FakeDisk disk;
  disk.shared = std::make_unique<SharedFakeDisk>();
  disk.shared->add({"orders", 0});
  disk.shared->add({"orders", 3});
  disk.shared->add({"a|b", 0});
  {
    World world(disk);
    const auto topic = world.broker().find("orders");
    ASSERT_NE(topic, nullptr);
    EXPECT_EQ(topic->config.layout, storage::Layout::rocketmq);
    EXPECT_TRUE(topic->config.log.retention_suspended);
    EXPECT_EQ(topic->partitions.size(), 4U);
    EXPECT_EQ(disk.rows.at("orders").layout, "rocketmq");
    EXPECT_EQ(disk.rows.size(), 1U);
    EXPECT_EQ(world.notes.size(), 3U);
  }
  World again(disk);
  EXPECT_NE(again.broker().find("orders"), nullptr);
  EXPECT_EQ(again.notes.size(), 1U) << "the name that can't be served";
}

TEST(SharedLogLoad, of_one_name_in_two_stores_the_catalogues_is_served) {
  FakeDisk disk;
  disk.shared = std::make_unique<SharedFakeDisk>();
  { World(disk).make("t", in_rocketmq); }
  FakePartition& other = disk.add({"t", 0}, Uuid::random());
  disk.add({"u", 0}, {});
  disk.shared->add({"u", 0});
  World world(disk);
  EXPECT_EQ(world.broker().find("t")->config.layout, storage::Layout::rocketmq);
  EXPECT_EQ(world.broker().find("u")->config.layout, storage::Layout::kafka) << "the first";
  EXPECT_TRUE(disk.directories.contains({"t", 0})) << "left alone";
  EXPECT_EQ(other.config, storage::LogConfig{});
  ASSERT_EQ(world.notes.size(), 3U);
  EXPECT_NE(world.notes[0].find("topic t: there is another of that name in the kafka store"),
            std::string::npos)
      << world.notes[0];
  EXPECT_NE(world.notes[2].find("in the rocketmq store"), std::string::npos) << world.notes[2];
}

TEST(SharedLogLoad, without_its_engine_a_topic_is_not_served_and_its_deletion_waits) {
  FakeDisk disk;
  disk.shared = std::make_unique<SharedFakeDisk>();
  {
    World world(disk);
    world.make("gone", in_rocketmq);
    world.make("kept", in_rocketmq);
  }
  disk.rows.at("gone").configs["polylog.topic.deleting"] = "true";
  const auto shared = std::move(disk.shared);
  {
    World world(disk);
    EXPECT_TRUE(world.broker().topics().empty());
    EXPECT_EQ(world.notes.size(), 2U);
    EXPECT_TRUE(disk.rows.contains("gone"));
    NewTopic request;
    request.name = "gone";
    EXPECT_EQ(world.wait(world.broker().create_topic(request)).error, Broker::TopicError::exists);
  }
  disk.shared = std::make_unique<SharedFakeDisk>();
  World world(disk);
  EXPECT_FALSE(disk.rows.contains("gone"));
  EXPECT_NE(world.broker().find("kept"), nullptr);
}

TEST(SharedLogLoad, a_partition_that_can_not_be_made_yet_does_not_hold_up_the_log) {
  FakeDisk disk;
  disk.shared = std::make_unique<SharedFakeDisk>();
  { World(disk).make("t", in_rocketmq, 2); }
  disk.shared->queues.erase({"t", 1});
  disk.shared->create_error = Errc::no_space;
  Settings settings;
  settings.checkpoint_interval_ms = 5;
  World world(disk, settings);
  const auto missing = world.broker().find("t", 1);
  ASSERT_NE(missing, nullptr);
  EXPECT_EQ(missing->append(batch_of(1)).error().code, Errc::no_space);
  EXPECT_EQ(missing->high_watermark(), Offset(0));
  const auto there = world.broker().find("t", 0);
  EXPECT_NE(&missing->log_state(), &there->log_state());
  EXPECT_TRUE(there->append(batch_of(1)));
  disk.shared->create_error.reset();
  world.broker().start_background();
  world.run_until([&] { return world.broker().find("t", 1) != missing; });
  EXPECT_EQ(&world.broker().find("t", 1)->log_state(), &there->log_state());
  EXPECT_TRUE(world.broker().find("t", 1)->append(batch_of(1)));
}

TEST(SharedLogBackground, a_store_without_a_shared_log_is_tended_too) {
  FakeDisk disk;
  disk.shared = std::make_unique<SharedFakeDisk>();
  disk.shared->traits.shared_log = false;
  World world(disk, settings_of({{"flushIntervalConsumeQueue", "1"}}));
  world.broker().start_background();
  world.run_until([&] { return disk.shared->tended >= 2; });
}

TEST(SharedLogBackground, every_store_is_kept_up_and_tended_never_twice_at_once) {
  FakeDisk disk;
  disk.shared = std::make_unique<SharedFakeDisk>();
  disk.shared->on_tend = [] { std::this_thread::sleep_for(std::chrono::milliseconds(3)); };
  disk.shared->tend_error = Errc::no_space;
  Settings settings = settings_of({{"flushIntervalConsumeQueue", "1"}});
  settings.retention_check_interval_ms = 5;
  settings.checkpoint_interval_ms = 5;
  World world(disk, settings);
  world.make("k");
  world.make("r", in_rocketmq);
  world.broker().start_background();
  world.run_until([&] { return disk.shared->tended >= 5 && disk.shared->checkpoints > 0; });
  world.pool.drain();
  world.turn();
  EXPECT_EQ(disk.shared->tending_max, 1);
  EXPECT_GT(disk.checkpoints, 0);
  EXPECT_EQ(world.reports.size(), 1U) << "a full disk is told once a minute, not each time";
  world.run_until([&] {
    world.pool.drain();
    return !disk.shared->retained.all().empty() && !disk.retained.all().empty();
  });
  EXPECT_EQ(disk.shared->retained.all().front(), (TopicPartition{"r", 0}));
  EXPECT_EQ(disk.retained.all().front().first, (TopicPartition{"k", 0}));
}

}  // namespace
}  // namespace polylog::broker
