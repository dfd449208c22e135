#include "convert/overlay_file_system.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "bytes/endian.h"
#include "fs/sim_file_system.h"

namespace polylog::convert {
namespace {

using fs::OpenMode;

std::string read_all(fs::FileSystem& fs, const std::string& path) {
  const auto bytes = fs::read_file(fs, path, 1 << 24);
  EXPECT_TRUE(bytes) << bytes.error().to_string();
  return bytes ? std::string(as_text(*bytes)) : std::string();
}

void make(fs::FileSystem& fs, const std::string& path, std::string_view content) {
  const auto file = fs.open(path, OpenMode::create);
  ASSERT_TRUE(file) << file.error().to_string();
  ASSERT_TRUE((*file)->truncate(0));
  ASSERT_TRUE((*file)->write(0, as_bytes(content)));
}

class Overlay : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(below.create_directory("/d"));
    make(below, "/d/a", "alpha");
    make(below, "/d/b", "beta");
    ASSERT_TRUE(below.create_directory("/d/empty"));
    before = below.dump_tree();
    steps = below.steps();
  }
  void TearDown() override {
    EXPECT_EQ(below.dump_tree(), before);
    EXPECT_EQ(read_all(below, "/d/a"), "alpha");
  }

  fs::SimFileSystem below;
  OverlayFileSystem over{below, "/scratch/pages"};
  std::string before;
  std::uint64_t steps = 0;
};

TEST_F(Overlay, shows_what_lies_below_until_it_is_changed) {
  EXPECT_EQ(read_all(over, "/d/a"), "alpha");
  EXPECT_EQ(over.info("/d/a")->inode, below.info("/d/a")->inode);
  EXPECT_EQ(over.info("/d/a")->modified_ns, below.info("/d/a")->modified_ns);
  const auto file = *over.open("/d/a", OpenMode::write);
  ASSERT_TRUE(file->write(5, as_bytes("bet")));
  ASSERT_TRUE(file->write(0, as_bytes("A")));
  EXPECT_EQ(read_all(over, "/d/a"), "Alphabet");
  EXPECT_EQ(over.info("/d/a")->size, 8U);
  EXPECT_NE(over.info("/d/a")->modified_ns, below.info("/d/a")->modified_ns);
  EXPECT_EQ(below.steps(), steps);
}

TEST_F(Overlay, one_handle_sees_what_another_wrote) {
  const auto reader = *over.open("/d/a", OpenMode::read);
  const auto writer = *over.open("/d/a", OpenMode::write);
  ASSERT_TRUE(writer->write(0, as_bytes("omega")));
  std::array<std::uint8_t, 8> into{};
  EXPECT_EQ(*reader->read(0, into), 5U);
  EXPECT_EQ(as_text(ByteView(into).first(5)), "omega");
  EXPECT_EQ(reader->write(0, as_bytes("x")).error().code, Errc::invalid);
}

TEST_F(Overlay, makes_renames_and_removes_names_apart) {
  make(over, "/d/new", "new");
  ASSERT_TRUE(over.rename("/d/b", "/d/c"));
  ASSERT_TRUE(over.remove("/d/a"));
  ASSERT_TRUE(over.create_directory("/d/deep"));
  make(over, "/d/deep/er", "1");
  EXPECT_EQ(*over.list("/d"), (std::vector<std::string>{"c", "deep", "empty", "new"}));
  EXPECT_EQ(*over.list("/d/deep"), (std::vector<std::string>{"er"}));
  EXPECT_EQ(read_all(over, "/d/c"), "beta");
  EXPECT_EQ(over.open("/d/a", OpenMode::read).error().code, Errc::not_found);
  EXPECT_EQ(over.open("/d/b", OpenMode::write).error().code, Errc::not_found);
  EXPECT_EQ(over.open("/d/new", OpenMode::create_new).error().code, Errc::exists);
  EXPECT_EQ(over.open("/d/none/x", OpenMode::create).error().code, Errc::not_found);
  make(over, "/d/a", "again");
  EXPECT_EQ(read_all(over, "/d/a"), "again");
  ASSERT_TRUE(over.rename("/d/c", "/d/a"));
  EXPECT_EQ(read_all(over, "/d/a"), "beta");
  ASSERT_TRUE(fs::remove_tree(over, "/d"));
  EXPECT_FALSE(fs::exists(over, "/d"));
  ASSERT_TRUE(over.create_directory("/d"));
  EXPECT_TRUE(over.list("/d")->empty());
}

TEST_F(Overlay, a_shortened_file_grows_again_with_zeros) {
  const auto file = *over.open("/d/a", OpenMode::write);
  ASSERT_TRUE(file->truncate(2));
  ASSERT_TRUE(file->truncate(4));
  EXPECT_EQ(read_all(over, "/d/a"), std::string("al\0\0", 4));
  ASSERT_TRUE(file->write(4, as_bytes("x")));
  EXPECT_EQ(read_all(over, "/d/a"), std::string("al\0\0x", 5));
}

TEST_F(Overlay, takes_the_lock_below_where_there_is_one) {
  const auto held = below.lock("/d/a");
  EXPECT_EQ(over.lock("/d/a").error().code, Errc::locked);
  {
    const auto own = over.lock("/d/.lock");
    ASSERT_TRUE(own);
    EXPECT_EQ(over.lock("/d/.lock").error().code, Errc::locked);
  }
  EXPECT_TRUE(over.lock("/d/.lock"));
  EXPECT_FALSE(fs::exists(below, "/d/.lock"));
}

// Against a plain string, and more pages than memory would hold a few of.
TEST_F(Overlay, random_changes_read_back_as_on_a_real_file) {
  std::mt19937 random(7);
  std::string model(30'000, '\0');
  for (char& c : model) c = static_cast<char>(random());
  fs::SimFileSystem disk;
  make(disk, "/f", model);
  OverlayFileSystem overlay(disk, "/pages");
  const auto file = *overlay.open("/f", OpenMode::write);
  for (int i = 0; i < 2000; ++i) {
    if (i % 37 == 0) {
      const std::size_t size = random() % 40'000;
      ASSERT_TRUE(file->truncate(size));
      model.resize(size, '\0');
      continue;
    }
    const std::size_t at = random() % 40'000;
    std::string bytes(random() % 9000, static_cast<char>(random()));
    if (i % 5 == 0 && at + bytes.size() <= model.size()) bytes = model.substr(at, bytes.size());
    ASSERT_TRUE(file->write(at, as_bytes(bytes)));
    if (bytes.empty()) continue;
    if (model.size() < at + bytes.size()) model.resize(at + bytes.size(), '\0');
    model.replace(at, bytes.size(), bytes);
    if (i % 10 == 0) {
      ASSERT_EQ(read_all(overlay, "/f"), model);
    }
  }
  ASSERT_EQ(read_all(overlay, "/f"), model);
}

TEST(PageScratch, goes_to_a_file_when_memory_is_full_and_takes_it_away_again) {
  fs::SimFileSystem disk;
  {
    PageScratch scratch(disk, "/tmp/pages");
    std::vector<std::uint8_t> page(PageScratch::page_bytes);
    for (std::uint32_t i = 0; i < PageScratch::memory_pages_max + 3; ++i) {
      store_big(page.data(), i);
      ASSERT_EQ(*scratch.add(page), i);
    }
    EXPECT_TRUE(fs::exists(disk, "/tmp/pages"));
    for (const std::uint32_t i : {0U, 17U, static_cast<std::uint32_t>(
                                               PageScratch::memory_pages_max + 1)}) {
      ASSERT_TRUE(scratch.read(i, page));
      EXPECT_EQ(load_big<std::uint32_t>(page.data()), i);
    }
    scratch.drop(17);
    EXPECT_EQ(*scratch.add(page), 17U);
  }
  EXPECT_FALSE(fs::exists(disk, "/tmp/pages"));
}

}  // namespace
}  // namespace polylog::convert
