#include "meta/sqlite_vfs.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <vector>

#include "fs/sim_file_system.h"

namespace polylog::meta {
namespace {

using fs::Fault;
using fs::SimFileSystem;

constexpr int database_flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MAIN_DB;
constexpr int wal_flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_WAL;

// A file as SQLite handles it: raw memory and a table of functions.
class RawFile {
 public:
  RawFile(const SqliteVfs& vfs, const char* path, int flags)
      : vfs_(sqlite3_vfs_find(vfs.name().c_str())),
        memory_(static_cast<std::size_t>(vfs_->szOsFile)) {
    code_ = vfs_->xOpen(vfs_, path, file(), flags, nullptr);
  }
  ~RawFile() {
    if (file()->pMethods != nullptr) file()->pMethods->xClose(file());
  }
  int opened() const { return code_; }
  int write(std::string_view text, sqlite3_int64 at) {
    return file()->pMethods->xWrite(file(), text.data(), static_cast<int>(text.size()), at);
  }
  int read(std::string& into, sqlite3_int64 at) {
    return file()->pMethods->xRead(file(), into.data(), static_cast<int>(into.size()), at);
  }
  int sync() { return file()->pMethods->xSync(file(), SQLITE_SYNC_NORMAL); }
  int truncate(sqlite3_int64 size) { return file()->pMethods->xTruncate(file(), size); }
  sqlite3_int64 size() {
    sqlite3_int64 size = -1;
    EXPECT_EQ(file()->pMethods->xFileSize(file(), &size), SQLITE_OK);
    return size;
  }

 private:
  sqlite3_file* file() { return reinterpret_cast<sqlite3_file*>(memory_.data()); }
  sqlite3_vfs* vfs_;
  std::vector<std::max_align_t> memory_;  // more than enough of them
  int code_ = SQLITE_OK;
};

TEST(SqliteVfs, is_registered_under_a_name_of_its_own_until_destroyed) {
  SimFileSystem fs;
  auto one = *SqliteVfs::make(fs);
  auto two = *SqliteVfs::make(fs);
  const std::string name = one->name();
  EXPECT_NE(name, two->name());
  EXPECT_NE(sqlite3_vfs_find(name.c_str()), nullptr);
  one.reset();
  EXPECT_EQ(sqlite3_vfs_find(name.c_str()), nullptr);
  EXPECT_NE(sqlite3_vfs_find(two->name().c_str()), nullptr);
  EXPECT_NE(sqlite3_vfs_find(nullptr)->zName, two->name());
}

TEST(SqliteVfs, reads_back_what_was_written_and_zeros_beyond_the_end) {
  SimFileSystem fs;
  auto vfs = *SqliteVfs::make(fs);
  RawFile file(*vfs, "/f", database_flags);
  ASSERT_EQ(file.opened(), SQLITE_OK);
  ASSERT_EQ(file.write("abcdef", 2), SQLITE_OK);
  EXPECT_EQ(file.size(), 8);
  std::string text(4, '?');
  EXPECT_EQ(file.read(text, 3), SQLITE_OK);
  EXPECT_EQ(text, "bcde");
  text.assign(6, '?');
  EXPECT_EQ(file.read(text, 6), SQLITE_IOERR_SHORT_READ);
  EXPECT_EQ(text, std::string("ef\0\0\0\0", 6));
  text.assign(3, '?');
  EXPECT_EQ(file.read(text, 100), SQLITE_IOERR_SHORT_READ);
  EXPECT_EQ(text, std::string(3, '\0'));
  EXPECT_EQ(file.truncate(3), SQLITE_OK);
  EXPECT_EQ(file.size(), 3);
}

TEST(SqliteVfs, the_first_sync_of_a_file_makes_its_name_durable_whoever_made_it) {
  SimFileSystem fs;
  ASSERT_TRUE(fs.open("/f", fs::OpenMode::create));
  auto vfs = *SqliteVfs::make(fs);
  RawFile file(*vfs, "/f", database_flags);
  ASSERT_EQ(file.write("x", 0), SQLITE_OK);
  ASSERT_EQ(file.sync(), SQLITE_OK);
  const auto after = fs.crash_state({.mode = fs::CrashChoice::Mode::lose_all});
  EXPECT_TRUE(fs::exists(*after, "/f"));
}

TEST(SqliteVfs, a_missing_wal_is_made_by_its_first_write) {
  SimFileSystem fs;
  auto vfs = *SqliteVfs::make(fs);
  RawFile wal(*vfs, "/f-wal", wal_flags);
  ASSERT_EQ(wal.opened(), SQLITE_OK);
  EXPECT_EQ(wal.size(), 0);
  EXPECT_EQ(wal.sync(), SQLITE_OK);
  EXPECT_EQ(wal.truncate(0), SQLITE_OK);
  std::string text(2, '?');
  EXPECT_EQ(wal.read(text, 0), SQLITE_IOERR_SHORT_READ);
  EXPECT_FALSE(fs::exists(fs, "/f-wal"));
  EXPECT_EQ(wal.write("ab", 0), SQLITE_OK);
  EXPECT_TRUE(fs::exists(fs, "/f-wal"));
  EXPECT_EQ(wal.size(), 2);
}

TEST(SqliteVfs, no_space_is_full_and_can_be_tried_again) {
  SimFileSystem fs;
  auto vfs = *SqliteVfs::make(fs);
  RawFile file(*vfs, "/f", database_flags);
  fs.fail_step(fs.steps() + 1, Fault::no_space);
  EXPECT_EQ(file.write("x", 0), SQLITE_FULL);
  EXPECT_EQ(vfs->last_error().code, Errc::no_space);
  EXPECT_FALSE(vfs->failed());
  EXPECT_EQ(file.write("x", 0), SQLITE_OK);
}

TEST(SqliteVfs, after_a_failed_write_sync_or_delete_nothing_is_written_any_more) {
  for (const int which : {0, 1, 2, 3}) {
    SimFileSystem fs;
    auto vfs = *SqliteVfs::make(fs);
    sqlite3_vfs* raw = sqlite3_vfs_find(vfs->name().c_str());
    RawFile file(*vfs, "/f", database_flags);
    ASSERT_EQ(file.write("abc", 0), SQLITE_OK);
    fs.fail_step(fs.steps() + 1, which == 1 ? Fault::no_space : Fault::eio);
    if (which == 0) {
      EXPECT_EQ(file.write("x", 0), SQLITE_IOERR_WRITE);
    }
    if (which == 1) {
      EXPECT_EQ(file.sync(), SQLITE_IOERR_FSYNC);
    }
    if (which == 2) {
      EXPECT_EQ(raw->xDelete(raw, "/f", 1), SQLITE_IOERR_DELETE);
    }
    if (which == 3) {
      EXPECT_EQ(file.truncate(1), SQLITE_IOERR_TRUNCATE);
    }
    EXPECT_TRUE(vfs->failed());
    const std::uint64_t steps = fs.steps();
    EXPECT_EQ(file.write("x", 0), SQLITE_IOERR_WRITE);
    EXPECT_EQ(file.sync(), SQLITE_IOERR_FSYNC);
    EXPECT_EQ(file.truncate(0), SQLITE_IOERR_TRUNCATE);
    EXPECT_EQ(raw->xDelete(raw, "/f", 1), SQLITE_IOERR_DELETE);
    EXPECT_EQ(fs.steps(), steps);
    std::string text(3, '?');
    EXPECT_EQ(file.read(text, 0), SQLITE_OK);
  }
}

TEST(SqliteVfs, a_failed_directory_sync_is_a_failed_sync) {
  SimFileSystem fs;
  auto vfs = *SqliteVfs::make(fs);
  RawFile file(*vfs, "/f", database_flags);
  ASSERT_EQ(file.write("abc", 0), SQLITE_OK);
  fs.fail_step(fs.steps() + 2, Fault::eio);
  EXPECT_EQ(file.sync(), SQLITE_IOERR_DIR_FSYNC);
  EXPECT_TRUE(vfs->failed());
}

TEST(SqliteVfs, deletes_durably_when_asked_to) {
  for (const int durable : {0, 1}) {
    SimFileSystem fs;
    auto vfs = *SqliteVfs::make(fs);
    sqlite3_vfs* raw = sqlite3_vfs_find(vfs->name().c_str());
    {
      RawFile file(*vfs, "/f", database_flags);
      ASSERT_EQ(file.write("abc", 0), SQLITE_OK);
      ASSERT_EQ(file.sync(), SQLITE_OK);
    }
    EXPECT_EQ(raw->xDelete(raw, "/f", durable), SQLITE_OK);
    EXPECT_EQ(raw->xDelete(raw, "/f", durable), SQLITE_IOERR_DELETE_NOENT);
    const auto after = fs.crash_state({.mode = fs::CrashChoice::Mode::lose_all});
    EXPECT_EQ(fs::exists(*after, "/f"), durable == 0);
  }
}

TEST(SqliteVfs, tells_files_with_content_from_empty_and_missing_ones) {
  SimFileSystem fs;
  auto vfs = *SqliteVfs::make(fs);
  sqlite3_vfs* raw = sqlite3_vfs_find(vfs->name().c_str());
  int there = -1;
  EXPECT_EQ(raw->xAccess(raw, "/f", SQLITE_ACCESS_EXISTS, &there), SQLITE_OK);
  EXPECT_EQ(there, 0);
  RawFile file(*vfs, "/f", database_flags);
  EXPECT_EQ(raw->xAccess(raw, "/f", SQLITE_ACCESS_EXISTS, &there), SQLITE_OK);
  EXPECT_EQ(there, 0);
  ASSERT_EQ(file.write("abc", 0), SQLITE_OK);
  EXPECT_EQ(raw->xAccess(raw, "/f", SQLITE_ACCESS_EXISTS, &there), SQLITE_OK);
  EXPECT_EQ(there, 1);
}

TEST(SqliteVfs, opens_no_temporary_file_and_no_missing_one_without_create) {
  SimFileSystem fs;
  auto vfs = *SqliteVfs::make(fs);
  EXPECT_EQ(RawFile(*vfs, nullptr, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE).opened(),
            SQLITE_CANTOPEN);
  EXPECT_EQ(RawFile(*vfs, "/f", SQLITE_OPEN_READWRITE).opened(), SQLITE_CANTOPEN);
  EXPECT_EQ(vfs->last_error().code, Errc::not_found);
}

TEST(SqliteVfs, a_path_that_does_not_fit_is_refused) {
  SimFileSystem fs;
  auto vfs = *SqliteVfs::make(fs);
  sqlite3_vfs* raw = sqlite3_vfs_find(vfs->name().c_str());
  char out[4];
  EXPECT_EQ(raw->xFullPathname(raw, "/ab", 4, out), SQLITE_OK);
  EXPECT_STREQ(out, "/ab");
  EXPECT_EQ(raw->xFullPathname(raw, "/abc", 4, out), SQLITE_CANTOPEN);
}

TEST(SqliteVfs, tells_the_time_and_gives_random_bytes) {
  SimFileSystem fs;
  auto vfs = *SqliteVfs::make(fs);
  sqlite3_vfs* raw = sqlite3_vfs_find(vfs->name().c_str());
  double days = 0;
  EXPECT_EQ(raw->xCurrentTime(raw, &days), SQLITE_OK);
  EXPECT_GT(days, 2460000.0);  // after the beginning of 2023
  EXPECT_LT(days, 2700000.0);
  std::string random(64, '\0');
  EXPECT_EQ(raw->xRandomness(raw, 64, random.data()), 64);
  EXPECT_NE(random, std::string(64, '\0'));
}

}  // namespace
}  // namespace polylog::meta
