#include "format/kafka/record_batch.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/crc.h"
#include "bytes/endian.h"
#include "format/kafka/golden_vectors.h"
#include "format/kafka/records.h"

namespace polylog::format::kafka {
namespace {

using Bytes = std::vector<std::uint8_t>;
using golden::from_hex;

template <typename T>
Bytes patched(Bytes bytes, std::size_t at, T value) {
  store_big(bytes.data() + at, value);
  return bytes;
}

Errc parse_error(const Bytes& bytes) {
  const auto header = parse_header(bytes);
  EXPECT_FALSE(header.has_value());
  return header ? Errc::io : header.error().code;
}

TEST(RecordBatch, published_vector_has_the_fields_of_the_format) {
  const Bytes bytes = from_hex(golden::v2);
  ASSERT_EQ(bytes.size(), 108U);
  const auto header = parse_header(bytes);
  ASSERT_TRUE(header) << header.error().to_string();
  EXPECT_EQ(header->size(), 108U);
  EXPECT_EQ(header->base_offset, Offset(42));
  EXPECT_EQ(header->last_offset(), Offset(44));
  EXPECT_EQ(header->leader_epoch, LeaderEpoch(3));
  EXPECT_EQ(header->crc, 0x72bc16b9U);
  EXPECT_EQ(header->base_timestamp, Timestamp(golden::t0));
  EXPECT_EQ(header->max_timestamp, Timestamp(golden::t0 + 5));
  EXPECT_EQ(header->producer_id, ProducerId(4000));
  EXPECT_EQ(header->producer_epoch, 1);
  EXPECT_EQ(header->base_sequence, 7);
  EXPECT_EQ(header->last_sequence(), 9);
  EXPECT_EQ(header->records_count, 3);
  EXPECT_EQ(header->codec(), Codec::none);
  EXPECT_FALSE(header->transactional() || header->control() || header->has_delete_horizon());
}

TEST(RecordBatch, checksums_of_all_vectors_match) {
  for (const auto hex : {golden::v1, golden::v2, golden::v3, golden::v4, golden::plain,
                         golden::gzip, golden::snappy, golden::lz4, golden::zstd}) {
    Bytes bytes = from_hex(hex);
    EXPECT_TRUE(crc_matches(bytes));
    bytes.back() ^= 1;
    EXPECT_FALSE(crc_matches(bytes));
  }
}

TEST(RecordBatch, encoding_a_decoded_header_gives_the_same_bytes) {
  for (const auto hex : {golden::v1, golden::v2, golden::v3, golden::v4, golden::zstd}) {
    const Bytes bytes = from_hex(hex);
    Bytes again(header_bytes);
    encode_header(decode_header(bytes), HeaderBytes(again.data(), header_bytes));
    EXPECT_EQ(again, Bytes(bytes.begin(), bytes.begin() + header_bytes));
  }
}

TEST(RecordBatch, info_speaks_for_the_batch_without_opening_it) {
  const BatchInfo info = to_info(decode_header(from_hex(golden::v3)));
  EXPECT_EQ(info.first, Offset(45));
  EXPECT_EQ(info.last, Offset(45));
  EXPECT_EQ(info.records, 1);
  EXPECT_EQ(info.producer.id, ProducerId(4000));
  EXPECT_EQ(info.producer.first_sequence, -1);
  EXPECT_EQ(info.producer.last_sequence, -1);
  EXPECT_TRUE(info.transactional);
  EXPECT_TRUE(info.control);
}

TEST(RecordBatch, last_sequence_wraps_to_zero) {
  BatchHeader header;
  header.base_sequence = std::numeric_limits<std::int32_t>::max();
  header.last_offset_delta = 2;
  EXPECT_EQ(header.last_sequence(), 1);
}

TEST(RecordBatch, empty_batch_of_compaction_is_sound_and_keeps_its_sequences) {
  const auto header = parse_header(from_hex(golden::v4));
  ASSERT_TRUE(header);
  EXPECT_EQ(header->records_count, 0);
  EXPECT_EQ(header->last_sequence(), 9);
  EXPECT_EQ(header->last_offset(), Offset(44));
}

TEST(RecordBatch, formats_before_magic_2_are_named_as_such) {
  const Bytes bytes = from_hex(golden::v1);
  for (const std::int8_t magic : std::initializer_list<std::int8_t>{0, 1}) {
    const auto header = parse_header(patched(bytes, header_at::magic, magic));
    ASSERT_FALSE(header);
    EXPECT_EQ(header.error().code, Errc::unsupported);
    EXPECT_NE(header.error().context.find("magic " + std::to_string(magic)), std::string::npos);
  }
}

TEST(RecordBatch, headers_that_make_no_sense_are_corrupt) {
  const Bytes bytes = from_hex(golden::v2);
  EXPECT_EQ(parse_error(patched<std::int8_t>(bytes, header_at::magic, 3)), Errc::corrupt);
  EXPECT_EQ(parse_error(patched<std::int8_t>(bytes, header_at::magic, -1)), Errc::corrupt);
  EXPECT_EQ(parse_error(patched<std::int32_t>(bytes, header_at::batch_length, 48)), Errc::corrupt);
  EXPECT_EQ(parse_error(patched<std::int32_t>(bytes, header_at::batch_length, -1)), Errc::corrupt);
  EXPECT_EQ(parse_error(patched<std::int64_t>(bytes, header_at::base_offset, -1)), Errc::corrupt);
  EXPECT_EQ(parse_error(patched<std::int32_t>(bytes, header_at::last_offset_delta, -1)),
            Errc::corrupt);
  EXPECT_EQ(parse_error(patched<std::int32_t>(bytes, header_at::records_count, -1)),
            Errc::corrupt);
  EXPECT_EQ(parse_error(patched(bytes, header_at::base_offset,
                                std::numeric_limits<std::int64_t>::max() - 1)),
            Errc::corrupt);
}

TEST(RecordBatch, every_truncated_header_is_corrupt) {
  const Bytes bytes = from_hex(golden::v1);
  for (std::size_t size = 0; size < header_bytes; ++size) {
    const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(parse_error(cut), Errc::corrupt) << size;
  }
}

TEST(RecordBatch, offset_and_epoch_are_patched_outside_the_checksum) {
  Bytes bytes = from_hex(golden::v1);
  const HeaderBytes head(bytes.data(), header_bytes);
  patch_base_offset(head, Offset(1234567890123));
  patch_leader_epoch(head, LeaderEpoch(17));
  EXPECT_TRUE(crc_matches(bytes));
  const auto header = parse_header(bytes);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->base_offset, Offset(1234567890123));
  EXPECT_EQ(header->leader_epoch, LeaderEpoch(17));
}

TEST(RecordBatch, timestamps_are_patched_with_the_checksum_over_header_copy_and_rest) {
  Bytes bytes = from_hex(golden::v2);
  std::array<std::uint8_t, header_bytes> copy;
  std::copy_n(bytes.begin(), header_bytes, copy.begin());
  patch_timestamps(copy, ByteView(bytes).subspan(header_bytes), log_append_time_bit,
                   Timestamp(77));
  std::copy(copy.begin(), copy.end(), bytes.begin());
  EXPECT_TRUE(crc_matches(bytes));
  EXPECT_EQ(decode_header(bytes).max_timestamp, Timestamp(77));
  EXPECT_EQ(decode_header(bytes).timestamp_type(), TimestampType::log_append_time);
}

TEST(NextFrame, sound_batch_is_complete_even_when_only_its_header_was_read) {
  const Bytes bytes = from_hex(golden::v2);
  const FrameHead frame = next_frame(ByteView(bytes).first(header_bytes), bytes.size() + 999);
  EXPECT_EQ(frame.state, FrameState::complete);
  EXPECT_EQ(frame.size, bytes.size());
  EXPECT_EQ(frame.first(), Offset(42));
  EXPECT_EQ(frame.last(), Offset(44));
  EXPECT_TRUE(frame.why.empty());
}

TEST(NextFrame, every_cut_batch_is_torn) {
  const Bytes bytes = from_hex(golden::v2);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(next_frame(cut).state, FrameState::torn) << size;
  }
  EXPECT_EQ(next_frame(bytes).state, FrameState::complete);
}

TEST(NextFrame, zero_tail_ends_the_data) {
  const Bytes zeros(4096, 0);
  EXPECT_EQ(next_frame(zeros).state, FrameState::zeros);
  EXPECT_EQ(next_frame(ByteView(zeros).first(18)).state, FrameState::zeros);
  EXPECT_EQ(next_frame(ByteView(zeros).first(17)).state, FrameState::torn);
}

TEST(NextFrame, zero_length_alone_does_not_end_the_data) {
  const Bytes bytes = patched<std::int32_t>(from_hex(golden::v1), header_at::batch_length, 0);
  EXPECT_EQ(next_frame(bytes).state, FrameState::corrupt);
}

TEST(NextFrame, length_below_14_is_corrupt_and_up_to_a_header_too) {
  const Bytes bytes = from_hex(golden::v2);
  for (const std::int32_t length : {-1, 1, 13, 14, 48}) {
    EXPECT_EQ(next_frame(patched(bytes, header_at::batch_length, length)).state,
              FrameState::corrupt)
        << length;
  }
}

TEST(NextFrame, legacy_messages_can_be_stepped_over) {
  const Bytes bytes = patched<std::int8_t>(from_hex(golden::v1), header_at::magic, 1);
  const FrameHead frame = next_frame(bytes);
  EXPECT_EQ(frame.state, FrameState::legacy);
  EXPECT_EQ(frame.size, bytes.size());
}

TEST(NextFrame, damaged_magic_is_refused) {
  const Bytes bytes = from_hex(golden::v1);
  for (const std::int8_t magic : std::initializer_list<std::int8_t>{3, 127, -128}) {
    EXPECT_EQ(next_frame(patched(bytes, header_at::magic, magic)).state, FrameState::corrupt);
  }
}

// Solves for four bytes that bring the checksum to zero: it is linear in every bit.
Bytes with_zero_crc(Bytes batch, std::size_t free_at) {
  const auto crc_of = [](const Bytes& b) { return crc32c(ByteView(b).subspan(crc_covers_from)); };
  const std::uint32_t base = crc_of(batch);
  std::uint32_t target = base;
  std::uint32_t columns[32];
  std::uint32_t rows[32];
  for (unsigned bit = 0; bit < 32; ++bit) {
    Bytes flipped = batch;
    flipped[free_at + bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    columns[bit] = crc_of(flipped) ^ base;
    rows[bit] = 1U << bit;
  }
  std::uint32_t solution = 0;
  unsigned used = 0;
  for (unsigned bit = 0; bit < 32; ++bit) {
    unsigned pivot = used;
    while (pivot < 32 && (columns[pivot] >> bit & 1) == 0) ++pivot;
    if (pivot == 32) continue;
    std::swap(columns[pivot], columns[used]);
    std::swap(rows[pivot], rows[used]);
    for (unsigned other = used + 1; other < 32; ++other) {
      if ((columns[other] >> bit & 1) != 0) {
        columns[other] ^= columns[used];
        rows[other] ^= rows[used];
      }
    }
    if ((target >> bit & 1) != 0) {
      target ^= columns[used];
      solution ^= rows[used];
    }
    ++used;
  }
  EXPECT_EQ(target, 0U);
  for (unsigned i = 0; i < 4; ++i) {
    batch[free_at + i] ^= static_cast<std::uint8_t>(solution >> (8 * i));
  }
  store_big(batch.data() + header_at::crc, crc_of(batch));
  return batch;
}

TEST(NextFrame, batch_whose_checksum_is_zero_is_data) {
  BatchBuilder builder({});
  Record record;
  record.timestamp = Timestamp(golden::t0);
  const Bytes value(8, 'v');
  record.value = ByteView(value);
  ASSERT_TRUE(builder.add(record));
  Bytes batch = *builder.finish();
  batch = with_zero_crc(batch, batch.size() - 1 - value.size());
  ASSERT_EQ(decode_header(batch).crc, 0U);
  EXPECT_EQ(next_frame(batch).state, FrameState::complete);
  EXPECT_TRUE(crc_matches(batch));
}

TEST(ForEachBatch, walks_batches_and_ends_quietly_at_a_cut_one) {
  Bytes bytes = from_hex(golden::v2);
  const Bytes marker = from_hex(golden::v3);
  bytes.insert(bytes.end(), marker.begin(), marker.end());
  bytes.insert(bytes.end(), marker.begin(), marker.begin() + 70);
  std::vector<Offset> firsts;
  const Result<void> walked =
      for_each_batch(bytes, [&](const BatchHeader& header, ByteView batch) -> Result<void> {
        EXPECT_EQ(batch.size(), header.size());
        firsts.push_back(header.base_offset);
        return {};
      });
  EXPECT_TRUE(walked);
  EXPECT_EQ(firsts, (std::vector<Offset>{Offset(42), Offset(45)}));
}

TEST(ForEachBatch, damage_is_an_error) {
  Bytes bytes = from_hex(golden::v2);
  bytes.resize(bytes.size() + 100, 0xff);
  const Result<void> walked = for_each_batch(
      bytes, [](const BatchHeader&, ByteView) -> Result<void> { return {}; });
  ASSERT_FALSE(walked);
  EXPECT_EQ(walked.error().code, Errc::corrupt);
}

}  // namespace
}  // namespace polylog::format::kafka
