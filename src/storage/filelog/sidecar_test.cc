#include "storage/filelog/sidecar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "base/crc.h"
#include "fs/sim_file_system.h"
#include "storage/filelog/held_syncs_rig.h"
#include "storage/filelog/sidecar_codec.h"

namespace polylog::storage {
namespace {

constexpr const char* path = "/side";

struct Opened {
  std::unique_ptr<Sidecar> sidecar;
  SidecarState state;
};

Opened open(fs::SimFileSystem& fs) {
  Opened opened;
  auto sidecar = Sidecar::open(fs, path, opened.state);
  EXPECT_TRUE(sidecar);
  opened.sidecar = std::move(*sidecar);
  return opened;
}

RoundFile round_file(std::uint64_t bytes, std::uint32_t first_block, std::size_t blocks) {
  RoundFile file;
  file.inode = 7;
  file.durable_bytes = bytes;
  file.first_block = first_block;
  file.blocks.resize(blocks, {1, 0});
  return file;
}

void write_round(Sidecar& sidecar, std::uint32_t id, LogPosition durable,
                 const std::vector<RoundFile>& files) {
  sidecar.round(id, durable, files);
  sidecar.write_noted();
}

TEST(Sidecar, says_again_what_it_was_told) {
  fs::SimFileSystem fs;
  Opened first = open(fs);
  EXPECT_FALSE(first.state.found);
  const std::uint32_t id = first.sidecar->begin_log("t-0", Uuid{});
  LogConfig config;
  config.retention_ms = 5;
  first.sidecar->config(id, config);
  write_round(*first.sidecar, id, LogPosition(10), {round_file(100, 0, 0)});
  write_round(*first.sidecar, id, LogPosition(30), {round_file(70'000, 0, 1)});
  RecoveryPoint point;
  point.offset = 30;
  point.epochs = {{LeaderEpoch(0), LogPosition(0)}, {LeaderEpoch(2), LogPosition(9)}};
  point.producers = {1, 2, 3};
  first.sidecar->recovery_point(id, point);
  const Opened again = open(fs);
  ASSERT_TRUE(again.state.found);
  const LogNote& note = again.state.logs.at("t-0");
  EXPECT_EQ(note.durable, LogPosition(30));
  EXPECT_EQ(note.config, config);
  EXPECT_EQ(note.files.at(0).sums.size(), 70'000U);
  EXPECT_EQ(note.recovery->epochs.size(), 2U);
  EXPECT_EQ(note.recovery->producers, point.producers);
  EXPECT_FALSE(again.state.clean);
}

TEST(Sidecar, ends_where_a_record_is_torn) {
  fs::SimFileSystem fs;
  Opened first = open(fs);
  const std::uint32_t id = first.sidecar->begin_log("t-0", Uuid{});
  write_round(*first.sidecar, id, LogPosition(10), {round_file(100, 0, 0)});
  const auto good = fs.info(path)->size;
  write_round(*first.sidecar, id, LogPosition(20), {round_file(200, 0, 0)});
  const auto whole = *fs::read_file(fs, path, 1 << 20);
  for (std::size_t size = good; size < whole.size(); ++size) {
    SidecarState state;
    EXPECT_EQ(decode_sidecar(ByteView(whole).first(size), state), good);
    EXPECT_EQ(state.logs.at("t-0").durable, LogPosition(10));
    EXPECT_TRUE(state.damage.empty()) << "it may never have been on the disk";
  }
}

TEST(Sidecar, a_record_that_does_not_read_is_stepped_over) {
  fs::SimFileSystem fs;
  Opened first = open(fs);
  const std::uint32_t id = first.sidecar->begin_log("t-0", Uuid{});
  write_round(*first.sidecar, id, LogPosition(10), {round_file(100, 0, 0)});
  const auto from = fs.info(path)->size;
  write_round(*first.sidecar, id, LogPosition(20), {round_file(200, 0, 0)});
  const auto to = fs.info(path)->size;
  ASSERT_TRUE(first.sidecar->epoch_start(id, {LeaderEpoch(7), LogPosition(15)}));
  ASSERT_TRUE(first.sidecar->queue_synced({"t", 0}, {}));
  write_round(*first.sidecar, id, LogPosition(15), {});
  const auto whole = *fs::read_file(fs, path, 1 << 20);
  for (std::size_t at = from; at < to; ++at) {
    auto bytes = whole;
    bytes[at] ^= 0x10;
    SidecarState state;
    EXPECT_EQ(decode_sidecar(bytes, state), whole.size());
    const LogNote& note = state.logs.at("t-0");
    EXPECT_EQ(note.durable, LogPosition(15));
    EXPECT_EQ(note.files.at(0).sums.size(), 100U);
    EXPECT_EQ(note.epochs, (std::vector<EpochList::Entry>{{LeaderEpoch(7), LogPosition(15)}}));
    EXPECT_EQ(state.damage.size(), 1U) << "a later sync covered it";
    EXPECT_FALSE(note.epochs_lost);
  }
}

// Some of everything, in a file written anew and behind that.
SidecarState some_state() {
  SidecarState state;
  LogNote& log = state.logs["t-0"];
  log.announced = LeaderEpoch(4);
  log.durable = LogPosition(40);
  log.config = LogConfig();
  log.epochs = {{LeaderEpoch(1), LogPosition(0)}, {LeaderEpoch(3), LogPosition(30)}};
  FileNote& file = log.files[0];
  EXPECT_TRUE(file.sums.restore(0, {}, {5, 0}, 99));
  log.recovery.emplace().producers = {1, 2, 3};
  state.logs["u-1"].announced = LeaderEpoch(2);
  state.queues[{"t", 0}].start = 12;
  state.queues[{"u", 1}].removed = true;
  state.marks = {{1, 2, 3}, {4, 5, 6}};
  return state;
}

TEST(Sidecar, no_single_flipped_bit_loses_a_fact) {
  for (const bool clean : {true, false}) {
    fs::SimFileSystem fs;
    Opened first = open(fs);
    SidecarState state = some_state();
    state.clean = clean;
    ASSERT_TRUE(first.sidecar->rewrite(state));
    std::size_t before_mark = 0;
    if (!clean) {
      const std::uint32_t id = state.logs["t-0"].id;
      ASSERT_TRUE(first.sidecar->epoch_start(id, {LeaderEpoch(5), LogPosition(60)}));
      write_round(*first.sidecar, id, LogPosition(70), {round_file(200, 0, 0)});
      QueueNote queue;
      queue.start = 66;
      ASSERT_TRUE(first.sidecar->queue_synced({"t", 0}, queue));
      before_mark = fs.info(path)->size;
      ASSERT_TRUE(first.sidecar->mark({7, 8, 9}));
    }
    const auto whole = *fs::read_file(fs, path, 1 << 20);
    const std::size_t said = clean ? whole.size() : before_mark;
    SidecarState all;
    ASSERT_EQ(decode_sidecar(whole, all), whole.size());
    EXPECT_TRUE(all.damage.empty());
    for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
      auto bytes = whole;
      bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
      SidecarState found;
      decode_sidecar(bytes, found);
      ASSERT_TRUE(found.found) << bit;
      // Of what was synced last the file does not say so yet: a power cut might have taken it.
      ASSERT_EQ(found.damage.empty(), bit / 8 >= said) << bit;
      ASSERT_EQ(found.clean, clean) << bit;
      ASSERT_EQ(found.marks, all.marks) << bit;
      ASSERT_EQ(found.queues, all.queues) << bit;
      ASSERT_EQ(found.logs.size(), 2U) << bit;
      for (const auto& [name, log] : found.logs) {
        const LogNote& as_it_was = all.logs.at(name);
        ASSERT_EQ(log.announced, as_it_was.announced) << bit;
        ASSERT_EQ(log.epochs, as_it_was.epochs) << bit;
        ASSERT_EQ(log.epochs_lost, false) << bit;
        ASSERT_EQ(log.config, as_it_was.config) << bit;
        ASSERT_LE(log.durable, as_it_was.durable) << bit;
        ASSERT_EQ(log.recovery.has_value(), as_it_was.recovery.has_value()) << bit;
      }
    }
  }
}

TEST(Sidecar, facts_that_are_lost_leave_nothing_that_they_may_have_changed) {
  fs::SimFileSystem fs;
  Opened first = open(fs);
  const std::uint32_t id = first.sidecar->begin_log("t-0", Uuid{});
  write_round(*first.sidecar, id, LogPosition(10), {round_file(100, 0, 0)});
  first.sidecar->recovery_point(id, {});
  ASSERT_TRUE(first.sidecar->epoch_start(id, {LeaderEpoch(1), LogPosition(0)}));
  const auto from = fs.info(path)->size;
  ASSERT_TRUE(first.sidecar->epoch_start(id, {LeaderEpoch(2), LogPosition(5)}));
  const auto to = fs.info(path)->size;
  ASSERT_TRUE(first.sidecar->epoch_start(id, {LeaderEpoch(3), LogPosition(10)}));
  const std::vector<std::uint8_t> noise(to - from, 0xff);
  const auto whole = *fs::read_file(fs, path, 1 << 20);
  const auto decoded = [&](ByteView bytes) {
    SidecarState state;
    decode_sidecar(bytes, state);
    return state;
  };
  auto bytes = whole;
  std::copy(noise.begin(), noise.end(), bytes.begin() + static_cast<std::ptrdiff_t>(from));
  EXPECT_FALSE(decoded(bytes).logs.at("t-0").epochs_lost)
      << "a power cut may leave that of what no sync has covered";
  first.sidecar->covered(first.sidecar->extent());
  write_round(*first.sidecar, id, LogPosition(12), {});
  bytes = *fs::read_file(fs, path, 1 << 20);
  std::copy(noise.begin(), noise.end(), bytes.begin() + static_cast<std::ptrdiff_t>(from));
  const SidecarState state = decoded(bytes);
  ASSERT_EQ(state.damage.size(), 1U);
  EXPECT_NE(state.damage[0].find("1 fact(s)"), std::string::npos) << state.damage[0];
  const LogNote& note = state.logs.at("t-0");
  EXPECT_EQ(note.epochs, (std::vector<EpochList::Entry>{{LeaderEpoch(3), LogPosition(10)}}));
  EXPECT_TRUE(note.epochs_lost);
  EXPECT_TRUE(note.files.empty());
  EXPECT_FALSE(note.recovery);
  EXPECT_EQ(note.durable, LogPosition(12)) << "offsets never go back";
  // Nothing is written behind a hole, and a new file says it too.
  fs.corrupt(path, from, noise);
  Opened again = open(fs);
  EXPECT_TRUE(again.sidecar->silent());
  ASSERT_TRUE(again.sidecar->rewrite(again.state));
  EXPECT_TRUE(open(fs).state.logs.at("t-0").epochs_lost);
}

TEST(Sidecar, a_file_of_the_version_before_is_read_and_written_anew) {
  fs::SimFileSystem fs;
  ByteWriter old;
  old.text("PLSIDE01");
  const auto add = [&](std::uint8_t type, ByteView payload) {
    old.u32(static_cast<std::uint32_t>(payload.size() + 1));
    old.u32(crc32c_extend(crc32c(ByteView(&type, 1)), payload));
    old.u8(type);
    old.bytes(payload);
  };
  add(sidecar_type::begin_log, encode_begin_log(3, Uuid{}, "t-0"));
  std::vector<std::uint8_t> epoch = encode_epoch(3, LeaderEpoch(6));
  epoch.pop_back();  // it had no flag then
  add(sidecar_type::epoch, epoch);
  add(sidecar_type::round, encode_round(3, LogPosition(10), {}));
  auto bytes = old.take_bytes();
  bytes.push_back(0);  // a torn end
  ASSERT_TRUE(fs.open(path, fs::OpenMode::create));
  fs.append_raw(path, bytes);
  Opened first = open(fs);
  EXPECT_TRUE(first.state.found);
  EXPECT_EQ(first.state.logs.at("t-0").announced, LeaderEpoch(6));
  EXPECT_EQ(first.state.logs.at("t-0").durable, LogPosition(10));
  EXPECT_TRUE(first.sidecar->wants_rewrite()) << "nothing is added in another form";
  ASSERT_TRUE(first.sidecar->rewrite(first.state));
  const auto written = *fs::read_file(fs, path, 1 << 20);
  EXPECT_EQ(as_text(ByteView(written).first(8)), sidecar_magic);
  EXPECT_EQ(open(fs).state.logs.at("t-0").announced, LeaderEpoch(6));
}

TEST(Sidecar, who_notes_something_does_not_wait_for_a_sync) {
  fs::SimFileSystem disk;
  HeldSyncs fs(disk);
  SidecarState state;
  auto sidecar = *Sidecar::open(fs, path, state);
  const std::uint32_t id = sidecar->begin_log("t-0", Uuid{});
  state.logs["t-0"].id = id;
  const auto during = [&](const std::function<void()>& slow, std::int32_t epoch) {
    fs.hold();
    std::thread other(slow);
    EXPECT_TRUE(fs.one_waits());
    std::atomic<bool> noted = false;
    std::thread append([&] {
      EXPECT_TRUE(sidecar->epoch_start(id, {LeaderEpoch(epoch), LogPosition(epoch)}));
      write_round(*sidecar, id, LogPosition(epoch), {});
      noted = true;
    });
    for (int i = 0; i < 3000 && !noted; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(noted) << "it waits for the sync";
    fs.let_go();
    append.join();
    other.join();
  };
  during([&] { EXPECT_TRUE(sidecar->mark({1, 2, 3})); }, 1);
  during([&] { EXPECT_TRUE(sidecar->queue_synced({"t", 0}, {})); }, 2);
  state.logs["t-0"].epochs = {{LeaderEpoch(1), LogPosition(1)}, {LeaderEpoch(2), LogPosition(2)}};
  during([&] { EXPECT_TRUE(sidecar->rewrite(state)); }, 3);
  // What was noted while the file was written anew is in the new one, and synced.
  const auto after = disk.crash_state({.mode = fs::CrashChoice::Mode::lose_all});
  SidecarState found;
  ASSERT_TRUE(Sidecar::open(*after, path, found));
  EXPECT_EQ(found.logs.at("t-0").epochs.size(), 3U);
}

TEST(Sidecar, what_was_noted_before_the_state_was_put_together_is_not_lost_in_a_rewrite) {
  fs::SimFileSystem fs;
  Opened first = open(fs);
  const std::uint32_t id = first.sidecar->begin_log("t-0", Uuid{});
  first.sidecar->begin_rewrite();
  SidecarState state;
  state.logs["t-0"].id = id;
  state.logs["t-0"].durable = LogPosition(50);
  ASSERT_TRUE(first.sidecar->cut(id, 0, 10, LogPosition(20)));
  ASSERT_TRUE(first.sidecar->rewrite(state));
  EXPECT_EQ(open(fs).state.logs.at("t-0").durable, LogPosition(20));
}

TEST(Sidecar, written_anew_keeps_the_points_of_logs_that_have_none_at_that_moment) {
  fs::SimFileSystem fs;
  Opened first = open(fs);
  SidecarState state;
  for (const char* name : {"busy-0", "cut-0", "idle-0"}) {
    LogNote& note = state.logs[name];
    note.id = first.sidecar->begin_log(name, Uuid{});
    write_round(*first.sidecar, note.id, LogPosition(10), {round_file(100, 0, 0)});
    note.durable = LogPosition(10);
    note.files[0].inode = 7;
    RecoveryPoint point;
    point.offset = 10;
    first.sidecar->recovery_point(note.id, point);
  }
  state.logs["idle-0"].recovery.emplace().offset = 12;
  state.logs["new-0"].files[0].inode = 8;
  first.sidecar->begin_rewrite();
  ASSERT_TRUE(first.sidecar->cut(state.logs["cut-0"].id, 0, 50, LogPosition(5)));
  ASSERT_TRUE(first.sidecar->rewrite(state));
  const Opened again = open(fs);
  EXPECT_EQ(again.state.logs.at("busy-0").recovery.value().offset, 10);
  EXPECT_EQ(again.state.logs.at("idle-0").recovery.value().offset, 12);
  EXPECT_FALSE(again.state.logs.at("cut-0").recovery);
  EXPECT_FALSE(again.state.logs.at("new-0").recovery);
}

TEST(Sidecar, a_gap_in_the_blocks_adds_nothing_to_the_files_note) {
  SidecarState state;
  SidecarDecoder decoder(state);
  ASSERT_TRUE(decoder.apply(sidecar_type::begin_log, encode_begin_log(1, Uuid{}, "t-0")));
  const auto round = [&](std::int64_t durable, const RoundFile& file) {
    ASSERT_TRUE(decoder.apply(sidecar_type::round, encode_round(1, LogPosition(durable), {file})));
  };
  const auto& files = state.logs.at("t-0").files;
  round(5, round_file(200'000, 2, 1));
  EXPECT_TRUE(files.empty()) << "nothing is known of its beginning";
  EXPECT_EQ(state.logs.at("t-0").durable, LogPosition(5));
  round(6, round_file(70'000, 0, 1));
  round(7, round_file(200'000, 2, 1));
  ASSERT_TRUE(files.contains(0)) << "what was durable is so still";
  EXPECT_EQ(files.at(0).sums.size(), 70'000U);
  EXPECT_EQ(state.logs.at("t-0").durable, LogPosition(7));
  RoundFile other = round_file(200'000, 1, 2);
  other.inode = 8;
  round(8, other);
  EXPECT_TRUE(files.empty()) << "another file, of whose beginning nothing is known";
}

TEST(Sidecar, a_record_of_a_later_version_changes_nothing_and_ends_a_clean_stop) {
  SidecarState state;
  SidecarDecoder decoder(state);
  ASSERT_TRUE(decoder.apply(sidecar_type::begin_log, encode_begin_log(1, Uuid{}, "t-0")));
  ASSERT_TRUE(decoder.apply(sidecar_type::clean_stop, {}));
  ASSERT_TRUE(state.clean);
  EXPECT_FALSE(decoder.apply(200, encode_end_log(1)));
  EXPECT_FALSE(state.clean);
  EXPECT_TRUE(state.logs.contains("t-0"));
  EXPECT_FALSE(decoder.apply(sidecar_type::clean_stop, as_bytes("more")));
}

TEST(Sidecar, what_a_round_tells_of_many_logs_is_one_write) {
  fs::SimFileSystem fs;
  Opened first = open(fs);
  std::vector<std::uint32_t> ids;
  for (int i = 0; i < 50; ++i) {
    ids.push_back(first.sidecar->begin_log("t-" + std::to_string(i), Uuid{}));
  }
  const std::uint64_t before = fs.steps();
  for (const std::uint32_t id : ids) {
    first.sidecar->round(id, LogPosition(id + 10), {round_file(100, 0, 0)});
  }
  EXPECT_EQ(fs.steps(), before) << "they wait";
  first.sidecar->write_noted();
  EXPECT_EQ(fs.steps(), before + 1);
  first.sidecar->write_noted();
  EXPECT_EQ(fs.steps(), before + 1) << "nothing is left";
  const Opened again = open(fs);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(again.state.logs.at("t-" + std::to_string(i)).durable, LogPosition(ids[i] + 10));
  }
}

TEST(Sidecar, what_waits_comes_before_whatever_is_noted_after_it) {
  fs::SimFileSystem fs;
  Opened first = open(fs);
  const std::uint32_t id = first.sidecar->begin_log("t-0", Uuid{});
  first.sidecar->round(id, LogPosition(10), {round_file(100, 0, 0)});
  ASSERT_TRUE(first.sidecar->cut(id, 0, 50, LogPosition(4)));
  EXPECT_EQ(open(fs).state.logs.at("t-0").durable, LogPosition(4)) << "the cut takes it back";
  first.sidecar->round(id, LogPosition(12), {});
  first.sidecar->clean_stop();
  const Opened again = open(fs);
  EXPECT_EQ(again.state.logs.at("t-0").durable, LogPosition(12));
  EXPECT_TRUE(again.state.clean);
}

TEST(Sidecar, what_waits_when_the_file_is_written_anew_is_in_the_new_one) {
  for (const bool begun : {false, true}) {
    fs::SimFileSystem fs;
    Opened first = open(fs);
    SidecarState truth;
    truth.logs["t-0"].id = first.sidecar->begin_log("t-0", Uuid{});
    if (begun) first.sidecar->begin_rewrite();
    first.sidecar->round(truth.logs["t-0"].id, LogPosition(10), {round_file(100, 0, 0)});
    if (!begun) truth.logs["t-0"].durable = LogPosition(10);
    ASSERT_TRUE(first.sidecar->rewrite(truth));
    EXPECT_EQ(open(fs).state.logs.at("t-0").durable, LogPosition(10)) << begun;
    first.sidecar->write_noted();
    write_round(*first.sidecar, truth.logs["t-0"].id, LogPosition(20), {});
    EXPECT_EQ(open(fs).state.logs.at("t-0").durable, LogPosition(20)) << begun;
    EXPECT_TRUE(open(fs).state.damage.empty()) << begun;
  }
}

TEST(Sidecar, leaves_out_what_a_full_disk_has_no_room_for_and_refuses_facts) {
  fs::SimFileSystem fs;
  Opened first = open(fs);
  const std::uint32_t id = first.sidecar->begin_log("t-0", Uuid{});
  fs.fail_step(fs.steps() + 1, fs::Fault::short_write);
  write_round(*first.sidecar, id, LogPosition(10), {round_file(100, 0, 0)});
  EXPECT_TRUE(first.sidecar->wants_rewrite());
  EXPECT_FALSE(first.sidecar->silent());
  EXPECT_EQ(open(fs).state.logs.at("t-0").durable, LogPosition(0));
  fs.fail_step(fs.steps() + 1, fs::Fault::no_space);
  const auto refused = first.sidecar->epoch_start(id, {LeaderEpoch(1), LogPosition(12)});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::no_space);
  write_round(*first.sidecar, id, LogPosition(20), {round_file(200, 0, 0)});
  const auto there = open(fs);
  EXPECT_EQ(there.state.logs.at("t-0").durable, LogPosition(20));
  EXPECT_TRUE(there.state.logs.at("t-0").epochs.empty());
  SidecarState truth;
  truth.logs["t-0"].durable = LogPosition(20);
  ASSERT_TRUE(first.sidecar->rewrite(truth));
  EXPECT_FALSE(first.sidecar->wants_rewrite());
  write_round(*first.sidecar, truth.logs["t-0"].id, LogPosition(30), {});
  EXPECT_EQ(open(fs).state.logs.at("t-0").durable, LogPosition(30));
}

TEST(Sidecar, falls_silent_when_it_could_not_say_what_others_rely_on) {
  fs::SimFileSystem fs;
  Opened first = open(fs);
  fs.fail_step(fs.steps() + 1, fs::Fault::no_space);
  const std::uint32_t id = first.sidecar->begin_log("t-0", Uuid{});
  EXPECT_FALSE(first.sidecar->epoch_start(id, {LeaderEpoch(1), LogPosition(0)}))
      << "it would be of a log that nobody knows";
  EXPECT_TRUE(first.sidecar->silent());
}

TEST(Sidecar, falls_silent_when_a_write_fails_half_way_until_it_is_rewritten) {
  fs::SimFileSystem fs;
  Opened first = open(fs);
  const std::uint32_t id = first.sidecar->begin_log("t-0", Uuid{});
  fs.fail_step(fs.steps() + 1, fs::Fault::eio);
  write_round(*first.sidecar, id, LogPosition(10), {});
  EXPECT_TRUE(first.sidecar->silent());
  write_round(*first.sidecar, id, LogPosition(20), {});
  EXPECT_EQ(open(fs).state.logs.at("t-0").durable, LogPosition(0));
  SidecarState truth;
  ASSERT_TRUE(first.sidecar->rewrite(truth));
  EXPECT_FALSE(first.sidecar->silent());
}

TEST(Sidecar, the_last_two_marks_are_kept_and_a_cut_takes_promises_back) {
  fs::SimFileSystem fs;
  Opened first = open(fs);
  const std::uint32_t id = first.sidecar->begin_log("t-0", Uuid{});
  write_round(*first.sidecar, id, LogPosition(10), {round_file(100, 0, 0)});
  for (std::uint64_t inode = 1; inode <= 3; ++inode) {
    ASSERT_TRUE(first.sidecar->mark({0, inode, 0}));
  }
  ASSERT_TRUE(first.sidecar->cut(id, 0, 50, LogPosition(4)));
  first.sidecar->clean_stop();
  const Opened again = open(fs);
  EXPECT_EQ(again.state.marks, (std::vector<FileIdentity>{{0, 2, 0}, {0, 3, 0}}));
  EXPECT_EQ(again.state.logs.at("t-0").durable, LogPosition(4));
  EXPECT_TRUE(again.state.logs.at("t-0").files.empty());
  EXPECT_TRUE(again.state.clean);
}

RecoveryPoint point_at(std::uint64_t position, std::int64_t offset) {
  RecoveryPoint point;
  point.position = position;
  point.offset = offset;
  return point;
}

TEST(Sidecar, no_point_is_noted_that_may_rest_on_a_round_that_was_left_out) {
  for (const bool at_once : {false, true}) {  // the round is written for the point's sake
    fs::SimFileSystem fs;
    Opened first = open(fs);
    const std::uint32_t id = first.sidecar->begin_log("t-0", Uuid{});
    write_round(*first.sidecar, id, LogPosition(10), {round_file(100, 0, 0)});
    ASSERT_TRUE(first.sidecar->recovery_point(id, point_at(100, 10)));
    first.sidecar->round(id, LogPosition(20), {round_file(200, 0, 0)});
    fs.fail_step(fs.steps() + 1, fs::Fault::no_space);
    if (!at_once) first.sidecar->write_noted();
    EXPECT_FALSE(first.sidecar->recovery_point(id, point_at(200, 20)));
    const auto refused = first.sidecar->recovery_point_synced(id, point_at(200, 20));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::no_space);
    EXPECT_FALSE(first.sidecar->silent());
    EXPECT_EQ(open(fs).state.logs.at("t-0").recovery.value().offset, 10);
    // Written anew the file has the round.
    SidecarState truth;
    truth.logs["t-0"] = open(fs).state.logs.at("t-0");
    first.sidecar->begin_rewrite();
    first.sidecar->round(id, LogPosition(20), {round_file(200, 0, 0)});
    EXPECT_FALSE(first.sidecar->recovery_point(id, point_at(200, 20)));
    ASSERT_TRUE(first.sidecar->rewrite(truth));
    EXPECT_EQ(open(fs).state.logs.at("t-0").recovery.value().offset, 20);
    write_round(*first.sidecar, id, LogPosition(30), {round_file(300, 0, 0)});
    EXPECT_TRUE(first.sidecar->recovery_point_synced(id, point_at(300, 30)));
    EXPECT_EQ(open(fs).state.logs.at("t-0").recovery.value().offset, 30);
  }
}

// A power cut may leave a hole above what a sync has covered; what stands below it holds.
TEST(Sidecar, a_hole_above_what_was_synced_takes_nothing_from_what_stands_below) {
  constexpr std::uint64_t block = BlockSums::block_bytes;
  fs::SimFileSystem fs;
  Opened first = open(fs);
  const std::uint32_t id = first.sidecar->begin_log("t-0", Uuid{});
  write_round(*first.sidecar, id, LogPosition(10), {round_file(2 * block, 0, 2)});
  ASSERT_TRUE(first.sidecar->recovery_point_synced(id, point_at(2 * block, 10)));
  const auto from = fs.info(path)->size;
  write_round(*first.sidecar, id, LogPosition(20), {round_file(3 * block, 2, 1)});
  const auto to = fs.info(path)->size;
  write_round(*first.sidecar, id, LogPosition(30), {round_file(4 * block, 3, 1)});
  ASSERT_TRUE(first.sidecar->recovery_point(id, point_at(4 * block, 30)));
  EXPECT_EQ(open(fs).state.logs.at("t-0").recovery.value().offset, 30);
  auto bytes = *fs::read_file(fs, path, 1 << 20);
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(from),
            bytes.begin() + static_cast<std::ptrdiff_t>(to), std::uint8_t{0});
  SidecarState state;
  EXPECT_EQ(decode_sidecar(bytes, state), bytes.size());
  EXPECT_TRUE(state.damage.empty());
  const LogNote& note = state.logs.at("t-0");
  ASSERT_TRUE(note.files.contains(0));
  EXPECT_EQ(note.files.at(0).sums.size(), 2 * block);
  EXPECT_EQ(note.recovery.value().offset, 10) << "the sums don't reach to the later one";
}

TEST(Sidecar, a_point_in_a_file_that_is_not_known_takes_no_ones_place) {
  SidecarState state;
  SidecarDecoder decoder(state);
  ASSERT_TRUE(decoder.apply(sidecar_type::begin_log, encode_begin_log(1, Uuid{}, "t-0")));
  const auto point = [&](std::int64_t base, std::uint64_t position, std::int64_t offset) {
    RecoveryPoint at = point_at(position, offset);
    at.base = base;
    ASSERT_TRUE(decoder.apply(sidecar_type::recovery_point, encode_recovery_point(1, at)));
  };
  const auto& recovery = state.logs.at("t-0").recovery;
  // Where there is none it may be what is left of a file that retention took.
  point(3, 100, 4);
  ASSERT_TRUE(recovery);
  RoundFile file = round_file(100, 0, 0);
  file.base = 4;
  ASSERT_TRUE(decoder.apply(sidecar_type::round, encode_round(1, LogPosition(8), {file})));
  point(4, 100, 8);
  EXPECT_EQ(recovery->offset, 8);
  point(4, 101, 9);
  EXPECT_EQ(recovery->offset, 8) << "not known to be durable";
  point(9, 0, 9);
  EXPECT_EQ(recovery->offset, 8) << "in a file that may not be there";
  file = round_file(0, 0, 0);
  file.base = 9;
  ASSERT_TRUE(decoder.apply(sidecar_type::round, encode_round(1, LogPosition(9), {file})));
  point(9, 0, 9);
  EXPECT_EQ(recovery->offset, 9);
}

}  // namespace
}  // namespace polylog::storage
