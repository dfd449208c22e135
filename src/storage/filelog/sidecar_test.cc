#include "storage/filelog/sidecar.h"

#include <gtest/gtest.h>

#include "fs/sim_file_system.h"
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

TEST(Sidecar, says_again_what_it_was_told) {
  fs::SimFileSystem fs;
  Opened first = open(fs);
  EXPECT_FALSE(first.state.found);
  const std::uint32_t id = first.sidecar->begin_log("t-0", Uuid{});
  LogConfig config;
  config.retention_ms = 5;
  first.sidecar->config(id, config);
  first.sidecar->round(id, LogPosition(10), {round_file(100, 0, 0)});
  first.sidecar->round(id, LogPosition(30), {round_file(70'000, 0, 1)});
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

TEST(Sidecar, a_torn_or_damaged_record_ends_it_there) {
  fs::SimFileSystem fs;
  Opened first = open(fs);
  const std::uint32_t id = first.sidecar->begin_log("t-0", Uuid{});
  first.sidecar->round(id, LogPosition(10), {round_file(100, 0, 0)});
  const auto good = fs.info(path)->size;
  first.sidecar->round(id, LogPosition(20), {round_file(200, 0, 0)});
  const auto whole = *fs::read_file(fs, path, 1 << 20);
  for (std::size_t size = good; size < whole.size(); ++size) {
    SidecarState state;
    EXPECT_EQ(decode_sidecar(ByteView(whole).first(size), state), good);
    EXPECT_EQ(state.logs.at("t-0").durable, LogPosition(10));
  }
  for (std::size_t at = good; at < whole.size(); ++at) {
    auto bytes = whole;
    bytes[at] ^= 0x10;
    SidecarState state;
    EXPECT_EQ(decode_sidecar(bytes, state), good);
  }
}

TEST(Sidecar, a_gap_in_the_blocks_makes_the_files_note_void) {
  SidecarState state;
  SidecarDecoder decoder(state);
  ASSERT_TRUE(decoder.apply(sidecar_type::begin_log, encode_begin_log(1, Uuid{}, "t-0")));
  ASSERT_TRUE(decoder.apply(sidecar_type::round,
                            encode_round(1, LogPosition(5), {round_file(200'000, 2, 1)})));
  EXPECT_TRUE(state.logs.at("t-0").files.empty());
  EXPECT_EQ(state.logs.at("t-0").durable, LogPosition(5));
}

TEST(Sidecar, falls_silent_on_a_full_disk_until_it_is_rewritten) {
  fs::SimFileSystem fs;
  Opened first = open(fs);
  const std::uint32_t id = first.sidecar->begin_log("t-0", Uuid{});
  fs.fail_step(fs.steps() + 1, fs::Fault::short_write);
  first.sidecar->round(id, LogPosition(10), {round_file(100, 0, 0)});
  first.sidecar->round(id, LogPosition(20), {round_file(200, 0, 0)});
  EXPECT_TRUE(first.sidecar->wants_rewrite());
  EXPECT_EQ(open(fs).state.logs.at("t-0").durable, LogPosition(0));
  SidecarState truth;
  truth.logs["t-0"].durable = LogPosition(20);
  ASSERT_TRUE(first.sidecar->rewrite(truth));
  EXPECT_FALSE(first.sidecar->wants_rewrite());
  first.sidecar->round(truth.logs["t-0"].id, LogPosition(30), {});
  EXPECT_EQ(open(fs).state.logs.at("t-0").durable, LogPosition(30));
}

TEST(Sidecar, the_last_two_marks_are_kept_and_a_cut_takes_promises_back) {
  fs::SimFileSystem fs;
  Opened first = open(fs);
  const std::uint32_t id = first.sidecar->begin_log("t-0", Uuid{});
  first.sidecar->round(id, LogPosition(10), {round_file(100, 0, 0)});
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

}  // namespace
}  // namespace polylog::storage
