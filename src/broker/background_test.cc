#include <gtest/gtest.h>

#include "broker/broker_fakes.h"

namespace polylog::broker {
namespace {

Settings quick() {
  Settings settings;
  settings.retention_check_interval_ms = 5;
  settings.checkpoint_interval_ms = 5;
  settings.producer_id_expiration_check_ms = 5;
  settings.producer_id_expiration_ms = 1000;
  return settings;
}

TEST(Background, retention_sees_the_visible_end_and_not_the_log_end) {
  FakeDisk disk;
  World world(disk, quick());
  const auto partition = world.make("t");
  ASSERT_TRUE(partition->append(batch_of(3)));
  world.sync_round();
  ASSERT_TRUE(partition->append(batch_of(4)));
  world.turn();
  world.broker().start_background();
  world.run_until([&] { return disk.retained.all().size() >= 2; });
  EXPECT_EQ(disk.retained.all().front().first, (TopicPartition{"t", 0}));
  EXPECT_EQ(disk.retained.all().front().second, Offset(3));
}

TEST(Background, retention_wakes_readers_when_the_log_start_moved) {
  FakeDisk disk;
  World world(disk, quick());
  const auto partition = world.make("t");
  Signal signal(world.reactor.context());
  partition->subscribe(&signal);
  auto waits = world.start(signal.wait(forever));
  world.broker().start_background();
  EXPECT_TRUE(waits.get());
  partition->unsubscribe(&signal);
}

TEST(Background, one_pass_of_retention_visits_every_partition_once) {
  FakeDisk disk;
  Settings settings = quick();
  settings.retention_check_interval_ms = 300;  // the first pass comes after one period
  World world(disk, settings);
  world.make("t", {}, 150);
  world.broker().start_background();
  world.run_until([&] { return disk.retained.all().size() >= 150; });
  std::map<TopicPartition, int> visits;
  const auto retained = disk.retained.all();
  for (std::size_t i = 0; i < 150; ++i) ++visits[retained[i].first];
  EXPECT_EQ(visits.size(), 150U);
}

TEST(Background, producers_are_forgotten_by_the_brokers_clock) {
  FakeDisk disk;
  World world(disk, quick());
  world.make("t");
  const Timestamp expected = world.clock.now() - 1000;
  world.broker().start_background();
  const FakePartition& fake = *disk.directories.at({"t", 0}).partition;
  world.run_until([&] {
    world.pool.drain();
    return fake.expired_before != no_timestamp;
  });
  EXPECT_EQ(fake.expired_before, expected);
}

TEST(Background, the_checkpoint_tick_syncs_what_no_policy_asked_to_be_synced) {
  FakeDisk disk;
  World world(disk, quick());
  const auto lazy = world.make("lazy", {{"polylog.flush", "never"}});
  ASSERT_TRUE(lazy->append(batch_of(1)));
  world.turn();
  EXPECT_FALSE(world.durability().run_round());
  world.broker().start_background();
  world.run_until([&] { return world.durability().run_round() && disk.checkpoints > 0; });
  EXPECT_EQ(world.log_of({"lazy", 0}).durable, LogPosition(1));
}

TEST(Background, logs_behind_their_recovery_points_are_synced_in_one_round_after_the_other) {
  FakeDisk disk;
  World world(disk);
  const auto lazy = world.make("lazy", {{"polylog.flush", "never"}}, 2);
  ASSERT_TRUE(lazy->append(batch_of(1)));
  world.turn();
  EXPECT_EQ(disk.advanced, 0) << "nothing was due";

  disk.points_due = true;
  disk.behind = {disk.directories.at({"lazy", 0}).partition->log()};
  ASSERT_TRUE(lazy->append(batch_of(1)));
  const auto next_look = [&](int looks) {
    world.run_until([&] {
      world.pool.drain();
      return disk.advanced == looks;
    });
    world.turn();
  };
  next_look(1);
  EXPECT_EQ(world.log_of({"lazy", 0}).durable, LogPosition(0));
  ASSERT_TRUE(lazy->append(batch_of(1)));
  world.turn();
  world.pool.drain();
  EXPECT_EQ(disk.advanced, 1) << "the round of the first look has not ended";

  world.sync_round();
  EXPECT_EQ(world.log_of({"lazy", 0}).durable, LogPosition(3));
  next_look(2);
  disk.points_due = false;
  world.sync_round();
  world.pool.drain();
  world.turn();
  EXPECT_EQ(disk.advanced, 2);
}

TEST(Background, a_look_that_finds_no_log_to_sync_lets_the_next_one_come) {
  FakeDisk disk;
  World world(disk);
  const auto partition = world.make("t");
  disk.points_due = true;
  for (int looks = 1; looks <= 3; ++looks) {
    ASSERT_TRUE(partition->append(batch_of(1)));
    world.turn();
    world.run_until([&] {
      world.pool.drain();
      return disk.advanced >= looks;
    });
    world.turn();
  }
}

TEST(Background, a_log_removed_meanwhile_does_not_hold_up_recovery_points) {
  FakeDisk disk;
  World world(disk);
  const auto partition = world.make("t");
  disk.points_due = true;
  disk.behind = {std::make_shared<FakeLog>()};
  for (int looks = 1; looks <= 2; ++looks) {
    ASSERT_TRUE(partition->append(batch_of(1)));
    world.turn();
    world.run_until([&] {
      world.pool.drain();
      return disk.advanced >= looks;
    });
    world.turn();
  }
}

TEST(Background, every_store_is_tended_whether_or_not_its_logs_are_shared) {
  for (const bool shared : {false, true}) {
    FakeDisk disk;
    if (shared) disk.shared = std::make_unique<SharedFakeDisk>();
    Settings settings = quick();
    settings.shared_log.queue_flush_interval_ms = 1;
    World world(disk, settings);
    world.broker().start_background();
    world.run_until([&] { return disk.tended > 0; });
    world.pool.drain();
  }
}

TEST(Background, an_interval_topic_is_synced_once_its_interval_is_over) {
  FakeDisk disk;
  World world(disk);
  const auto partition = world.make("t", {{"polylog.flush", "interval:20"}});
  ASSERT_TRUE(partition->append(batch_of(1)));
  world.turn();
  EXPECT_EQ(partition->high_watermark(), Offset(1));
  EXPECT_FALSE(world.durability().run_round());
  ASSERT_TRUE(partition->append(batch_of(1)));
  world.turn();
  world.clock.advance_ms(20);
  world.run_until([&] { return world.durability().run_round(); });
  EXPECT_EQ(world.log_of({"t", 0}).durable, LogPosition(2));
  EXPECT_EQ(world.log_of({"t", 0}).file->syncs, 1) << "one sync for both appends";

  ASSERT_TRUE(partition->append(batch_of(1)));
  world.turn();
  EXPECT_FALSE(world.durability().run_round());
  world.clock.advance_ms(20);
  world.run_until([&] { return world.durability().run_round(); });
  EXPECT_EQ(world.log_of({"t", 0}).durable, LogPosition(3));
}

TEST(Background, a_deletion_left_unfinished_is_finished_and_the_name_free_again) {
  FakeDisk disk;
  World world(disk, quick());
  world.make("t");
  disk.remove_error = Errc::io;
  EXPECT_EQ(world.wait(world.broker().delete_topic("t")).error, Broker::TopicError::none);
  EXPECT_TRUE(disk.directories.contains({"t", 0}));
  disk.remove_error.reset();
  world.broker().start_background();
  world.run_until([&] {
    world.pool.drain();
    return disk.rows.empty();
  });
  EXPECT_TRUE(disk.directories.empty());
  world.turn();
  world.make("t");
}

TEST(Background, a_removal_that_failed_and_is_not_known_to_be_done_waits_for_the_next_start) {
  FakeDisk disk;
  {
    World world(disk, quick());
    world.make("t", {}, 2);
    disk.remove_error = Errc::io;
    disk.remove_forgets = true;
    EXPECT_EQ(world.wait(world.broker().delete_topic("t")).error, Broker::TopicError::none);
    disk.remove_error.reset();
    world.broker().start_background();
    world.run_until([&] {
      world.pool.drain();
      return disk.checkpoints > 3;
    });
    EXPECT_TRUE(disk.rows.contains("t")) << "its directory may be back after a crash";
  }
  disk.add({"t", 0}, disk.rows.at("t").id);
  World world(disk);
  EXPECT_EQ(world.broker().find("t"), nullptr);
  EXPECT_TRUE(disk.rows.empty());
  EXPECT_TRUE(disk.directories.empty());
}

TEST(Close, writes_and_syncs_what_is_staged_then_closes_the_store) {
  FakeDisk disk;
  World world(disk);
  const auto eager = world.make("eager");
  const auto lazy = world.make("lazy", {{"polylog.flush", "never"}});
  const Partition::Appended appended = *eager->append(batch_of(2));
  ASSERT_TRUE(lazy->append(batch_of(3)));
  auto waits = world.start(eager->acknowledged(appended, Acks::all, forever));
  EXPECT_TRUE(world.broker().close());
  EXPECT_EQ(world.log_of({"eager", 0}).durable, LogPosition(2));
  EXPECT_EQ(world.log_of({"lazy", 0}).durable, LogPosition(3));
  EXPECT_EQ(disk.closed, 1);
  EXPECT_TRUE(waits.get()) << "durable is durable, stopping or not";
  EXPECT_TRUE(world.broker().closing());
  EXPECT_EQ(eager->append(batch_of(1)).error().code, Errc::unavailable);
  NewTopic request;
  request.name = "t";
  EXPECT_EQ(world.wait(world.broker().create_topic(request)).error, Broker::TopicError::storage);
  EXPECT_TRUE(world.broker().close()) << "twice is once";
  EXPECT_EQ(disk.closed, 1);
}

TEST(Close, a_sync_that_fails_while_stopping_fails_its_waiters) {
  FakeDisk disk;
  World world(disk);
  const auto partition = world.make("t");
  const Partition::Appended appended = *partition->append(batch_of(2));
  auto waits = world.start(partition->acknowledged(appended, Acks::all, forever));
  world.turn();
  world.log_of({"t", 0}).file->sync_error = Errc::io;
  EXPECT_TRUE(world.broker().close());
  EXPECT_EQ(waits.get().error().code, Errc::io);
  EXPECT_EQ(world.reports.size(), 1U);
}

TEST(Close, a_broker_dropped_without_closing_leaves_nothing_that_runs_into_it) {
  FakeDisk disk;
  Reactor reactor;
  Pool pool(reactor, 1);
  FakeFileSystem fs;
  ManualClock clock(Timestamp(0));
  const Settings settings = quick();
  Broker::Stores stores;
  stores.kafka = std::make_unique<FakeStore>(disk);
  auto broker =
      std::make_unique<Broker>(reactor, pool, fs, clock, settings,
                               std::make_unique<FakeCatalog>(disk), std::move(stores));
  ASSERT_TRUE(broker->load());
  NewTopic request;
  request.name = "t";
  Pending<Broker::TopicOutcome> made(reactor, broker->create_topic(request));
  ASSERT_EQ(made.get().error, Broker::TopicError::none);
  auto partition = broker->find("t", 0);
  const Partition::Appended appended = *partition->append(batch_of(2));
  Pending<Result<void>> waits(reactor, partition->acknowledged(appended, Acks::all, forever));
  broker->start_background();
  partition.reset();
  reactor.context().poll_one();
  broker.reset();
  reactor.context().poll();
  SUCCEED();
}

TEST(ThreadedBroker, acknowledges_through_the_real_sync_thread) {
  FakeDisk disk;
  Reactor reactor;
  Pool pool(reactor, 1);
  FakeFileSystem fs;
  ManualClock clock(Timestamp(0));
  const Settings settings;
  Broker::Stores stores;
  stores.kafka = std::make_unique<FakeStore>(disk);
  stores.volume = fs.volume();
  Broker broker(reactor, pool, fs, clock, settings, std::make_unique<FakeCatalog>(disk),
                std::move(stores));
  ASSERT_TRUE(broker.load());
  NewTopic request;
  request.name = "t";
  Pending<Broker::TopicOutcome> made(reactor, broker.create_topic(request));
  ASSERT_EQ(made.get().error, Broker::TopicError::none);
  const auto partition = broker.find("t", 0);
  for (int i = 0; i < 200; ++i) {
    const Partition::Appended appended = *partition->append(batch_of(1));
    Pending<Result<void>> waits(reactor, partition->acknowledged(appended, Acks::all, forever));
    ASSERT_TRUE(waits.get());
  }
  EXPECT_EQ(partition->high_watermark(), Offset(200));
  EXPECT_TRUE(broker.close());
}

}  // namespace
}  // namespace polylog::broker
