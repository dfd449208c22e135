#include "format/rocketmq/checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "bytes/endian.h"

namespace polylog::format::rocketmq {
namespace {

TEST(StoreCheckpoint, is_five_longs_in_4096_bytes) {
  const Checkpoint checkpoint{1, 2, 3, 4, -5};
  const auto bytes = encode_checkpoint(checkpoint);
  ASSERT_EQ(bytes.size(), 4096U);
  for (const auto& [at, value] :
       {std::pair{0, 1}, std::pair{8, 2}, std::pair{16, 3}, std::pair{24, 4}, std::pair{32, -5}}) {
    EXPECT_EQ(load_big<std::int64_t>(bytes.data() + at), value);
  }
  EXPECT_EQ(std::count(bytes.begin() + checkpoint_used_bytes, bytes.end(), 0), 4056);
  EXPECT_EQ(decode_checkpoint(bytes).value(), checkpoint);
}

TEST(StoreCheckpoint, of_no_bytes_is_zeros_and_of_a_few_corrupt) {
  const auto bytes = encode_checkpoint({1, 2, 3, 4, 5});
  EXPECT_EQ(decode_checkpoint({}).value(), Checkpoint{});
  EXPECT_EQ(decode_checkpoint(ByteView(bytes).first(39)).error().code, Errc::corrupt);
  EXPECT_EQ(decode_checkpoint(ByteView(bytes).first(40)).value(), (Checkpoint{1, 2, 3, 4, 5}));
}

TEST(StoreCheckpoint, recovery_begins_three_seconds_below_the_older_timestamp) {
  EXPECT_EQ(recovery_timestamp({10'000, 12'000, 0, 0, 0}, false), 7'000);
  EXPECT_EQ(recovery_timestamp({12'000, 10'000, 0, 0, 0}, false), 7'000);
  EXPECT_EQ(recovery_timestamp({3'001, 3'001, 0, 0, 0}, false), 1);
  EXPECT_EQ(recovery_timestamp({3'000, 3'000, 0, 0, 0}, false), 0);
  EXPECT_EQ(recovery_timestamp({-5, 10'000, 0, 0, 0}, false), 0);
}

TEST(StoreCheckpoint, index_counts_only_when_asked_for) {
  EXPECT_EQ(recovery_timestamp({10'000, 10'000, 500, 0, 0}, true), 500);
  EXPECT_EQ(recovery_timestamp({10'000, 10'000, 9'000, 0, 0}, true), 7'000);
  EXPECT_EQ(recovery_timestamp({10'000, 10'000, -1, 0, 0}, true), 0);
}

}  // namespace
}  // namespace polylog::format::rocketmq
