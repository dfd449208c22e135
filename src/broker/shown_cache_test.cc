#include "broker/shown_cache.h"

#include <gtest/gtest.h>

namespace polylog::broker {
namespace {

ShownCache::Place place(std::int64_t from, std::int32_t partition = 0) {
  ShownCache::Place place;
  place.partition = partition;
  place.from = Offset(from);
  return place;
}

std::vector<Batch> batches(std::int64_t first, std::int64_t last, std::size_t bytes) {
  Batch batch;
  batch.info.first = Offset(first);
  batch.info.last = Offset(last);
  batch.bytes = Slice::of(std::vector<std::uint8_t>(bytes));
  return {batch};
}

storage::ReadLimits limits(std::int64_t end, std::size_t bytes_max) {
  storage::ReadLimits limits;
  limits.end = Offset(end);
  limits.bytes_max = bytes_max;
  return limits;
}

TEST(ShownCache, the_second_reader_of_a_place_gets_what_the_first_one_did) {
  ShownCache cache(1000);
  EXPECT_EQ(cache.find(place(5), limits(10, 100)), nullptr);
  cache.put(place(5), limits(10, 100), batches(5, 9, 50));
  const auto* const found = cache.find(place(5), limits(10, 100));
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->front().info.last, Offset(9));
  EXPECT_EQ(cache.find(place(6), limits(10, 100)), nullptr);
  EXPECT_EQ(cache.find(place(5, 1), limits(10, 100)), nullptr);
  EXPECT_EQ(cache.hits(), 1U);
}

TEST(ShownCache, nothing_beyond_the_visible_end_or_the_readers_limit_is_given) {
  ShownCache cache(1000);
  cache.put(place(5), limits(20, 50), batches(5, 9, 50));
  EXPECT_EQ(cache.find(place(5), limits(9, 100)), nullptr);
  EXPECT_EQ(cache.find(place(5), limits(10, 49)), nullptr);
  storage::ReadLimits whole = limits(10, 49);
  whole.first_whole = true;
  EXPECT_NE(cache.find(place(5), whole), nullptr);
}

TEST(ShownCache, a_reader_for_whom_there_is_more_now_is_not_held_up) {
  ShownCache cache(1000);
  cache.put(place(5), limits(10, 100), batches(5, 9, 50));
  EXPECT_NE(cache.find(place(5), limits(10, 200)), nullptr) << "that was all there is";
  EXPECT_EQ(cache.find(place(5), limits(11, 100)), nullptr) << "one more is visible";
  cache.put(place(5), limits(20, 60), batches(5, 9, 50));
  EXPECT_NE(cache.find(place(5), limits(30, 60)), nullptr) << "the reader's limit ended it";
  EXPECT_EQ(cache.find(place(5), limits(30, 100)), nullptr) << "this one has room for more";
}

TEST(ShownCache, keeps_what_was_asked_for_last_within_its_bytes) {
  ShownCache cache(100);
  cache.put(place(0), limits(10, 100), batches(0, 0, 40));
  cache.put(place(1), limits(10, 100), batches(1, 1, 40));
  ASSERT_NE(cache.find(place(0), limits(10, 100)), nullptr);
  cache.put(place(2), limits(10, 100), batches(2, 2, 40));
  EXPECT_EQ(cache.bytes(), 80U);
  EXPECT_NE(cache.find(place(0), limits(10, 100)), nullptr);
  EXPECT_EQ(cache.find(place(1), limits(10, 100)), nullptr);
  cache.put(place(3), limits(10, 100), batches(3, 3, 51));
  EXPECT_EQ(cache.find(place(3), limits(10, 100)), nullptr) << "would be half of it";
  cache.put(place(0), limits(10, 100), batches(0, 1, 30));
  EXPECT_EQ(cache.bytes(), 70U);
}

}  // namespace
}  // namespace polylog::broker
