#include "format/kafka/snapshot.h"

#include <gtest/gtest.h>

#include "base/crc.h"
#include "bytes/endian.h"
#include "format/kafka/golden_vectors.h"

namespace polylog::format::kafka {
namespace {

using Bytes = std::vector<std::uint8_t>;
using golden::from_hex;

Bytes with_crc(Bytes bytes) {
  store_big(bytes.data() + 2, crc32c(ByteView(bytes).subspan(snapshot_crc_covers_from)));
  return bytes;
}

BatchInfo data_batch(std::int64_t producer, std::int32_t sequence, std::int64_t first,
                     std::int64_t last, std::int64_t timestamp) {
  BatchInfo info;
  info.first = Offset(first);
  info.last = Offset(last);
  info.records = static_cast<std::int32_t>(last - first + 1);
  info.max_timestamp = Timestamp(timestamp);
  info.producer = {ProducerId(producer), 1, sequence,
                   sequence_plus(sequence, static_cast<std::int32_t>(last - first))};
  return info;
}

TEST(Snapshot, published_vector_is_written_and_read) {
  ProducerState producers;
  BatchInfo batch = data_batch(4000, 7, 42, 44, golden::t0 + 5);
  batch.transactional = true;
  producers.update(batch, LogPosition(45));
  const Bytes bytes = from_hex(golden::snapshot_one_producer);
  EXPECT_EQ(encode_snapshot(producers), bytes);

  const auto read = decode_snapshot(bytes);
  ASSERT_TRUE(read) << read.error().to_string();
  ASSERT_EQ(read->entries().size(), 1U);
  const ProducerState::Entry& entry = read->entries().at(ProducerId(4000));
  EXPECT_EQ(entry.epoch, 1);
  EXPECT_EQ(entry.coordinator_epoch, -1);
  EXPECT_EQ(entry.transaction_first, Offset(42));
  EXPECT_EQ(entry.last_timestamp, Timestamp(golden::t0 + 5));
  ASSERT_EQ(entry.batches.size(), 1U);
  EXPECT_EQ(entry.batches[0].first_sequence, 7);
  EXPECT_EQ(entry.batches[0].last_sequence, 9);
  EXPECT_EQ(entry.batches[0].last, Offset(44));
  EXPECT_EQ(entry.batches[0].offset_delta, 2);
  EXPECT_EQ(entry.batches[0].end, LogPosition(0));
}

TEST(Snapshot, empty_state_is_ten_bytes) {
  EXPECT_EQ(encode_snapshot(ProducerState()), from_hex(golden::snapshot_empty));
  EXPECT_TRUE(decode_snapshot(from_hex(golden::snapshot_empty)).value().entries().empty());
}

TEST(Snapshot, producer_known_from_a_marker_only_has_no_batch) {
  ProducerState producers;
  BatchInfo marker = data_batch(9, -1, 50, 50, 123);
  marker.control = true;
  producers.end_transaction(marker, true, 6);
  const auto read = decode_snapshot(encode_snapshot(producers));
  ASSERT_TRUE(read) << read.error().to_string();
  const ProducerState::Entry& entry = read->entries().at(ProducerId(9));
  EXPECT_TRUE(entry.batches.empty());
  EXPECT_EQ(entry.coordinator_epoch, 6);
  EXPECT_EQ(entry.last_timestamp, Timestamp(123));
  EXPECT_FALSE(entry.transaction_first);
}

TEST(Snapshot, resent_last_batch_is_a_duplicate_after_a_restart_across_the_sequence_wrap) {
  ProducerState producers;
  const BatchInfo batch = data_batch(5, 2147483646, 100, 103, 1);
  EXPECT_EQ(batch.producer.last_sequence, 1);
  producers.update(batch, LogPosition(104));
  const auto read = decode_snapshot(encode_snapshot(producers));
  ASSERT_TRUE(read);
  const ProducerState::Check check = read->check(batch);
  EXPECT_EQ(check.verdict, ProducerState::Verdict::duplicate);
  EXPECT_EQ(check.original.start, Offset(100));
}

TEST(Snapshot, entries_are_sorted_by_producer) {
  ProducerState producers;
  for (const std::int64_t id : {900L, 3L, 77L, 12345678901L}) {
    producers.update(data_batch(id, 0, id, id, 1), LogPosition(0));
  }
  const Bytes bytes = encode_snapshot(producers);
  std::int64_t before = -1;
  for (std::size_t at = snapshot_header_bytes; at < bytes.size(); at += snapshot_entry_bytes) {
    const auto id = load_big<std::int64_t>(bytes.data() + at);
    EXPECT_GT(id, before);
    before = id;
  }
  EXPECT_EQ(decode_snapshot(bytes).value().entries().size(), 4U);
}

TEST(Snapshot, every_truncation_and_every_flipped_bit_is_refused) {
  const Bytes bytes = from_hex(golden::snapshot_one_producer);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(decode_snapshot(cut)) << size;
  }
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    Bytes damaged = bytes;
    damaged[at] ^= 0x04;
    EXPECT_FALSE(decode_snapshot(damaged)) << at;
  }
}

TEST(Snapshot, claims_beyond_the_bytes_are_refused_with_a_right_checksum) {
  for (const std::int32_t count : {-1, 0, 2, 2147483647}) {
    Bytes bytes = from_hex(golden::snapshot_one_producer);
    store_big(bytes.data() + 6, count);
    const auto read = decode_snapshot(with_crc(bytes));
    ASSERT_FALSE(read) << count;
    EXPECT_EQ(read.error().code, Errc::corrupt);
  }
}

TEST(Snapshot, impossible_numbers_are_refused_with_a_right_checksum) {
  const auto refused = [](std::string_view field, auto value) {
    Bytes bytes = from_hex(golden::snapshot_one_producer);
    for (const Field& f : snapshot_entry_fields) {
      if (f.name == field) store_big(bytes.data() + snapshot_header_bytes + f.at, value);
    }
    const auto read = decode_snapshot(with_crc(bytes));
    return !read && read.error().code == Errc::corrupt;
  };
  EXPECT_TRUE(refused("producerId", std::int64_t{-1}));
  EXPECT_TRUE(refused("lastSequence", std::int32_t{-2}));
  EXPECT_TRUE(refused("lastOffset", std::int64_t{-2}));
  EXPECT_TRUE(refused("lastOffset", std::int64_t{1}));  // the batch would begin at -1
  EXPECT_TRUE(refused("offsetDelta", std::int32_t{-1}));
  EXPECT_TRUE(refused("currentTxnFirstOffset", std::int64_t{-2}));
  Bytes twice = from_hex(golden::snapshot_one_producer);
  const Bytes entry(twice.begin() + snapshot_header_bytes, twice.end());
  twice.insert(twice.end(), entry.begin(), entry.end());
  store_big<std::int32_t>(twice.data() + 6, 2);
  EXPECT_FALSE(decode_snapshot(with_crc(twice)));
}

TEST(Snapshot, another_version_is_unsupported) {
  Bytes bytes = from_hex(golden::snapshot_empty);
  bytes[1] = 2;
  EXPECT_EQ(decode_snapshot(bytes).error().code, Errc::unsupported);
}

}  // namespace
}  // namespace polylog::format::kafka
