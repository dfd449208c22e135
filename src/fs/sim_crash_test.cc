#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "fs/sim_file_system.h"

namespace polylog::fs {
namespace {

using Mode = CrashChoice::Mode;

std::string content(SimFileSystem& fs, const std::string& path) {
  const auto bytes = read_file(fs, path, 1 << 20);
  return bytes ? std::string(as_text(*bytes)) : std::string("missing");
}

FilePtr open(SimFileSystem& fs, const std::string& path) {
  return fs.open(path, OpenMode::create).value();
}

void make_durable(SimFileSystem& fs, const std::string& path, std::string_view text) {
  const FilePtr file = open(fs, path);
  ASSERT_TRUE(file->write(0, as_bytes(text)));
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(fs.sync_directory(parent_of(path)));
}

std::string after(const SimFileSystem& fs, const CrashChoice& choice, const std::string& path) {
  return content(*fs.crash_state(choice), path);
}

// Everything that may be found at `path` afterwards, over many choices.
std::set<std::string> outcomes(const SimFileSystem& fs, const std::string& path) {
  std::set<std::string> found;
  for (const CrashChoice& choice : fs.crash_choices(1, 400)) found.insert(after(fs, choice, path));
  return found;
}

TEST(CrashState, a_synced_file_without_its_name_is_lost) {
  SimFileSystem fs;
  const FilePtr file = open(fs, "/a");
  ASSERT_TRUE(file->write(0, as_bytes("x")));
  ASSERT_TRUE(file->sync());
  EXPECT_EQ(after(fs, {}, "/a"), "missing");
  EXPECT_EQ(after(fs, {.mode = Mode::data_only}, "/a"), "missing");
  EXPECT_EQ(after(fs, {.mode = Mode::names_only}, "/a"), "x");
  ASSERT_TRUE(fs.sync_directory("/"));
  EXPECT_EQ(after(fs, {}, "/a"), "x");
}

TEST(CrashState, a_synced_name_without_its_content_is_an_empty_file) {
  SimFileSystem fs;
  ASSERT_TRUE(open(fs, "/a")->write(0, as_bytes("x")));
  ASSERT_TRUE(fs.sync_directory("/"));
  EXPECT_EQ(after(fs, {}, "/a"), "");
  EXPECT_EQ(after(fs, {.mode = Mode::data_only}, "/a"), "x");
}

TEST(CrashState, a_name_synced_in_a_directory_whose_own_name_was_not_is_lost) {
  SimFileSystem fs;
  ASSERT_TRUE(fs.create_directory("/d"));
  make_durable(fs, "/d/a", "x");
  EXPECT_EQ(after(fs, {}, "/d/a"), "missing");
  ASSERT_TRUE(fs.sync_directory("/"));
  EXPECT_EQ(after(fs, {}, "/d/a"), "x");
}

TEST(CrashState, a_volume_sync_makes_names_and_content_durable) {
  SimFileSystem fs;
  ASSERT_TRUE(fs.create_directory("/d"));
  ASSERT_TRUE(open(fs, "/d/a")->write(0, as_bytes("x")));
  ASSERT_TRUE(fs.open_volume("/").value()->sync());
  EXPECT_EQ(fs.unsynced(), 0U);
  EXPECT_EQ(after(fs, {}, "/d/a"), "x");
}

TEST(CrashState, a_rename_may_be_durable_before_the_content_it_publishes) {
  SimFileSystem fs;
  make_durable(fs, "/a", "old");
  ASSERT_TRUE(open(fs, "/a.tmp")->write(0, as_bytes("new")));
  ASSERT_TRUE(fs.rename("/a.tmp", "/a"));
  EXPECT_EQ(after(fs, {}, "/a"), "old");
  EXPECT_EQ(after(fs, {.mode = Mode::names_only}, "/a"), "");
  EXPECT_EQ(after(fs, {.mode = Mode::zero_filled}, "/a"), std::string(3, '\0'));
  EXPECT_EQ(after(fs, {.mode = Mode::keep_all}, "/a"), "new");
  const auto found = outcomes(fs, "/a");
  EXPECT_TRUE(found.contains("n")) << "torn";
  EXPECT_FALSE(found.contains("missing")) << "the name itself never goes away";
}

TEST(CrashState, replace_file_is_all_or_nothing_at_every_step_and_in_every_state) {
  std::size_t states = 0;
  for (std::uint64_t step = 1;; ++step) {
    for (const bool applied : {false, true}) {
      SimFileSystem fs;
      make_durable(fs, "/a", "old");
      fs.crash_at(fs.steps() + step, applied);
      const bool done = replace_file(fs, "/a", as_bytes("newer")).has_value();
      for (const CrashChoice& choice : fs.crash_choices(step, 60)) {
        const std::string text = after(fs, choice, "/a");
        ASSERT_TRUE(text == "newer" || (!done && text == "old"))
            << "step " << step << " " << choice.to_string() << ": " << text;
        ++states;
      }
      if (done) {
        EXPECT_GT(states, 300U);
        EXPECT_EQ(step, 7U) << "create, truncate, write, sync, rename, sync_directory";
        return;
      }
    }
  }
}

TEST(CrashState, create_directories_survives_when_it_returned) {
  SimFileSystem fs;
  ASSERT_TRUE(create_directories(fs, "/a/b/c"));
  EXPECT_TRUE(fs.crash_state({})->info("/a/b/c")->directory);
}

TEST(CrashState, a_prefix_keeps_operations_in_the_order_they_came) {
  SimFileSystem fs;
  make_durable(fs, "/a", "");
  make_durable(fs, "/b", "");
  const FilePtr a = open(fs, "/a");
  const FilePtr b = open(fs, "/b");
  ASSERT_TRUE(a->write(0, as_bytes("11")));
  ASSERT_TRUE(b->write(0, as_bytes("22")));
  open(fs, "/c");
  ASSERT_TRUE(a->write(2, as_bytes("33")));
  EXPECT_EQ(fs.unsynced(), 4U);
  const std::vector<std::array<std::string, 3>> expected{
      {"", "", "missing"}, {"11", "", "missing"}, {"11", "22", "missing"},
      {"11", "22", ""},    {"1133", "22", ""},
  };
  for (std::size_t kept = 0; kept < expected.size(); ++kept) {
    const auto state = fs.crash_state({.mode = Mode::prefix, .kept = kept});
    EXPECT_EQ(content(*state, "/a"), expected[kept][0]);
    EXPECT_EQ(content(*state, "/b"), expected[kept][1]);
    EXPECT_EQ(content(*state, "/c"), expected[kept][2]);
  }
  EXPECT_EQ(after(fs, {.mode = Mode::prefix, .kept = 3, .torn_bytes = 1}, "/a"), "113");
  EXPECT_EQ(after(fs, {.mode = Mode::prefix, .kept = 2, .torn_bytes = 9}, "/c"), "missing");
}

TEST(CrashState, a_zero_filled_tail_keeps_the_size_and_loses_the_bytes) {
  SimFileSystem fs;
  make_durable(fs, "/a", "safe");
  const FilePtr a = open(fs, "/a");
  ASSERT_TRUE(a->write(4, as_bytes("ab")));
  ASSERT_TRUE(a->write(6, as_bytes("cd")));
  ASSERT_TRUE(a->write(0, as_bytes("S")));
  EXPECT_EQ(after(fs, {.mode = Mode::zero_filled, .kept = 1}, "/a"),
            std::string_view("safeab\0\0", 8));
  EXPECT_EQ(after(fs, {.mode = Mode::zero_filled, .kept = 0}, "/a"),
            std::string_view("safe\0\0\0\0", 8));
  EXPECT_EQ(after(fs, {.mode = Mode::zero_filled, .kept = 3}, "/a"), "Safeabcd");
}

TEST(CrashState, a_subset_may_reorder_lose_and_tear_by_sector) {
  SimFileSystem fs;
  make_durable(fs, "/a", std::string(3000, '.'));
  const FilePtr a = open(fs, "/a");
  ASSERT_TRUE(a->write(100, std::vector<std::uint8_t>(2000, 'x')));
  ASSERT_TRUE(a->write(3000, std::vector<std::uint8_t>(100, 'y')));
  bool second_without_first = false;
  bool hole_inside_first = false;
  bool extended_with_zeros = false;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const std::string text = after(fs, {.mode = Mode::subset, .seed = seed}, "/a");
    ASSERT_GE(text.size(), 3000U);
    for (std::size_t i = 0; i < 3000; ++i) {
      ASSERT_TRUE(text[i] == '.' || (text[i] == 'x' && i >= 100 && i < 2100)) << i;
    }
    const bool none_of_first = text.find('x') == std::string::npos;
    second_without_first |= none_of_first && text.ends_with('y');
    const std::size_t hole = text.find('.', std::min(text.find('x'), text.size()));
    hole_inside_first |= hole < 2000 && hole % 512 == 0 && text.find('x', hole) < 2100;
    extended_with_zeros |= text.size() == 3100 && text.back() == '\0';
  }
  EXPECT_TRUE(second_without_first);
  EXPECT_TRUE(hole_inside_first);
  EXPECT_TRUE(extended_with_zeros);
}

TEST(CrashState, a_kill_keeps_everything_and_its_debts) {
  SimFileSystem fs;
  make_durable(fs, "/a", "safe");
  ASSERT_TRUE(open(fs, "/a")->write(4, as_bytes("+")));
  ASSERT_TRUE(open(fs, "/b")->write(0, as_bytes("b")));
  make_durable(fs, "/gone", "g");
  ASSERT_TRUE(open(fs, "/c")->write(0, as_bytes("c")));
  ASSERT_TRUE(fs.remove("/gone"));
  const auto killed = fs.crash_state({.mode = Mode::kill});
  EXPECT_EQ(killed->list("/").value(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(content(*killed, "/a"), "safe+");
  EXPECT_EQ(killed->dump_tree(), fs.dump_tree());
  EXPECT_EQ(killed->unsynced(), fs.unsynced());
  const auto cut = killed->crash_state({});
  EXPECT_EQ(cut->list("/").value(), (std::vector<std::string>{"a", "b", "gone"}));
  EXPECT_EQ(content(*cut, "/a"), "safe");
  EXPECT_EQ(content(*cut, "/b"), "");
  EXPECT_EQ(content(*cut, "/gone"), "g");
  ASSERT_TRUE(open(*killed, "/a")->sync());
  EXPECT_EQ(after(*killed, {}, "/a"), "safe+");
  EXPECT_EQ(after(fs, {}, "/a"), "safe") << "the original disk is another one";
}

TEST(CrashState, what_it_shows_is_durable_there_and_changes_stay_there) {
  SimFileSystem fs;
  make_durable(fs, "/a", "safe");
  const std::uint64_t inode = fs.info("/a")->inode;
  ASSERT_TRUE(open(fs, "/a")->write(4, as_bytes("+")));
  const auto state = fs.crash_state({.mode = Mode::keep_all});
  EXPECT_EQ(state->unsynced(), 0U);
  EXPECT_EQ(state->steps(), 0U);
  EXPECT_EQ(state->info("/a")->inode, inode);
  EXPECT_EQ(after(*state, {}, "/a"), "safe+");
  ASSERT_TRUE(open(*state, "/a")->truncate(0));
  ASSERT_TRUE(open(*state, "/new")->write(0, as_bytes("x")));
  EXPECT_NE(state->info("/new")->inode, inode);
  EXPECT_EQ(content(fs, "/a"), "safe+");
  EXPECT_FALSE(exists(fs, "/new"));
}

TEST(CrashState, a_removed_name_may_come_back_and_then_with_its_content) {
  SimFileSystem fs;
  make_durable(fs, "/a", "safe");
  ASSERT_TRUE(fs.remove("/a"));
  EXPECT_EQ(after(fs, {}, "/a"), "safe");
  EXPECT_EQ(after(fs, {.mode = Mode::names_only}, "/a"), "missing");
  ASSERT_TRUE(fs.sync_directory("/"));
  EXPECT_EQ(after(fs, {}, "/a"), "missing");
}

TEST(CrashState, a_moved_file_is_never_nowhere) {
  SimFileSystem fs;
  ASSERT_TRUE(create_directories(fs, "/d"));
  make_durable(fs, "/d/a", "safe");
  ASSERT_TRUE(fs.rename("/d/a", "/d/b"));
  open(fs, "/d/a");
  ASSERT_TRUE(fs.create_directory("/e"));
  ASSERT_TRUE(fs.rename("/d/b", "/e/c"));
  ASSERT_TRUE(fs.remove("/d/a"));
  ASSERT_TRUE(fs.remove_directory("/d"));
  std::set<std::string> places;
  for (const CrashChoice& choice : fs.crash_choices(3, 500)) {
    const auto state = fs.crash_state(choice);
    std::size_t found = 0;
    for (const std::string path : {"/d/a", "/d/b", "/e/c"}) {
      if (content(*state, path) != "safe") continue;
      ++found;
      places.insert(path);
    }
    ASSERT_EQ(found, 1U) << choice.to_string() << "\n" << state->dump_tree();
  }
  EXPECT_EQ(places, (std::set<std::string>{"/d/a", "/d/b", "/e/c"}));
}

TEST(CrashState, syncing_either_directory_makes_a_move_durable) {
  for (const std::string directory : {"/d", "/e"}) {
    SimFileSystem fs;
    ASSERT_TRUE(create_directories(fs, "/d"));
    ASSERT_TRUE(create_directories(fs, "/e"));
    make_durable(fs, "/d/a", "safe");
    ASSERT_TRUE(fs.rename("/d/a", "/e/a"));
    ASSERT_TRUE(fs.sync_directory(directory));
    EXPECT_EQ(after(fs, {}, "/e/a"), "safe");
    EXPECT_EQ(after(fs, {}, "/d/a"), "missing");
  }
}

TEST(CrashState, same_disk_and_choice_give_the_same_state) {
  const auto build = [] {
    auto fs = std::make_unique<SimFileSystem>();
    for (int i = 0; i < 20; ++i) {
      const FilePtr file = open(*fs, "/" + std::to_string(i % 5));
      EXPECT_TRUE(file->write(file->info()->size, std::vector<std::uint8_t>(700, 'a')));
      if (i % 7 == 0) {
        EXPECT_TRUE(file->sync());
      }
      if (i % 6 == 0) {
        EXPECT_TRUE(fs->rename("/" + std::to_string(i % 5), "/x" + std::to_string(i)));
      }
    }
    return fs;
  };
  const auto one = build();
  const auto two = build();
  const auto choices = one->crash_choices(42, 100);
  EXPECT_EQ(choices, two->crash_choices(42, 100));
  EXPECT_NE(choices, one->crash_choices(43, 100));
  std::set<std::string> different;
  for (const CrashChoice& choice : choices) {
    const auto a = one->crash_state(choice);
    const auto b = two->crash_state(choice);
    ASSERT_EQ(a->dump_tree(), b->dump_tree());
    const std::vector<std::string> names = a->list("/").value();
    for (const std::string& name : names) {
      ASSERT_EQ(content(*a, "/" + name), content(*b, "/" + name));
    }
    different.insert(a->dump_tree());
  }
  EXPECT_GT(different.size(), 40U);
}

TEST(CrashChoices, a_small_number_still_covers_every_kind) {
  SimFileSystem fs;
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(open(fs, "/" + std::to_string(i))->write(0, std::vector<std::uint8_t>(2000, 'a')));
  }
  std::map<Mode, int> modes;
  int torn = 0;
  int torn_at_sector = 0;
  for (const CrashChoice& choice : fs.crash_choices(5, 24)) {
    ++modes[choice.mode];
    if (choice.torn_bytes > 0) ++torn;
    if (choice.torn_bytes > 0 && choice.torn_bytes % 512 == 0) ++torn_at_sector;
  }
  EXPECT_EQ(modes.size(), 8U);
  EXPECT_GE(torn, 4);
  EXPECT_GE(torn_at_sector, 1);
  EXPECT_EQ(fs.crash_choices(5, 24).size(), 24U);
  EXPECT_EQ(fs.crash_choices(5, 1).size(), 1U);
  ASSERT_TRUE(fs.open_volume("/").value()->sync());
  EXPECT_EQ(fs.crash_choices(5, 24).size(), 2U) << "nothing is unsynced";
}

}  // namespace
}  // namespace polylog::fs
