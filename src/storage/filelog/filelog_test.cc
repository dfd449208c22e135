#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "bytes/endian.h"
#include "fs/sim_file_system.h"
#include "storage/filelog/block_check.h"
#include "storage/filelog/block_sums.h"
#include "storage/filelog/file_cache.h"
#include "storage/filelog/fixed_entries.h"
#include "storage/filelog/retention.h"
#include "storage/filelog/scan.h"

namespace polylog::storage {
namespace {

// Frames of one length byte and that many bytes; 0 ends, 255 is corrupt.
struct ByteFrames {
  FrameSize frame_size(ByteView window) const {
    if (window.empty()) return {FrameSize::Kind::more, 1};
    if (window[0] == 0) return {FrameSize::Kind::end, 0};
    if (window[0] == 255) return {FrameSize::Kind::corrupt, 0};
    return {FrameSize::Kind::complete, window[0] + std::uint64_t{1}};
  }
};

struct Scanned {
  std::vector<std::uint64_t> positions;
  ScanEnd end;
};

Scanned scan_bytes(const std::vector<std::uint8_t>& bytes, std::uint64_t from = 0) {
  fs::SimFileSystem fs;
  const auto file = *fs.open("/f", fs::OpenMode::create);
  EXPECT_TRUE(file->write(0, ByteView(bytes)));
  Scanned scanned;
  scanned.end = *scan(*file, from, bytes.size(), ByteFrames(), 1000, [&](const ScanFrame& frame) {
    scanned.positions.push_back(frame.position);
    return ScanStep::next;
  });
  return scanned;
}

using Reason = ScanEnd::Reason;

TEST(Scan, visits_whole_frames_and_says_why_it_ended) {
  EXPECT_EQ(scan_bytes({}).end.reason, Reason::end);
  const Scanned two = scan_bytes({1, 9, 2, 9, 9});
  EXPECT_EQ(two.positions, (std::vector<std::uint64_t>{0, 2}));
  EXPECT_EQ(two.end.reason, Reason::end);
  EXPECT_EQ(two.end.position, 5U);
  const Scanned torn = scan_bytes({1, 9, 5, 9});
  EXPECT_EQ(torn.end.reason, Reason::torn);
  EXPECT_EQ(torn.end.position, 2U);
  const Scanned corrupt = scan_bytes({1, 9, 255, 9});
  EXPECT_EQ(corrupt.end.reason, Reason::corrupt);
  EXPECT_EQ(corrupt.end.position, 2U);
  const Scanned zeros = scan_bytes({1, 9, 0, 0, 0});
  EXPECT_EQ(zeros.end.reason, Reason::end);
  EXPECT_EQ(zeros.end.position, 2U);
}

TEST(Scan, frames_across_the_window_are_whole) {
  std::vector<std::uint8_t> bytes;
  while (bytes.size() < (3U << 20)) {
    bytes.push_back(250);
    bytes.resize(bytes.size() + 250, 7);
  }
  const Scanned scanned = scan_bytes(bytes);
  EXPECT_EQ(scanned.positions.size(), bytes.size() / 251);
  EXPECT_EQ(scanned.end.reason, Reason::end);
}

TEST(Scan, a_damaged_length_does_not_make_it_allocate) {
  struct Liar {
    FrameSize frame_size(ByteView) const {
      return {FrameSize::Kind::complete, std::uint64_t{1} << 60};
    }
  };
  fs::SimFileSystem fs;
  const auto file = *fs.open("/f", fs::OpenMode::create);
  ASSERT_TRUE(file->write(0, as_bytes("abc")));
  const auto end = scan(*file, 0, 3, Liar(), 1000, [](const ScanFrame&) { return ScanStep::next; });
  EXPECT_EQ(end->reason, Reason::corrupt);
}

TEST(BlockSums, blocks_and_first_frames_are_those_of_the_bytes) {
  BlockSums sums;
  std::vector<std::uint8_t> bytes(100'000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 7);
  sums.add_frame(ByteView(bytes).first(60'000));
  sums.add_frame(ByteView(bytes).subspan(60'000));
  ASSERT_EQ(sums.blocks().size(), 1U);
  EXPECT_EQ(sums.blocks()[0].crc, crc32c(ByteView(bytes).first(65'536)));
  EXPECT_EQ(sums.blocks()[0].first_frame, 0U);
  EXPECT_EQ(sums.tail().crc, crc32c(ByteView(bytes).subspan(65'536)));
  EXPECT_EQ(sums.tail().first_frame, BlockSums::no_frame);
  BlockSums other;
  EXPECT_FALSE(other.restore(1, {}, {}, 100'000));
  EXPECT_TRUE(other.restore(0, sums.blocks(), sums.tail(), sums.size()));
  other.add_frame(as_bytes("x"));
  sums.add_frame(as_bytes("x"));
  EXPECT_EQ(other.tail(), sums.tail());
}

// A file of two whole blocks and a part, frames of 1,000 bytes, and its sums.
struct SummedFile {
  static constexpr std::uint64_t block_bytes = BlockSums::block_bytes;
  static constexpr std::uint64_t size = 140'000;

  SummedFile() {
    std::vector<std::uint8_t> bytes(size);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i % 251);
    EXPECT_TRUE(file->write(0, ByteView(bytes)));
    for (std::size_t at = 0; at < size; at += 1000) {
      sums.add_frame(ByteView(bytes).subspan(at, 1000));
    }
  }
  void damage(std::uint64_t at) { EXPECT_TRUE(file->write(at, as_bytes("?"))); }

  fs::SimFileSystem disk;
  fs::FilePtr file = *disk.open("/f", fs::OpenMode::create);
  BlockSums sums;
};

TEST(BlockCheck, a_damaged_block_does_not_match_and_its_neighbours_do) {
  SummedFile summed;
  summed.damage(SummedFile::block_bytes + 5);
  const BlockCheck check(summed.sums);
  EXPECT_EQ(check.match(*summed.file, 0, SummedFile::block_bytes, true), true);
  EXPECT_EQ(check.match(*summed.file, 0, SummedFile::block_bytes + 1, true), false);
  EXPECT_EQ(check.match(*summed.file, 2 * SummedFile::block_bytes, UINT64_MAX, true), true);
}

TEST(BlockCheck, a_file_that_was_cut_short_by_another_program_does_not_match) {
  SummedFile summed;
  ASSERT_TRUE(summed.file->truncate(SummedFile::size - 1));
  const BlockCheck check(summed.sums);
  EXPECT_EQ(check.match(*summed.file, 0, 2 * SummedFile::block_bytes, true), true);
  EXPECT_EQ(check.match(*summed.file, 0, SummedFile::size, true), false);
}

TEST(BlockCheck, the_next_frame_is_the_first_that_begins_behind_and_then_the_end) {
  SummedFile summed;
  const BlockCheck check(summed.sums);
  EXPECT_EQ(check.next_frame_after(10), 66'000U);  // the first that begins in the second block
  EXPECT_EQ(check.next_frame_after(66'000), 132'000U);
  EXPECT_EQ(check.next_frame_after(132'000), SummedFile::size);
  EXPECT_EQ(check.next_frame_after(SummedFile::size), std::nullopt);
}

TEST(BlockCheck, a_cut_judges_the_block_that_it_parts_while_it_is_whole) {
  for (const bool damaged : {false, true}) {
    SummedFile summed;
    if (damaged) summed.damage(67'000);
    BlockCheck check(summed.sums);
    ASSERT_TRUE(check.cut(*summed.file, SummedFile::size + 1));  // cuts nothing
    ASSERT_TRUE(check.cut(*summed.file, 70'000));
    ASSERT_TRUE(summed.file->truncate(70'000));
    ASSERT_TRUE(summed.file->write(70'000, as_bytes("what the sums do not know")));
    EXPECT_EQ(check.match(*summed.file, 66'000, 80'000, true), !damaged);
    EXPECT_EQ(check.next_frame_after(66'000), 70'000U);
  }
}

// Reads as another file does, and calls `during` in the middle of it.
class WatchedFile final : public fs::File {
 public:
  WatchedFile(fs::File& file, std::function<void()> during)
      : file_(file), during_(std::move(during)) {}

  Result<std::size_t> read(std::uint64_t at, MutableBytes into, bool wait) const override {
    during_();
    return file_.read(at, into, wait);
  }
  Result<void> write(std::uint64_t at, std::span<const ByteView> parts) override {
    return file_.write(at, parts);
  }
  Result<void> sync() override { return file_.sync(); }
  void start_writeback(std::uint64_t, std::uint64_t) override {}
  Result<void> truncate(std::uint64_t bytes) override { return file_.truncate(bytes); }
  Result<fs::FileInfo> info() const override { return file_.info(); }

 private:
  fs::File& file_;
  const std::function<void()> during_;
};

TEST(BlockCheck, who_may_not_wait_is_told_to_come_back_while_another_reads) {
  SummedFile summed;
  const BlockCheck check(summed.sums);
  int asked = 0;
  const WatchedFile slow(*summed.file, [&] {
    std::thread([&] {
      const auto answer = check.match(*summed.file, 0, 10, false);
      ASSERT_FALSE(answer);
      EXPECT_EQ(answer.error().code, Errc::would_block);
      ++asked;
    }).join();
  });
  EXPECT_EQ(check.match(slow, 0, 10, true), true);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(check.match(*summed.file, 0, 10, false), true);
}

TEST(PlanRetention, takes_from_the_front_by_start_size_and_time) {
  std::vector<RetainedFile> files;
  for (int i = 0; i < 4; ++i) {
    files.push_back({100, (i + 1) * 10, Timestamp(i * 1000), i == 3});
  }
  const Timestamp now(10'000);
  const auto plan = [&](std::int64_t bytes, std::int64_t time_ms, std::int64_t start) {
    RetentionRule rule;
    rule.bytes = bytes;
    rule.time_ms = time_ms;
    rule.start = start;
    rule.visible = 40;
    return plan_retention(files, rule, now);
  };
  EXPECT_EQ(plan(-1, -1, 0), 0U);
  EXPECT_EQ(plan(-1, -1, 19), 1U);
  EXPECT_EQ(plan(-1, -1, 20), 2U);
  EXPECT_EQ(plan(-1, -1, 40), 3U);  // never the active file
  EXPECT_EQ(plan(250, -1, 0), 1U);
  EXPECT_EQ(plan(200, -1, 0), 2U);
  EXPECT_EQ(plan(-1, 9'000, 0), 1U);  // older than, not as old as
  EXPECT_EQ(plan(-1, 1'000, 0), 4U);
  RetentionRule unread;
  unread.time_ms = 1'000;
  unread.visible = 15;
  EXPECT_EQ(plan_retention(files, unread, now), 1U);
}

TEST(FixedEntries, finds_the_last_entry_that_holds) {
  fs::SimFileSystem fs;
  const auto file = *fs.open("/f", fs::OpenMode::create);
  std::vector<std::uint8_t> bytes(40);
  for (int i = 0; i < 10; ++i) store_big<std::int32_t>(bytes.data() + 4 * i, i * 10);
  ASSERT_TRUE(file->write(0, ByteView(bytes)));
  const FixedEntries entries(*file, 4, 10);
  const auto floor = [&](std::int32_t key) {
    return *entries.last_where(
        [key](ByteView e) { return load_big<std::int32_t>(e.data()) <= key; });
  };
  EXPECT_FALSE(floor(-1));
  EXPECT_EQ(floor(0), 0U);
  EXPECT_EQ(floor(45), 4U);
  EXPECT_EQ(floor(1000), 9U);
}

TEST(FixedEntries, an_entry_that_the_file_no_longer_has_is_an_error) {
  fs::SimFileSystem fs;
  const auto file = *fs.open("/f", fs::OpenMode::create);
  const std::vector<std::uint8_t> bytes(39);  // ten were counted; then somebody cut the file
  ASSERT_TRUE(file->write(0, ByteView(bytes)));
  const FixedEntries entries(*file, 4, 10);
  EXPECT_EQ(entries.entry(9).error().code, Errc::corrupt);
  const auto searched = entries.last_where([](ByteView) { return true; });
  ASSERT_FALSE(searched);
  EXPECT_EQ(searched.error().code, Errc::corrupt);
}

TEST(FileCache, keeps_a_bounded_number_open_and_held_files_usable) {
  fs::SimFileSystem fs;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(fs.open("/f" + std::to_string(i), fs::OpenMode::create));
  }
  FileCache cache(fs, 2);
  const auto held = *cache.open("/f0");
  std::weak_ptr<fs::File> second = *cache.open("/f1");
  for (int i = 2; i < 5; ++i) ASSERT_TRUE(cache.open("/f" + std::to_string(i)));
  EXPECT_TRUE(second.expired());
  EXPECT_TRUE(held->write(0, as_bytes("still open")));
  ASSERT_TRUE(fs.remove("/f4"));
  cache.forget("/f4");
  EXPECT_EQ(cache.open("/f4").error().code, Errc::not_found);
}

}  // namespace
}  // namespace polylog::storage
