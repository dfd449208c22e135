#include "format/rocketmq/consume_queue.h"

#include <gtest/gtest.h>

#include <limits>

#include "format/rocketmq/check_values.h"
#include "format/rocketmq/consume_queue_ext.h"

namespace polylog::format::rocketmq {
namespace {

using check::Bytes;
using check::from_hex;

Bytes encoded(const QueueEntry& entry) {
  Bytes bytes(queue_entry_bytes);
  encode_entry(entry, bytes.data());
  return bytes;
}

TEST(QueueEntries, have_the_published_bytes) {
  EXPECT_EQ(encoded({0, 165, tags_code("TagA")}),
            from_hex("0000000000000000000000a5000000000027a807"));
  EXPECT_EQ(encoded({0, 165, tags_code("order-created")}),
            from_hex("0000000000000000000000a5ffffffffe897bb69"));
}

TEST(QueueEntries, decode_what_is_encoded) {
  for (const QueueEntry& entry :
       {QueueEntry{}, QueueEntry{0x0123456789abcdef, 0x76543210, -1}, filler_entry}) {
    EXPECT_EQ(decode_entry(encoded(entry).data()), entry);
  }
}

TEST(QueueEntries, zeros_and_negative_numbers_are_not_valid_and_filler_is) {
  EXPECT_FALSE(QueueEntry{}.valid());
  EXPECT_FALSE((QueueEntry{0, 0, 5}).valid());
  EXPECT_FALSE((QueueEntry{-1, 165, 0}).valid());
  EXPECT_FALSE((QueueEntry{0, -165, 0}).valid());
  EXPECT_TRUE((QueueEntry{0, 1, 0}).valid());
  EXPECT_TRUE(filler_entry.valid());
  EXPECT_TRUE(filler_entry.filler());
  EXPECT_FALSE((QueueEntry{0, 165, 0}).filler());
  EXPECT_EQ((QueueEntry{100, 165, 0}).end(), 265);
}

TEST(ExtUnits, are_20_bytes_and_the_bit_map) {
  const Bytes bits{0x01, 0x80};
  Bytes bytes;
  ASSERT_TRUE(encode_ext_unit({-1, 1'700'000'000'123, bits}, bytes));
  EXPECT_EQ(bytes, from_hex("0016ffffffffffffffff0000018bcfe5687b00020180"));
  const auto unit = parse_ext_unit(bytes);
  ASSERT_TRUE(unit && *unit);
  EXPECT_EQ((*unit)->tags_code, -1);
  EXPECT_EQ((*unit)->store_timestamp, 1'700'000'000'123);
  EXPECT_EQ(Bytes((*unit)->bit_map.begin(), (*unit)->bit_map.end()), bits);
}

TEST(ExtUnits, of_32767_bytes_fit_and_of_one_more_do_not) {
  const Bytes bits(ext_unit_bytes_max - ext_unit_bytes_min + 1);
  Bytes bytes;
  ASSERT_TRUE(encode_ext_unit({0, 0, ByteView(bits).subspan(1)}, bytes));
  EXPECT_EQ(bytes.size(), ext_unit_bytes_max);
  ASSERT_TRUE(parse_ext_unit(bytes).value());
  EXPECT_EQ(encode_ext_unit({0, 0, bits}, bytes).error().code, Errc::too_large);
  EXPECT_EQ(bytes.size(), ext_unit_bytes_max);
}

TEST(ExtUnits, end_with_the_mark_with_zeros_or_with_the_file) {
  for (const char* hex : {"", "00", "001400", "ffff0000", "00000000", "ffff00000000000000000000"}) {
    const auto unit = parse_ext_unit(from_hex(hex));
    ASSERT_TRUE(unit) << hex;
    EXPECT_FALSE(*unit) << hex;
  }
}

TEST(ExtUnits, with_contradicting_sizes_are_corrupt) {
  Bytes good;
  ASSERT_TRUE(encode_ext_unit({7, 8, from_hex("0102")}, good));
  for (const int size : {-2, 1, 19, 21, 23, 32767}) {
    Bytes bad = good;
    store_big(bad.data(), static_cast<std::int16_t>(size));
    EXPECT_EQ(parse_ext_unit(bad).error().code, Errc::corrupt) << size;
  }
  for (const int size : {-1, 0, 1, 3, 32767}) {
    Bytes bad = good;
    store_big(bad.data() + 18, static_cast<std::int16_t>(size));
    EXPECT_EQ(parse_ext_unit(bad).error().code, Errc::corrupt) << size;
  }
}

TEST(ExtUnits, leave_room_for_the_end_mark) {
  EXPECT_TRUE(ext_unit_fits(22, 26));
  EXPECT_FALSE(ext_unit_fits(22, 25));
}

TEST(ExtAddresses, lie_below_every_hash) {
  constexpr std::int64_t hash_min = std::numeric_limits<std::int32_t>::min();
  EXPECT_FALSE(is_ext_address(hash_min));
  EXPECT_TRUE(is_ext_address(hash_min - 1));
  EXPECT_EQ(to_ext_address(0), std::numeric_limits<std::int64_t>::min());
  for (const std::int64_t position : {std::int64_t{0}, std::int64_t{22}, std::int64_t{1} << 50}) {
    EXPECT_TRUE(is_ext_address(to_ext_address(position)));
    EXPECT_EQ(from_ext_address(to_ext_address(position)), position);
  }
}

}  // namespace
}  // namespace polylog::format::rocketmq
