#include "broker/partition.h"

#include <thread>

#include <gtest/gtest.h>

#include "broker/broker_fakes.h"

namespace polylog::broker {
namespace {

using Appended = Partition::Appended;
using Verdict = ProducerState::Verdict;

const std::map<std::string, std::string> flush_never{{"polylog.flush", "never"}};

struct PartitionTest : testing::Test {
  Appended append(Batch batch) {
    const Result<Appended> appended = partition->append(std::move(batch));
    EXPECT_TRUE(appended) << appended.error().to_string();
    return appended.value_or(Appended{});
  }
  Pending<Result<void>> acked(Appended appended, Acks acks = Acks::all,
                              std::int64_t deadline = forever) {
    return world.start(partition->acknowledged(appended, acks, deadline));
  }
  FakeLog& log() { return world.log_of({"t", 0}); }
  static Errc code(Pending<Result<void>>& pending) {
    const Result<void> result = pending.get();
    EXPECT_FALSE(result);
    return result ? Errc::invalid : result.error().code;
  }

  FakeDisk disk;
  World world{disk};
  std::shared_ptr<Partition> partition = world.make("t");
};

TEST_F(PartitionTest, under_flush_ack_a_record_is_visible_only_when_it_is_durable) {
  append(batch_of(3));
  EXPECT_EQ(partition->high_watermark(), Offset(0));
  world.turn();
  EXPECT_EQ(log().written, LogPosition(3));
  EXPECT_EQ(partition->high_watermark(), Offset(0));
  auto nothing = partition->read(Offset(0), {}, Isolation::read_uncommitted);
  ASSERT_TRUE(nothing);
  EXPECT_TRUE(nothing->empty());
  auto between = partition->read(Offset(2), {}, Isolation::read_uncommitted);
  ASSERT_TRUE(between) << "an offset that exists but is not shown yet is no error";
  EXPECT_TRUE(between->empty());
  EXPECT_FALSE(partition->read(Offset(4), {}, Isolation::read_uncommitted));

  world.sync_round();
  EXPECT_EQ(partition->high_watermark(), Offset(3));
  EXPECT_EQ(partition->read(Offset(0), {}, Isolation::read_uncommitted)->size(), 1U);
}

TEST_F(PartitionTest, every_append_under_flush_ack_submits_a_sync_waiter_or_not) {
  append(batch_of(1));
  world.turn();
  EXPECT_TRUE(world.durability().run_round());
  world.turn();
  EXPECT_EQ(partition->high_watermark(), Offset(1));
}

TEST_F(PartitionTest, acks_one_is_answered_before_the_sync_and_acks_all_after_it) {
  const Appended appended = append(batch_of(2));
  auto none = acked(appended, Acks::none);
  auto leader = acked(appended, Acks::leader);
  auto all = acked(appended, Acks::all);
  EXPECT_TRUE(partition->is_acknowledged(appended, Acks::none));
  EXPECT_FALSE(partition->is_acknowledged(appended, Acks::leader));
  world.turn();
  EXPECT_TRUE(none.done());
  ASSERT_TRUE(leader.done());
  EXPECT_TRUE(leader.get());
  EXPECT_FALSE(all.done());
  EXPECT_FALSE(partition->is_acknowledged(appended, Acks::all));
  world.sync_round();
  ASSERT_TRUE(all.done());
  EXPECT_TRUE(all.get());
  EXPECT_TRUE(partition->is_acknowledged(appended, Acks::all));
}

TEST_F(PartitionTest, two_appends_in_a_turn_make_one_write) {
  const Appended first = append(batch_of(2));
  const Appended second = append(batch_of(3));
  EXPECT_EQ(first.base, Offset(0));
  EXPECT_EQ(second.base, Offset(2));
  world.turn();
  EXPECT_EQ(log().writes, 1);
  append(batch_of(1));
  world.turn();
  EXPECT_EQ(log().writes, 2);
}

TEST_F(PartitionTest, appends_queued_behind_the_first_one_of_a_turn_join_its_write) {
  for (int i = 0; i < 5; ++i) world.reactor.post([this] { append(batch_of(1)); });
  world.turn();
  EXPECT_EQ(log().writes, 1);
  EXPECT_EQ(log().written, LogPosition(5));
}

TEST_F(PartitionTest, one_sync_round_answers_all_that_piled_up) {
  auto first = acked(append(batch_of(1)));
  world.turn();
  auto second = acked(append(batch_of(1)));
  world.turn();
  const int before = log().file->syncs;
  world.sync_round();
  EXPECT_EQ(log().file->syncs, before + 1);
  EXPECT_TRUE(first.done());
  EXPECT_TRUE(second.done());
}

TEST_F(PartitionTest, a_turn_over_many_logs_writes_each_once_and_an_error_costs_its_own_log) {
  constexpr std::int32_t count = 300;
  world.make("many", {}, count);
  std::vector<Pending<Result<void>>> answers;
  for (std::int32_t i = 0; i < count; ++i) {
    const auto one = world.broker().find("many", i);
    const Result<Appended> appended = one->append(batch_of(2));
    ASSERT_TRUE(appended);
    if (i % 5 == 0) world.log_of({"many", i}).write_error = Errc::no_space;
    answers.push_back(world.start(one->acknowledged(*appended, Acks::all, forever)));
  }
  world.sync_round();
  for (std::int32_t i = 0; i < count; ++i) {
    const FakeLog& log = world.log_of({"many", i});
    EXPECT_EQ(log.writes, 1) << i;
    const bool failed = i % 5 == 0;
    EXPECT_EQ(log.written, LogPosition(failed ? 0 : 2)) << i;
    EXPECT_EQ(log.durable, log.written) << "one round covers them all: " << i;
    const Result<void> answer = answers[static_cast<std::size_t>(i)].get();
    EXPECT_EQ(answer.has_value(), !failed) << i;
  }
}

TEST_F(PartitionTest, a_turn_over_very_many_logs_is_written_before_the_requests_behind_are_read) {
  constexpr std::int32_t count = 500;
  world.make("many", {}, count);
  std::vector<Pending<Result<void>>> answers;
  std::int32_t written_early = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    FakeLog& log = world.log_of({"many", i});
    if (i % 5 == 0) log.write_error = Errc::no_space;
    const auto one = world.broker().find("many", i);
    const Result<Appended> appended = one->append(batch_of(2));
    ASSERT_TRUE(appended) << i;
    if (log.writes > 0) written_early = i + 1;
    answers.push_back(world.start(one->acknowledged(*appended, Acks::all, forever)));
  }
  EXPECT_GT(written_early, 0);
  EXPECT_LT(written_early, count);
  EXPECT_EQ(world.log_of({"many", 0}).writes, 1);
  EXPECT_EQ(world.log_of({"many", count - 1}).writes, 0);
  world.sync_round();
  for (std::int32_t i = 0; i < count; ++i) {
    const FakeLog& log = world.log_of({"many", i});
    EXPECT_EQ(log.writes, 1) << i;
    EXPECT_EQ(log.durable, LogPosition(i % 5 == 0 ? 0 : 2)) << i;
    EXPECT_EQ(answers[static_cast<std::size_t>(i)].get().has_value(), i % 5 != 0) << i;
  }
}

TEST_F(PartitionTest, a_duplicate_waits_for_its_original) {
  const Appended original = append(batch_of(2, 9));
  const Appended again = append(batch_of(2, 9));
  EXPECT_EQ(again.verdict, Verdict::duplicate);
  EXPECT_EQ(again.base, original.base);
  EXPECT_EQ(again.end, original.end);
  EXPECT_EQ(again.duplicate_timestamp, Timestamp(1'700'000'000'000));
  auto waits = acked(again);
  world.turn();
  EXPECT_EQ(log().written, LogPosition(2)) << "written once";
  EXPECT_FALSE(waits.done());
  world.sync_round();
  EXPECT_TRUE(waits.get());
}

TEST_F(PartitionTest, a_duplicate_fails_when_the_log_of_its_original_failed) {
  append(batch_of(2, 9));
  auto waits = acked(append(batch_of(2, 9)));
  log().file->sync_error = Errc::io;
  world.sync_round();
  EXPECT_EQ(code(waits), Errc::io);
  EXPECT_FALSE(partition->append(batch_of(2, 9)));
}

TEST_F(PartitionTest, a_sequence_gap_is_refused_and_nothing_is_staged) {
  append(batch_of(2, 9));
  const Appended gap = append(batch_of(1, 9, 5));
  EXPECT_EQ(gap.verdict, Verdict::out_of_order_sequence);
  world.turn();
  EXPECT_EQ(log().written, LogPosition(2));
}

TEST_F(PartitionTest, a_failed_sync_closes_the_log_for_writes_and_reads_go_on) {
  append(batch_of(2));
  world.sync_round();
  const Appended appended = append(batch_of(1));
  auto all = acked(appended);
  auto leader = acked(appended, Acks::leader);
  world.turn();
  log().file->sync_error = Errc::no_space;
  world.sync_round();
  EXPECT_EQ(code(all), Errc::no_space);
  EXPECT_TRUE(leader.get());
  auto late = acked(appended);
  EXPECT_EQ(code(late), Errc::no_space);
  const auto refused = partition->append(batch_of(1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::unavailable);
  EXPECT_EQ(partition->high_watermark(), Offset(2));
  EXPECT_EQ(partition->read(Offset(0), {}, Isolation::read_uncommitted)->size(), 1U);
  EXPECT_EQ(world.reports.size(), 1U);

  log().file->sync_error.reset();
  world.sync_round();
  EXPECT_FALSE(partition->append(batch_of(1))) << "a later good sync proves nothing";
}

TEST_F(PartitionTest, a_sync_that_fails_takes_every_log_of_its_round_with_it) {
  const auto other = world.make("other");
  append(batch_of(1));
  ASSERT_TRUE(other->append(batch_of(1)));
  log().file->sync_error = Errc::io;
  world.sync_round();
  EXPECT_FALSE(partition->append(batch_of(1)));
  EXPECT_FALSE(other->append(batch_of(1)));
  EXPECT_EQ(world.reports.size(), 1U) << "one line for the round";
}

TEST_F(PartitionTest, a_full_disk_fails_the_waiters_and_later_appends_work) {
  append(batch_of(2));
  world.turn();
  log().write_error = Errc::no_space;
  const Appended lost = append(batch_of(3, 9));
  auto leader = acked(lost, Acks::leader);
  auto all = acked(lost, Acks::all);
  world.turn();
  EXPECT_EQ(code(leader), Errc::no_space);
  EXPECT_EQ(code(all), Errc::no_space);

  const Appended again = append(batch_of(3, 9));
  EXPECT_EQ(again.verdict, Verdict::accept) << "what was not written is no duplicate";
  EXPECT_EQ(again.base, Offset(2));
  auto retried = acked(again);
  world.sync_round();
  EXPECT_TRUE(retried.get());
  EXPECT_EQ(partition->high_watermark(), Offset(5));
}

TEST_F(PartitionTest, a_failed_write_leaves_earlier_waiters_waiting_for_their_sync) {
  auto earlier = acked(append(batch_of(2)));
  world.turn();
  log().write_error = Errc::io;
  append(batch_of(1));
  world.turn();
  EXPECT_FALSE(earlier.done());
  world.sync_round();
  EXPECT_TRUE(earlier.get());
  EXPECT_TRUE(partition->append(batch_of(1))) << "the engine cut the file back: usable";
}

TEST_F(PartitionTest, who_asks_late_about_a_lost_batch_is_not_fooled_by_its_reused_offsets) {
  log().write_error = Errc::no_space;
  const Appended lost = append(batch_of(3));
  world.turn();
  const Appended other = append(batch_of(3));
  EXPECT_EQ(other.end, lost.end);
  world.sync_round();
  auto late = acked(lost);
  EXPECT_FALSE(partition->is_acknowledged(lost, Acks::all));
  EXPECT_EQ(code(late), Errc::no_space);
  EXPECT_TRUE(partition->is_acknowledged(other, Acks::all));
  EXPECT_TRUE(acked(other).get());
}

TEST_F(PartitionTest, who_asks_late_about_a_written_batch_is_answered_after_another_was_lost) {
  const Appended kept = append(batch_of(1));
  world.turn();
  log().write_error = Errc::no_space;
  append(batch_of(1));
  world.turn();
  EXPECT_TRUE(acked(kept, Acks::leader).get());
  world.sync_round();
  EXPECT_TRUE(acked(kept, Acks::all).get());
}

TEST_F(PartitionTest, what_a_failed_roll_drops_of_a_turn_is_told_to_those_who_staged_it) {
  append(batch_of(1));
  world.sync_round();
  const Appended lost = append(batch_of(3));
  auto waits = acked(lost);
  log().append_drops = Errc::no_space;
  EXPECT_FALSE(partition->append(batch_of(1)));
  const int before = log().writes;
  const Appended next = append(batch_of(3));
  EXPECT_EQ(next.end, lost.end);
  auto later = acked(next);
  world.turn();
  EXPECT_EQ(log().writes, before + 1) << "the log is written once at the end of its turn";
  EXPECT_EQ(code(waits), Errc::no_space);
  world.sync_round();
  EXPECT_TRUE(later.get());
  auto late = acked(lost);
  EXPECT_EQ(code(late), Errc::no_space);
}

TEST_F(PartitionTest, an_append_that_fails_alone_leaves_the_rest_of_its_turn) {
  auto waits = acked(append(batch_of(3)));
  log().append_error = Errc::too_large;
  EXPECT_FALSE(partition->append(batch_of(1)));
  log().append_error.reset();
  append(batch_of(1));
  world.sync_round();
  EXPECT_TRUE(waits.get());
  EXPECT_EQ(partition->high_watermark(), Offset(4));
}

TEST_F(PartitionTest, an_engine_that_could_not_cut_back_refuses_further_writes) {
  log().write_error = Errc::unavailable;
  auto waits = acked(append(batch_of(1)));
  world.turn();
  EXPECT_EQ(code(waits), Errc::unavailable);
  EXPECT_FALSE(partition->append(batch_of(1)));
}

TEST_F(PartitionTest, no_room_before_a_sync_is_tried_again_by_itself) {
  log().dirty_error = Errc::no_space;
  auto waits = acked(append(batch_of(1)));
  world.sync_round();
  EXPECT_EQ(code(waits), Errc::no_space);
  EXPECT_TRUE(partition->append(batch_of(1))) << "nothing is in doubt";
  world.sync_round();
  log().dirty_error.reset();
  world.run_until([&] { return world.durability().run_round(); });
  world.turn();
  EXPECT_EQ(partition->high_watermark(), Offset(2));
}

TEST_F(PartitionTest, a_deadline_answers_timed_out_and_the_batch_still_becomes_visible) {
  const std::int64_t soon = SystemClock().steady_ns() + 5'000'000;
  auto waits = acked(append(batch_of(1)), Acks::all, soon);
  EXPECT_EQ(code(waits), Errc::timed_out);
  world.sync_round();
  EXPECT_EQ(partition->high_watermark(), Offset(1));
}

TEST_F(PartitionTest, without_flush_ack_written_is_visible_and_acknowledged) {
  const auto lazy = world.make("lazy", flush_never);
  const Result<Appended> appended = lazy->append(batch_of(2));
  ASSERT_TRUE(appended);
  const Appended staged = *appended;
  auto all = world.start(lazy->acknowledged(staged, Acks::all, forever));
  world.turn();
  EXPECT_TRUE(all.done());
  EXPECT_EQ(lazy->high_watermark(), Offset(2));
  EXPECT_FALSE(world.durability().run_round()) << "nobody asked for a sync";
}

TEST_F(PartitionTest, what_was_shown_under_a_weaker_policy_stays_shown) {
  const auto lazy = world.make("lazy", flush_never);
  ASSERT_TRUE(lazy->append(batch_of(2)));
  world.turn();
  ASSERT_EQ(lazy->high_watermark(), Offset(2));
  const std::map<std::string, std::string> ack{{"polylog.flush", "ack"}};
  EXPECT_EQ(world.wait(world.broker().alter_topic("lazy", ack)).error, Broker::TopicError::none);
  EXPECT_EQ(lazy->high_watermark(), Offset(2));
  ASSERT_TRUE(lazy->append(batch_of(1)));
  world.turn();
  EXPECT_EQ(lazy->high_watermark(), Offset(2));
  world.sync_round();
  EXPECT_EQ(lazy->high_watermark(), Offset(3));
}

TEST_F(PartitionTest, the_last_stable_offset_is_bounded_by_transactions_and_by_the_visible_end) {
  append(batch_of(4));
  world.turn();
  EXPECT_EQ(partition->last_stable(), Offset(0));
  world.sync_round();
  EXPECT_EQ(partition->last_stable(), Offset(4));
  disk.directories.at({"t", 0}).partition->unstable = Offset(1);
  EXPECT_EQ(partition->last_stable(), Offset(1));
  EXPECT_EQ(partition->visible_end(Isolation::read_committed), Offset(1));
  EXPECT_EQ(partition->visible_end(Isolation::read_uncommitted), Offset(4));
  auto beyond = partition->read(Offset(3), {}, Isolation::read_committed);
  ASSERT_TRUE(beyond);
  EXPECT_TRUE(beyond->empty());
}

TEST_F(PartitionTest, readers_are_woken_when_the_visible_end_moves_and_not_before) {
  Signal signal(world.reactor.context());
  partition->subscribe(&signal);
  auto waits = world.start(signal.wait(forever));
  append(batch_of(1));
  world.turn();
  EXPECT_FALSE(waits.done());
  world.sync_round();
  EXPECT_TRUE(waits.done());
  partition->unsubscribe(&signal);
}

TEST_F(PartitionTest, readers_of_a_lazy_topic_are_woken_by_the_write) {
  const auto lazy = world.make("lazy", flush_never);
  Signal signal(world.reactor.context());
  lazy->subscribe(&signal);
  auto waits = world.start(signal.wait(forever));
  ASSERT_TRUE(lazy->append(batch_of(1)));
  world.turn();
  EXPECT_TRUE(waits.done());
  lazy->unsubscribe(&signal);
}

TEST_F(PartitionTest, delete_records_is_durable_when_it_answers) {
  append(batch_of(5));
  world.sync_round();
  auto cut = world.start(world.broker().delete_records(partition, Offset(3)));
  world.run_until([&] { return partition->log().offsets().start == Offset(3); });
  world.run_until([&] { return world.durability().run_round() || cut.done(); });
  world.turn();
  ASSERT_TRUE(cut.done());
  EXPECT_FALSE(log().start_dirty);
  EXPECT_EQ(*cut.get(), Offset(3));
  EXPECT_EQ(partition->log_start(), Offset(3));
}

TEST_F(PartitionTest, delete_records_beyond_the_visible_end_is_out_of_range) {
  append(batch_of(5));
  world.turn();
  const auto cut = world.wait(world.broker().delete_records(partition, Offset(5)));
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, Errc::out_of_range);
}

TEST_F(PartitionTest, delete_records_fails_when_its_sync_does) {
  append(batch_of(5));
  world.sync_round();
  auto cut = world.start(world.broker().delete_records(partition, Offset(3)));
  log().file->sync_error = Errc::io;
  world.run_until([&] { return world.durability().run_round(); });
  EXPECT_FALSE(cut.get());
}

TEST(PartitionEpoch, a_new_log_begins_epoch_zero_at_its_first_append) {
  FakeDisk disk;
  World world(disk);
  const auto partition = world.make("t");
  EXPECT_EQ(partition->epoch(), LeaderEpoch(0));
  EXPECT_TRUE(world.log_of({"t", 0}).epochs_begun.empty());
  ASSERT_TRUE(partition->append(batch_of(1)));
  ASSERT_TRUE(partition->append(batch_of(1)));
  EXPECT_EQ(world.log_of({"t", 0}).epochs_begun.size(), 1U);
}

struct LoadedLog {
  explicit LoadedLog(bool unclean) {
    meta::TopicRecord row;
    row.name = "t";
    row.id.bytes[3] = 1;
    disk.rows["t"] = row;
    FakeLog& log = *disk.add({"t", 0}, row.id).fake;
    log.latest_epoch = LeaderEpoch(4);
    log.was_unclean = unclean;
    log.written = log.durable = LogPosition(7);
  }
  FakeDisk disk;
};

TEST(PartitionEpoch, an_unclean_log_gets_the_next_epoch_at_its_first_append_only) {
  LoadedLog loaded(true);
  World world(loaded.disk);
  const auto partition = world.broker().find("t", 0);
  FakeLog& log = world.log_of({"t", 0});
  EXPECT_EQ(partition->epoch(), LeaderEpoch(5));
  EXPECT_EQ(partition->end_of_epoch(LeaderEpoch(5)), (EpochEnd{LeaderEpoch(5), LogPosition(7)}));
  EXPECT_TRUE(log.epochs_begun.empty()) << "nothing is written for who only reads";
  ASSERT_TRUE(partition->append(batch_of(1)));
  ASSERT_TRUE(partition->append(batch_of(1)));
  ASSERT_EQ(log.epochs_begun.size(), 1U);
  EXPECT_EQ(log.epochs_begun[0], std::pair(LeaderEpoch(5), LogPosition(7)));
  EXPECT_EQ(partition->epoch(), LeaderEpoch(5));
}

TEST(PartitionEpoch, one_between_the_last_that_has_records_and_ours_ended_where_ours_begins) {
  LoadedLog loaded(true);
  World world(loaded.disk);
  const auto partition = world.broker().find("t", 0);
  FakeLog& log = world.log_of({"t", 0});
  const auto end_of = [&](std::int32_t epoch) {
    return partition->end_of_epoch(LeaderEpoch(epoch));
  };
  EXPECT_EQ(end_of(3), EpochEnd()) << "its records are of epochs that nobody knows";
  log.epochs.assign(LeaderEpoch(1), LogPosition(0));
  log.epochs.assign(LeaderEpoch(2), LogPosition(3));
  EXPECT_EQ(end_of(0), (EpochEnd{LeaderEpoch(0), LogPosition(0)}));
  EXPECT_EQ(end_of(1), (EpochEnd{LeaderEpoch(1), LogPosition(3)}));
  for (const std::int32_t epoch : {2, 3, 4}) {
    EXPECT_EQ(end_of(epoch), (EpochEnd{LeaderEpoch(2), LogPosition(7)})) << epoch;
  }
  EXPECT_EQ(end_of(5), (EpochEnd{LeaderEpoch(5), LogPosition(7)}));
  EXPECT_EQ(end_of(6), EpochEnd()) << "later than ours";
  log.epochs = EpochList();
  log.start = LogPosition(7);
  EXPECT_EQ(end_of(3), (EpochEnd{LeaderEpoch(3), LogPosition(7)})) << "there are no records";
}

TEST(PartitionEpoch, no_start_reports_a_lower_epoch_than_an_earlier_one) {
  LoadedLog loaded(true);
  FakeLog& log = *loaded.disk.directories.at({"t", 0}).partition->fake;
  {
    World world(loaded.disk);
    EXPECT_EQ(world.broker().find("t", 0)->epoch(), LeaderEpoch(5));
    EXPECT_TRUE(world.broker().close());
    EXPECT_TRUE(log.epochs_begun.empty()) << "nothing was appended, nothing is recorded";
  }
  log.was_unclean = false;
  {
    World world(loaded.disk);
    EXPECT_EQ(world.broker().find("t", 0)->epoch(), LeaderEpoch(5));
    ASSERT_TRUE(world.broker().find("t", 0)->append(batch_of(1)));
    EXPECT_TRUE(world.broker().close());
  }
  World world(loaded.disk);
  EXPECT_EQ(world.broker().find("t", 0)->epoch(), LeaderEpoch(6));
}

TEST(Generations, many_failures_in_one_place_are_remembered_as_one) {
  Generations generations;
  for (int i = 0; i < 1000; ++i) generations.end(LogPosition(10));
  EXPECT_TRUE(generations.kept(0, LogPosition(10)));
  EXPECT_FALSE(generations.kept(0, LogPosition(11)));
  EXPECT_FALSE(generations.kept(999, LogPosition(11)));
  EXPECT_TRUE(generations.kept(1000, LogPosition(11)));
}

TEST(Generations, what_nobody_remembers_is_not_vouched_for) {
  Generations generations;
  for (int i = 0; i < 200; ++i) generations.end(LogPosition(i));
  EXPECT_FALSE(generations.kept(0, LogPosition(0)));
  EXPECT_TRUE(generations.kept(199, LogPosition(199)));
  EXPECT_FALSE(generations.kept(199, LogPosition(200)));
}

}  // namespace
}  // namespace polylog::broker
