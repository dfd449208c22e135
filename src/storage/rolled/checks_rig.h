#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "storage/rolled/store_rig.h"

// Test only: what holds of every store of rolled logs. `Rig` is a layout's RolledRig that can
// append texts.
namespace polylog::storage {

inline std::vector<std::string> numbered(int from, int to) {
  std::vector<std::string> values;
  for (int i = from; i < to; ++i) values.push_back("value-" + std::to_string(i));
  return values;
}

// Retention takes everything, and the power goes at each step of it. `full`: there is no room for
// a note beside the log; `goes`: then everything goes all the same.
template <typename Rig>
void check_that_offsets_go_on_when_all_expires(bool full, bool goes) {
  bool done = false;
  for (std::uint64_t step = 1; !done; ++step) {
    Rig rig;
    rig.log_config.retention_ms = 1;
    ASSERT_TRUE(rig.open());
    auto log = rig.log();
    ASSERT_TRUE(log->log()->begin_epoch(LeaderEpoch(0)));
    ASSERT_TRUE(rig.append(*log, numbered(0, 5)));
    ASSERT_TRUE(rig.sync(*log));
    if (full) rig.disk->fail_path("/sidecar/", fs::Fault::no_space);
    rig.disk->crash_at(rig.disk->steps() + step, step % 2 == 0);
    const auto retained = rig.store->retain({"t", 0}, Offset(5), Timestamp(2'000'000));
    done = !rig.disk->powered_off();
    if (done) {
      EXPECT_EQ(goes, retained.has_value());
    }
    log.reset();
    rig.store.reset();
    for (const fs::CrashChoice& choice : rig.disk->crash_choices(step, 12)) {
      Rig after;
      after.disk = rig.disk->crash_state(choice);
      ASSERT_TRUE(after.open());
      EXPECT_EQ(after.log()->offsets().end, Offset(5)) << step << " " << choice.to_string();
      EXPECT_GE(after.log()->log()->epoch(), LeaderEpoch(0)) << step << " " << choice.to_string();
      EXPECT_EQ(after.append(*after.log(), {"next"})->offsets.start, Offset(5));
    }
  }
}

template <typename Rig>
void check_that_records_are_deleted_on_a_full_disk() {
  Rig rig;
  ASSERT_TRUE(rig.open());
  auto log = rig.log();
  ASSERT_TRUE(rig.append(*log, numbered(0, 3)));
  ASSERT_TRUE(rig.sync(*log));
  ASSERT_TRUE(rig.append(*log, numbered(3, 5)));
  rig.disk->fail_path(".sidecar", fs::Fault::no_space);
  ASSERT_TRUE(rig.sync(*log)) << "its round could not be noted";
  rig.disk->clear_faults();
  rig.fill();
  ASSERT_TRUE(log->advance_start(Offset(3)));
  rig.disk->set_capacity(UINT64_MAX);
  log.reset();
  ASSERT_TRUE(rig.crash({.mode = fs::CrashChoice::Mode::lose_all}));
  EXPECT_EQ(rig.log()->offsets(), (OffsetRange{Offset(3), Offset(5)}));
}

// A frame of the file at `path`, its length included, does not read any more; the log goes on.
template <typename Rig>
void check_that_records_behind_a_damaged_block_are_found(const std::string& path) {
  Rig rig;
  ASSERT_TRUE(rig.open());
  ASSERT_TRUE(rig.append(*rig.log(), numbered(0, 3)));
  const std::uint64_t damaged = rig.disk->info(path)->size;
  ASSERT_TRUE(rig.append(*rig.log(), numbered(3, 4)));
  ASSERT_TRUE(rig.append(*rig.log(), numbered(4, 6)));
  ASSERT_TRUE(rig.sync(*rig.log()));
  ASSERT_TRUE(rig.store->close());
  rig.disk->corrupt(path, damaged, std::vector<std::uint8_t>(30, 0xff));
  ASSERT_TRUE(rig.open());
  EXPECT_EQ(rig.append(*rig.log(), {"behind"})->offsets.start, Offset(6));
  ASSERT_TRUE(rig.sync(*rig.log()));
  ASSERT_TRUE(rig.store->close());
  ASSERT_TRUE(rig.open());
  ReadLimits limits;
  limits.bytes_max = 1 << 20;
  limits.end = Offset(7);
  const auto found = rig.log()->read(Offset(6), limits);
  ASSERT_TRUE(found) << found.error().to_string();
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().info.last, Offset(6));
}

// `path` is the first of several data files of log t-0, all durable: what some other program wrote
// behind its end is no reason to cut anything that follows.
template <typename Rig>
void check_that_bytes_behind_a_sealed_file_cost_nothing(const std::string& path) {
  Rig rig;
  rig.log_config.segment_bytes = 1000;
  ASSERT_TRUE(rig.open());
  auto log = rig.log();
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(rig.append(*log, numbered(i, i + 1)));
  ASSERT_TRUE(rig.sync(*log));
  log.reset();
  {
    const auto file = rig.disk->open(path, fs::OpenMode::write);
    ASSERT_TRUE(file);
    const std::vector<std::uint8_t> foreign(100, 0x5a);
    ASSERT_TRUE((*file)->write((*file)->info()->size, foreign));
  }
  ASSERT_TRUE(rig.kill());
  log = rig.log();
  EXPECT_EQ(log->offsets(), (OffsetRange{Offset(0), Offset(60)}));
  const auto values = rig.read_all(*log);
  ASSERT_TRUE(values) << values.error().to_string();
  EXPECT_EQ(*values, numbered(0, 60));
  EXPECT_FALSE(rig.recovery.notes.empty());
  ASSERT_TRUE(rig.append(*log, numbered(60, 61)));
}

template <typename Rig>
void check_that_a_removed_log_writes_nothing() {
  Rig rig;
  rig.log_config.segment_bytes = 200;
  ASSERT_TRUE(rig.open());
  const auto log = rig.log();
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(rig.append(*log, numbered(i, i + 1)));
  ASSERT_TRUE(rig.store->remove({"t", 0}));
  ASSERT_NE(rig.log(), log) << "another topic has the directory now";
  const std::uint64_t steps = rig.disk->steps();
  EXPECT_FALSE(log->log()->dirty());
  EXPECT_EQ(rig.disk->steps(), steps);
}

// Appends, sync rounds, reads, retention, checkpoints and changes of settings at once, as in a
// broker. What it finds wrong is mostly the thread sanitizer's to say.
template <typename Rig>
void check_that_threads_may_work_on_a_log_at_once() {
  constexpr int appends = 400;
  Rig rig;
  rig.log_config.segment_bytes = 3000;
  rig.log_config.retention_bytes = 30'000;
  ASSERT_TRUE(rig.open());
  const auto log = rig.log();
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  const auto meanwhile = [&](auto&& work) {
    threads.emplace_back([&done, work] {
      while (!done) {
        work();
        std::this_thread::yield();
      }
    });
  };
  meanwhile([&] { EXPECT_TRUE(rig.sync(*log)); });
  meanwhile([&] {
    EXPECT_TRUE(rig.store->checkpoint());
    EXPECT_TRUE(rig.store->tend(rig.clock.now()));
    const Offset durable(log->log()->durable_end().value());
    EXPECT_TRUE(rig.store->retain({"t", 0}, durable, rig.clock.now()));
  });
  meanwhile([&] {
    const OffsetRange range = log->offsets();
    ReadLimits limits;
    limits.bytes_max = 2000;
    limits.end = range.end;
    limits.first_whole = true;
    const auto read = log->read(range.start, limits);
    if (!read) {
      EXPECT_EQ(read.error().code, Errc::out_of_range) << read.error().to_string();
    }
    const auto timed = log->offset_for_time(Timestamp(1));
    EXPECT_TRUE(timed) << timed.error().to_string();
    static_cast<void>(log->size_bytes());
  });
  meanwhile([&] { log->configure(rig.log_config); });
  for (int i = 0; i < appends; ++i) {
    if (i % 100 == 0) {
      EXPECT_TRUE(log->log()->begin_epoch(LeaderEpoch(i / 100)));
    }
    EXPECT_TRUE(rig.append(*log, numbered(i, i + 1)));
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(rig.sync(*log));
  EXPECT_EQ(log->offsets().end, Offset(appends));
  ASSERT_TRUE(rig.kill());
  EXPECT_EQ(rig.log()->offsets().end, Offset(appends));
}

}  // namespace polylog::storage
