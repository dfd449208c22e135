#include "base/crc.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string_view>
#include <vector>

namespace polylog {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes text(std::string_view characters) { return {characters.begin(), characters.end()}; }

// The definition, one bit at a time, to compare the folded one with.
std::uint32_t crc_bitwise(const Bytes& bytes, std::uint32_t polynomial) {
  std::uint32_t crc = 0xffffffffU;
  for (const std::uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? polynomial : 0);
  }
  return ~crc;
}

std::uint32_t crc32c_bitwise(const Bytes& bytes) { return crc_bitwise(bytes, 0x82f63b78U); }

TEST(Crc32c, has_the_published_check_value) { EXPECT_EQ(crc32c(text("123456789")), 0xe3069283U); }

TEST(Crc32c, agrees_with_the_iscsi_examples) {
  // RFC 3720, appendix B.4.
  EXPECT_EQ(crc32c(Bytes(32, 0x00)), 0x8a9136aaU);
  EXPECT_EQ(crc32c(Bytes(32, 0xff)), 0x62a8ab43U);
  Bytes rising(32);
  std::iota(rising.begin(), rising.end(), std::uint8_t{0});
  EXPECT_EQ(crc32c(rising), 0x46dd794eU);
}

TEST(Crc32c, of_nothing_is_zero) { EXPECT_EQ(crc32c({}), 0U); }

TEST(Crc32c, agrees_with_the_definition_at_every_short_length_and_alignment) {
  Bytes bytes(300);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(i * 37 + (i >> 3));
  }
  for (std::size_t start = 0; start < 17; ++start) {
    for (std::size_t size = 0; start + size <= bytes.size(); ++size) {
      const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(start);
      const Bytes piece(from, from + static_cast<std::ptrdiff_t>(size));
      ASSERT_EQ(crc32c(std::span(bytes).subspan(start, size)), crc32c_bitwise(piece))
          << start << " + " << size;
    }
  }
}

TEST(Crc32c, continues_over_any_cut) {
  const Bytes whole = text("the partition is not the log");
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    const std::span bytes(whole);
    EXPECT_EQ(crc32c_extend(crc32c(bytes.first(cut)), bytes.subspan(cut)), crc32c(bytes));
  }
}

TEST(Crc32, has_the_published_check_value) {
  EXPECT_EQ(crc32(text("123456789")), 0xcbf43926U);
  EXPECT_EQ(crc32(text("a")), 0xe8b7be43U);
  EXPECT_EQ(crc32({}), 0U);
}

TEST(Crc32, agrees_with_the_definition_at_every_short_length_and_cut) {
  Bytes bytes(300);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(i * 37 + (i >> 3));
  }
  const std::span all(bytes);
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    const Bytes piece(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    ASSERT_EQ(crc32(piece), crc_bitwise(piece, 0xedb88320U)) << size;
    ASSERT_EQ(crc32_extend(crc32(piece), all.subspan(size)), crc32(all)) << size;
  }
}

}  // namespace
}  // namespace polylog
