#include "format/rocketmq/index_file.h"

#include <gtest/gtest.h>

#include <limits>

#include "format/rocketmq/check_values.h"

namespace polylog::format::rocketmq {
namespace {

using check::Bytes;
using check::from_hex;

std::vector<std::string> keys_of(std::string_view properties) {
  std::vector<std::string> keys;
  for_each_key(properties, [&](std::string_view key) { keys.emplace_back(key); });
  return keys;
}

TEST(IndexKeys, hash_to_the_published_slots) {
  const std::int32_t unique = index_key_hash("TopicTest", check::unique_key);
  EXPECT_EQ(unique, 1617720788);
  EXPECT_EQ(index_slot_of(unique, index_slots_default), 2720788);
  EXPECT_EQ(index_slot_at(2720788), 10883192U);
  const std::int32_t key = index_key_hash("TopicTest", "K1");
  EXPECT_EQ(key, 2745032);
  EXPECT_EQ(index_slot_at(index_slot_of(key, index_slots_default)), 10980168U);
}

TEST(IndexKeys, are_hashed_as_one_text) {
  for (const auto& [topic, key] :
       {std::pair{"a", "b"}, std::pair{"", ""}, std::pair{"\xe6\x94\xaf", "\xf0\x9f\x98\x80"}}) {
    const std::int32_t hash = java_hash(std::string(topic) + "#" + key);
    EXPECT_EQ(index_key_hash(topic, key), hash < 0 ? -hash : hash);
  }
  EXPECT_EQ(index_key_hash("Aa", "k"), index_key_hash("BB", "k"));
}

TEST(IndexKeys, smallest_hash_becomes_0) {
  const std::string key = R"(AEWEV^IL)";
  ASSERT_EQ(java_hash("#" + key), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(index_key_hash("", key), 0);
}

TEST(IndexKeys, of_a_message_are_its_id_and_then_its_words) {
  EXPECT_EQ(keys_of(check::properties),
            (std::vector<std::string>{std::string(check::unique_key), "K1"}));
  EXPECT_EQ(keys_of("KEYS\x01 a  b \x02"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(keys_of("KEYS\x01 \x02"), std::vector<std::string>{});
  EXPECT_EQ(keys_of("TAGS\x01x\x02"), std::vector<std::string>{});
}

TEST(IndexFiles, header_and_entries_decode_what_is_encoded) {
  const IndexHeader header{1'700'000'000'123, 1'700'000'000'999, 165, 330, 2, 3};
  Bytes bytes(index_header_bytes);
  encode_index_header(header, bytes.data());
  EXPECT_EQ(bytes, from_hex("0000018bcfe5687b0000018bcfe56be700000000000000a5"
                            "000000000000014a0000000200000003"));
  EXPECT_EQ(decode_index_header(bytes.data()), header);
  const IndexEntry entry{1617720788, 165, 7, 1};
  bytes.resize(index_entry_bytes);
  encode_index_entry(entry, bytes.data());
  EXPECT_EQ(bytes, from_hex("606c75d400000000000000a50000000700000001"));
  EXPECT_EQ(decode_index_entry(bytes.data()), entry);
}

TEST(IndexFiles, header_is_plausible_within_the_files_bounds) {
  const IndexHeader good{1, 2, 3, 4, 10, 100};
  EXPECT_TRUE(plausible({}, 10, 100));
  EXPECT_TRUE(plausible(good, 10, 100));
  EXPECT_FALSE(plausible(good, 9, 100));
  EXPECT_FALSE(plausible(good, 10, 99));
  EXPECT_FALSE(plausible({-1, 2, 3, 4, 10, 100}, 10, 100));
  EXPECT_FALSE(plausible({1, 2, 3, -4, 10, 100}, 10, 100));
  EXPECT_FALSE(plausible({1, 2, 3, 4, -1, 100}, 10, 100));
  EXPECT_FALSE(plausible({0, 0, 0, 0, 0, 0}, 10, 100));
  EXPECT_FALSE(plausible({1, 2, 3, 4, 10, 10}, 10, 100));
}

TEST(IndexFiles, seconds_are_whole_and_cut_at_both_ends) {
  EXPECT_EQ(index_seconds(0, 1'700'000'000'123), 0);
  EXPECT_EQ(index_seconds(1000, 1999), 0);
  EXPECT_EQ(index_seconds(1000, 2000), 1);
  EXPECT_EQ(index_seconds(2000, 1000), 0);
  EXPECT_EQ(index_seconds(1, std::numeric_limits<std::int64_t>::max()), 2147483647);
  EXPECT_EQ(index_timestamp(1000, 1), 2000);
  EXPECT_EQ(index_timestamp(std::numeric_limits<std::int64_t>::max() - 1, 1),
            std::numeric_limits<std::int64_t>::max());
}

TEST(IndexFiles, slot_content_outside_of_the_file_is_none) {
  EXPECT_EQ(index_previous(0, 5), 0);
  EXPECT_EQ(index_previous(-1, 5), 0);
  EXPECT_EQ(index_previous(4, 5), 4);
  EXPECT_EQ(index_previous(5, 5), 5);  // as the original has it
  EXPECT_EQ(index_previous(6, 5), 0);
}

TEST(IndexFiles, are_named_by_their_time) {
  const std::string name = index_file_name(1'700'000'000'123);
  EXPECT_TRUE(is_index_file_name(name)) << name;
  EXPECT_EQ(name.substr(14), "123");
  EXPECT_EQ(name.substr(0, 6), "202311");
  EXPECT_EQ(name.substr(10, 4).substr(2), "20");
  EXPECT_LT(name, index_file_name(1'700'000'000'124));
  for (const char* other : {"", "2023111422132012", "202311142213201233", "2023111422132012a"}) {
    EXPECT_FALSE(is_index_file_name(other)) << other;
  }
}

}  // namespace
}  // namespace polylog::format::rocketmq
