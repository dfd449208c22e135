#include "cli/partitioner.h"

#include <gtest/gtest.h>

#include <string_view>

namespace polylog::cli {
namespace {

// What Kafka's own test of its hash expects.
TEST(Murmur2, hashes_as_kafka_does) {
  EXPECT_EQ(murmur2(as_bytes("21")), -973932308);
  EXPECT_EQ(murmur2(as_bytes("foobar")), -790332482);
  EXPECT_EQ(murmur2(as_bytes("a-little-bit-long-string")), -985981536);
  EXPECT_EQ(murmur2(as_bytes("a-little-bit-longer-string")), -1486304829);
  EXPECT_EQ(murmur2(as_bytes("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8")), -58897971);
  EXPECT_EQ(murmur2(as_bytes("abc")), 479470107);
}

TEST(Partitioner, a_key_always_goes_to_the_partition_of_its_hash) {
  Partitioner partitioner(7);
  // (-973932308 & 0x7fffffff) % 7 and (479470107 & 0x7fffffff) % 7.
  EXPECT_EQ(partitioner.choose(as_bytes("21")), 1173551340 % 7);
  EXPECT_EQ(partitioner.choose(as_bytes("abc")), 479470107 % 7);
  EXPECT_EQ(partitioner.choose(as_bytes("21")), 1173551340 % 7);
}

TEST(Partitioner, an_empty_key_is_a_key) {
  Partitioner partitioner(1000);
  EXPECT_EQ(partitioner.choose(ByteView()), partitioner.choose(ByteView()));
}

TEST(Partitioner, records_without_a_key_take_turns) {
  Partitioner partitioner(3);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(partitioner.choose(std::nullopt), i % 3);
}

}  // namespace
}  // namespace polylog::cli
