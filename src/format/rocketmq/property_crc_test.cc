#include "format/rocketmq/property_crc.h"

#include <gtest/gtest.h>

#include "format/rocketmq/check_values.h"

namespace polylog::format::rocketmq {
namespace {

using check::Bytes;

Bytes with_crc(std::string properties) {
  Message message = check::message();
  EXPECT_TRUE(add_property_crc_room(properties));
  message.properties = properties;
  Bytes bytes;
  EXPECT_TRUE(encode(message, bytes));
  patch_property_crc(bytes);
  return bytes;
}

TEST(PropertyCrcs, have_the_published_digits) {
  const Bytes bytes = with_crc(std::string(check::properties));
  ASSERT_EQ(bytes.size(), 185U);
  EXPECT_EQ(as_text(bytes).substr(165),
            "__CRC32#\x01"
            "0134378211\x02");
  EXPECT_EQ(check_property_crc(bytes), PropertyCrc::good);
}

TEST(PropertyCrcs, missing_separator_is_put_in_before) {
  std::string properties(check::properties);
  properties.pop_back();
  EXPECT_EQ(with_crc(properties), with_crc(std::string(check::properties)));
}

TEST(PropertyCrcs, sent_by_a_client_are_dropped) {
  EXPECT_EQ(with_crc("__CRC32#\x01"
                     "1\x02" +
                     std::string(check::properties)),
            with_crc(std::string(check::properties)));
}

TEST(PropertyCrcs, every_flipped_bit_is_seen) {
  const Bytes good = with_crc(
      "a\x01"
      "b\x02");
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes bad = good;
      bad[i] = static_cast<std::uint8_t>(bad[i] ^ 1 << bit);
      ASSERT_NE(check_property_crc(bad), PropertyCrc::good) << i;
    }
  }
}

TEST(PropertyCrcs, record_without_one_is_known) {
  Bytes bytes;
  ASSERT_TRUE(encode(check::message(), bytes));
  EXPECT_EQ(check_property_crc(bytes), PropertyCrc::absent);
  EXPECT_EQ(check_property_crc({}), PropertyCrc::absent);
}

TEST(PropertyCrcs, room_counts_against_the_limit) {
  std::string properties = "n\x01" + std::string(properties_bytes_max - 23, 'v') + "\x02";
  ASSERT_TRUE(add_property_crc_room(properties));
  EXPECT_EQ(properties.size(), properties_bytes_max);
  properties = "n\x01" + std::string(properties_bytes_max - 22, 'v') + "\x02";
  const std::string before = properties;
  EXPECT_EQ(add_property_crc_room(properties).error().code, Errc::too_large);
  EXPECT_EQ(properties, before);
}

TEST(PropertyCrc, room_is_added_where_it_fits_and_only_there) {
  std::string fits(properties_bytes_max - property_crc_bytes, 'p');
  EXPECT_TRUE(append_property_crc_room(fits));
  EXPECT_EQ(fits.size(), properties_bytes_max);
  std::string full(properties_bytes_max - property_crc_bytes + 1, 'p');
  EXPECT_FALSE(append_property_crc_room(full));
  EXPECT_EQ(full.size(), properties_bytes_max - property_crc_bytes + 1);
}

TEST(PropertyCrc, a_record_says_whether_it_has_room) {
  std::string properties;
  ASSERT_TRUE(append_property_crc_room(properties));
  Message message;
  message.topic = "t";
  message.properties = properties;
  std::vector<std::uint8_t> with, without;
  ASSERT_TRUE(encode(message, with));
  message.properties = {};
  ASSERT_TRUE(encode(message, without));
  EXPECT_TRUE(has_property_crc_room(with));
  EXPECT_FALSE(has_property_crc_room(without));
  patch_property_crc(with);
  EXPECT_EQ(check_property_crc(with), PropertyCrc::good);
  with[20] ^= 1;
  EXPECT_EQ(check_property_crc(with), PropertyCrc::bad);
}

}  // namespace
}  // namespace polylog::format::rocketmq
