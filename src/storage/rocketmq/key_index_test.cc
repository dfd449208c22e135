#include "storage/rocketmq/key_index.h"

#include <gtest/gtest.h>

#include "bytes/endian.h"
#include "fs/sim_file_system.h"

// Index files as somebody may find them: not whole, not ours, or with slots and chains that lead
// astray.
namespace polylog::storage::rocketmq {
namespace {

namespace stored = format::rocketmq;
using Positions = std::vector<std::int64_t>;

constexpr std::int64_t first_time = 1'700'000'000'000;
const std::string directory = "/store/index";

class KeyIndexTest : public ::testing::Test {
 protected:
  static constexpr std::int32_t slots = 4, entries = 6;

  // Five keys fit a file: entry 0 is none.
  void fill(int keys) {
    KeyIndexFiles index(disk_, clock_, setup());
    KeyIndexFiles::Keys waiting;
    for (int i = 0; i < keys; ++i) {
      waiting.push_back({hash(i), 1000 + i, first_time + i * 1000});
    }
    ASSERT_TRUE(index.write(waiting));
    ASSERT_TRUE(index.checkpoint());
    const auto names = disk_.list(directory);
    ASSERT_TRUE(names);
    for (const std::string& name : *names) {
      paths_.push_back(fs::join(directory, name));
    }
  }
  static KeyIndexFiles::Setup setup() {
    return {.directory = directory, .slots = slots, .entries = entries};
  }
  std::unique_ptr<KeyIndexFiles> loaded() {
    auto index = std::make_unique<KeyIndexFiles>(disk_, clock_, setup());
    notes_.clear();
    EXPECT_TRUE(index->load(notes_));
    return index;
  }
  static std::int32_t hash(int key) {
    return stored::index_key_hash("orders", "key-" + std::to_string(key));
  }
  static Positions lookup(const KeyIndexFiles& index, int key) {
    Positions found;
    const auto done = index.lookup("orders", "key-" + std::to_string(key), 0, INT64_MAX,
                                   [&](std::int64_t position) -> Result<bool> {
                                     found.push_back(position);
                                     return true;
                                   });
    EXPECT_TRUE(done);
    return found;
  }
  void put(const std::string& path, std::uint64_t at, std::int32_t value) {
    std::array<std::uint8_t, 4> bytes{};
    store_big(bytes.data(), value);
    disk_.corrupt(path, at, bytes);
  }
  bool noted(std::string_view part) const {
    return notes_.size() == 1 && notes_[0].find(part) != std::string::npos;
  }

  fs::SimFileSystem disk_;
  ManualClock clock_{Timestamp(first_time)};
  std::vector<std::string> paths_, notes_;
};

TEST_F(KeyIndexTest, every_key_is_found_again_in_whichever_file_it_lies) {
  fill(12);
  ASSERT_EQ(paths_.size(), 3U);
  const auto index = loaded();
  EXPECT_TRUE(notes_.empty());
  for (int i = 0; i < 12; ++i) EXPECT_EQ(lookup(*index, i), Positions{1000 + i}) << i;
  EXPECT_TRUE(lookup(*index, 12).empty());
}

TEST_F(KeyIndexTest, files_that_are_not_ours_to_use_are_named_and_left_alone) {
  fill(2);
  ASSERT_TRUE(disk_.open(fs::join(directory, "notes.txt"), fs::OpenMode::create_new));
  EXPECT_EQ(lookup(*loaded(), 1), Positions{1001});
  EXPECT_TRUE(noted("no index file"));
  ASSERT_TRUE(disk_.remove(fs::join(directory, "notes.txt")));

  disk_.append_raw(paths_[0], as_bytes("x"));
  EXPECT_TRUE(lookup(*loaded(), 1).empty());
  EXPECT_TRUE(noted("bytes where maxHashSlotNum and maxIndexNum make"));
  disk_.truncate_raw(paths_[0], stored::index_file_bytes(slots, entries) - 1);
  EXPECT_TRUE(lookup(*loaded(), 1).empty());
  EXPECT_TRUE(noted("bytes where maxHashSlotNum and maxIndexNum make"));
  EXPECT_TRUE(disk_.info(paths_[0]));
}

TEST_F(KeyIndexTest, a_header_that_makes_no_sense_costs_its_file) {
  fill(2);
  constexpr std::uint64_t next_entry_at = stored::index_header_bytes - 4;
  for (const std::int32_t next : {-1, entries + 2, INT32_MAX}) {
    put(paths_[0], next_entry_at, next);
    EXPECT_TRUE(lookup(*loaded(), 1).empty()) << next;
    EXPECT_TRUE(noted("its header does not make sense")) << next;
  }
}

TEST_F(KeyIndexTest, slots_and_chains_that_lead_in_a_circle_or_outside_end) {
  fill(5);
  const std::uint64_t slot_at =
      stored::index_header_bytes +
      4 * static_cast<std::uint64_t>(stored::index_slot_of(hash(0), slots));
  for (const std::int32_t named : {-7, entries, INT32_MAX}) {
    put(paths_[0], slot_at, named);
    EXPECT_TRUE(lookup(*loaded(), 0).empty()) << named;
  }
  constexpr std::uint64_t previous_in_entry = stored::index_entry_bytes - 4;
  put(paths_[0], slot_at, 1);
  for (const std::int32_t previous : {1, 2, INT32_MAX, -1}) {
    put(paths_[0], stored::index_entry_at(slots, 1) + previous_in_entry, previous);
    EXPECT_EQ(lookup(*loaded(), 0), Positions{1000}) << previous;
  }
}

TEST_F(KeyIndexTest, a_file_that_was_cut_short_while_it_is_open_finds_nothing) {
  fill(2);
  const auto index = loaded();
  disk_.truncate_raw(paths_[0], stored::index_header_bytes);
  EXPECT_TRUE(lookup(*index, 0).empty());
}

TEST_F(KeyIndexTest, files_go_by_position_and_by_time) {
  fill(12);
  const auto index = loaded();
  ASSERT_TRUE(index->remove_below(1005));  // all of the first file lies below
  EXPECT_EQ(disk_.list(directory)->size(), 2U);
  EXPECT_TRUE(lookup(*index, 4).empty());
  EXPECT_EQ(lookup(*index, 5), Positions{1005});
  ASSERT_TRUE(index->remove_after(first_time + 9000));  // the last holds later ones
  EXPECT_EQ(disk_.list(directory)->size(), 1U);
  EXPECT_EQ(index->indexed_to(), 1009);
  ASSERT_TRUE(index->remove_after(0));
  EXPECT_TRUE(disk_.list(directory)->empty());
  EXPECT_EQ(index->indexed_to(), -1);
}

}  // namespace
}  // namespace polylog::storage::rocketmq
