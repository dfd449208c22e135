#include "base/ids.h"

#include <gtest/gtest.h>

#include <set>
#include <type_traits>

namespace polylog {
namespace {

static_assert(!std::is_convertible_v<Offset, LogPosition>);
static_assert(!std::is_convertible_v<std::int64_t, Offset>);
static_assert(!std::is_constructible_v<Offset, LogPosition>);

constexpr Uuid rising{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};

TEST(Strong, differences_are_counts_and_sums_are_ids) {
  EXPECT_EQ(Offset(17) - Offset(5), 12);
  EXPECT_EQ(Offset(5) + 12, Offset(17));
  EXPECT_LT(Offset(5), Offset(17));
  EXPECT_LT(no_epoch, LeaderEpoch(0));
}

TEST(OffsetRange, is_empty_when_it_ends_where_it_starts) {
  EXPECT_TRUE((OffsetRange{Offset(3), Offset(3)}.empty()));
  EXPECT_FALSE((OffsetRange{Offset(3), Offset(4)}.empty()));
}

TEST(Uuid, zero_is_twenty_two_letters_a) {
  EXPECT_EQ(Uuid{}.to_string(), "AAAAAAAAAAAAAAAAAAAAAA");
  EXPECT_TRUE(Uuid{}.is_zero());
}

TEST(Uuid, text_is_url_safe_base64_without_padding) {
  EXPECT_EQ(rising.to_string(), "AAECAwQFBgcICQoLDA0ODw");
  Uuid ones;
  ones.bytes.fill(0xff);
  EXPECT_EQ(ones.to_string(), "_____________________w");
  Uuid mixed;
  mixed.bytes.fill(0xfb);
  EXPECT_EQ(mixed.to_string().substr(0, 4), "-_v7");
}

TEST(Uuid, text_is_read_back) {
  EXPECT_EQ(Uuid::parse("AAECAwQFBgcICQoLDA0ODw"), rising);
  for (int i = 0; i < 100; ++i) {
    const Uuid id = Uuid::random();
    EXPECT_EQ(Uuid::parse(id.to_string()), id);
  }
}

TEST(Uuid, other_text_is_refused) {
  for (const char* text :
       {"", "AAECAwQFBgcICQoLDA0OD", "AAECAwQFBgcICQoLDA0ODw=", "AAECAwQFBgcICQoLDA0ODw==",
        "AAECAwQFBgcICQoLDA0O+w", "AAECAwQFBgcICQoLDA0O/w", "AAECAwQFBgcICQoLDA0OD ",
        "00010203-0405-0607-0809-0a0b0c0d0e0f"}) {
    const auto id = Uuid::parse(text);
    ASSERT_FALSE(id) << text;
    EXPECT_EQ(id.error().code, Errc::invalid);
  }
}

TEST(Uuid, text_whose_last_character_carries_stray_bits_is_refused) {
  EXPECT_TRUE(Uuid::parse("AAAAAAAAAAAAAAAAAAAAAQ"));
  EXPECT_FALSE(Uuid::parse("AAAAAAAAAAAAAAAAAAAAAR"));
}

TEST(Uuid, random_ids_are_distinct_version_four_and_never_look_like_an_option) {
  std::set<Uuid> seen;
  for (int i = 0; i < 10'000; ++i) {
    const Uuid id = Uuid::random();
    EXPECT_TRUE(seen.insert(id).second);
    EXPECT_EQ(id.bytes[6] & 0xf0, 0x40);
    EXPECT_EQ(id.bytes[8] & 0xc0, 0x80);
    EXPECT_NE(id.to_string().front(), '-');
  }
}

TEST(TopicPartition, orders_by_topic_then_number_and_hashes_alike_when_equal) {
  const TopicPartition a{"a", 2};
  EXPECT_LT(a, (TopicPartition{"a", 10}));
  EXPECT_LT(a, (TopicPartition{"b", 0}));
  EXPECT_EQ(std::hash<TopicPartition>()(a), std::hash<TopicPartition>()(TopicPartition{"a", 2}));
  EXPECT_NE(std::hash<TopicPartition>()(a), std::hash<TopicPartition>()(TopicPartition{"a", 3}));
}

}  // namespace
}  // namespace polylog
