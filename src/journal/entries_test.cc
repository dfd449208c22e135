#include "journal/entries.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace polylog::journal {
namespace {

std::vector<std::uint8_t> entry_of(EntryKind kind, std::uint64_t epoch, std::uint64_t sequence,
                                   std::string_view payload) {
  std::vector<std::uint8_t> whole(entry_head_bytes + payload.size());
  const ByteView bytes = as_bytes(payload);
  std::copy(bytes.begin(), bytes.end(), whole.begin() + entry_head_bytes);
  encode_entry_head(whole, {kind, false, epoch, sequence, 7, 4711});
  return whole;
}

TEST(JournalEntries, an_entry_reads_back) {
  const auto whole = entry_of(EntryKind::write, 3, 5, "some bytes");
  const auto entry = decode_entry(whole, 3, 5);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->kind, EntryKind::write);
  EXPECT_EQ(entry->generation, 7U);
  EXPECT_EQ(entry->position, 4711U);
  EXPECT_EQ(as_text(entry->payload), "some bytes");
  EXPECT_EQ(entry->size, whole.size());
  EXPECT_EQ(entry->sequence, 5U);
  EXPECT_FALSE(entry->first);
}

TEST(JournalEntries, the_first_entry_of_a_write_says_so) {
  std::vector<std::uint8_t> whole(entry_head_bytes);
  encode_entry_head(whole, {EntryKind::settled, true, 3, 5, 7, 0});
  EXPECT_EQ(whole[25], 1);
  EXPECT_TRUE(decode_entry(whole, 3)->first);
}

TEST(JournalEntries, the_epoch_of_the_other_area_reads_back) {
  EXPECT_EQ(decode_epoch(encode_epoch(42)), 42U);
  EXPECT_FALSE(decode_epoch(as_bytes("seven b")));
  EXPECT_FALSE(decode_epoch(as_bytes("nine byte")));
}

// Places and sizes of docs/formats/journal.md.
TEST(JournalEntries, the_head_lies_as_the_page_says) {
  const auto whole = entry_of(EntryKind::settled, 0x0102030405060708, 0x1112131415161718, "x");
  const std::vector<std::uint8_t> head(whole.begin() + 8, whole.begin() + 40);
  const std::vector<std::uint8_t> expected{1,    2,    3,    4,    5,    6, 7, 8, 0x11, 0x12, 0x13,
                                           0x14, 0x15, 0x16, 0x17, 0x18, 3, 0, 0, 0,    0,    0,
                                           0,    7,    0,    0,    0,    0, 0, 0, 0x12, 0x67};
  EXPECT_EQ(head, expected);
  EXPECT_EQ(std::vector<std::uint8_t>(whole.begin(), whole.begin() + 4),
            (std::vector<std::uint8_t>{0, 0, 0, 33}));
}

TEST(JournalEntries, another_epoch_or_sequence_does_not_count) {
  const auto whole = entry_of(EntryKind::write, 3, 5, "some bytes");
  EXPECT_FALSE(decode_entry(whole, 2, 5));
  EXPECT_FALSE(decode_entry(whole, 4, 5));
  EXPECT_FALSE(decode_entry(whole, 3, 4));
  EXPECT_FALSE(decode_entry(whole, 3, 6));
}

TEST(JournalEntries, one_flipped_bit_or_a_missing_byte_is_no_entry) {
  const auto whole = entry_of(EntryKind::write, 3, 5, "some bytes");
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    auto damaged = whole;
    damaged[bit / 8] = static_cast<std::uint8_t>(damaged[bit / 8] ^ (1U << (bit % 8)));
    EXPECT_FALSE(decode_entry(damaged, 3, 5)) << "bit " << bit;
  }
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(decode_entry(ByteView(whole).first(size), 3, 5)) << size << " bytes";
  }
}

TEST(JournalEntries, zeros_and_unknown_kinds_are_no_entry) {
  const std::vector<std::uint8_t> zeros(4096);
  EXPECT_FALSE(decode_entry(zeros, 0, 0));
  EXPECT_FALSE(decode_entry(entry_of(static_cast<EntryKind>(0), 1, 0, ""), 1, 0));
  EXPECT_FALSE(decode_entry(entry_of(static_cast<EntryKind>(7), 1, 0, ""), 1, 0));
}

TEST(JournalEntries, a_head_survives_the_loss_of_either_copy) {
  const auto block = encode_area_head(42);
  ASSERT_EQ(block.size(), block_bytes);
  EXPECT_EQ(decode_area_head(block), 42U);
  for (const std::size_t lost : {std::size_t{0}, std::size_t{512}}) {
    auto damaged = block;
    damaged[lost + 9] = 0xff;
    EXPECT_EQ(decode_area_head(damaged), 42U);
  }
  // Half written over an older one.
  auto torn = encode_area_head(41);
  std::copy_n(block.begin(), 512, torn.begin());
  EXPECT_EQ(decode_area_head(torn), 42U);
  EXPECT_FALSE(decode_area_head(std::vector<std::uint8_t>(block_bytes)));
  EXPECT_FALSE(decode_area_head(encode_file_head(8192)));
  EXPECT_FALSE(decode_area_head({}));
}

TEST(JournalEntries, an_area_is_whole_blocks_and_more_than_its_head) {
  EXPECT_EQ(decode_file_head(encode_file_head(8192)), 8192U);
  EXPECT_FALSE(decode_file_head(encode_file_head(4096)));
  EXPECT_FALSE(decode_file_head(encode_file_head(8193)));
}

TEST(JournalEntries, witnesses_read_back) {
  for (const auto& identity : {std::optional<Identity>(), std::optional(Identity{1, 2, -3})}) {
    const auto read = decode_witness(encode_witness({"kafka/a", identity}));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->path, "kafka/a");
    EXPECT_EQ(read->identity, identity);
  }
  EXPECT_FALSE(decode_witness(encode_witness({"../a", std::nullopt})));
  EXPECT_FALSE(decode_witness({}));
}

TEST(JournalEntries, a_path_leads_below_the_root) {
  for (const char* good : {"a", "a/b", "a-0/00000000000000000000.log", "..a", "a..", ".lock"}) {
    EXPECT_TRUE(is_inner_path(good)) << good;
  }
  for (const char* bad : {"", "/a", "../a", "a/..", "a/../b", ".", "a/./b", "a//b", "a/"}) {
    EXPECT_FALSE(is_inner_path(bad)) << bad;
  }
  EXPECT_FALSE(is_inner_path(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace polylog::journal
