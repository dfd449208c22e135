#include "format/rocketmq/properties.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "format/rocketmq/check_values.h"

namespace polylog::format::rocketmq {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs pairs_of(std::string_view text) {
  Pairs pairs;
  for_each_property(text, [&](std::string_view name, std::string_view value) {
    pairs.emplace_back(name, value);
    return true;
  });
  return pairs;
}

TEST(Properties, trailing_separator_may_be_there_or_missing) {
  const Pairs expected{{"TAGS", "TagA"}, {"KEYS", "K1"}};
  EXPECT_EQ(pairs_of("TAGS\x01TagA\x02KEYS\x01K1\x02"), expected);
  EXPECT_EQ(pairs_of("TAGS\x01TagA\x02KEYS\x01K1"), expected);
  EXPECT_TRUE(pairs_of("").empty());
}

TEST(Properties, pieces_with_an_empty_part_do_not_count) {
  EXPECT_EQ(pairs_of("\x02\x02"
                     "a\x02"
                     "\x01"
                     "b\x02"
                     "c\x01\x02"
                     "d\x01"
                     "e\x02\x01\x02"),
            (Pairs{{"d", "e"}}));
}

TEST(Properties, only_the_first_name_separator_of_a_piece_cuts) {
  EXPECT_EQ(pairs_of("a\x01"
                     "b\x01"
                     "c\x02"),
            (Pairs{{"a",
                    "b\x01"
                    "c"}}));
}

TEST(Properties, visiting_stops_when_told_to) {
  int seen = 0;
  for_each_property(check::properties, [&](std::string_view, std::string_view) {
    ++seen;
    return false;
  });
  EXPECT_EQ(seen, 1);
}

TEST(Properties, last_of_a_name_is_found) {
  EXPECT_EQ(find_property(check::properties, property::tags), "TagA");
  EXPECT_EQ(find_property(check::properties, property::keys), "K1");
  EXPECT_EQ(find_property(check::properties, property::unique_key), check::unique_key);
  EXPECT_EQ(find_property("a\x01x\x02"
                          "a\x01y\x02",
                          "a"),
            "y");
  // The later one is empty and does not count.
  EXPECT_EQ(find_property("a\x01x\x02"
                          "a\x01\x02",
                          "a"),
            "x");
  EXPECT_EQ(find_property("a\x01x", "a"), "x");
}

TEST(Properties, what_is_not_there_is_not_found) {
  for (const char* name : {"", "K", "KEY", "KEYSS", "TagA", "AGS", "TAGS\x01TagA"}) {
    EXPECT_EQ(find_property(check::properties, name), std::nullopt) << name;
  }
  EXPECT_EQ(find_property("", "a"), std::nullopt);
  EXPECT_EQ(find_property("a", "a"), std::nullopt);
  EXPECT_EQ(find_property("a\x01", "a"), std::nullopt);
}

TEST(Properties, finding_agrees_with_visiting_on_every_short_text) {
  // All texts of up to seven characters over the two separators and two letters.
  constexpr std::string_view alphabet =
      "\x01\x02"
      "ab";
  for (std::size_t size = 0; size <= 7; ++size) {
    for (std::size_t code = 0; code < std::size_t{1} << (2 * size); ++code) {
      std::string text;
      for (std::size_t i = 0; i < size; ++i) text += alphabet[code >> (2 * i) & 3];
      for (const std::string_view name : {"a", "ab"}) {
        std::optional<std::string_view> expected;
        for_each_property(text, [&](std::string_view found, std::string_view value) {
          if (found == name) expected = value;
          return true;
        });
        ASSERT_EQ(find_property(text, name), expected) << size << ' ' << code;
      }
    }
  }
}

TEST(Properties, are_added_in_the_trailing_form) {
  std::string text;
  ASSERT_TRUE(add_property(text, "TAGS", "TagA"));
  ASSERT_TRUE(add_property(text, "KEYS", "K1"));
  EXPECT_EQ(text, "TAGS\x01TagA\x02KEYS\x01K1\x02");
  text.pop_back();
  ASSERT_TRUE(add_property(text, "x", "y"));
  EXPECT_EQ(text, "TAGS\x01TagA\x02KEYS\x01K1\x02x\x01y\x02");
}

TEST(Properties, with_separators_or_empty_parts_are_refused) {
  std::string text;
  for (const auto& [name, value] :
       Pairs{{"", "v"}, {"n", ""}, {"n\x01", "v"}, {"n\x02", "v"}, {"n", "\x01"}, {"n", "v\x02"}}) {
    EXPECT_EQ(add_property(text, name, value).error().code, Errc::invalid);
  }
  EXPECT_TRUE(text.empty());
}

TEST(Properties, reserved_names_are_known) {
  for (const char* name :
       {"KEYS", "TAGS", "1ST_POP_TIME", "WAIT", "__CRC32#", "__transactionId__", "__SHARDINGKEY",
        "UNIQ_KEY", "__KKEY", "__KHDRS", "__KPS", "__NULL", "__RMQ.TRANSIENT.x", "TTL"}) {
    EXPECT_TRUE(is_reserved(name)) << name;
  }
  for (const char* name : {"", "keys", "KEY", "KEYSS", "app", "__K", "zzz", "0"}) {
    EXPECT_FALSE(is_reserved(name)) << name;
  }
}

TEST(ProducerParts, are_five_numbers) {
  const ProducerPart part{ProducerId(4000), 1, 7, 2, 3};
  EXPECT_EQ(to_text(part), "4000:1:7:2:3");
  EXPECT_EQ(parse_producer_part("4000:1:7:2:3").value(), part);
  const ProducerPart none;
  EXPECT_EQ(parse_producer_part(to_text(none)).value(), none);
  const ProducerPart most{ProducerId(std::numeric_limits<std::int64_t>::max()), 32767, 2147483647,
                          2147483646, 2147483647};
  EXPECT_EQ(parse_producer_part(to_text(most)).value(), most);
}

TEST(ProducerParts, of_other_shapes_are_corrupt) {
  for (const char* text : {"",
                           ":",
                           "1:2:3:4",
                           "1:2:3:4:5:",
                           "1:2:3:4:5:6",
                           "01:2:3:0:1",
                           "+1:2:3:0:1",
                           " 1:2:3:0:1",
                           "1:2:3:0:1 ",
                           "1:-0:3:0:1",
                           "-2:0:0:0:1",
                           "1:-2:0:0:1",
                           "1:0:-2:0:1",
                           "1:0:0:-1:1",
                           "1:0:0:1:1",
                           "1:0:0:0:0",
                           "1:32768:0:0:1",
                           "9223372036854775808:0:0:0:1",
                           "1:0:2147483648:0:1",
                           "1;0;0;0;1"}) {
    const auto part = parse_producer_part(text);
    ASSERT_FALSE(part) << text;
    EXPECT_EQ(part.error().code, Errc::corrupt);
  }
}

TEST(JavaHash, has_the_published_check_values) {
  EXPECT_EQ(java_hash(""), 0);
  EXPECT_EQ(java_hash("a"), 97);
  EXPECT_EQ(java_hash("TagA"), 2598919);
  EXPECT_EQ(java_hash("polygenelubricants"), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(java_hash("order-created"), -392709271);
  EXPECT_EQ(java_hash("\xe6\x94\xaf\xe4\xbb\x98"), 823177);
  EXPECT_EQ(java_hash("Aa"), java_hash("BB"));
}

TEST(JavaHash, counts_two_units_beyond_the_bmp) {
  // U+1F600 is D83D DE00.
  EXPECT_EQ(java_hash("\xf0\x9f\x98\x80"), 31 * 0xd83d + 0xde00);
  EXPECT_EQ(java_hash("\xc3\xa4"), 0xe4);
}

TEST(JavaHash, replaces_what_is_not_utf8_as_javas_decoder_does) {
  const auto replaced = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += "\xef\xbf\xbd";
    return java_hash(text);
  };
  EXPECT_EQ(java_hash("\x80"), replaced(1));
  EXPECT_EQ(java_hash("\xc3"), replaced(1));
  EXPECT_EQ(java_hash("\xc0\x80"), replaced(2));
  EXPECT_EQ(java_hash("\xe4\xb8"), replaced(1));
  EXPECT_EQ(java_hash("\xe0\x80\x80"), replaced(3));
  EXPECT_EQ(java_hash("\xed\xa0\x80"), replaced(1));
  EXPECT_EQ(java_hash("\xf0\x9f\x98"), replaced(1));
  EXPECT_EQ(java_hash("\xf4\x90\x80\x80"), replaced(4));
  EXPECT_EQ(java_hash("\xff\xfe"), replaced(2));
}

TEST(TagsCodes, are_sign_extended_hashes) {
  EXPECT_EQ(tags_code(""), 0);
  EXPECT_EQ(tags_code("TagA"), 0x27a807);
  EXPECT_EQ(static_cast<std::uint64_t>(tags_code("order-created")), 0xffffffffe897bb69U);
}

}  // namespace
}  // namespace polylog::format::rocketmq
