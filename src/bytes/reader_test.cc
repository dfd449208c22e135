#include "bytes/reader.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace polylog {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::int32_t read_varint(const Bytes& bytes) {
  ByteReader reader(bytes);
  const std::int32_t value = reader.varint();
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.remaining(), 0U);
  return value;
}

bool varint_fails(const Bytes& bytes) {
  ByteReader reader(bytes);
  return reader.varint() == 0 && !reader.ok();
}

bool varlong_fails(const Bytes& bytes) {
  ByteReader reader(bytes);
  return reader.varlong() == 0 && !reader.ok();
}

TEST(ByteReader, reads_front_to_back) {
  const Bytes bytes{0x01, 0xff, 0xfe, 0, 0, 0, 5, 1, 0, 0, 0, 'a', 'b', 9};
  ByteReader reader(bytes);
  EXPECT_EQ(reader.i8(), 1);
  EXPECT_EQ(reader.i16(), -2);
  EXPECT_EQ(reader.i32(), 5);
  EXPECT_EQ(reader.little<std::uint32_t>(), 1U);
  EXPECT_EQ(reader.text(2), "ab");
  EXPECT_EQ(reader.position(), 13U);
  EXPECT_EQ(reader.remaining(), 1U);
  EXPECT_EQ(reader.u8(), 9);
  EXPECT_TRUE(reader.ok());
}

TEST(ByteReader, a_failure_sticks_and_consumes_nothing_more) {
  const Bytes bytes{1, 2, 3};
  ByteReader reader(bytes);
  EXPECT_EQ(reader.i32(), 0);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.u8(), 0);
  EXPECT_EQ(reader.position(), 0U);
  EXPECT_EQ(reader.remaining(), 0U);
  EXPECT_TRUE(reader.bytes(0).empty());
}

TEST(ByteReader, a_size_beyond_the_end_gives_no_view) {
  const Bytes bytes{1, 2, 3};
  for (const std::size_t size : {std::size_t{4}, std::numeric_limits<std::size_t>::max()}) {
    ByteReader reader(bytes);
    reader.skip(1);
    EXPECT_TRUE(reader.bytes(size).empty());
    EXPECT_FALSE(reader.ok());
  }
}

TEST(ByteReader, the_empty_input_can_be_read_to_its_end) {
  ByteReader reader;
  EXPECT_TRUE(reader.bytes(0).empty());
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.u8(), 0);
  EXPECT_FALSE(reader.ok());
}

// Kafka log format, varints of records: the published examples.
TEST(ByteReader, varints_are_zigzag) {
  EXPECT_EQ(read_varint({0x00}), 0);
  EXPECT_EQ(read_varint({0x01}), -1);
  EXPECT_EQ(read_varint({0x02}), 1);
  EXPECT_EQ(read_varint({0x7e}), 63);
  EXPECT_EQ(read_varint({0x7f}), -64);
  EXPECT_EQ(read_varint({0x80, 0x01}), 64);
  EXPECT_EQ(read_varint({0xd8, 0x04}), 300);
  EXPECT_EQ(read_varint({0xfe, 0xff, 0xff, 0xff, 0x0f}), 2147483647);
  EXPECT_EQ(read_varint({0xff, 0xff, 0xff, 0xff, 0x0f}), -2147483647 - 1);
}

TEST(ByteReader, unsigned_varints_are_not_zigzag) {
  const Bytes bytes{0x01, 0xac, 0x02, 0xff, 0xff, 0xff, 0xff, 0x0f};
  ByteReader reader(bytes);
  EXPECT_EQ(reader.unsigned_varint(), 1U);
  EXPECT_EQ(reader.unsigned_varint(), 300U);
  EXPECT_EQ(reader.unsigned_varint(), 4294967295U);
  EXPECT_TRUE(reader.ok());
}

TEST(ByteReader, longer_than_needed_varints_within_five_groups_are_accepted) {
  EXPECT_EQ(read_varint({0x82, 0x80, 0x80, 0x80, 0x00}), 1);
}

TEST(ByteReader, a_varint_of_six_groups_or_more_than_32_bits_fails) {
  EXPECT_TRUE(varint_fails({0x80, 0x80, 0x80, 0x80, 0x80, 0x00}));
  EXPECT_TRUE(varint_fails({0xff, 0xff, 0xff, 0xff, 0x10}));
  EXPECT_TRUE(varint_fails({0xff, 0xff, 0xff, 0xff, 0xff}));
}

TEST(ByteReader, a_varint_cut_off_by_the_end_fails_without_moving) {
  EXPECT_TRUE(varint_fails({}));
  EXPECT_TRUE(varint_fails({0x80}));
  const Bytes bytes{7, 0x80, 0x80};
  ByteReader reader(bytes);
  reader.u8();
  reader.varlong();
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.position(), 1U);
}

TEST(ByteReader, varlongs_take_ten_groups_and_no_more) {
  const Bytes bytes{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
                    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
  ByteReader reader(bytes);
  EXPECT_EQ(reader.varlong(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(reader.varlong(), std::numeric_limits<std::int64_t>::min());
  EXPECT_TRUE(reader.ok());
  EXPECT_TRUE(varlong_fails({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}));
  EXPECT_TRUE(varlong_fails({0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0}));
}

TEST(ByteReader, a_count_passes_only_if_the_rest_can_hold_that_many) {
  const Bytes bytes(10);
  EXPECT_EQ(ByteReader(bytes).count(3, 3), 3U);
  EXPECT_EQ(ByteReader(bytes).count(0, 3), 0U);
  for (const std::int64_t claimed :
       {std::int64_t{4}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min()}) {
    ByteReader reader(bytes);
    EXPECT_EQ(reader.count(claimed, 3), 0U) << claimed;
    EXPECT_FALSE(reader.ok()) << claimed;
  }
}

}  // namespace
}  // namespace polylog
