#include "journal/tracked_files.h"

#include <gtest/gtest.h>

namespace polylog::journal {
namespace {

TEST(Dirt, appends_are_one_range) {
  Dirt dirt;
  EXPECT_TRUE(dirt.empty());
  dirt.note_write(10, 20);
  dirt.note_write(20, 35);
  dirt.note_write(12, 18);
  ASSERT_EQ(dirt.ranges().size(), 1U);
  EXPECT_EQ(dirt.ranges()[0].from, 10U);
  EXPECT_EQ(dirt.ranges()[0].to, 35U);
  EXPECT_EQ(dirt.bytes(), 25U);
}

TEST(Dirt, ranges_apart_are_joined_where_they_meet) {
  Dirt dirt;
  dirt.note_write(100, 110);
  dirt.note_write(0, 10);
  dirt.note_write(50, 60);
  dirt.note_write(5, 55);
  dirt.tidy();
  ASSERT_EQ(dirt.ranges().size(), 2U);
  EXPECT_EQ(dirt.bytes(), 70U);
}

TEST(Dirt, too_many_ranges_ask_for_a_sync) {
  Dirt dirt;
  for (std::uint64_t at = 0; at < 1000; ++at) dirt.note_write(at * 10, at * 10 + 1);
  EXPECT_TRUE(dirt.needs_sync());
  EXPECT_FALSE(dirt.empty());
  dirt.note_write(1, 2);
  EXPECT_TRUE(dirt.ranges().empty());
}

TEST(TrackedFile, what_is_written_after_the_beginning_is_not_covered) {
  TrackedFile file(1, "a", true);
  file.dirt.note_write(0, 10);
  const auto number = file.begin();
  file.dirt.note_write(10, 20);
  EXPECT_EQ(file.uncovered().bytes(), 20U) << "not before it is done";
  file.done(number);
  EXPECT_EQ(file.uncovered().bytes(), 10U);
}

TEST(TrackedFile, what_failed_is_uncovered_again) {
  TrackedFile file(1, "a", true);
  file.dirt.note_write(0, 10);
  const auto number = file.begin();
  file.put_back(number);
  EXPECT_EQ(file.uncovered().bytes(), 10U);
  EXPECT_TRUE(file.under_way.empty());
}

// A later one that succeeds covers what an earlier one, still under way, began with.
TEST(TrackedFile, the_later_of_two_covers_what_both_began_with) {
  TrackedFile file(1, "a", true);
  file.dirt.note_write(0, 10);
  const auto first = file.begin();
  file.dirt.note_write(10, 20);
  const auto second = file.begin();
  file.dirt.note_write(20, 30);
  file.done(second);
  EXPECT_EQ(file.uncovered().bytes(), 10U);
  file.put_back(first);
  EXPECT_EQ(file.uncovered().bytes(), 10U);
}

TEST(TrackedFiles, a_new_file_under_an_old_inode_is_another_one) {
  TrackedFiles files;
  const auto old_file = files.opened(5, "d/a", true);
  EXPECT_EQ(files.opened(5, "d/a", false), old_file);
  files.removed(files.find(5));
  EXPECT_TRUE(old_file->removed);
  EXPECT_NE(files.opened(5, "d/a", true), old_file);
}

TEST(TrackedFiles, a_removal_leaves_alone_whoever_has_got_the_inode_meanwhile) {
  TrackedFiles files;
  const auto gone = files.opened(5, "d/a", true);
  const auto fresh = files.opened(5, "d/b", true);
  files.removed(gone);
  EXPECT_TRUE(gone->removed);
  EXPECT_FALSE(fresh->removed);
  EXPECT_EQ(files.find(5), fresh);
  files.removed(nullptr);
}

TEST(TrackedFiles, files_follow_their_directory) {
  TrackedFiles files;
  const auto inside = files.opened(1, "data//t-0/a", false);
  const auto beside = files.opened(2, "data/t-01/a", false);
  files.directory_renamed("data/t-0", "data/gone");
  EXPECT_EQ(inside->path, "data/gone/a");
  EXPECT_TRUE(inside->synced_only);
  EXPECT_EQ(beside->path, "data/t-01/a");
  EXPECT_FALSE(beside->synced_only);
}

TEST(TrackedFiles, a_made_file_has_no_name_on_the_disk_yet) {
  TrackedFiles files;
  EXPECT_FALSE(files.opened(1, "./d/a", true)->named);
  EXPECT_TRUE(files.opened(2, "d/b", false)->named);
  ASSERT_EQ(files.unnamed_in("d/").size(), 1U);
  EXPECT_EQ(files.unnamed_in("d/")[0]->inode, 1U);
}

TEST(TrackedFiles, only_what_still_matters_is_remembered) {
  TrackedFiles files;
  files.opened(1, "a", false);
  files.opened(2, "b", false)->dirt.note_write(0, 1);
  files.opened(3, "c", false);
  files.opened(4, "d", true);
  const auto held = files.opened(5, "e", false);
  files.prune([](const TrackedFile& file) { return file.inode == 3; });
  EXPECT_EQ(files.find(1), nullptr);
  for (const std::uint64_t inode : {2U, 3U, 4U, 5U}) EXPECT_NE(files.find(inode), nullptr);
}

TEST(Paths, are_compared_in_one_spelling) {
  EXPECT_EQ(plain_path("/a//b/./c/"), "/a/b/c");
  EXPECT_EQ(plain_path("./a"), "a");
  EXPECT_EQ(plain_path("."), "");
  EXPECT_EQ(plain_path("/"), "/");
  EXPECT_TRUE(lies_below("/a/b", "/a"));
  EXPECT_TRUE(lies_below("/a", "/"));
  EXPECT_FALSE(lies_below("/ab", "/a"));
  EXPECT_FALSE(lies_below("/a", "/a"));
  EXPECT_TRUE(lies_below("a", ""));
}

TEST(Recent, holds_what_writes_left_in_one_stretch) {
  Recent recent;
  const auto write = [&](std::uint64_t at, std::string_view text) {
    const std::array<ByteView, 2> parts{as_bytes(text.substr(0, 1)), as_bytes(text.substr(1))};
    recent.note_write(at, parts);
  };
  const auto held = [&](std::uint64_t from, std::size_t size) {
    const auto bytes = recent.bytes(from, size);
    return bytes ? std::string(as_text(*bytes)) : "-";
  };
  write(100, "one..");
  write(103, "two..");  // over the end mark of the one before
  EXPECT_EQ(held(100, 8), "onetwo..");
  write(101, "N");
  EXPECT_EQ(held(100, 8), "oNetwo..");
  EXPECT_EQ(held(102, 2), "et");
  EXPECT_EQ(held(100, 9), "-");
  EXPECT_EQ(held(99, 2), "-");
  EXPECT_EQ(held(109, 1), "-");
  write(90, "elsewhere");
  EXPECT_EQ(held(100, 8), "-") << "one stretch alone";
  EXPECT_EQ(held(90, 9), "elsewhere");
  recent.forget();
  EXPECT_EQ(held(90, 9), "-");
}

TEST(Recent, keeps_little_of_one_file_and_of_all) {
  const std::string text(20'000, 'x');
  const std::array<ByteView, 1> part{as_bytes(text)};
  Recent one;
  one.note_write(0, part);
  EXPECT_TRUE(one.bytes(0, text.size()));
  one.note_write(text.size(), part);
  EXPECT_FALSE(one.bytes(0, text.size()));
  std::vector<std::unique_ptr<Recent>> many;
  for (int i = 0; i < 1000; ++i) {
    many.push_back(std::make_unique<Recent>());
    many.back()->note_write(0, part);
  }
  EXPECT_TRUE(many.front()->bytes(0, text.size()));
  EXPECT_FALSE(many.back()->bytes(0, text.size()));
  many.clear();
  one.note_write(0, part);
  EXPECT_TRUE(one.bytes(0, text.size())) << "their room is free again";
}

}  // namespace
}  // namespace polylog::journal
