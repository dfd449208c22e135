#include "bytes/endian.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace polylog {
namespace {

template <typename T>
void expect_round_trip(T value) {
  std::array<std::uint8_t, 9> memory{};
  store_big(memory.data() + 1, value);  // odd address: alignment must not matter
  EXPECT_EQ(load_big<T>(memory.data() + 1), value);
}

TEST(Endian, big_puts_the_highest_byte_first) {
  std::array<std::uint8_t, 4> memory{};
  store_big(memory.data(), std::int32_t{0x01020304});
  EXPECT_EQ(memory, (std::array<std::uint8_t, 4>{1, 2, 3, 4}));
  EXPECT_EQ(load_big<std::uint32_t>(memory.data()), 0x01020304U);
  EXPECT_EQ(load_little<std::uint32_t>(memory.data()), 0x04030201U);
}

TEST(Endian, negative_numbers_are_twos_complement) {
  std::array<std::uint8_t, 2> memory{};
  store_big(memory.data(), std::int16_t{-2});
  EXPECT_EQ(memory, (std::array<std::uint8_t, 2>{0xff, 0xfe}));
  EXPECT_EQ(load_big<std::int16_t>(memory.data()), -2);
  EXPECT_EQ(load_big<std::uint16_t>(memory.data()), 0xfffe);
}

TEST(Endian, extremes_survive_at_every_width) {
  expect_round_trip(std::numeric_limits<std::int8_t>::min());
  expect_round_trip(std::numeric_limits<std::uint8_t>::max());
  expect_round_trip(std::numeric_limits<std::int16_t>::min());
  expect_round_trip(std::numeric_limits<std::int32_t>::min());
  expect_round_trip(std::numeric_limits<std::int64_t>::min());
  expect_round_trip(std::numeric_limits<std::int64_t>::max());
  expect_round_trip(std::numeric_limits<std::uint64_t>::max());
}

}  // namespace
}  // namespace polylog
