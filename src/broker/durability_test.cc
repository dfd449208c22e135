#include "broker/durability.h"

#include <atomic>
#include <condition_variable>
#include <mutex>

#include <gtest/gtest.h>

#include "broker/broker_fakes.h"
#include "fs/sim_file_system.h"
#include "journal/journal.h"

namespace polylog::broker {
namespace {

std::shared_ptr<FakeLog> dirty_log(std::int64_t end) {
  auto log = std::make_shared<FakeLog>();
  log->written = LogPosition(end);
  return log;
}

using Logs = std::vector<std::shared_ptr<storage::Log>>;

TEST(SyncRound, a_few_files_are_synced_one_by_one) {
  FakeFileSystem fs;
  const auto volume = fs.volume();
  const auto a = dirty_log(3);
  const auto b = dirty_log(5);
  a->directories = {"data/a-0", "data"};
  const auto outcomes = run_sync_round(fs, *volume, {a, b});
  ASSERT_EQ(outcomes.size(), 2U);
  EXPECT_TRUE(outcomes[0].result);
  EXPECT_EQ(outcomes[0].end, LogPosition(3));
  EXPECT_EQ(outcomes[1].end, LogPosition(5));
  EXPECT_EQ(a->file->syncs, 1);
  EXPECT_EQ(b->file->syncs, 1);
  EXPECT_EQ(fs.directory_syncs["data/a-0"], 1);
  EXPECT_EQ(fs.directory_syncs["data"], 1);
  EXPECT_EQ(fs.volume_syncs, 0);
  EXPECT_EQ(a->durable, LogPosition(3));
}

TEST(SyncRound, many_files_are_synced_by_one_sync_of_the_volume) {
  FakeFileSystem fs;
  const auto volume = fs.volume();
  Logs logs;
  std::vector<std::shared_ptr<FakeLog>> fakes;
  for (int i = 0; i < 100; ++i) logs.push_back(fakes.emplace_back(dirty_log(i + 1)));
  const auto outcomes = run_sync_round(fs, *volume, logs);
  EXPECT_EQ(fs.volume_syncs, 1);
  for (std::size_t i = 0; i < fakes.size(); ++i) {
    EXPECT_EQ(fakes[i]->file->syncs, 0);
    EXPECT_EQ(fakes[i]->durable, fakes[i]->written);
    EXPECT_TRUE(outcomes[i].result);
  }
}

TEST(SyncRound, without_a_volume_many_files_are_synced_too) {
  FakeFileSystem fs;
  Logs logs;
  std::vector<std::shared_ptr<FakeLog>> fakes;
  for (int i = 0; i < 10; ++i) logs.push_back(fakes.emplace_back(dirty_log(1)));
  run_sync_round(fs, nullptr, logs);
  for (const auto& fake : fakes) EXPECT_EQ(fake->file->syncs, 1);
}

TEST(SyncRound, a_failed_sync_fails_every_log_that_was_dirty_in_it) {
  FakeFileSystem fs;
  const auto volume = fs.volume();
  const auto good = dirty_log(1);
  const auto bad = dirty_log(2);
  const auto clean = dirty_log(0);
  bad->file->sync_error = Errc::no_space;
  const auto outcomes = run_sync_round(fs, *volume, {good, bad, clean});
  EXPECT_FALSE(outcomes[0].result);
  EXPECT_FALSE(outcomes[0].retriable);
  EXPECT_FALSE(outcomes[1].result);
  EXPECT_TRUE(outcomes[2].result);
  EXPECT_TRUE(good->failed);
  EXPECT_TRUE(bad->failed);
  EXPECT_FALSE(clean->failed);
  EXPECT_EQ(good->durable, LogPosition(0));
}

TEST(SyncRound, a_failed_sync_of_the_volume_fails_all) {
  FakeFileSystem fs;
  fs.volume_error = Errc::io;
  const auto volume = fs.volume();
  Logs logs;
  for (int i = 0; i < 10; ++i) logs.push_back(dirty_log(1));
  for (const auto& outcome : run_sync_round(fs, *volume, logs)) EXPECT_FALSE(outcome.result);
}

TEST(SyncRound, no_room_before_the_sync_is_retriable_and_hurts_nobody_else) {
  FakeFileSystem fs;
  const auto volume = fs.volume();
  const auto full = dirty_log(4);
  const auto other = dirty_log(2);
  full->dirty_error = Errc::no_space;
  const auto outcomes = run_sync_round(fs, *volume, {full, other});
  EXPECT_FALSE(outcomes[0].result);
  EXPECT_TRUE(outcomes[0].retriable);
  EXPECT_FALSE(full->failed);
  EXPECT_TRUE(outcomes[1].result);
}

TEST(SyncRound, another_error_before_the_sync_is_final) {
  FakeFileSystem fs;
  const auto volume = fs.volume();
  const auto bad = dirty_log(4);
  bad->dirty_error = Errc::io;
  const auto outcomes = run_sync_round(fs, *volume, {bad});
  EXPECT_FALSE(outcomes[0].result);
  EXPECT_FALSE(outcomes[0].retriable);
}

TEST(SyncRound, a_directory_that_was_removed_meanwhile_fails_its_own_log_only) {
  FakeFileSystem fs;
  const auto volume = fs.volume();
  const auto gone = dirty_log(1);
  const auto other = dirty_log(1);
  gone->directories = {"data/gone-0"};
  fs.directory_errors["data/gone-0"] = Errc::not_found;
  const auto outcomes = run_sync_round(fs, *volume, {gone, other});
  EXPECT_FALSE(outcomes[0].result);
  EXPECT_TRUE(outcomes[1].result);
  EXPECT_EQ(other->durable, LogPosition(1));
}

TEST(SyncRound, a_log_with_nothing_dirty_is_durable_where_it_is) {
  FakeFileSystem fs;
  const auto log = dirty_log(9);
  log->durable = LogPosition(9);
  const auto outcomes = run_sync_round(fs, nullptr, {log});
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_TRUE(outcomes[0].result);
  EXPECT_EQ(outcomes[0].end, LogPosition(9));
  EXPECT_EQ(log->file->syncs, 0);
}

// Writes down what it is told.
struct ToldLog final : FakeLog {
  ToldLog(std::string name_in, std::vector<std::string>& told_in)
      : name(std::move(name_in)), told(told_in) {}
  const std::string name;
  std::vector<std::string>& told;
  void settled(const storage::DirtyLog& done, bool synced) override {
    told.push_back(name + (synced ? " settled" : " failed"));
    FakeLog::settled(done, synced);
  }
  void write_noted() override { told.push_back(name + " noted"); }
};

// One write for the notes of a whole round: the first that is asked for it has those of all.
TEST(SyncRound, the_logs_write_what_they_noted_once_all_are_settled) {
  using Told = std::vector<std::string>;
  Told told;
  const auto make = [&told](const char* name, std::int64_t end) {
    auto log = std::make_shared<ToldLog>(name, told);
    log->written = LogPosition(end);
    return log;
  };
  const auto a = make("a", 1), b = make("b", 2), c = make("c", 3);
  const auto clean = make("clean", 0), full = make("full", 4);
  full->dirty_error = Errc::no_space;
  FakeFileSystem fs;
  const auto volume = fs.volume();
  run_sync_round(fs, *volume, {a, clean, b, full, c});
  EXPECT_EQ(told,
            (Told{"a settled", "b settled", "c settled", "a noted", "b noted", "c noted"}));
  told.clear();
  b->written = LogPosition(5);
  c->written = LogPosition(6);
  c->directories = {"data/gone-0"};
  fs.directory_errors["data/gone-0"] = Errc::not_found;
  run_sync_round(fs, *volume, {b, c});
  EXPECT_EQ(told, (Told{"b settled", "c failed", "b noted", "c noted"}));
}

TEST(SimulatedDurability, submitting_a_log_twice_is_one_submission_and_rounds_are_numbered) {
  FakeFileSystem fs;
  std::vector<Durability::Outcome> seen;
  SimulatedDurability durability(fs, fs.volume(), [&](std::vector<Durability::Outcome> outcomes) {
    seen.insert(seen.end(), outcomes.begin(), outcomes.end());
  });
  const auto log = dirty_log(1);
  EXPECT_FALSE(durability.run_round());
  EXPECT_EQ(durability.submit(log), 1U);
  EXPECT_EQ(durability.submit(log), 1U);
  EXPECT_TRUE(durability.run_round());
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].round, 1U);
  EXPECT_EQ(durability.submit(log), 2U);
  durability.drain();
  EXPECT_EQ(seen.back().round, 2U);
}

// Holds the first sync until released.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool entered = false, open = false;
  void enter() {
    std::unique_lock lock(mutex);
    entered = true;
    changed.notify_all();
    changed.wait(lock, [this] { return open; });
  }
  void wait_entered() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return entered; });
  }
  void release() {
    const std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  }
};

TEST(ThreadedDurability, what_is_submitted_during_a_round_shares_the_next_one) {
  FakeFileSystem fs;
  std::mutex mutex;
  std::vector<std::vector<Durability::Outcome>> rounds;
  const auto durability =
      make_threaded_durability(fs, fs.volume(), [&](std::vector<Durability::Outcome> outcomes) {
        const std::lock_guard lock(mutex);
        rounds.push_back(std::move(outcomes));
      });
  const auto first = dirty_log(1);
  Gate gate;
  first->file->on_sync = [&gate] { gate.enter(); };
  EXPECT_EQ(durability->submit(first), 1U);
  gate.wait_entered();
  std::vector<std::shared_ptr<FakeLog>> later;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(durability->submit(later.emplace_back(dirty_log(2))), 2U);
  }
  EXPECT_EQ(durability->submit(first), 2U);  // its round has begun already
  gate.release();
  durability->drain();
  ASSERT_EQ(rounds.size(), 2U);
  EXPECT_EQ(rounds[0].size(), 1U);
  EXPECT_EQ(rounds[1].size(), 21U);
  EXPECT_EQ(rounds[1][0].round, 2U);
  EXPECT_EQ(fs.volume_syncs, 1);
  for (const auto& log : later) EXPECT_EQ(log->durable, LogPosition(2));
}

// A log whose file is on a simulated disk below a journal.
struct LogOnDisk final : FakeLog {
  fs::FilePtr real;
  Result<std::optional<storage::DirtyLog>> dirty() override {
    POLYLOG_ASSIGN(found, FakeLog::dirty());
    if (found) found->files = {real};
    return found;
  }
};

struct JournalledRounds : ::testing::Test {
  void SetUp() override {
    ASSERT_TRUE(fs::create_directories(disk, "/data/logs"));
    journal::Options options;
    options.root = "/data";
    options.directory = "/data/journal";
    options.bytes = 1 << 20;
    options.own_thread = false;
    auto opened = journal::Journal::open(disk, options);
    ASSERT_TRUE(opened);
    journal = std::move(*opened);
    volume = *journal->file_system().open_volume("/data");
  }
  std::shared_ptr<LogOnDisk> make_log(int number) {
    auto log = std::make_shared<LogOnDisk>();
    const std::string path = "/data/logs/" + std::to_string(number);
    log->real = *journal->file_system().open(path, fs::OpenMode::create);
    log->directories = {"/data/logs"};
    return log;
  }
  static void write(LogOnDisk& log) {
    const std::uint64_t at = log.real->info()->size;
    ASSERT_TRUE(log.real->write(at, as_bytes("some bytes")));
    log.written = log.written + 1;
  }
  std::vector<Durability::Outcome> run(const Logs& logs) {
    return run_sync_round(journal->file_system(), volume.get(), logs, journal.get());
  }

  fs::SimFileSystem disk;
  std::unique_ptr<journal::Journal> journal;
  std::unique_ptr<fs::Volume> volume;
};

TEST_F(JournalledRounds, go_into_the_journal_once_the_names_are_on_the_disk) {
  Logs logs;
  std::vector<std::shared_ptr<LogOnDisk>> all;
  for (int i = 0; i < 20; ++i) logs.push_back(all.emplace_back(make_log(i)));
  for (const auto& log : all) write(*log);
  for (const auto& outcome : run(logs)) EXPECT_TRUE(outcome.result);
  EXPECT_EQ(journal->counters().rounds, 0U) << "new names: one sync of the volume";
  for (const auto& log : all) {
    log->directories.clear();
    write(*log);
  }
  const std::uint64_t before = disk.steps();
  for (const auto& outcome : run(logs)) EXPECT_TRUE(outcome.result);
  EXPECT_EQ(disk.steps() - before, 2U) << "one write of the journal and its sync";
  for (const auto& log : all) EXPECT_EQ(log->durable, LogPosition(2));
}

TEST_F(JournalledRounds, a_new_log_is_synced_beside_those_in_the_journal) {
  const auto old_log = make_log(1), new_log = make_log(2);
  write(*old_log);
  for (const auto& outcome : run({old_log})) EXPECT_TRUE(outcome.result);
  old_log->directories.clear();
  write(*old_log);
  write(*new_log);
  for (const auto& outcome : run({old_log, new_log})) EXPECT_TRUE(outcome.result);
  EXPECT_EQ(disk.counters("/data/logs/2").syncs, 1U);
  EXPECT_EQ(disk.counters("/data/logs/1").syncs, 1U) << "in its first round";
  EXPECT_EQ(journal->counters().rounds, 1U);
}

TEST_F(JournalledRounds, a_failed_write_of_the_journal_fails_them_all_for_good) {
  const auto log = make_log(1);
  write(*log);
  run({log});
  log->directories.clear();
  write(*log);
  disk.fail_step(disk.steps() + 1, fs::Fault::eio);
  EXPECT_FALSE(run({log})[0].result);
  EXPECT_TRUE(log->failed);
  const auto later = make_log(2);
  later->directories.clear();
  write(*later);
  const auto outcome = run({later})[0];
  EXPECT_FALSE(outcome.result);
  EXPECT_FALSE(outcome.retriable);
}

TEST(ThreadedDurability, destroying_it_with_work_left_does_not_hang) {
  FakeFileSystem fs;
  std::atomic<int> rounds = 0;
  auto durability = make_threaded_durability(
      fs, nullptr, [&](const std::vector<Durability::Outcome>&) { ++rounds; });
  for (int i = 0; i < 100; ++i) durability->submit(dirty_log(1));
  durability.reset();
  EXPECT_LE(rounds, 100);
}

}  // namespace
}  // namespace polylog::broker
