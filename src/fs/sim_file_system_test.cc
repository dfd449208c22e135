#include "fs/sim_file_system.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace polylog::fs {
namespace {

std::string content(SimFileSystem& fs, const std::string& path) {
  const auto bytes = read_file(fs, path, 1 << 20);
  return bytes ? std::string(as_text(*bytes)) : bytes.error().to_string();
}

FilePtr open(SimFileSystem& fs, const std::string& path, OpenMode mode = OpenMode::create) {
  Result<FilePtr> file = fs.open(path, mode);
  EXPECT_TRUE(file) << file.error().to_string();
  return file ? *file : nullptr;
}

// One of every counted call, in order; stops at the first failure.
Result<void> every_call(SimFileSystem& fs) {
  POLYLOG_TRY(fs.create_directory("/d"));
  POLYLOG_ASSIGN(file, fs.open("/d/a", OpenMode::create));
  POLYLOG_TRY(file->write(0, as_bytes("0123456789")));
  POLYLOG_TRY(file->truncate(8));
  POLYLOG_TRY(file->sync());
  POLYLOG_TRY(fs.set_modified("/d/a", Timestamp(5)));
  POLYLOG_TRY(fs.rename("/d/a", "/d/b"));
  POLYLOG_TRY(fs.sync_directory("/d"));
  POLYLOG_TRY(fs.remove("/d/b"));
  POLYLOG_TRY(fs.lock("/lock"));
  POLYLOG_ASSIGN(volume, fs.open_volume("/"));
  POLYLOG_TRY(volume->sync());
  return fs.remove_directory("/d");
}
constexpr std::uint64_t every_call_steps = 12;

TEST(SimSteps, every_mutating_call_counts_once_and_no_other) {
  SimFileSystem fs;
  fs.set_tracing(true);
  ASSERT_TRUE(every_call(fs));
  EXPECT_EQ(fs.trace(),
            (std::vector<std::string>{
                "1 mkdir /d", "2 create /d/a", "3 write /d/a", "4 truncate /d/a", "5 sync /d/a",
                "6 set_modified /d/a", "7 rename /d/a to /d/b", "8 sync_directory /d",
                "9 remove /d/b", "10 create /lock", "11 sync_volume /", "12 rmdir /d"}));
  EXPECT_EQ(fs.steps(), every_call_steps);
  EXPECT_FALSE(fs.open("/missing", OpenMode::read));
  EXPECT_FALSE(fs.remove("/missing"));
  EXPECT_TRUE(fs.list("/"));
  EXPECT_TRUE(fs.lock("/lock"));
  EXPECT_TRUE(open(fs, "/lock")->write(0, ByteView()));
  EXPECT_EQ(fs.steps(), every_call_steps);
}

TEST(SimSteps, each_step_can_fail_alone_with_each_fault) {
  for (const Fault fault : {Fault::eio, Fault::no_space, Fault::short_write}) {
    for (std::uint64_t step = 1; step <= every_call_steps; ++step) {
      SimFileSystem fs;
      fs.fail_step(step, fault);
      const Result<void> done = every_call(fs);
      ASSERT_FALSE(done) << step;
      EXPECT_EQ(done.error().code, fault == Fault::eio ? Errc::io : Errc::no_space);
      EXPECT_EQ(fs.steps(), step);
      EXPECT_FALSE(fs.powered_off());
      EXPECT_TRUE(fs.create_directory("/after"));
    }
  }
}

TEST(SimSteps, from_the_crash_on_every_call_fails_and_the_step_itself_by_choice) {
  for (const bool applied : {false, true}) {
    for (std::uint64_t step = 1; step <= every_call_steps; ++step) {
      SimFileSystem fs;
      fs.crash_at(step, applied);
      const Result<void> done = every_call(fs);
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().code, Errc::io);
      EXPECT_NE(done.error().context.find("power is off"), std::string::npos);
      EXPECT_TRUE(fs.powered_off());
      EXPECT_FALSE(fs.info("/"));
      EXPECT_FALSE(fs.list("/"));
      EXPECT_FALSE(fs.open("/x", OpenMode::create));
      EXPECT_FALSE(fs.free_bytes("/"));
      EXPECT_EQ(fs.steps(), step);
      EXPECT_TRUE(fs.crash_state({})->list("/"));
    }
  }
}

TEST(SimSteps, an_applied_crash_step_took_effect) {
  for (const bool applied : {false, true}) {
    SimFileSystem fs;
    const FilePtr file = open(fs, "/a");
    ASSERT_TRUE(fs.sync_directory("/"));
    ASSERT_TRUE(file->write(0, as_bytes("x")));
    fs.crash_at(fs.steps() + 1, applied);
    EXPECT_FALSE(file->sync());
    EXPECT_EQ(content(*fs.crash_state({}), "/a"), applied ? "x" : "");
  }
}

TEST(SimFaults, a_failed_write_leaves_nothing_and_a_short_one_its_first_half) {
  SimFileSystem fs;
  const FilePtr file = open(fs, "/a");
  fs.fail_step(fs.steps() + 1, Fault::eio);
  EXPECT_EQ(file->write(0, as_bytes("01234567")).error().code, Errc::io);
  EXPECT_EQ(file->info()->size, 0U);
  fs.fail_step(fs.steps() + 1, Fault::short_write);
  EXPECT_EQ(file->write(0, as_bytes("01234567")).error().code, Errc::no_space);
  EXPECT_EQ(content(fs, "/a"), "0123");
}

TEST(SimFaults, a_path_fails_until_it_is_cleared_and_others_do_not) {
  SimFileSystem fs;
  const FilePtr bad = open(fs, "/bad.log");
  const FilePtr good = open(fs, "/good.log");
  ASSERT_TRUE(bad->write(0, as_bytes("x")));
  fs.fail_path("bad", Fault::eio);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(bad->write(0, as_bytes("x")));
    EXPECT_FALSE(bad->sync());
    EXPECT_TRUE(good->write(0, as_bytes("x")));
    EXPECT_TRUE(good->sync());
  }
  EXPECT_FALSE(fs.rename("/good.log", "/bad.log"));
  std::uint8_t byte = 0;
  EXPECT_TRUE(bad->read(0, MutableBytes(&byte, 1)));
  fs.clear_faults();
  EXPECT_TRUE(bad->write(0, as_bytes("x")));
}

TEST(SimFaults, reading_can_fail_while_writing_works) {
  SimFileSystem fs;
  const FilePtr file = open(fs, "/a");
  fs.fail_path("/a", Fault::read_eio);
  EXPECT_TRUE(file->write(0, as_bytes("x")));
  EXPECT_TRUE(file->sync());
  std::uint8_t byte = 0;
  EXPECT_EQ(file->read(0, MutableBytes(&byte, 1)).error().code, Errc::io);
}

TEST(SimFaults, a_volume_sync_fails_with_a_dirty_bad_file_and_is_final_for_all) {
  SimFileSystem fs;
  const FilePtr bad = open(fs, "/bad");
  const FilePtr good = open(fs, "/good");
  const auto volume = fs.open_volume("/").value();
  ASSERT_TRUE(volume->sync());
  fs.fail_path("/bad", Fault::eio);
  ASSERT_TRUE(good->write(0, as_bytes("x")));
  EXPECT_TRUE(volume->sync()) << "nothing of the bad file is dirty";
  fs.clear_faults();
  ASSERT_TRUE(bad->write(0, as_bytes("y")));
  ASSERT_TRUE(good->write(1, as_bytes("y")));
  fs.fail_path("/bad", Fault::eio);
  EXPECT_FALSE(volume->sync());
  fs.clear_faults();
  EXPECT_TRUE(volume->sync());
  const auto after = fs.crash_state({});
  EXPECT_EQ(content(*after, "/good"), "x");
  EXPECT_EQ(content(*after, "/bad"), "");
}

TEST(SimFaults, bytes_of_a_failed_sync_are_never_made_durable_by_a_later_one) {
  SimFileSystem fs;
  const FilePtr file = open(fs, "/a");
  ASSERT_TRUE(fs.sync_directory("/"));
  ASSERT_TRUE(file->write(0, as_bytes("safe")));
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(file->write(4, as_bytes("LOST")));
  fs.fail_step(fs.steps() + 1, Fault::eio);
  EXPECT_FALSE(file->sync());
  EXPECT_TRUE(file->sync());
  EXPECT_EQ(content(fs, "/a"), "safeLOST") << "reads still see it";
  EXPECT_EQ(content(*fs.crash_state({}), "/a"), "safe");

  ASSERT_TRUE(file->write(8, as_bytes("more")));
  EXPECT_TRUE(file->sync());
  EXPECT_EQ(content(*fs.crash_state({}), "/a"), std::string_view("safe\0\0\0\0more", 12));
  EXPECT_EQ(content(*fs.crash_state({.mode = CrashChoice::Mode::kill}), "/a"), "safeLOSTmore");

  ASSERT_TRUE(file->write(4, as_bytes("anew")));
  EXPECT_TRUE(file->sync());
  EXPECT_EQ(content(*fs.crash_state({}), "/a"), "safeanewmore") << "rewriting does help";
}

TEST(SimFaults, names_of_a_failed_directory_sync_are_not_covered_by_a_later_one) {
  SimFileSystem fs;
  open(fs, "/lost");
  fs.fail_step(fs.steps() + 1, Fault::eio);
  EXPECT_FALSE(fs.sync_directory("/"));
  open(fs, "/kept");
  EXPECT_TRUE(fs.sync_directory("/"));
  EXPECT_EQ(fs.crash_state({})->list("/").value(), std::vector<std::string>{"kept"});
}

TEST(SimCapacity, a_full_disk_takes_what_fits_and_space_comes_back) {
  SimFileSystem fs;
  fs.set_capacity(10);
  const FilePtr a = open(fs, "/a");
  ASSERT_TRUE(a->write(0, as_bytes("123456")));
  EXPECT_EQ(fs.free_bytes("/").value(), 4U);
  EXPECT_EQ(a->write(6, as_bytes("789abc")).error().code, Errc::no_space);
  EXPECT_EQ(content(fs, "/a"), "123456789a");
  EXPECT_TRUE(a->write(0, as_bytes("XX"))) << "overwriting needs no room";
  EXPECT_EQ(a->truncate(11).error().code, Errc::no_space);
  EXPECT_EQ(a->info()->size, 10U);

  const FilePtr b = open(fs, "/b");
  EXPECT_EQ(b->write(0, as_bytes("x")).error().code, Errc::no_space);
  EXPECT_EQ(b->write(100, as_bytes("x")).error().code, Errc::no_space);
  EXPECT_EQ(b->info()->size, 0U);
  ASSERT_TRUE(a->truncate(8));
  EXPECT_TRUE(b->write(0, as_bytes("xy")));
  EXPECT_EQ(fs.free_bytes("/").value(), 0U);
}

TEST(SimCapacity, a_removed_file_gives_its_space_back_with_its_last_handle) {
  SimFileSystem fs;
  fs.set_capacity(10);
  FilePtr a = open(fs, "/a");
  ASSERT_TRUE(a->write(0, as_bytes("0123456789")));
  ASSERT_TRUE(fs.remove("/a"));
  EXPECT_EQ(fs.free_bytes("/").value(), 0U);
  a.reset();
  EXPECT_EQ(fs.free_bytes("/").value(), 10U);
  ASSERT_TRUE(open(fs, "/b")->write(0, as_bytes("01234")));
  ASSERT_TRUE(open(fs, "/c")->write(0, as_bytes("01234")));
  ASSERT_TRUE(fs.rename("/b", "/c"));
  EXPECT_EQ(fs.free_bytes("/").value(), 5U);
  EXPECT_EQ(fs.crash_state({.mode = CrashChoice::Mode::keep_all})->free_bytes("/").value(), 5U);
  EXPECT_EQ(fs.crash_state({.mode = CrashChoice::Mode::kill})->free_bytes("/").value(), 5U);
  EXPECT_EQ(fs.crash_state({})->free_bytes("/").value(), 10U);
}

TEST(SimCapacity, replace_file_on_a_full_disk_keeps_the_old_content_and_no_draft) {
  SimFileSystem fs;
  ASSERT_TRUE(replace_file(fs, "/a", as_bytes("old")));
  fs.set_capacity(5);
  EXPECT_EQ(replace_file(fs, "/a", as_bytes("newer")).error().code, Errc::no_space);
  EXPECT_EQ(content(fs, "/a"), "old");
  EXPECT_EQ(fs.list("/").value(), std::vector<std::string>{"a"});
  EXPECT_EQ(fs.free_bytes("/").value(), 2U);
}

TEST(SimLocks, end_with_the_power_and_with_their_owner) {
  SimFileSystem fs;
  auto lock = fs.lock("/lock");
  ASSERT_TRUE(lock);
  for (const auto mode : {CrashChoice::Mode::kill, CrashChoice::Mode::keep_all}) {
    EXPECT_TRUE(fs.crash_state({.mode = mode})->lock("/lock"));
  }
  EXPECT_FALSE(fs.lock("/lock"));
}

TEST(SimTimes, come_from_the_clock_or_else_from_a_counter) {
  ManualClock clock(Timestamp(1000));
  SimFileSystem timed(&clock);
  const FilePtr file = open(timed, "/a");
  EXPECT_EQ(file->info()->modified, Timestamp(1000));
  clock.advance_ms(5);
  EXPECT_EQ(file->info()->modified, Timestamp(1000));
  ASSERT_TRUE(file->write(0, as_bytes("x")));
  EXPECT_EQ(file->info()->modified, Timestamp(1005));
  EXPECT_EQ(file->info()->modified_ns, 1'005'000'000);

  SimFileSystem counted;
  const FilePtr other = open(counted, "/a");
  const Timestamp before = other->info()->modified;
  ASSERT_TRUE(other->write(0, as_bytes("x")));
  EXPECT_EQ(other->info()->modified, before + 1);
}

TEST(SimTimes, a_modified_time_is_as_durable_as_its_write) {
  ManualClock clock(Timestamp(1000));
  SimFileSystem fs(&clock);
  const FilePtr file = open(fs, "/a");
  ASSERT_TRUE(fs.sync_directory("/"));
  clock.advance_ms(1);
  ASSERT_TRUE(file->write(0, as_bytes("x")));
  ASSERT_TRUE(file->sync());
  clock.advance_ms(1);
  ASSERT_TRUE(file->write(1, as_bytes("x")));
  EXPECT_EQ(fs.crash_state({})->info("/a")->modified, Timestamp(1001));
  EXPECT_EQ(fs.crash_state({.mode = CrashChoice::Mode::keep_all})->info("/a")->modified,
            Timestamp(1002));
}

TEST(SimReads, an_evicted_file_would_block_until_it_was_read_waiting) {
  SimFileSystem fs;
  const FilePtr file = open(fs, "/a");
  ASSERT_TRUE(file->write(0, as_bytes("x")));
  fs.evict();
  std::uint8_t byte = 0;
  EXPECT_EQ(file->read(0, MutableBytes(&byte, 1), false).error().code, Errc::would_block);
  EXPECT_EQ(file->read(1, MutableBytes(&byte, 1), false).value(), 0U);
  EXPECT_EQ(file->read(0, MutableBytes(&byte, 1)).value(), 1U);
  EXPECT_EQ(file->read(0, MutableBytes(&byte, 1), false).value(), 1U);
}

TEST(SimCounters, count_bytes_written_and_synced_per_path) {
  SimFileSystem fs;
  ASSERT_TRUE(fs.create_directory("/d"));
  const FilePtr file = open(fs, "d//a");
  ASSERT_TRUE(file->write(0, as_bytes("123")));
  ASSERT_TRUE(file->write(0, as_bytes("45")));
  EXPECT_EQ(fs.counters("/d/a").bytes_written, 5U);
  EXPECT_EQ(fs.counters("/d/a").bytes_synced, 0U);
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(fs.sync_directory("/d"));
  EXPECT_EQ(fs.counters("/d/a").bytes_synced, 5U);
  EXPECT_EQ(fs.counters("/d/a").syncs, 1U);
  EXPECT_EQ(fs.counters("/d").syncs, 1U);
  EXPECT_EQ(fs.totals().syncs, 2U);
  EXPECT_EQ(fs.totals().bytes_written, 5U);
  ASSERT_TRUE(fs.rename("/d", "/e"));
  ASSERT_TRUE(file->write(0, as_bytes("6")));
  EXPECT_EQ(fs.counters("/e/a").bytes_written, 1U);
}

TEST(SimRot, changes_memory_and_disk_and_is_no_step) {
  SimFileSystem fs;
  const FilePtr file = open(fs, "/a");
  ASSERT_TRUE(fs.sync_directory("/"));
  ASSERT_TRUE(file->write(0, as_bytes("abcd")));
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(file->write(4, as_bytes("efgh")));
  const std::uint64_t steps = fs.steps();
  fs.corrupt("/a", 3, as_bytes("XY"));
  fs.flip_bit("/a", 0, 1);
  EXPECT_EQ(content(fs, "/a"), "cbcXYfgh");
  EXPECT_EQ(content(*fs.crash_state({}), "/a"), "cbcX");
  ASSERT_TRUE(file->sync());
  fs.append_raw("/a", as_bytes("!"));
  EXPECT_EQ(content(fs, "/a"), "cbcXYfgh!");
  EXPECT_EQ(content(*fs.crash_state({}), "/a"), "cbcXYfgh!");
  fs.truncate_raw("/a", 2);
  EXPECT_EQ(content(fs, "/a"), "cb");
  EXPECT_EQ(content(*fs.crash_state({}), "/a"), "cb");
  EXPECT_EQ(fs.steps(), steps + 1);
  EXPECT_EQ(fs.unsynced(), 0U);
}

TEST(SimDump, shows_what_is_not_durable) {
  SimFileSystem fs;
  ASSERT_TRUE(fs.create_directory("/d"));
  ASSERT_TRUE(fs.sync_directory("/"));
  ASSERT_TRUE(open(fs, "/d/a")->write(0, as_bytes("123")));
  EXPECT_EQ(fs.dump_tree(),
            "/ inode 2\n"
            "/d/ inode 3\n"
            "  name not durable: a\n"
            "/d/a inode 4, 3 bytes, 0 durable, 1 unsynced\n");
}

TEST(SimHandles, outlive_the_file_system) {
  FilePtr file;
  std::unique_ptr<Lock> lock;
  std::unique_ptr<Volume> volume;
  {
    SimFileSystem fs;
    file = open(fs, "/a");
    lock = fs.lock("/a").value();
    volume = fs.open_volume("/").value();
  }
  EXPECT_TRUE(file->write(0, as_bytes("x")));
  EXPECT_TRUE(volume->sync());
}

TEST(SimMemory, removed_files_are_forgotten_and_used_ones_are_not) {
  SimFileSystem fs;
  ASSERT_TRUE(create_directories(fs, "/keep"));
  ASSERT_TRUE(replace_file(fs, "/keep/durable", as_bytes("kept")));
  ASSERT_TRUE(replace_file(fs, "/keep/other", as_bytes("also kept")));
  ASSERT_TRUE(fs.remove("/keep/durable"));
  open(fs, "/keep/new");
  ASSERT_TRUE(fs.rename("/keep/new", "/keep/other"));
  const FilePtr handle = open(fs, "/handle");
  ASSERT_TRUE(handle->write(0, as_bytes("open")));
  ASSERT_TRUE(fs.remove("/handle"));
  ASSERT_TRUE(fs.sync_directory("/"));
  std::set<std::uint64_t> inodes;
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(fs.create_directory("/d"));
    ASSERT_TRUE(inodes.insert(open(fs, "/d/x")->info()->inode).second);
    ASSERT_TRUE(fs.sync_directory("/"));
    ASSERT_TRUE(fs.remove("/d/x"));
    ASSERT_TRUE(fs.remove_directory("/d"));
    ASSERT_TRUE(fs.sync_directory("/"));
  }
  std::uint8_t byte = 0;
  EXPECT_EQ(handle->read(3, MutableBytes(&byte, 1)).value(), 1U);
  EXPECT_EQ(content(*fs.crash_state({}), "/keep/durable"), "kept");
  EXPECT_EQ(content(*fs.crash_state({}), "/keep/other"), "also kept");
}

TEST(SimThreads, states_of_one_disk_are_used_on_several_threads_while_it_goes_on) {
  SimFileSystem fs;
  const FilePtr file = open(fs, "/a");
  ASSERT_TRUE(file->write(0, std::vector<std::uint8_t>(20'000, 'x')));
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([state = fs.crash_state({.mode = CrashChoice::Mode::keep_all}), i] {
      const FilePtr mine = open(*state, "/a");
      const std::vector<std::uint8_t> bytes(100, static_cast<std::uint8_t>('0' + i));
      for (std::uint64_t at = 0; at < 20'000; at += 100) ASSERT_TRUE(mine->write(at, bytes));
      ASSERT_EQ(content(*state, "/a"), std::string(20'000, static_cast<char>('0' + i)));
    });
  }
  for (std::uint64_t at = 0; at < 20'000; at += 50) ASSERT_TRUE(file->write(at, as_bytes("y")));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(content(fs, "/a").substr(0, 3), "yxx");
}

TEST(SimFileSystem, a_direct_write_is_synced_and_takes_whole_blocks_only) {
  SimFileSystem fs;
  ASSERT_TRUE(open(fs, "/a")->write(0, std::vector<std::uint8_t>(8192, 'x')));
  ASSERT_TRUE(fs.sync_directory("/"));
  EXPECT_EQ(fs.open_direct("/missing").error().code, Errc::not_found);
  const FilePtr direct = *fs.open_direct("/a");
  alignas(4096) static std::array<std::uint8_t, 4096> block;
  block.fill('d');
  ASSERT_TRUE(direct->write(4096, block));
  const auto crashed = fs.crash_state({.mode = CrashChoice::Mode::lose_all});
  EXPECT_EQ(content(*crashed, "/a"), std::string(4096, 'x') + std::string(4096, 'd'));
  EXPECT_EQ(direct->write(100, block).error().code, Errc::invalid);
  EXPECT_EQ(direct->write(0, ByteView(block).first(512)).error().code, Errc::invalid);
  EXPECT_EQ(direct->write(0, ByteView(block).subspan(1)).error().code, Errc::invalid);
  fs.fail_step(fs.steps() + 2, Fault::eio);
  EXPECT_FALSE(direct->write(0, block)) << "its sync failed";
}

}  // namespace
}  // namespace polylog::fs
