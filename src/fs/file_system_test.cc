#include "fs/file_system.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <thread>

#include "fs/posix_file_system.h"
#include "fs/sim_file_system.h"

// What every FileSystem promises, run over the real disk and the simulated one.
namespace polylog::fs {
namespace {

struct Subject {
  std::unique_ptr<FileSystem> fs;
  std::string root;
};

Subject posix_subject() {
  std::string root = testing::TempDir() + "polylog-fs-XXXXXX";
  EXPECT_NE(::mkdtemp(root.data()), nullptr);
  return {std::make_unique<PosixFileSystem>(), root};
}

Subject sim_subject() {
  auto fs = std::make_unique<SimFileSystem>();
  EXPECT_TRUE(fs->create_directory("/data"));
  return {std::move(fs), "/data"};
}

class FileSystemContract : public testing::TestWithParam<Subject (*)()> {
 protected:
  void TearDown() override { ASSERT_TRUE(remove_tree(fs(), subject_.root)); }

  FileSystem& fs() { return *subject_.fs; }
  std::string at(std::string_view name) const { return join(subject_.root, name); }

  FilePtr open(std::string_view name, OpenMode mode) {
    Result<FilePtr> file = fs().open(at(name), mode);
    EXPECT_TRUE(file) << file.error().to_string();
    return file ? *file : nullptr;
  }
  void make(std::string_view name, std::string_view content) {
    const FilePtr file = open(name, OpenMode::create_new);
    ASSERT_TRUE(file->write(0, as_bytes(content)));
    ASSERT_TRUE(file->sync());
  }
  std::string content(std::string_view name) {
    const auto bytes = read_file(fs(), at(name), 1 << 20);
    return bytes ? std::string(as_text(*bytes)) : bytes.error().to_string();
  }

  Subject subject_ = GetParam()();
};

INSTANTIATE_TEST_SUITE_P(Both, FileSystemContract, testing::Values(&posix_subject, &sim_subject),
                         [](const auto& which) { return which.index == 0 ? "posix" : "sim"; });

template <typename T>
Errc code(const Result<T>& result) {
  EXPECT_FALSE(result.has_value());
  return result ? Errc::timed_out : result.error().code;
}

TEST_P(FileSystemContract, written_bytes_are_read_back_at_their_position) {
  const FilePtr file = open("a", OpenMode::create);
  ASSERT_TRUE(file->write(0, as_bytes("hello world")));
  ASSERT_TRUE(file->write(6, as_bytes("there")));
  std::array<std::uint8_t, 5> into{};
  EXPECT_EQ(file->read(6, into).value(), 5U);
  EXPECT_EQ(as_text(into), "there");
}

TEST_P(FileSystemContract, a_read_is_short_only_at_the_end) {
  make("a", "0123456789");
  const FilePtr file = open("a", OpenMode::read);
  std::array<std::uint8_t, 8> into{};
  EXPECT_EQ(file->read(7, into).value(), 3U);
  EXPECT_EQ(file->read(10, into).value(), 0U);
  EXPECT_EQ(file->read(1000, into).value(), 0U);
  EXPECT_EQ(file->read(0, MutableBytes()).value(), 0U);
}

TEST_P(FileSystemContract, a_read_without_waiting_gives_what_is_in_memory) {
  make("a", "fresh from the page cache");
  const FilePtr file = open("a", OpenMode::read);
  std::array<std::uint8_t, 5> into{};
  ASSERT_EQ(file->read(0, into, false).value(), 5U);
  EXPECT_EQ(as_text(into), "fresh");
  EXPECT_EQ(file->read(25, into, false).value(), 0U);
}

TEST_P(FileSystemContract, all_parts_of_a_write_follow_each_other) {
  const FilePtr file = open("a", OpenMode::create);
  std::vector<std::uint8_t> expected;
  std::vector<std::vector<std::uint8_t>> pieces;
  for (std::size_t i = 0; i < 2600; ++i) {  // more than one call of the kernel takes
    pieces.emplace_back(i % 7, static_cast<std::uint8_t>(i));
    expected.insert(expected.end(), pieces.back().begin(), pieces.back().end());
  }
  const std::vector<ByteView> parts(pieces.begin(), pieces.end());
  ASSERT_TRUE(file->write(3, parts));
  std::vector<std::uint8_t> into(expected.size() + 10);
  ASSERT_EQ(file->read(3, into).value(), expected.size());
  into.resize(expected.size());
  EXPECT_EQ(into, expected);
}

TEST_P(FileSystemContract, nothing_written_extends_nothing) {
  const FilePtr file = open("a", OpenMode::create);
  ASSERT_TRUE(file->write(100, ByteView()));
  ASSERT_TRUE(file->write(100, std::span<const ByteView>()));
  EXPECT_EQ(file->info()->size, 0U);
}

TEST_P(FileSystemContract, a_gap_reads_as_zeros) {
  const FilePtr file = open("a", OpenMode::create);
  ASSERT_TRUE(file->write(9000, as_bytes("x")));
  std::vector<std::uint8_t> into(9001, 7);
  ASSERT_EQ(file->read(0, into).value(), 9001U);
  EXPECT_EQ(std::count(into.begin(), into.end(), 0), 9000);
}

TEST_P(FileSystemContract, truncate_cuts_and_extends_with_zeros) {
  const FilePtr file = open("a", OpenMode::create);
  ASSERT_TRUE(file->write(0, as_bytes("0123456789")));
  ASSERT_TRUE(file->truncate(4));
  ASSERT_TRUE(file->truncate(6));
  EXPECT_EQ(content("a"), std::string_view("0123\0\0", 6));
  EXPECT_EQ(file->info()->size, 6U);
}

TEST_P(FileSystemContract, positions_beyond_any_file_are_refused) {
  const FilePtr file = open("a", OpenMode::create);
  const std::uint64_t far = ~std::uint64_t{0} - 1;
  std::array<std::uint8_t, 4> into{};
  EXPECT_FALSE(file->write(far, as_bytes("abcd")));
  EXPECT_FALSE(file->truncate(far));
  const auto count = file->read(far, into);
  EXPECT_TRUE(!count || *count == 0);
  EXPECT_EQ(file->info()->size, 0U);
}

TEST_P(FileSystemContract, open_modes_differ_in_what_must_exist) {
  EXPECT_EQ(code(fs().open(at("a"), OpenMode::read)), Errc::not_found);
  EXPECT_EQ(code(fs().open(at("a"), OpenMode::write)), Errc::not_found);
  EXPECT_TRUE(fs().open(at("a"), OpenMode::create_new));
  EXPECT_EQ(code(fs().open(at("a"), OpenMode::create_new)), Errc::exists);
  EXPECT_TRUE(fs().open(at("a"), OpenMode::create));
  EXPECT_TRUE(fs().open(at("a"), OpenMode::write));
  EXPECT_EQ(code(fs().open(at("no/a"), OpenMode::create)), Errc::not_found);
}

TEST_P(FileSystemContract, opening_does_not_cut_what_is_there) {
  make("a", "kept");
  open("a", OpenMode::create);
  EXPECT_EQ(content("a"), "kept");
}

TEST_P(FileSystemContract, a_directory_is_no_file) {
  ASSERT_TRUE(fs().create_directory(at("d")));
  EXPECT_EQ(code(fs().open(at("d"), OpenMode::read)), Errc::invalid);
  EXPECT_EQ(code(fs().open(at("d"), OpenMode::create)), Errc::invalid);
  EXPECT_EQ(code(fs().remove(at("d"))), Errc::invalid);
  make("f", "");
  EXPECT_EQ(code(fs().list(at("f"))), Errc::invalid);
  EXPECT_EQ(code(fs().remove_directory(at("f"))), Errc::invalid);
  EXPECT_EQ(code(fs().info(at("f/x"))), Errc::invalid);
  EXPECT_EQ(code(fs().sync_directory(at("f"))), Errc::invalid);
}

TEST_P(FileSystemContract, a_file_opened_for_reading_refuses_writes) {
  make("a", "1");
  const FilePtr file = open("a", OpenMode::read);
  EXPECT_EQ(code(file->write(0, as_bytes("2"))), Errc::invalid);
  EXPECT_EQ(code(file->truncate(0)), Errc::invalid);
  EXPECT_TRUE(file->sync());
  EXPECT_EQ(content("a"), "1");
}

TEST_P(FileSystemContract, info_tells_size_kind_inode_and_time) {
  make("a", "12345");
  make("b", "");
  ASSERT_TRUE(fs().create_directory(at("d")));
  const FileInfo a = fs().info(at("a")).value();
  EXPECT_EQ(a.size, 5U);
  EXPECT_FALSE(a.directory);
  EXPECT_TRUE(fs().info(at("d"))->directory);
  EXPECT_EQ(fs().info(at("d"))->size, 0U);
  EXPECT_NE(a.inode, fs().info(at("b"))->inode);
  EXPECT_EQ(a.inode, open("a", OpenMode::read)->info()->inode);
  EXPECT_EQ(a.modified.value(), a.modified_ns / 1'000'000);
  EXPECT_EQ(code(fs().info(at("missing"))), Errc::not_found);
}

TEST_P(FileSystemContract, set_modified_sets_milliseconds_exactly) {
  make("a", "");
  for (const std::int64_t ms : {std::int64_t{1'234'567'890'123}, std::int64_t{1}}) {
    ASSERT_TRUE(fs().set_modified(at("a"), Timestamp(ms)));
    EXPECT_EQ(fs().info(at("a"))->modified, Timestamp(ms));
    EXPECT_EQ(fs().info(at("a"))->modified_ns, ms * 1'000'000);
  }
  EXPECT_EQ(code(fs().set_modified(at("b"), Timestamp(1))), Errc::not_found);
}

TEST_P(FileSystemContract, list_is_sorted_and_complete) {
  for (const std::string_view name : {"b", "a10", "a9", ".hidden", "Z"}) make(name, "");
  ASSERT_TRUE(fs().create_directory(at("dir")));
  EXPECT_EQ(fs().list(subject_.root).value(),
            (std::vector<std::string>{".hidden", "Z", "a10", "a9", "b", "dir"}));
  EXPECT_EQ(code(fs().list(at("missing"))), Errc::not_found);
}

TEST_P(FileSystemContract, rename_replaces_the_target) {
  make("a", "new");
  make("b", "old");
  const std::uint64_t inode = fs().info(at("a"))->inode;
  const FilePtr old = open("b", OpenMode::read);
  ASSERT_TRUE(fs().rename(at("a"), at("b")));
  EXPECT_EQ(content("b"), "new");
  EXPECT_EQ(fs().info(at("b"))->inode, inode);
  EXPECT_FALSE(exists(fs(), at("a")));
  std::array<std::uint8_t, 3> into{};
  ASSERT_EQ(old->read(0, into).value(), 3U);
  EXPECT_EQ(as_text(into), "old");
  EXPECT_EQ(code(fs().rename(at("a"), at("c"))), Errc::not_found);
}

TEST_P(FileSystemContract, renaming_a_directory_takes_its_content_along) {
  ASSERT_TRUE(fs().create_directory(at("t-0")));
  make("t-0/log", "x");
  const FilePtr file = open("t-0/log", OpenMode::write);
  ASSERT_TRUE(fs().rename(at("t-0"), at("t-0.delete")));
  ASSERT_TRUE(file->write(1, as_bytes("y")));
  EXPECT_EQ(content("t-0.delete/log"), "xy");
  EXPECT_EQ(code(fs().rename(at("t-0.delete"), at("t-0.delete/log/z"))), Errc::invalid);
  ASSERT_TRUE(fs().create_directory(at("t-0.delete/sub")));
  EXPECT_EQ(code(fs().rename(at("t-0.delete"), at("t-0.delete/sub/z"))), Errc::invalid);
}

TEST_P(FileSystemContract, rename_refuses_to_replace_the_wrong_kind) {
  ASSERT_TRUE(fs().create_directory(at("d")));
  ASSERT_TRUE(fs().create_directory(at("full")));
  make("full/x", "");
  make("f", "");
  EXPECT_EQ(code(fs().rename(at("f"), at("d"))), Errc::invalid);
  EXPECT_EQ(code(fs().rename(at("d"), at("f"))), Errc::invalid);
  EXPECT_EQ(code(fs().rename(at("d"), at("full"))), Errc::invalid);
  EXPECT_TRUE(fs().rename(at("full"), at("d")));
  EXPECT_TRUE(fs().rename(at("f"), at("f")));
  EXPECT_EQ(fs().list(subject_.root).value(), (std::vector<std::string>{"d", "f"}));
}

TEST_P(FileSystemContract, a_removed_file_stays_usable_through_its_handle) {
  make("a", "gone");
  const FilePtr file = open("a", OpenMode::write);
  ASSERT_TRUE(fs().remove(at("a")));
  EXPECT_FALSE(exists(fs(), at("a")));
  ASSERT_TRUE(file->write(4, as_bytes("!")));
  ASSERT_TRUE(file->sync());
  std::array<std::uint8_t, 9> into{};
  EXPECT_EQ(file->read(0, into).value(), 5U);
  make("a", "another");
  EXPECT_NE(file->info()->inode, fs().info(at("a"))->inode);
  EXPECT_EQ(content("a"), "another");
  EXPECT_EQ(code(fs().remove(at("b"))), Errc::not_found);
}

TEST_P(FileSystemContract, only_an_empty_directory_is_removed) {
  ASSERT_TRUE(fs().create_directory(at("d")));
  EXPECT_EQ(code(fs().create_directory(at("d"))), Errc::exists);
  EXPECT_EQ(code(fs().create_directory(at("x/y"))), Errc::not_found);
  make("d/f", "");
  EXPECT_EQ(code(fs().remove_directory(at("d"))), Errc::invalid);
  ASSERT_TRUE(fs().remove(at("d/f")));
  EXPECT_TRUE(fs().remove_directory(at("d")));
  EXPECT_EQ(code(fs().remove_directory(at("d"))), Errc::not_found);
}

TEST_P(FileSystemContract, syncs_of_files_directories_and_volumes_succeed) {
  const FilePtr file = open("a", OpenMode::create);
  ASSERT_TRUE(file->write(0, as_bytes("x")));
  file->start_writeback(0, 1);
  EXPECT_TRUE(file->sync());
  EXPECT_TRUE(fs().sync_directory(subject_.root));
  const auto volume = fs().open_volume(subject_.root);
  ASSERT_TRUE(volume);
  EXPECT_TRUE((*volume)->sync());
  EXPECT_EQ(code(fs().open_volume(at("missing"))), Errc::not_found);
  EXPECT_EQ(code(fs().sync_directory(at("missing"))), Errc::not_found);
  EXPECT_GT(fs().free_bytes(subject_.root).value(), 0U);
  EXPECT_EQ(code(fs().free_bytes(at("missing"))), Errc::not_found);
}

TEST_P(FileSystemContract, a_lock_excludes_a_second_holder_until_released) {
  auto lock = fs().lock(at(".lock"));
  ASSERT_TRUE(lock) << lock.error().to_string();
  EXPECT_TRUE(exists(fs(), at(".lock")));
  EXPECT_EQ(code(fs().lock(at(".lock"))), Errc::locked);
  EXPECT_TRUE(fs().lock(at("other")));
  lock->reset();
  EXPECT_TRUE(fs().lock(at(".lock")));
}

TEST_P(FileSystemContract, a_lock_follows_the_file_and_not_the_name) {
  const auto lock = fs().lock(at(".lock"));
  ASSERT_TRUE(lock);
  ASSERT_TRUE(fs().rename(at(".lock"), at("moved")));
  EXPECT_EQ(code(fs().lock(at("moved"))), Errc::locked);
  EXPECT_TRUE(fs().lock(at(".lock")));
}

TEST_P(FileSystemContract, errors_name_the_path) {
  const auto error = fs().open(at("no-such-file"), OpenMode::read);
  ASSERT_FALSE(error);
  EXPECT_NE(error.error().context.find(at("no-such-file")), std::string::npos);
  EXPECT_NE(error.error().context.find("open"), std::string::npos);
}

TEST_P(FileSystemContract, several_threads_write_their_own_ranges) {
  const FilePtr file = open("a", OpenMode::create);
  std::vector<std::thread> threads;
  for (std::uint8_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const std::vector<std::uint8_t> bytes(100, static_cast<std::uint8_t>('a' + i));
      for (std::uint64_t j = 0; j < 50; ++j) {
        ASSERT_TRUE(file->write((j * 4 + i) * 100, bytes));
        if (j % 10 == 0) {
          ASSERT_TRUE(file->sync());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = content("a");
  ASSERT_EQ(text.size(), 20'000U);
  for (std::size_t at = 0; at < text.size(); ++at) {
    ASSERT_EQ(text[at], static_cast<char>('a' + at / 100 % 4));
  }
}

TEST_P(FileSystemContract, read_file_refuses_what_is_over_the_limit) {
  make("a", "12345");
  EXPECT_EQ(as_text(read_file(fs(), at("a"), 5).value()), "12345");
  EXPECT_EQ(code(read_file(fs(), at("a"), 4)), Errc::too_large);
  EXPECT_EQ(code(read_file(fs(), at("b"), 4)), Errc::not_found);
}

TEST_P(FileSystemContract, create_directories_makes_all_parents_once) {
  ASSERT_TRUE(create_directories(fs(), at("x/y/z")));
  ASSERT_TRUE(create_directories(fs(), at("x/y/z")));
  EXPECT_TRUE(fs().info(at("x/y/z"))->directory);
  make("f", "");
  EXPECT_EQ(code(create_directories(fs(), at("f"))), Errc::invalid);
  EXPECT_EQ(code(create_directories(fs(), at("f/g"))), Errc::invalid);
}

TEST_P(FileSystemContract, remove_tree_takes_everything_below) {
  ASSERT_TRUE(create_directories(fs(), at("x/y")));
  make("x/1", "");
  make("x/y/2", "");
  make("beside", "");
  ASSERT_TRUE(remove_tree(fs(), at("x")));
  EXPECT_EQ(fs().list(subject_.root).value(), std::vector<std::string>{"beside"});
  EXPECT_EQ(code(remove_tree(fs(), at("x"))), Errc::not_found);
}

TEST_P(FileSystemContract, replace_file_leaves_only_the_new_content) {
  ASSERT_TRUE(replace_file(fs(), at("a"), as_bytes("one")));
  make("a.tmp", "a longer draft that a crash left behind");
  ASSERT_TRUE(replace_file(fs(), at("a"), as_bytes("two")));
  EXPECT_EQ(content("a"), "two");
  EXPECT_EQ(fs().list(subject_.root).value(), std::vector<std::string>{"a"});
  ASSERT_TRUE(fs().create_directory(at("d")));
  EXPECT_EQ(code(replace_file(fs(), at("d"), as_bytes("x"))), Errc::invalid);
  EXPECT_FALSE(exists(fs(), at("d.tmp")));
}

TEST(Paths, parent_of_ends_at_the_root_or_the_working_directory) {
  EXPECT_EQ(parent_of("/a/b"), "/a");
  EXPECT_EQ(parent_of("/a//b//"), "/a");
  EXPECT_EQ(parent_of("a/b"), "a");
  EXPECT_EQ(parent_of("/a"), "/");
  EXPECT_EQ(parent_of("//a"), "/");
  EXPECT_EQ(parent_of("a"), ".");
  EXPECT_EQ(parent_of("a/"), ".");
  EXPECT_EQ(parent_of("/"), "/");
  EXPECT_EQ(parent_of("."), ".");
  EXPECT_EQ(parent_of(""), ".");
}

TEST(Paths, join_puts_exactly_one_slash_between) {
  EXPECT_EQ(join("/a", "b"), "/a/b");
  EXPECT_EQ(join("/a/", "b"), "/a/b");
  EXPECT_EQ(join("/", "b"), "/b");
  EXPECT_EQ(join("", "b"), "b");
}

}  // namespace
}  // namespace polylog::fs
