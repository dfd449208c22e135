#include "journal/journal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "fs/posix_file_system.h"
#include "fs/sim_file_system.h"

namespace polylog::journal {
namespace {

using Mode = fs::CrashChoice::Mode;

// A journal over a simulated disk with a few files in /data/store, all named durably.
struct Rig {
  explicit Rig(std::uint64_t bytes = 64 << 10) { options.bytes = bytes; }

  Result<void> open(fs::SimFileSystem& on) {
    disk = &on;
    journal.reset();
    POLYLOG_TRY(fs::create_directories(on, "/data/store"));
    POLYLOG_ASSIGN(opened, Journal::open(on, options));
    journal = std::move(opened);
    return {};
  }
  fs::FileSystem& fs() { return journal->file_system(); }

  fs::FilePtr file(const std::string& name) {
    auto opened = fs().open("/data/store/" + name, fs::OpenMode::create);
    EXPECT_TRUE(opened);
    EXPECT_TRUE((*opened)->sync());
    EXPECT_TRUE(fs().sync_directory("/data/store"));
    return *opened;
  }
  Result<void> append(const fs::FilePtr& to, std::string_view text) {
    POLYLOG_ASSIGN(info, to->info());
    return to->write(info.size, as_bytes(text));
  }
  Result<void> cover(const fs::FilePtr& one) { return journal->cover(std::span(&one, 1)); }

  // What a file holds after a crash in which only what was synced stays, and the replay.
  std::string after_crash(const std::string& name) {
    const auto crashed = disk->crash_state({.mode = Mode::lose_all});
    auto opened = Journal::open(*crashed, options);
    if (!opened) return opened.error().to_string();
    const auto bytes = fs::read_file(*crashed, "/data/store/" + name, 1 << 20);
    return bytes ? std::string(as_text(*bytes)) : bytes.error().to_string();
  }

  static Options default_options() {
    Options made;
    made.root = "/data";
    made.directory = "/data/journal";
    made.own_thread = false;
    made.witnesses = {"store/progress"};
    return made;
  }
  Options options = default_options();
  fs::SimFileSystem* disk = nullptr;
  std::unique_ptr<Journal> journal;
};

TEST(Journal, what_was_covered_is_there_after_a_crash) {
  fs::SimFileSystem disk;
  Rig rig;
  ASSERT_TRUE(rig.open(disk));
  const auto a = rig.file("a");
  const auto b = rig.file("b");
  ASSERT_TRUE(rig.append(a, "first "));
  ASSERT_TRUE(rig.append(b, "other"));
  const std::vector<fs::FilePtr> both{a, b, a};
  ASSERT_TRUE(rig.journal->cover(both));
  ASSERT_TRUE(rig.append(a, "second"));
  ASSERT_TRUE(rig.cover(a));
  ASSERT_TRUE(rig.append(a, " not covered"));
  EXPECT_EQ(disk.counters("/data/store/a").syncs, 1U) << "its own sync at the start alone";
  EXPECT_EQ(rig.after_crash("a"), "first second");
  EXPECT_EQ(rig.after_crash("b"), "other");
  EXPECT_EQ(rig.journal->counters().rounds, 2U);
}

TEST(Journal, a_round_is_one_write_however_many_files) {
  fs::SimFileSystem disk;
  Rig rig(1 << 20);
  ASSERT_TRUE(rig.open(disk));
  std::vector<fs::FilePtr> files;
  for (int i = 0; i < 100; ++i) files.push_back(rig.file(std::to_string(i)));
  for (const auto& file : files) ASSERT_TRUE(rig.append(file, "a few bytes"));
  const std::uint64_t before = disk.steps();
  ASSERT_TRUE(rig.journal->cover(files));
  EXPECT_EQ(disk.steps() - before, 2U) << "the write and its sync";
  EXPECT_EQ(rig.after_crash("99"), "a few bytes");
}

TEST(Journal, nothing_to_cover_writes_nothing) {
  fs::SimFileSystem disk;
  Rig rig;
  ASSERT_TRUE(rig.open(disk));
  const auto a = rig.file("a");
  const std::uint64_t before = disk.steps();
  ASSERT_TRUE(rig.cover(a));
  ASSERT_TRUE(rig.append(a, "x"));
  ASSERT_TRUE(a->sync());
  ASSERT_TRUE(rig.cover(a));
  EXPECT_EQ(disk.steps() - before, 2U);
}

TEST(Journal, a_full_area_goes_on_in_the_other_and_is_emptied) {
  fs::SimFileSystem disk;
  Rig rig(bytes_min);
  ASSERT_TRUE(rig.open(disk));
  const auto a = rig.file("a");
  std::string expected;
  for (int i = 0; i < 40; ++i) {
    const std::string text = "round " + std::to_string(i) + ", ";
    ASSERT_TRUE(rig.append(a, text));
    ASSERT_TRUE(rig.cover(a));
    expected += text;
    ASSERT_EQ(rig.after_crash("a"), expected);
  }
  EXPECT_GT(rig.journal->counters().checkpoints, 10U);
}

// Bytes written over what the journal holds, and synced in the ordinary way: the older ones must
// not come back.
TEST(Journal, a_sync_settles_what_the_journal_holds) {
  fs::SimFileSystem disk;
  Rig rig;
  ASSERT_TRUE(rig.open(disk));
  const auto a = rig.file("a");
  ASSERT_TRUE(a->write(0, as_bytes("older bytes")));
  ASSERT_TRUE(rig.cover(a));
  ASSERT_TRUE(a->write(0, as_bytes("newer")));
  ASSERT_TRUE(a->sync());
  EXPECT_EQ(rig.after_crash("a"), "newer bytes");
  ASSERT_TRUE(a->write(0, as_bytes("LATER")));
  ASSERT_TRUE(rig.cover(a));
  EXPECT_EQ(rig.after_crash("a"), "LATER bytes");
}

// What a kill leaves: all that was written, covered or not. A shared log ends in zeros, over which
// the next record goes.
TEST(Journal, an_end_mark_does_not_go_over_what_was_written_later) {
  for (const std::size_t size : {std::size_t{10}, write_bytes_max - 4, write_bytes_max - 10}) {
    fs::SimFileSystem disk;
    Rig rig(4 << 20);
    ASSERT_TRUE(rig.open(disk));
    const auto a = rig.file("a");
    const std::string mark(8, '\0');
    const std::string first(size, '1'), second(size, '2');
    ASSERT_TRUE(rig.append(a, "some "));
    ASSERT_TRUE(a->write(5, as_bytes(first + mark)));
    ASSERT_TRUE(rig.cover(a));
    ASSERT_TRUE(a->write(5 + size, as_bytes(second + mark)));
    const auto killed = disk.crash_state({.mode = Mode::kill});
    ASSERT_TRUE(Journal::open(*killed, rig.options));
    EXPECT_EQ(as_text(*fs::read_file(*killed, "/data/store/a", 2 << 20)),
              "some " + first + second + mark);
    EXPECT_EQ(rig.after_crash("a"), "some " + first + mark);
  }
}

// The last bytes of a record may be zeros, too, and the power may take nothing but them.
TEST(Journal, zeros_that_the_file_lacks_are_put_back) {
  fs::SimFileSystem disk;
  Rig rig;
  ASSERT_TRUE(rig.open(disk));
  const auto a = rig.file("a");
  const std::string front(100, '1'), zeros(8, '\0');
  ASSERT_TRUE(rig.append(a, front + zeros));
  ASSERT_TRUE(rig.cover(a));
  for (const std::size_t there : {front.size(), front.size() + 3}) {
    const auto crashed = disk.crash_state({.mode = Mode::lose_all});
    {
      const auto file = *crashed->open("/data/store/a", fs::OpenMode::write);
      ASSERT_TRUE(file->write(0, as_bytes(front + zeros).first(there)));
      ASSERT_TRUE(file->sync());
    }
    ASSERT_TRUE(Journal::open(*crashed, rig.options));
    EXPECT_EQ(as_text(*fs::read_file(*crashed, "/data/store/a", 1000)), front + zeros);
  }
}

// The name of a witness goes back with the power, to what stood there before the journal held
// anything.
TEST(Journal, a_witness_replaced_before_the_first_round_may_come_back) {
  fs::SimFileSystem disk;
  Rig rig;
  ASSERT_TRUE(rig.open(disk));
  const auto a = rig.file("a");
  const auto replace = [&](const std::string& text) {
    const std::string path = "/data/store/progress";
    const auto draft = *rig.fs().open(path + ".tmp", fs::OpenMode::create);
    return draft->truncate(0) && draft->write(0, as_bytes(text)) && draft->sync() &&
           rig.fs().rename(path + ".tmp", path);
  };
  ASSERT_TRUE(replace("old"));
  ASSERT_TRUE(rig.fs().sync_directory("/data/store"));
  ASSERT_TRUE(rig.journal->checkpoint());
  ASSERT_TRUE(replace("newer"));
  ASSERT_TRUE(rig.append(a, "acknowledged"));
  ASSERT_TRUE(rig.cover(a));
  EXPECT_EQ(rig.after_crash("a"), "acknowledged");
  EXPECT_EQ(rig.after_crash("progress"), "old");
}

TEST(Journal, a_large_write_is_synced_in_its_file) {
  fs::SimFileSystem disk;
  Rig rig(2 << 20);
  ASSERT_TRUE(rig.open(disk));
  const auto a = rig.file("a");
  ASSERT_TRUE(rig.append(a, "small,"));
  ASSERT_TRUE(rig.cover(a));
  const std::uint64_t syncs = disk.counters("/data/store/a").syncs;
  const std::string large(300 << 10, 'L');
  ASSERT_TRUE(rig.append(a, large));
  ASSERT_TRUE(rig.cover(a));
  EXPECT_EQ(disk.counters("/data/store/a").syncs, syncs + 1);
  EXPECT_EQ(rig.after_crash("a"), "small," + large);
}

TEST(Journal, a_cut_file_is_settled_first_and_synced_then) {
  fs::SimFileSystem disk;
  Rig rig;
  ASSERT_TRUE(rig.open(disk));
  const auto a = rig.file("a");
  ASSERT_TRUE(rig.append(a, "kept, cut off"));
  ASSERT_TRUE(rig.cover(a));
  ASSERT_TRUE(a->truncate(5));
  ASSERT_TRUE(rig.append(a, "new"));
  ASSERT_TRUE(rig.cover(a));
  EXPECT_EQ(rig.after_crash("a"), "kept,new");
}

TEST(Journal, a_file_made_under_an_old_name_gets_nothing_of_the_old_one) {
  fs::SimFileSystem disk;
  Rig rig;
  ASSERT_TRUE(rig.open(disk));
  auto a = rig.file("a");
  ASSERT_TRUE(rig.append(a, "of the old file"));
  ASSERT_TRUE(rig.cover(a));
  ASSERT_TRUE(rig.fs().remove("/data/store/a"));
  ASSERT_TRUE(rig.cover(a)) << "a round that was under way";
  a = rig.file("a");
  EXPECT_EQ(rig.after_crash("a"), "");
  ASSERT_TRUE(rig.append(a, "new"));
  ASSERT_TRUE(rig.cover(a));
  EXPECT_EQ(rig.after_crash("a"), "new");
}

TEST(Journal, a_renamed_file_keeps_what_was_covered) {
  fs::SimFileSystem disk;
  Rig rig;
  ASSERT_TRUE(rig.open(disk));
  const auto a = rig.file("a");
  ASSERT_TRUE(rig.append(a, "one "));
  ASSERT_TRUE(rig.cover(a));
  ASSERT_TRUE(rig.fs().rename("/data/store/a", "/data/store/b"));
  ASSERT_TRUE(rig.append(a, "two "));
  ASSERT_TRUE(rig.cover(a)) << "its new name is not on the disk: it is synced, and the name too";
  EXPECT_EQ(rig.after_crash("b"), "one two ");
  ASSERT_TRUE(rig.append(a, "three"));
  ASSERT_TRUE(rig.cover(a));
  EXPECT_EQ(rig.after_crash("b"), "one two three");
}

TEST(Journal, a_file_renamed_after_it_was_settled_goes_by_its_new_name) {
  fs::SimFileSystem disk;
  Rig rig;
  ASSERT_TRUE(rig.open(disk));
  const auto a = rig.file("a");
  ASSERT_TRUE(rig.append(a, "one "));
  ASSERT_TRUE(rig.cover(a));
  ASSERT_TRUE(a->sync());
  ASSERT_TRUE(rig.fs().rename("/data/store/a", "/data/store/b"));
  ASSERT_TRUE(rig.fs().sync_directory("/data/store"));
  ASSERT_TRUE(rig.append(a, "two"));
  ASSERT_TRUE(rig.cover(a));
  EXPECT_EQ(rig.after_crash("b"), "one two");
}

// More than one write to the device in a round, more than an area holds, and all that lies between.
TEST(Journal, rounds_of_any_size_stay_whole) {
  fs::SimFileSystem disk;
  Rig rig(6 << 20);
  ASSERT_TRUE(rig.open(disk));
  std::vector<fs::FilePtr> files;
  std::vector<std::string> expected(40);
  for (std::size_t i = 0; i < expected.size(); ++i) files.push_back(rig.file(std::to_string(i)));
  std::mt19937_64 random(7);
  for (int round = 0; round < 30; ++round) {
    for (std::size_t i = 0; i < files.size(); ++i) {
      const auto size = static_cast<std::size_t>(random() % (round % 3 == 0 ? 250'000 : 9'000));
      const std::string text(size, static_cast<char>('a' + random() % 26));
      ASSERT_TRUE(rig.append(files[i], text));
      expected[i] += text;
    }
    ASSERT_TRUE(rig.journal->cover(files));
    if (round % 5 != 4) continue;
    const auto crashed = disk.crash_state({.mode = Mode::lose_all});
    const auto opened = Journal::open(*crashed, rig.options);
    ASSERT_TRUE(opened) << opened.error().to_string();
    for (std::size_t i = 0; i < files.size(); ++i) {
      const auto bytes = fs::read_file(*crashed, "/data/store/" + std::to_string(i), 1 << 30);
      ASSERT_TRUE(bytes && as_text(*bytes) == expected[i]) << "file " << i << ", round " << round;
    }
  }
}

TEST(Journal, files_in_a_renamed_directory_are_settled_first) {
  fs::SimFileSystem disk;
  Rig rig;
  ASSERT_TRUE(rig.open(disk));
  const auto a = rig.file("a");
  ASSERT_TRUE(rig.append(a, "one"));
  ASSERT_TRUE(rig.cover(a));
  ASSERT_TRUE(rig.fs().rename("/data/store", "/data/gone"));
  ASSERT_TRUE(rig.append(a, " two"));
  ASSERT_TRUE(rig.cover(a));
  const auto crashed = disk.crash_state({.mode = Mode::lose_all});
  EXPECT_TRUE(Journal::open(*crashed, rig.options)) << "the rename itself was not synced";
}

TEST(Journal, a_clean_stop_leaves_nothing_in_it) {
  fs::SimFileSystem disk;
  Rig rig;
  ASSERT_TRUE(rig.open(disk));
  const auto a = rig.file("a");
  ASSERT_TRUE(rig.append(a, "text"));
  ASSERT_TRUE(rig.cover(a));
  ASSERT_TRUE(rig.journal->close());
  const auto crashed = disk.crash_state({.mode = Mode::lose_all});
  // Another program may do what it likes from now on.
  ASSERT_TRUE(crashed->remove("/data/store/a"));
  const auto opened = Journal::open(*crashed, rig.options);
  ASSERT_TRUE(opened);
  EXPECT_EQ((*opened)->replayed().entries, 0U);
}

TEST(Journal, is_not_replayed_into_a_changed_directory) {
  fs::SimFileSystem disk;
  Rig rig;
  ASSERT_TRUE(rig.open(disk));
  const auto a = rig.file("a");
  ASSERT_TRUE(rig.append(a, "text"));
  ASSERT_TRUE(rig.cover(a));
  const auto refused = [&](const auto& change) {
    const auto crashed = disk.crash_state({.mode = Mode::lose_all});
    change(*crashed);
    const auto opened = Journal::open(*crashed, rig.options);
    const auto bytes = fs::read_file(*crashed, "/data/store/a", 100);
    EXPECT_TRUE(!bytes || bytes->empty());
    return !opened && opened.error().code == Errc::unsupported;
  };
  EXPECT_TRUE(refused([](fs::FileSystem& fs) { EXPECT_TRUE(fs.remove("/data/store/a")); }));
  EXPECT_TRUE(
      refused([](fs::FileSystem& fs) { EXPECT_TRUE(fs::replace_file(fs, "/data/store/a", {})); }));
  EXPECT_TRUE(refused([](fs::FileSystem& fs) {
    EXPECT_TRUE(fs::replace_file(fs, "/data/store/progress", as_bytes("theirs")));
  }));
}

TEST(Journal, our_own_progress_file_is_no_change) {
  fs::SimFileSystem disk;
  Rig rig;
  ASSERT_TRUE(rig.open(disk));
  const auto a = rig.file("a");
  ASSERT_TRUE(rig.append(a, "text"));
  ASSERT_TRUE(rig.cover(a));
  // At each step of putting it in place, whatever of it reached the disk.
  for (std::uint64_t step = disk.steps() + 1; step < disk.steps() + 20; ++step) {
    const auto again = disk.crash_state({.mode = Mode::kill});
    Rig second;
    ASSERT_TRUE(second.open(*again));
    const auto file = *second.fs().open("/data/store/a", fs::OpenMode::write);
    ASSERT_TRUE(second.append(file, "+"));
    ASSERT_TRUE(second.cover(file));
    again->crash_at(again->steps() + (step - disk.steps()), step % 2 == 0);
    static_cast<void>(fs::replace_file(second.fs(), "/data/store/progress", as_bytes("ours")));
    for (const auto mode : {Mode::lose_all, Mode::keep_all, Mode::names_only, Mode::data_only}) {
      const auto crashed = again->crash_state({.mode = mode});
      const auto opened = Journal::open(*crashed, rig.options);
      EXPECT_TRUE(opened) << opened.error().to_string();
      EXPECT_EQ(as_text(*fs::read_file(*crashed, "/data/store/a", 100)), "text+");
    }
  }
}

TEST(Journal, a_failed_write_of_it_is_final) {
  fs::SimFileSystem disk;
  Rig rig;
  ASSERT_TRUE(rig.open(disk));
  const auto a = rig.file("a");
  ASSERT_TRUE(rig.append(a, "text"));
  ASSERT_TRUE(rig.cover(a));
  ASSERT_TRUE(rig.append(a, " lost"));
  disk.fail_step(disk.steps() + 1, fs::Fault::eio);
  EXPECT_FALSE(rig.cover(a));
  EXPECT_EQ(rig.cover(a).error().code, Errc::unavailable);
  EXPECT_FALSE(rig.fs().remove("/data/store/a")) << "the journal still holds something of it";
  EXPECT_FALSE(rig.journal->close());
  EXPECT_TRUE(rig.after_crash("a").starts_with("text"));
}

// Its entries count until the one that settles them is on the disk: were it removed before, a start
// would look for it in vain.
TEST(Journal, a_file_that_was_not_settled_is_not_removed) {
  fs::SimFileSystem disk;
  Rig rig;
  ASSERT_TRUE(rig.open(disk));
  const auto a = rig.file("a");
  ASSERT_TRUE(rig.append(a, "text"));
  ASSERT_TRUE(rig.cover(a));
  disk.fail_step(disk.steps() + 2, fs::Fault::eio);  // its sync, then the journal's write
  EXPECT_FALSE(a->sync());
  EXPECT_FALSE(rig.fs().remove("/data/store/a"));
  EXPECT_FALSE(a->truncate(0));
  EXPECT_EQ(rig.after_crash("a"), "text");
}

TEST(Journal, a_file_whose_name_may_be_lost_is_not_relied_on) {
  fs::SimFileSystem disk;
  Rig rig;
  ASSERT_TRUE(rig.open(disk));
  const auto a = *rig.fs().open("/data/store/a", fs::OpenMode::create);
  ASSERT_TRUE(rig.append(a, "text"));
  disk.fail_step(disk.steps() + 1, fs::Fault::eio);
  EXPECT_FALSE(rig.fs().sync_directory("/data/store"));
  ASSERT_TRUE(rig.journal->checkpoint());
  ASSERT_TRUE(rig.append(a, " more"));
  ASSERT_TRUE(rig.cover(a));
  EXPECT_EQ(rig.journal->counters().rounds, 0U);
}

// The pages that the failed sync was to write may hold what the journal alone has by now.
TEST(Journal, a_failed_sync_of_what_it_holds_keeps_it_from_being_emptied) {
  for (const bool whole_volume : {false, true}) {
    fs::SimFileSystem disk;
    Rig rig;
    ASSERT_TRUE(rig.open(disk));
    const auto a = rig.file("a");
    ASSERT_TRUE(rig.append(a, "text"));
    ASSERT_TRUE(rig.cover(a));
    disk.fail_step(disk.steps() + 1, fs::Fault::eio);
    EXPECT_FALSE(whole_volume ? rig.journal->checkpoint() : a->sync());
    EXPECT_FALSE(rig.journal->checkpoint());
    EXPECT_EQ(rig.after_crash("a"), "text");
  }
}

TEST(Journal, a_journal_of_another_size_is_replayed_and_made_anew) {
  fs::SimFileSystem disk;
  Rig rig;
  ASSERT_TRUE(rig.open(disk));
  ASSERT_TRUE(rig.append(rig.file("a"), "text"));
  const auto a = *rig.fs().open("/data/store/a", fs::OpenMode::write);
  ASSERT_TRUE(rig.cover(a));
  rig.options.bytes *= 2;
  EXPECT_EQ(rig.after_crash("a"), "text");
}

TEST(Journal, without_one_what_an_earlier_run_left_is_replayed_and_the_file_goes) {
  fs::SimFileSystem disk;
  Rig rig;
  ASSERT_TRUE(rig.open(disk));
  const auto a = rig.file("a");
  ASSERT_TRUE(rig.append(a, "text"));
  ASSERT_TRUE(rig.cover(a));
  const auto crashed = disk.crash_state({.mode = Mode::lose_all});
  const auto replayed = Journal::recover_and_remove(*crashed, rig.options);
  ASSERT_TRUE(replayed);
  EXPECT_EQ(replayed->writes, 1U);
  EXPECT_EQ(as_text(*fs::read_file(*crashed, "/data/store/a", 100)), "text");
  EXPECT_FALSE(fs::exists(*crashed, journal_path("/data/journal")));
  EXPECT_TRUE(Journal::recover_and_remove(*crashed, rig.options));
}

TEST(Journal, a_head_that_does_not_read_is_an_error_that_says_what_to_do) {
  fs::SimFileSystem disk;
  Rig rig;
  ASSERT_TRUE(rig.open(disk));
  const auto path = journal_path("/data/journal");
  rig.journal.reset();
  const std::vector<std::uint8_t> rot(1024, 0x55);
  disk.corrupt(path, 0, rot);
  const auto opened = Journal::open(disk, rig.options);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::corrupt);
  EXPECT_NE(opened.error().context.find("remove it"), std::string::npos);
}

// Bytes of a journal that rot: what was acknowledged is put back, or the start is refused. Only the
// last write may pass for one that was cut off.
class RottenJournal : public ::testing::Test {
 protected:
  // Rounds until both areas hold some, the last one alone in its block.
  void SetUp() override {
    ASSERT_TRUE(rig_.open(disk_));
    file_ = rig_.file("a");
    for (int round = 0; round < 5; ++round) add("round " + std::to_string(round) + ", ");
    before_last_ = expected_;
    add("the last");
    bytes_ = *fs::read_file(disk_, path_, 1 << 20);
  }
  void add(const std::string& text) {
    ASSERT_TRUE(rig_.append(file_, text));
    ASSERT_TRUE(rig_.cover(file_));
    expected_ += text;
  }
  // Whether it was told.
  bool refused_with(std::size_t position, ByteView rot) {
    const auto crashed = disk_.crash_state({.mode = Mode::lose_all});
    crashed->corrupt(path_, position, rot);
    const auto held = holds_writes(*crashed, "/data/journal");
    const auto opened = Journal::open(*crashed, rig_.options);
    if (!opened) {
      EXPECT_EQ(opened.error().code, Errc::corrupt) << opened.error().to_string();
      EXPECT_NE(opened.error().context.find("remove it"), std::string::npos);
      EXPECT_TRUE(!held || *held);
      EXPECT_EQ(fs::read_file(*crashed, "/data/store/a", 100)->size(), 0U) << "nothing put back";
      return true;
    }
    const std::string after(as_text(*fs::read_file(*crashed, "/data/store/a", 100)));
    EXPECT_TRUE(after == expected_ || after == before_last_) << position << ": " << after;
    return false;
  }

  fs::SimFileSystem disk_;
  Rig rig_{block_bytes * (1 + 4 * area_count)};  // three rounds in an area
  const std::string path_ = journal_path("/data/journal");
  fs::FilePtr file_;
  std::string expected_, before_last_;
  std::vector<std::uint8_t> bytes_;
};

TEST_F(RottenJournal, a_flipped_bit_is_told_or_does_no_harm) {
  int refused = 0;
  for (std::size_t at = 0; at < bytes_.size(); at += at % block_bytes < 200 ? 1 : 97) {
    const std::uint8_t flipped = bytes_[at] ^ static_cast<std::uint8_t>(1U << (at % 8));
    refused += refused_with(at, ByteView(&flipped, 1)) ? 1 : 0;
  }
  EXPECT_GT(refused, 500);
}

TEST_F(RottenJournal, a_lost_block_is_told_or_does_no_harm) {
  int refused = 0;
  const std::vector<std::uint8_t> zeros(block_bytes);
  for (std::size_t at = 0; at < bytes_.size(); at += block_bytes) {
    refused += refused_with(at, zeros) ? 1 : 0;
  }
  EXPECT_EQ(refused, 8) << "all heads, and five of six rounds";
}

// The records are the clients' choice: none of them may look like a later write.
TEST_F(RottenJournal, a_cut_off_write_is_no_damage_whatever_the_records_say) {
  std::string text(64 << 10, ' ');
  for (std::size_t at = 0; at + entry_head_bytes <= text.size(); at += entry_head_bytes) {
    std::vector<std::uint8_t> head(entry_head_bytes);
    encode_entry_head(head, {EntryKind::fill, true, 2, 1000, 0, 0});
    std::copy(head.begin(), head.end(), text.begin() + static_cast<std::ptrdiff_t>(at));
  }
  fs::SimFileSystem disk;
  Rig rig(1 << 20);
  ASSERT_TRUE(rig.open(disk));
  const auto a = rig.file("a");
  ASSERT_TRUE(rig.append(a, "kept"));
  ASSERT_TRUE(rig.cover(a));
  ASSERT_TRUE(rig.append(a, text));
  ASSERT_TRUE(rig.cover(a));
  const auto crashed = disk.crash_state({.mode = Mode::lose_all});
  const std::vector<std::uint8_t> zeros(block_bytes);
  crashed->corrupt(path_, area_start(0, 0) + 2 * block_bytes, zeros);
  const auto opened = Journal::open(*crashed, rig.options);
  ASSERT_TRUE(opened) << opened.error().to_string();
  EXPECT_EQ(as_text(*fs::read_file(*crashed, "/data/store/a", 100)), "kept");
}

TEST(Journal, no_room_for_it_is_said_and_leaves_nothing) {
  fs::SimFileSystem disk;
  disk.set_capacity(32 << 10);
  Rig rig;
  const auto opened = rig.open(disk);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::no_space);
  EXPECT_EQ(disk.list("/data/journal")->size(), 0U);
}

TEST(Journal, no_room_for_what_it_holds_is_no_reason_to_go_on_without) {
  fs::SimFileSystem disk;
  Rig rig;
  ASSERT_TRUE(rig.open(disk));
  const auto a = rig.file("a");
  ASSERT_TRUE(rig.append(a, std::string(1000, 'x')));
  ASSERT_TRUE(rig.cover(a));
  const auto crashed = disk.crash_state({.mode = Mode::lose_all});
  crashed->set_capacity((60 << 10) + 500);  // the journal's own, and half of what it holds
  const auto opened = Journal::open(*crashed, rig.options);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::io);
  crashed->set_capacity(1 << 20);
  ASSERT_TRUE(Journal::open(*crashed, rig.options));
  EXPECT_EQ(fs::read_file(*crashed, "/data/store/a", 4096)->size(), 1000U);
}

// On a real disk, with checkpoints beside the rounds and several who write and cover.
TEST(Journal, holds_under_threads_on_a_real_disk) {
  fs::PosixFileSystem disk;
  const std::string root = ::testing::TempDir() + "journal-threads-" + std::to_string(getpid());
  ASSERT_TRUE(fs::create_directories(disk, root + "/store"));
  Options options;
  options.root = root;
  options.directory = root + "/journal";
  options.bytes = 64 << 10;
  {
    auto journal = Journal::open(disk, options);
    ASSERT_TRUE(journal) << journal.error().to_string();
    std::vector<std::thread> threads;
    for (int each = 0; each < 4; ++each) {
      threads.emplace_back([&, each] {
        const std::string path = root + "/store/" + std::to_string(each);
        auto file = (*journal)->file_system().open(path, fs::OpenMode::create);
        ASSERT_TRUE(file && (*file)->sync());
        ASSERT_TRUE((*journal)->file_system().sync_directory(root + "/store"));
        for (std::uint64_t i = 0; i < 300; ++i) {
          ASSERT_TRUE((*file)->write(i * 8, as_bytes("8 bytes,")));
          const auto covered = (*journal)->cover(std::span(&*file, 1));
          ASSERT_TRUE(covered) << covered.error().to_string();
          if (i % 100 == 50) {
            ASSERT_TRUE((*file)->sync());
          }
          if (i % 100 == 99) {
            ASSERT_TRUE((*journal)->checkpoint());
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_GT((*journal)->counters().checkpoints, 4U);
  }
  auto again = Journal::open(disk, options);
  ASSERT_TRUE(again) << again.error().to_string();
  again->reset();
  EXPECT_TRUE(fs::remove_tree(disk, root));
}

}  // namespace
}  // namespace polylog::journal
