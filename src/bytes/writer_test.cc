#include "bytes/writer.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

#include "bytes/reader.h"

namespace polylog {
namespace {

using Bytes = std::vector<std::uint8_t>;

Slice large(std::uint8_t fill) { return Slice::of(Bytes(4096, fill)); }

TEST(ByteWriter, writes_big_endian) {
  ByteWriter writer;
  writer.i8(-1);
  writer.i16(1);
  writer.u32(0x01020304);
  writer.text("ab");
  EXPECT_EQ(writer.size(), 9U);
  EXPECT_EQ(writer.take_bytes(), (Bytes{0xff, 0, 1, 1, 2, 3, 4, 'a', 'b'}));
}

// Kafka log format, varints of records: the published examples.
TEST(ByteWriter, varints_take_the_published_bytes) {
  const std::vector<std::pair<std::int32_t, Bytes>> examples{
      {0, {0x00}},
      {-1, {0x01}},
      {1, {0x02}},
      {63, {0x7e}},
      {-64, {0x7f}},
      {64, {0x80, 0x01}},
      {300, {0xd8, 0x04}},
      {std::numeric_limits<std::int32_t>::max(), {0xfe, 0xff, 0xff, 0xff, 0x0f}},
      {std::numeric_limits<std::int32_t>::min(), {0xff, 0xff, 0xff, 0xff, 0x0f}}};
  for (const auto& [value, bytes] : examples) {
    ByteWriter writer;
    writer.varint(value);
    EXPECT_EQ(writer.take_bytes(), bytes) << value;
  }
}

TEST(ByteWriter, every_varint_is_read_back_and_its_size_is_foretold) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    const auto value = static_cast<std::int64_t>(random() >> (random() % 64));
    const auto narrow = static_cast<std::int32_t>(value);
    const auto plain = static_cast<std::uint32_t>(narrow);
    ByteWriter writer;
    writer.varlong(value);
    writer.varlong(-value);
    writer.varint(narrow);
    const std::size_t before = writer.size();
    writer.unsigned_varint(plain);
    ASSERT_EQ(writer.size() - before, unsigned_varint_size(plain));
    const Bytes bytes = writer.take_bytes();
    ByteReader reader(bytes);
    ASSERT_EQ(reader.varlong(), value);
    ASSERT_EQ(reader.varlong(), -value);
    ASSERT_EQ(reader.varint(), narrow);
    ASSERT_EQ(reader.unsigned_varint(), plain);
    ASSERT_TRUE(reader.ok());
    ASSERT_EQ(reader.remaining(), 0U);
  }
}

TEST(ByteWriter, a_length_can_be_filled_in_afterwards) {
  ByteWriter writer;
  writer.i8(7);
  writer.i32(0);
  writer.text("abc");
  writer.patch_i32(1, 3);
  EXPECT_EQ(writer.take_bytes(), (Bytes{7, 0, 0, 0, 3, 'a', 'b', 'c'}));
}

TEST(ByteWriter, small_slices_are_copied_and_large_ones_spliced) {
  ByteWriter writer;
  writer.slice(Slice::copy_of(as_bytes("small")));
  writer.slice(large(1));
  EXPECT_EQ(writer.own_bytes().size(), 5U);
  EXPECT_EQ(writer.size(), 5U + 4096U);
  const Chain chain = writer.take();
  ASSERT_EQ(chain.splices.size(), 1U);
  EXPECT_EQ(chain.splices[0].at, 5U);
}

TEST(ByteWriter, is_empty_again_after_its_chain_was_taken) {
  ByteWriter writer;
  writer.i32(1);
  writer.slice(large(1));
  writer.take();
  EXPECT_EQ(writer.size(), 0U);
  writer.i8(1);
  EXPECT_EQ(writer.size(), 1U);
}

TEST(Chain, pieces_come_in_order_without_empty_ones) {
  ByteWriter writer;
  const Slice first = large(1);
  writer.slice(first);
  writer.slice(large(2));
  writer.text("middle");
  writer.slice(large(3));
  const Chain chain = writer.take();
  std::vector<ByteView> pieces;
  chain.for_each([&pieces](ByteView piece) { pieces.push_back(piece); });
  ASSERT_EQ(pieces.size(), 4U);
  EXPECT_EQ(pieces[0].data(), first.data());  // not copied
  EXPECT_EQ(pieces[1][0], 2);
  EXPECT_EQ(as_text(pieces[2]), "middle");
  EXPECT_EQ(pieces[3][0], 3);
}

TEST(Chain, flattened_it_is_the_pieces_one_after_another) {
  ByteWriter writer;
  writer.text("head");
  writer.slice(large(9));
  writer.text("tail");
  const Chain chain = writer.take();
  Bytes expected = to_vector(as_bytes("head"));
  expected.insert(expected.end(), 4096, 9);
  for (const char c : {'t', 'a', 'i', 'l'}) expected.push_back(static_cast<std::uint8_t>(c));
  EXPECT_EQ(chain.flatten(), expected);
  EXPECT_EQ(chain.size(), expected.size());
}

TEST(ByteWriterDeathTest, bytes_with_a_splice_in_them_cannot_be_taken_as_one) {
  ByteWriter writer;
  writer.slice(large(1));
  EXPECT_DEATH(writer.take_bytes(), "assertion failed");
  EXPECT_DEATH(writer.patch_i32(0, 1), "assertion failed");
}

}  // namespace
}  // namespace polylog
