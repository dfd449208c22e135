#include "broker/turn_writes.h"

#include <atomic>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "broker/broker_fakes.h"

namespace polylog::broker {
namespace {

using Logs = std::vector<std::shared_ptr<storage::Log>>;

// Stays in its write until it is let go.
struct HeldLog final : FakeLog {
  std::atomic<bool> begun = false, released = false;

  Result<void> write_staged() override {
    begun = true;
    begun.notify_all();
    released.wait(false);
    return FakeLog::write_staged();
  }
};

std::vector<std::shared_ptr<FakeLog>> fakes(std::size_t count) {
  std::vector<std::shared_ptr<FakeLog>> logs;
  for (std::size_t i = 0; i < count; ++i) logs.push_back(std::make_shared<FakeLog>());
  return logs;
}

TEST(TurnWrites, every_log_is_written_once_when_nobody_helps) {
  const auto logs = fakes(3);
  logs[1]->write_error = Errc::no_space;
  TurnWrites writes(Logs(logs.begin(), logs.end()));
  EXPECT_TRUE(writes.outcome(0));
  const Result<void> failed = writes.outcome(1);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::no_space);
  EXPECT_TRUE(writes.outcome(2));
  for (const auto& log : logs) EXPECT_EQ(log->writes, 1);
}

TEST(TurnWrites, every_log_is_written_once_and_has_its_own_outcome_whoever_wrote_it) {
  const auto held = std::make_shared<HeldLog>();
  held->write_error = Errc::no_space;
  auto logs = fakes(500);
  for (std::size_t i = 0; i < logs.size(); i += 7) logs[i]->write_error = Errc::io;
  logs.insert(logs.begin(), held);
  TurnWrites writes(Logs(logs.begin(), logs.end()));
  std::thread helper([&] { writes.help(); });
  held->begun.wait(false);  // the helper has the first one, whatever becomes of the others
  held->released = true;
  held->released.notify_all();
  const Result<void> first = writes.outcome(0);
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, Errc::no_space);
  for (std::size_t i = 1; i < logs.size(); ++i) {
    EXPECT_EQ(writes.outcome(i).has_value(), (i - 1) % 7 != 0) << i;
  }
  helper.join();
  for (const auto& log : logs) EXPECT_EQ(log->writes, 1);
}

TEST(TurnWrites, a_helper_alone_writes_them_all_and_each_outcome_is_told) {
  const auto logs = fakes(5);
  logs[3]->write_error = Errc::io;
  TurnWrites writes(Logs(logs.begin(), logs.end()));
  std::thread([&] { writes.help(); }).join();
  for (const auto& log : logs) EXPECT_EQ(log->writes, 1);
  for (std::size_t i = 0; i < logs.size(); ++i) {
    EXPECT_EQ(writes.outcome(i).has_value(), i != 3) << i;
  }
  for (const auto& log : logs) EXPECT_EQ(log->writes, 1);
}

TEST(TurnWrites, one_slow_write_elsewhere_keeps_no_other_log_waiting) {
  const auto held = std::make_shared<HeldLog>();
  const auto logs = fakes(20);
  Logs all{held};
  all.insert(all.end(), logs.begin(), logs.end());
  TurnWrites writes(std::move(all));
  std::thread helper([&] { writes.help(); });
  held->begun.wait(false);
  std::thread reactor([&] { EXPECT_TRUE(writes.outcome(0)); });
  for (const auto& log : logs) {
    const auto written = [&] {
      const std::lock_guard lock(log->mutex);
      return log->writes > 0;
    };
    while (!written()) std::this_thread::yield();
  }
  held->released = true;
  held->released.notify_all();
  helper.join();
  reactor.join();
  EXPECT_EQ(held->writes, 1);
}

TEST(TurnWrites, a_log_is_let_go_with_its_outcome_and_a_late_helper_finds_nothing) {
  auto logs = fakes(2);
  TurnWrites writes(Logs(logs.begin(), logs.end()));
  const std::weak_ptr<FakeLog> first = logs[0];
  EXPECT_TRUE(writes.outcome(0));
  logs.clear();
  EXPECT_TRUE(first.expired());
  EXPECT_TRUE(writes.outcome(1));
  writes.help();
}

// Threads that are busy: what is submitted waits here.
struct BusyThreads {
  std::vector<std::function<void()>> tasks;
  bool full = false;

  TurnHelp::Submit submit() {
    return [this](std::function<void()> task) {
      if (!full) tasks.push_back(std::move(task));
      return !full;
    };
  }
  void run() {
    for (const auto& task : std::exchange(tasks, {})) task();
  }
};

std::shared_ptr<TurnWrites> turn_over(const std::vector<std::shared_ptr<FakeLog>>& logs) {
  return std::make_shared<TurnWrites>(Logs(logs.begin(), logs.end()));
}

TEST(TurnHelp, one_call_waits_however_many_turns_pass_and_keeps_none_of_them) {
  BusyThreads threads;
  TurnHelp help(threads.submit());
  for (int i = 0; i < 100; ++i) {
    auto turn = turn_over(fakes(2));
    const std::weak_ptr<TurnWrites> passed = turn;
    help.call(turn);
    turn.reset();
    EXPECT_TRUE(passed.expired());
  }
  EXPECT_EQ(threads.tasks.size(), 1U);
  threads.run();  // nothing is under way
  const auto logs = fakes(2);
  const auto turn = turn_over(logs);
  help.call(turn);
  threads.run();
  for (const auto& log : logs) EXPECT_EQ(log->writes, 1);
}

TEST(TurnHelp, a_call_helps_with_the_turn_of_the_moment) {
  BusyThreads threads;
  TurnHelp help(threads.submit());
  help.call(turn_over(fakes(2)));
  const auto logs = fakes(2);
  const auto turn = turn_over(logs);
  help.call(turn);
  threads.run();
  for (const auto& log : logs) EXPECT_EQ(log->writes, 1);
}

TEST(TurnHelp, a_call_that_was_refused_does_not_count_as_waiting) {
  BusyThreads threads;
  TurnHelp help(threads.submit());
  threads.full = true;
  const auto logs = fakes(2);
  const auto turn = turn_over(logs);
  help.call(turn);
  threads.full = false;
  help.call(turn);
  threads.run();
  for (const auto& log : logs) EXPECT_EQ(log->writes, 1);
}

}  // namespace
}  // namespace polylog::broker
