#include "storage/segment/position_index.h"

#include <gtest/gtest.h>

#include "fs/sim_file_system.h"
#include "storage/filelog/memory_index.h"

namespace polylog::storage::segment {
namespace {

using Notes = std::vector<std::string>;
using Index = Result<std::unique_ptr<OrderedIndex>>;

const std::string directory = "/data/index";
const std::string shard = std::string("orders-0") + '\0' + "topic id";
const PositionIndex::Covered covered{.inode = 7,
                                     .base = 0,
                                     .position = 900,
                                     .next = 30,
                                     .max_timestamp = Timestamp(5000),
                                     .max_timestamp_offset = 29,
                                     .first_timestamp = Timestamp(-3)};

struct Trouble {
  std::vector<Errc> openings;  // what the next ones are answered with, the last first
  bool writes = false;         // fail
  int value_bytes = 0;         // of all values that are read: so many more, or fewer
};

class Troubled final : public OrderedIndex {
 public:
  Troubled(std::unique_ptr<OrderedIndex> index, const Trouble& trouble)
      : index_(std::move(index)), trouble_(trouble) {}

  Result<void> write(const Changes& changes) override {
    if (trouble_.writes) return fail(Errc::io, "a write failed");
    return index_->write(changes);
  }
  Result<std::optional<Entry>> floor(const std::string& key,
                                     const std::string& lowest) const override {
    auto found = index_->floor(key, lowest);
    if (!found || !*found) return found;
    std::string& value = (*found)->second;
    value.resize(static_cast<std::size_t>(static_cast<int>(value.size()) + trouble_.value_bytes));
    return found;
  }
  Result<void> scan(const std::string& from, const std::string& to,
                    const std::function<bool(ByteView, ByteView)>& visit) const override {
    return index_->scan(from, to, visit);
  }
  Result<void> sync() override { return index_->sync(); }

 private:
  const std::unique_ptr<OrderedIndex> index_;
  const Trouble& trouble_;
};

class PositionIndexTest : public ::testing::Test {
 protected:
  Index open(const std::string& path) {
    if (!trouble_.openings.empty()) {
      const Errc code = trouble_.openings.back();
      trouble_.openings.pop_back();
      return fail(code, "refused");
    }
    POLYLOG_ASSIGN(opened, open_memory_index(disk_, path));
    return std::make_unique<Troubled>(std::move(opened), trouble_);
  }
  Result<void> save(std::int64_t number, std::int64_t offset) {
    return index_.save(shard, number, {{offset, 100, Timestamp(1000)}}, covered);
  }
  std::int64_t floor(std::int64_t number, std::int64_t offset) {
    const auto found = index_.floor(shard, number, offset);
    return found && *found ? (*found)->offset : -1;
  }

  fs::SimFileSystem disk_;
  Trouble trouble_;
  Notes notes_;
  PositionIndex index_{disk_, [this](const std::string& path) { return open(path); }, directory};
};

TEST_F(PositionIndexTest, gives_back_what_was_saved_and_nothing_of_a_neighbour) {
  ASSERT_TRUE(index_.open(notes_));
  ASSERT_TRUE(index_.open(notes_));  // is open already
  EXPECT_TRUE(notes_.empty());
  ASSERT_TRUE(save(1, 10));
  ASSERT_TRUE(save(2, 40));
  EXPECT_EQ(floor(1, 9), -1);
  EXPECT_EQ(floor(1, 1000), 10);
  EXPECT_EQ(floor(2, 39), -1);
  EXPECT_EQ(index_.time_floor(shard, 2, Timestamp(1000)).value(), 40);
  EXPECT_EQ(index_.time_floor(shard, 2, Timestamp(999)).value(), std::nullopt);
  EXPECT_EQ(index_.covered(shard, 1).value(), covered);
  EXPECT_EQ(index_.covered(shard, 3).value(), std::nullopt);
}

TEST_F(PositionIndexTest, values_that_are_cut_short_or_too_long_are_not_there) {
  ASSERT_TRUE(index_.open(notes_));
  ASSERT_TRUE(save(1, 10));
  trouble_.value_bytes = -1;
  EXPECT_EQ(index_.floor(shard, 1, 10).value(), std::nullopt);
  EXPECT_EQ(index_.time_floor(shard, 1, Timestamp(1000)).value(), std::nullopt);
  EXPECT_EQ(index_.covered(shard, 1).value(), std::nullopt);
  trouble_.value_bytes = 1;
  EXPECT_EQ(index_.covered(shard, 1).value(), std::nullopt);
}

TEST_F(PositionIndexTest, without_room_it_serves_from_memory_until_there_is) {
  trouble_.openings = {Errc::no_space, Errc::no_space};
  ASSERT_TRUE(index_.open(notes_));
  ASSERT_EQ(notes_.size(), 1U);
  EXPECT_NE(notes_[0].find("no room for the index"), std::string::npos);
  ASSERT_TRUE(save(1, 10));
  ASSERT_TRUE(save(1, 20));
  ASSERT_TRUE(save(2, 40));
  ASSERT_TRUE(index_.sync());
  index_.cut(shard, 1, 20, Timestamp(5000));
  index_.remove_segment(shard, 2);
  EXPECT_EQ(floor(0, 5), -1);
  EXPECT_EQ(floor(1, 5), -1);
  EXPECT_EQ(floor(1, 30), 10);
  EXPECT_EQ(floor(2, 50), -1);
  const auto still = index_.mend(notes_);
  ASSERT_FALSE(still);
  EXPECT_EQ(still.error().code, Errc::no_space);
  EXPECT_EQ(floor(1, 30), 10);
  ASSERT_TRUE(index_.mend(notes_));
  EXPECT_EQ(floor(1, 30), 10);
  EXPECT_EQ(floor(2, 50), -1);
  EXPECT_EQ(index_.covered(shard, 1).value(), covered);
  const auto info = disk_.info(fs::join(directory, "changes"));
  ASSERT_TRUE(info);
  EXPECT_GT(info->size, 100U);
}

TEST_F(PositionIndexTest, what_was_to_be_forgotten_while_it_failed_is_forgotten_when_it_works) {
  ASSERT_TRUE(index_.open(notes_));
  ASSERT_TRUE(save(1, 10));
  ASSERT_TRUE(save(2, 40));
  trouble_.writes = true;
  index_.remove_segment(shard, 1);
  const auto refused = index_.floor(shard, 1, 10);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::unavailable);
  EXPECT_FALSE(save(1, 11));
  index_.remove_shard("others-0");
  trouble_.writes = false;
  ASSERT_TRUE(index_.mend(notes_));
  EXPECT_EQ(floor(1, 10), -1);
  EXPECT_EQ(floor(2, 40), 40);
}

TEST_F(PositionIndexTest, one_that_does_not_read_is_begun_anew_and_another_error_is_passed_on) {
  trouble_.openings = {Errc::corrupt};
  ASSERT_TRUE(fs::create_directories(disk_, directory));
  ASSERT_TRUE(index_.open(notes_));
  ASSERT_EQ(notes_.size(), 1U);
  EXPECT_NE(notes_[0].find("made anew: refused"), std::string::npos);

  trouble_.openings = {Errc::locked};
  PositionIndex other(disk_, [this](const std::string& path) { return open(path); }, "/other");
  EXPECT_EQ(other.open(notes_).error().code, Errc::locked);
  EXPECT_EQ(other.floor(shard, 1, 1).error().code, Errc::unavailable);
  ASSERT_TRUE(other.sync());        // not open: nothing to make durable
  ASSERT_TRUE(other.mend(notes_));  // nor to mend
  other.remove_shard("orders-0");
}

}  // namespace
}  // namespace polylog::storage::segment
