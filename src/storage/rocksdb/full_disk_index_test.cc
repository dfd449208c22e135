#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "fs/posix_file_system.h"
#include "fs/sim_file_system.h"
#include "storage/filelog/ballast.h"
#include "storage/rocksdb/index.h"

// The index and its ballast on a disk without room.
namespace polylog::storage {
namespace {

constexpr std::uint64_t mib = 1 << 20;

OrderedIndex::Changes put(const std::string& key, std::size_t value_bytes) {
  return {.puts = {{key, std::string(value_bytes, 'v')}}, .removed_ranges = {}};
}

TEST(Ballast, is_laid_with_plenty_of_room_and_given_back_when_short) {
  fs::SimFileSystem disk;
  disk.set_capacity(4 * mib);
  Ballast ballast(disk, "/", mib);
  ASSERT_TRUE(ballast.give_back_if_short());
  ASSERT_TRUE(ballast.lay_if_roomy());
  EXPECT_TRUE(ballast.laid());
  EXPECT_EQ(disk.free_bytes("/"), 3 * mib);

  // One that was there before counts, and so does a half one as missing.
  EXPECT_TRUE(Ballast(disk, "/", mib).laid());
  EXPECT_FALSE(Ballast(disk, "/", 2 * mib).laid());

  disk.set_capacity(2 * mib - 1);
  ASSERT_TRUE(ballast.give_back_if_short());
  EXPECT_FALSE(ballast.laid());
  EXPECT_EQ(disk.free_bytes("/"), 2 * mib - 1);
  ASSERT_TRUE(ballast.lay_if_roomy());
  EXPECT_FALSE(ballast.laid()) << "it would be what fills the disk";
  disk.set_capacity(8 * mib);
  ASSERT_TRUE(ballast.lay_if_roomy());
  EXPECT_TRUE(ballast.laid());
}

TEST(Ballast, that_cannot_be_laid_leaves_no_file) {
  fs::SimFileSystem disk;
  disk.set_capacity(8 * mib);
  disk.fail_step(disk.steps() + 9, fs::Fault::short_write);
  Ballast ballast(disk, "/", mib);
  EXPECT_FALSE(ballast.lay_if_roomy());
  EXPECT_FALSE(ballast.laid());
  EXPECT_EQ(disk.free_bytes("/"), 8 * mib);
  EXPECT_TRUE(ballast.lay_if_roomy());
}

TEST(Ballast, of_no_bytes_is_never_made) {
  fs::SimFileSystem disk;
  Ballast ballast(disk, "/", 0);
  ASSERT_TRUE(ballast.lay_if_roomy());
  EXPECT_EQ(disk.list("/"), std::vector<std::string>{});
}

// A tmpfs of 16 MiB of our own; tests are skipped where mounting is not permitted.
class FullDiskIndexTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "polylog-full-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    mount_ = name;
    if (::mount("tmpfs", mount_.c_str(), "tmpfs", 0, "size=16m") != 0) {
      GTEST_SKIP() << "mounting a tmpfs: " << std::strerror(errno);
    }
    mounted_ = true;
    options_.ballast_bytes = 2 * mib;
    options_.write_buffer_bytes = mib;
  }
  void TearDown() override {
    index_.reset();
    filler_.reset();
    if (mounted_) {
      EXPECT_EQ(::umount(mount_.c_str()), 0) << std::strerror(errno);
    }
    ::rmdir(mount_.c_str());
  }

  Result<void> open() {
    index_.reset();
    POLYLOG_ASSIGN(index, open_rocksdb_index(disk_, fs::join(mount_, "index"), options_));
    index_ = std::move(index);
    return {};
  }
  // Takes all the room there is, to the last byte.
  void fill() {
    filler_ = *disk_.open(fs::join(mount_, "filler"), fs::OpenMode::create);
    std::uint64_t end = filler_->info()->size;
    for (std::size_t piece = mib; piece > 0;) {
      if (filler_->write(end, std::vector<std::uint8_t>(piece, 1))) {
        end += piece;
      } else {
        ASSERT_TRUE(filler_->truncate(end));
        piece /= 2;
      }
    }
    ASSERT_EQ(disk_.free_bytes(mount_), 0U);
  }
  void make_room() { ASSERT_TRUE(filler_->truncate(0)); }
  bool has(const std::string& key) {
    const auto found = index_->floor(key, key);
    return found && *found;
  }
  bool ballast_laid() { return fs::exists(disk_, fs::join(mount_, "index/ballast")); }

  fs::PosixFileSystem disk_;
  RocksdbIndexOptions options_;
  std::string mount_;
  bool mounted_ = false;
  fs::FilePtr filler_;
  std::unique_ptr<OrderedIndex> index_;
};

TEST_F(FullDiskIndexTest, opens_on_a_full_disk_in_the_room_of_its_ballast) {
  ASSERT_TRUE(open());
  ASSERT_TRUE(index_->write(put("a", 100)));
  ASSERT_TRUE(index_->sync());
  ASSERT_TRUE(ballast_laid());
  index_.reset();
  fill();
  const auto opened = open();
  ASSERT_TRUE(opened) << opened.error().to_string();
  EXPECT_TRUE(has("a"));
  EXPECT_FALSE(ballast_laid());
  // There is a little room now, and it is used.
  ASSERT_TRUE(index_->write(put("b", 100)));
  ASSERT_TRUE(index_->sync());
  EXPECT_FALSE(ballast_laid());

  make_room();
  ASSERT_TRUE(index_->write(put("c", 100)));
  ASSERT_TRUE(index_->sync());
  EXPECT_TRUE(ballast_laid());
  ASSERT_TRUE(open());
  EXPECT_TRUE(has("a") && has("b") && has("c"));
}

TEST_F(FullDiskIndexTest, says_no_space_without_ballast_and_loses_nothing) {
  options_.ballast_bytes = 0;
  ASSERT_TRUE(open());
  ASSERT_TRUE(index_->write(put("a", 100)));
  ASSERT_TRUE(index_->sync());
  index_.reset();
  fill();
  for (int attempt = 0; attempt < 3; ++attempt) {
    const auto opened = open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Errc::no_space) << opened.error().to_string();
  }
  make_room();
  const auto opened = open();
  ASSERT_TRUE(opened) << opened.error().to_string();
  EXPECT_TRUE(has("a"));
}

TEST_F(FullDiskIndexTest, a_new_index_on_a_full_disk_is_no_space_too) {
  fill();
  const auto opened = open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::no_space) << opened.error().to_string();
  make_room();
  EXPECT_TRUE(open());
}

// More than the buffers hold, so that flushes in the background meet the full disk as well.
TEST_F(FullDiskIndexTest, filling_up_while_it_writes_is_no_space_and_keeps_what_was_synced) {
  ASSERT_TRUE(open());
  ASSERT_TRUE(index_->write(put("synced", 100)));
  ASSERT_TRUE(index_->sync());
  fill();
  Result<void> done;
  for (int i = 0; i < 5000 && done; ++i) {
    done = index_->write(put("key " + std::to_string(i), 1000));
  }
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::no_space) << done.error().to_string();
  EXPECT_EQ(index_->sync().error().code, Errc::unavailable);
  EXPECT_EQ(index_->floor("synced", "").error().code, Errc::unavailable);
  ASSERT_TRUE(open());
  EXPECT_TRUE(has("synced"));
}

}  // namespace
}  // namespace polylog::storage
