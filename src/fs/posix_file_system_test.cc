#include "fs/posix_file_system.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace polylog::fs {
namespace {

class PosixDisk : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(root_.data()), nullptr); }
  void TearDown() override { ASSERT_TRUE(remove_tree(fs_, root_)); }
  std::string at(std::string_view name) const { return join(root_, name); }

  PosixFileSystem fs_;
  std::string root_ = testing::TempDir() + "polylog-posix-XXXXXX";
};

// What another process sees when it tries the whole-file record lock: 0 free, 1 held.
int lock_seen_by_child(const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int descriptor = ::open(path.c_str(), O_RDWR);
    struct flock range{};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    if (descriptor < 0) ::_exit(9);
    ::_exit(::fcntl(descriptor, F_SETLK, &range) == 0 ? 0 : 1);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 8;
  return WEXITSTATUS(status);
}

TEST_F(PosixDisk, a_lock_is_seen_by_another_process_and_ends_with_its_owner) {
  auto lock = fs_.lock(at("lock"));
  ASSERT_TRUE(lock);
  EXPECT_EQ(lock_seen_by_child(at("lock")), 1);
  lock->reset();
  EXPECT_EQ(lock_seen_by_child(at("lock")), 0);
}

TEST_F(PosixDisk, opening_and_closing_the_locked_file_does_not_drop_the_lock) {
  auto lock = fs_.lock(at("lock"));
  ASSERT_TRUE(lock);
  EXPECT_FALSE(fs_.lock(at("lock")));
  {
    PosixFileSystem another;
    EXPECT_FALSE(another.lock(at("lock")));
    ASSERT_TRUE(read_file(another, at("lock"), 100));
    ASSERT_EQ(::symlink("lock", at("alias").c_str()), 0);
    EXPECT_FALSE(another.lock(at("alias")));
  }
  EXPECT_EQ(lock_seen_by_child(at("lock")), 1);
  lock->reset();
  EXPECT_EQ(lock_seen_by_child(at("lock")), 0);
}

TEST_F(PosixDisk, a_lock_held_by_another_process_names_it) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const int descriptor = ::open(at("lock").c_str(), O_RDWR | O_CREAT, 0600);
    struct flock range{};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    const char answer = ::fcntl(descriptor, F_SETLK, &range) == 0 ? 'y' : 'n';
    if (::write(ready[1], &answer, 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char answer = 0;
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  ASSERT_EQ(answer, 'y');
  const auto refused = fs_.lock(at("lock"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::locked);
  EXPECT_NE(refused.error().context.find("process " + std::to_string(child)), std::string::npos)
      << refused.error().context;
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(fs_.lock(at("lock")));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(PosixDisk, a_full_device_is_no_space) {
  const auto file = fs_.open("/dev/full", OpenMode::write);
  ASSERT_TRUE(file);
  const auto written = (*file)->write(0, as_bytes("x"));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Errc::no_space);
  EXPECT_EQ(written.error().context, "pwritev /dev/full: No space left on device");
}

TEST_F(PosixDisk, a_write_cut_short_goes_on_until_the_real_error) {
  // The file size limit lets the kernel write a first part and refuse the rest.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto file = fs_.open(at("a"), OpenMode::create);
  ASSERT_TRUE(file);
  const auto old_action = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{10'000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto written = (*file)->write(0, std::vector<std::uint8_t>(15'000, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old_action);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Errc::too_large);
  EXPECT_EQ((*file)->info()->size, 10'000U);
}

TEST_F(PosixDisk, running_out_of_descriptors_is_unavailable_and_names_the_path) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit small{16, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &small), 0);
  std::vector<FilePtr> files;
  Result<FilePtr> last = fs_.open(at("0"), OpenMode::create);
  while (last && files.size() < 100) {
    files.push_back(*last);
    last = fs_.open(at(std::to_string(files.size())), OpenMode::create);
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().code, Errc::unavailable);
  EXPECT_NE(last.error().context.find(root_), std::string::npos);
}

TEST_F(PosixDisk, descriptors_are_closed_on_exec) {
  const auto file = fs_.open(at("a"), OpenMode::create);
  const auto lock = fs_.lock(at("lock"));
  const auto volume = fs_.open_volume(root_);
  ASSERT_TRUE(file && lock && volume);
  std::size_t ours = 0;
  for (int descriptor = 0; descriptor < 1024; ++descriptor) {
    struct stat from{};
    struct stat root{};
    if (::fstat(descriptor, &from) != 0 || ::stat(root_.c_str(), &root) != 0) continue;
    const bool is_ours = from.st_dev == root.st_dev &&
                         (from.st_ino == root.st_ino || from.st_ino == (*file)->info()->inode ||
                          from.st_ino == fs_.info(at("lock"))->inode);
    if (!is_ours) continue;
    ++ours;
    EXPECT_NE(::fcntl(descriptor, F_GETFD) & FD_CLOEXEC, 0);
  }
  EXPECT_EQ(ours, 3U);
}

TEST_F(PosixDisk, remove_tree_removes_links_and_leaves_what_they_point_to) {
  ASSERT_TRUE(create_directories(fs_, at("outside")));
  ASSERT_TRUE(replace_file(fs_, at("outside/precious"), as_bytes("x")));
  ASSERT_TRUE(create_directories(fs_, at("tree")));
  ASSERT_EQ(::symlink("../outside", at("tree/link").c_str()), 0);
  ASSERT_EQ(::symlink("nowhere", at("tree/dangling").c_str()), 0);
  ASSERT_TRUE(remove_tree(fs_, at("tree")));
  EXPECT_FALSE(exists(fs_, at("tree")));
  ASSERT_EQ(::symlink("outside", at("top").c_str()), 0);
  ASSERT_TRUE(remove_tree(fs_, at("top")));
  EXPECT_TRUE(exists(fs_, at("outside/precious")));
}

TEST_F(PosixDisk, an_evicted_page_would_block_and_is_then_read_waiting) {
  const auto file = fs_.open(at("a"), OpenMode::create);
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->write(0, std::vector<std::uint8_t>(8192, 'x')));
  ASSERT_TRUE((*file)->sync());
  const int descriptor = ::open(at("a").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  ASSERT_EQ(::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED), 0);
  ::close(descriptor);
  std::vector<std::uint8_t> into(8192);
  const auto first = (*file)->read(0, into, false);
  // Memory file systems keep the page whatever they are told.
  if (!first) {
    EXPECT_EQ(first.error().code, Errc::would_block);
  }
  EXPECT_EQ((*file)->read(0, into).value(), 8192U);
  EXPECT_EQ((*file)->read(0, into, false).value(), 8192U);
  EXPECT_EQ(into, std::vector<std::uint8_t>(8192, 'x'));
}

TEST_F(PosixDisk, whole_blocks_are_written_past_the_page_cache) {
  {
    const auto file = fs_.open(at("a"), OpenMode::create);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write(0, std::vector<std::uint8_t>(16384, 'a')));
    ASSERT_TRUE((*file)->sync());
  }
  EXPECT_EQ(fs_.open_direct(at("missing")).error().code, Errc::not_found);
  const auto direct = fs_.open_direct(at("a"));
  if (!direct) {
    // Some memory file systems.
    EXPECT_EQ(direct.error().code, Errc::unsupported);
    return;
  }
  alignas(4096) static std::array<std::uint8_t, 8192> block;
  block.fill('b');
  ASSERT_TRUE((*direct)->write(4096, block));
  const auto content = read_file(fs_, at("a"), 1 << 20);
  ASSERT_TRUE(content);
  const std::string expected =
      std::string(4096, 'a') + std::string(8192, 'b') + std::string(4096, 'a');
  EXPECT_EQ(as_text(*content), expected);
}

}  // namespace
}  // namespace polylog::fs
