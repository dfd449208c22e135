#include <algorithm>
#include <thread>

#include "fs/sim_file_system.h"
#include "storage/rocksdb/ordered_index_rig.h"

// What OrderedIndex promises, of both things that stand behind it.
namespace polylog::storage {
namespace {

using fs::CrashChoice;
using fs::Fault;
using fs::SimFileSystem;

const std::string directory = "/data/index";

class OrderedIndexTest : public ::testing::TestWithParam<IndexKind> {
 protected:
  std::unique_ptr<OrderedIndex> open(fs::FileSystem& disk) {
    auto index = GetParam().open(disk, directory);
    EXPECT_TRUE(index) << index.error().to_string();
    return index ? std::move(*index) : nullptr;
  }
  void put(OrderedIndex& index, const std::string& key, const std::string& value) {
    const auto done = index.write({.puts = {{key, value}}, .removed_ranges = {}});
    ASSERT_TRUE(done) << done.error().to_string();
  }
  std::string floor(const OrderedIndex& index, const std::string& key, const std::string& lowest) {
    const auto found = index.floor(key, lowest);
    if (!found) return found.error().to_string();
    return *found ? (*found)->first + "=" + (*found)->second : "nothing";
  }

  SimFileSystem disk_;
};

TEST_P(OrderedIndexTest, floor_is_the_greatest_key_between_the_bounds) {
  const auto index = open(disk_);
  ASSERT_TRUE(index);
  EXPECT_EQ(floor(*index, "z", ""), "nothing");
  put(*index, "b", "1");
  put(*index, "d", "2");
  put(*index, "f", "");
  EXPECT_EQ(floor(*index, "a", ""), "nothing");
  EXPECT_EQ(floor(*index, "b", "b"), "b=1");
  EXPECT_EQ(floor(*index, "c", ""), "b=1");
  EXPECT_EQ(floor(*index, "c", "c"), "nothing");
  EXPECT_EQ(floor(*index, "e", "c"), "d=2");
  EXPECT_EQ(floor(*index, "zz", ""), "f=");
  EXPECT_EQ(floor(*index, "a", "b"), "nothing");
}

TEST_P(OrderedIndexTest, keys_are_ordered_as_unsigned_bytes) {
  const auto index = open(disk_);
  ASSERT_TRUE(index);
  const std::vector<std::string> keys{
      std::string("\0", 1), std::string("\0\0", 2), "\x7f", "\x7f\xff", "\x80", "\xfe\xff"};
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) put(*index, *key, "v");
  std::vector<std::string> found;
  const auto done = index->scan("", "\xff", [&](ByteView key, ByteView) {
    found.emplace_back(as_text(key));
    return true;
  });
  ASSERT_TRUE(done);
  EXPECT_EQ(found, keys);
  EXPECT_EQ(floor(*index, "\x90", ""), "\x80=v");
}

TEST_P(OrderedIndexTest, scan_is_half_open_and_ends_when_told) {
  const auto index = open(disk_);
  ASSERT_TRUE(index);
  for (const char* key : {"a", "b", "c", "d", "e"}) put(*index, key, key);
  const auto scan = [&](const std::string& from, const std::string& to, std::size_t count_max) {
    std::string found;
    const auto done = index->scan(from, to, [&](ByteView key, ByteView) {
      found += as_text(key);
      return found.size() < count_max;
    });
    EXPECT_TRUE(done);
    return found;
  };
  EXPECT_EQ(scan("b", "d", 9), "bc");
  EXPECT_EQ(scan("aa", "zz", 9), "bcde");
  EXPECT_EQ(scan("a", "z", 2), "ab");
  EXPECT_EQ(scan("c", "c", 9), "");
  EXPECT_EQ(scan("d", "b", 9), "");
}

TEST_P(OrderedIndexTest, ranges_are_removed_before_the_puts_of_the_same_changes) {
  const auto index = open(disk_);
  ASSERT_TRUE(index);
  for (const char* key : {"a", "b", "c", "d"}) put(*index, key, "old");
  const auto done =
      index->write({.puts = {{"b", "new"}, {"b", "newer"}}, .removed_ranges = {{"b", "d"}}});
  ASSERT_TRUE(done);
  const Entries expected{{"a", "old"}, {"b", "newer"}, {"d", "old"}};
  EXPECT_EQ(contents(*index), expected);
  // Backwards and empty ranges are ranges without a key.
  ASSERT_TRUE(index->write({.puts = {}, .removed_ranges = {{"d", "a"}, {"a", "a"}}}));
  ASSERT_TRUE(index->write({}));
  EXPECT_EQ(contents(*index), expected);
  EXPECT_EQ(floor(*index, "c", ""), "b=newer");
}

TEST_P(OrderedIndexTest, many_changes_equal_a_map_across_reopening) {
  std::mt19937_64 random(7);
  Entries expected;
  for (int round = 0; round < 4; ++round) {
    const auto index = open(disk_);
    ASSERT_TRUE(index);
    ASSERT_EQ(contents(*index), expected) << round;
    for (int i = 0; i < 300; ++i) {
      const auto changes = random_changes(random, 20, 50);
      ASSERT_TRUE(index->write(changes));
      apply(expected, changes);
      if (i % 40 == 0) {
        ASSERT_TRUE(index->sync());
      }
      const std::string key = random_key(random);
      const std::string lowest = random_key(random);
      auto at = expected.upper_bound(key);
      const bool any = at != expected.begin() && (--at)->first >= lowest;
      ASSERT_EQ(floor(*index, key, lowest), any ? at->first + "=" + at->second : "nothing");
    }
    ASSERT_EQ(contents(*index), expected) << round;
    ASSERT_TRUE(index->sync());
  }
}

TEST_P(OrderedIndexTest, a_power_cut_keeps_what_was_synced_and_may_take_the_rest) {
  const auto index = open(disk_);
  ASSERT_TRUE(index);
  put(*index, "a", "synced");
  ASSERT_TRUE(index->sync());
  put(*index, "a", "lost");
  put(*index, "b", "lost");
  const auto after = disk_.crash_state({.mode = CrashChoice::Mode::lose_all});
  const auto found = open(*after);
  ASSERT_TRUE(found);
  EXPECT_EQ(contents(*found), (Entries{{"a", "synced"}}));
  // And the index goes on from there.
  put(*found, "c", "1");
  ASSERT_TRUE(found->sync());
  const auto last = after->crash_state({.mode = CrashChoice::Mode::lose_all});
  const auto again = open(*last);
  ASSERT_TRUE(again);
  EXPECT_EQ(contents(*again), (Entries{{"a", "synced"}, {"c", "1"}}));
}

TEST_P(OrderedIndexTest, what_an_earlier_process_synced_survives_without_another_sync) {
  {
    const auto index = open(disk_);
    ASSERT_TRUE(index);
    put(*index, "a", "1");
    ASSERT_TRUE(index->sync());
  }
  {
    const auto index = open(disk_);
    ASSERT_TRUE(index);
    EXPECT_EQ(floor(*index, "z", ""), "a=1");
  }
  const auto after = disk_.crash_state({.mode = CrashChoice::Mode::lose_all});
  const auto index = open(*after);
  ASSERT_TRUE(index);
  EXPECT_EQ(floor(*index, "z", ""), "a=1");
}

TEST_P(OrderedIndexTest, a_failed_sync_is_final_until_it_is_opened_again) {
  auto index = open(disk_);
  ASSERT_TRUE(index);
  put(*index, "a", "1");
  ASSERT_TRUE(index->sync());
  put(*index, "b", "2");
  disk_.fail_path(directory, Fault::eio);
  const auto failed = index->sync();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::io) << failed.error().to_string();
  disk_.clear_faults();
  const auto later = [&](const Result<void>& done) {
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Errc::unavailable) << done.error().to_string();
  };
  later(index->sync());
  later(index->write({.puts = {{"c", "3"}}, .removed_ranges = {}}));
  later(index->scan("a", "z", [](ByteView, ByteView) { return true; }));
  EXPECT_EQ(index->floor("z", "").error().code, Errc::unavailable);

  index.reset();
  index = open(disk_);
  ASSERT_TRUE(index);
  put(*index, "d", "4");
  ASSERT_TRUE(index->sync());
  const auto after = disk_.crash_state({.mode = CrashChoice::Mode::lose_all});
  const auto found = open(*after);
  ASSERT_TRUE(found);
  EXPECT_EQ(floor(*found, "a", ""), "a=1");
  EXPECT_EQ(floor(*found, "z", "c"), "d=4");
}

TEST_P(OrderedIndexTest, a_full_disk_is_no_space_and_costs_nothing_that_was_synced) {
  auto index = open(disk_);
  ASSERT_TRUE(index);
  put(*index, "a", "1");
  ASSERT_TRUE(index->sync());
  const std::uint64_t used = *disk_.total_bytes(directory) - *disk_.free_bytes(directory);
  disk_.set_capacity(used);
  Result<void> done;
  for (int i = 0; i < 100 && done; ++i) {
    done = index->write({.puts = {{"b", std::string(1000, 'b')}}, .removed_ranges = {}});
  }
  if (done) done = index->sync();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::no_space) << done.error().to_string();
  index.reset();
  // Whether it opens on a full disk or not, it says why and loses nothing.
  if (auto full = GetParam().open(disk_, directory); full) {
    EXPECT_EQ(floor(**full, "a", ""), "a=1");
  } else {
    EXPECT_EQ(full.error().code, Errc::no_space) << full.error().to_string();
  }
  disk_.set_capacity(used + (1 << 20));
  index = open(disk_);
  ASSERT_TRUE(index);
  EXPECT_EQ(floor(*index, "a", ""), "a=1");
  put(*index, "c", "3");
  EXPECT_TRUE(index->sync());
}

TEST_P(OrderedIndexTest, opened_twice_is_locked) {
  const auto index = open(disk_);
  ASSERT_TRUE(index);
  const auto second = GetParam().open(disk_, directory);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::locked) << second.error().to_string();
}

TEST_P(OrderedIndexTest, threads_write_read_and_sync_side_by_side) {
  const auto index = open(disk_);
  ASSERT_TRUE(index);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const std::string key = std::to_string(t) + "/" + std::to_string(1000 + i);
        EXPECT_TRUE(index->write({.puts = {{key, key}}, .removed_ranges = {}}));
        if (i % 20 == t) {
          EXPECT_TRUE(index->sync());
        }
        EXPECT_EQ(floor(*index, key, key), key + "=" + key);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto found = contents(*index);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size(), 600U);
}

TEST_P(OrderedIndexTest, flipped_bits_are_corrupt_or_harmless) {
  Entries expected;
  {
    const auto index = open(disk_);
    ASSERT_TRUE(index);
    for (int i = 0; i < 50; ++i) {
      const std::string key = "key " + std::to_string(100 + i);
      put(*index, key, "value of " + key);
      expected[key] = "value of " + key;
    }
    ASSERT_TRUE(index->sync());
  }
  int refused = 0;
  const auto names = disk_.list(directory);
  ASSERT_TRUE(names);
  for (const std::string& name : *names) {
    const std::string path = fs::join(directory, name);
    const std::uint64_t size = disk_.info(path)->size;
    for (std::uint64_t at = size / 3; at < size; at += size / 5 + 1) {
      const auto rotten = disk_.crash_state({.mode = CrashChoice::Mode::kill});
      rotten->flip_bit(path, at, 4);
      const auto opened = GetParam().open(*rotten, directory);
      const auto found = opened ? contents(**opened) : fail(opened.error());
      if (found) {
        EXPECT_EQ(*found, expected) << path << " at " << at;
      } else {
        ++refused;
        EXPECT_EQ(found.error().code, Errc::corrupt) << path << ": " << found.error().to_string();
      }
    }
  }
  EXPECT_GT(refused, 2);
}

TEST_P(OrderedIndexTest, a_corrupt_index_can_be_removed_and_built_again) {
  {
    const auto index = open(disk_);
    ASSERT_TRUE(index);
    put(*index, "a", "1");
    ASSERT_TRUE(index->sync());
  }
  const auto names = disk_.list(directory);
  ASSERT_TRUE(names);
  for (const std::string& name : *names) {
    disk_.truncate_raw(fs::join(directory, name), 13);
  }
  const auto opened = GetParam().open(disk_, directory);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::corrupt) << opened.error().to_string();
  ASSERT_TRUE(fs::remove_tree(disk_, directory));
  const auto index = open(disk_);
  ASSERT_TRUE(index);
  EXPECT_EQ(contents(*index), Entries{});
  put(*index, "a", "2");
  ASSERT_TRUE(index->sync());
}

// What a start makes anew must be told from what it can do nothing about.
TEST(RocksdbIndexFiles, a_missing_one_is_corrupt) {
  const auto kind = rocksdb_kind(64 << 10);
  SimFileSystem disk;
  {
    auto index = kind.open(disk, directory);
    ASSERT_TRUE(index) << index.error().to_string();
    ASSERT_TRUE((*index)->write({.puts = {{"a", "1"}}, .removed_ranges = {}}));
    ASSERT_TRUE((*index)->sync());
  }
  const auto names = disk.list(directory);
  ASSERT_TRUE(names);
  const auto manifest = std::find_if(names->begin(), names->end(), [](const std::string& name) {
    return name.starts_with("MANIFEST-");
  });
  ASSERT_NE(manifest, names->end());
  ASSERT_TRUE(disk.remove(fs::join(directory, *manifest)));
  const auto opened = kind.open(disk, directory);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::corrupt) << opened.error().to_string();
}

INSTANTIATE_TEST_SUITE_P(Kinds, OrderedIndexTest,
                         ::testing::Values(memory_kind(), rocksdb_kind(64 << 10)),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace polylog::storage
