#include "format/kafka/validate.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "bytes/endian.h"
#include "format/kafka/golden_vectors.h"
#include "format/kafka/records.h"

namespace polylog::format::kafka {
namespace {

using Bytes = std::vector<std::uint8_t>;
using golden::from_hex;

constexpr std::size_t mib = 1024 * 1024;

ValidationRules rules() {
  ValidationRules rules;
  rules.now = Timestamp(golden::t0 + 1000);
  rules.produce_version = 9;
  return rules;
}

// Changes a batch and makes its checksum agree again.
Bytes changed(Bytes batch, const std::function<void(std::uint8_t*)>& change) {
  change(batch.data());
  patch_crc(HeaderBytes(batch.data(), header_bytes), ByteView(batch).subspan(header_bytes));
  return batch;
}
template <typename T>
Bytes with(std::string_view hex, std::size_t at, T value) {
  return changed(from_hex(hex), [&](std::uint8_t* bytes) { store_big(bytes + at, value); });
}

BatchFault fault_of(const Bytes& batch, const ValidationRules& with_rules = rules()) {
  const auto judged = validate(Slice::copy_of(batch), with_rules);
  EXPECT_FALSE(judged.has_value());
  if (judged) return static_cast<BatchFault>(-1);
  EXPECT_FALSE(judged.error().message.empty());
  return judged.error().code;
}

// A client batch of the given records' keys, values and timestamps.
struct Simple {
  std::optional<std::string> key;
  std::string value;
  std::int64_t timestamp = golden::t0;
};
Bytes client_batch(const std::vector<Simple>& records, BatchOptions options = {}) {
  BatchBuilder builder(options);
  for (const Simple& simple : records) {
    Record record;
    record.timestamp = Timestamp(simple.timestamp);
    if (simple.key) record.key = as_bytes(*simple.key);
    record.value = as_bytes(simple.value);
    EXPECT_TRUE(builder.add(record));
  }
  return builder.finish().value();
}

BatchOptions packed(Codec codec) {
  BatchOptions options;
  options.codec = codec;
  return options;
}

std::vector<std::pair<std::int64_t, std::string>> contents(ByteView batch) {
  std::vector<std::pair<std::int64_t, std::string>> all;
  EXPECT_TRUE(for_each_record(batch, 64 * mib, [&all](const Record& record) {
    all.emplace_back(record.timestamp.value(),
                     record.value ? std::string(as_text(*record.value)) : "(null)");
    return true;
  }));
  return all;
}

TEST(Validate, good_batches_pass_through_without_a_copy) {
  for (const auto hex : {golden::plain, golden::gzip, golden::snappy, golden::lz4, golden::zstd,
                         golden::raw_snappy, golden::gzip_members, golden::xerial_glued}) {
    const Slice sent = Slice::copy_of(from_hex(hex));
    const auto judged = validate(sent, rules());
    ASSERT_TRUE(judged) << judged.error().message;
    EXPECT_EQ(judged->bytes.data(), sent.data());
    EXPECT_EQ(judged->bytes.size(), sent.size());
    EXPECT_EQ(judged->info.records, 4);
    EXPECT_EQ(judged->info.last, Offset(3));
    EXPECT_EQ(judged->info.max_timestamp, Timestamp(golden::t0 + 5));
  }
}

TEST(Validate, exactly_one_batch_is_taken) {
  EXPECT_EQ(fault_of({}), BatchFault::invalid_record);
  Bytes two = from_hex(golden::plain);
  const Bytes one = two;
  two.insert(two.end(), one.begin(), one.end());
  EXPECT_EQ(fault_of(two), BatchFault::invalid_record);
  two.resize(one.size() + 1);
  EXPECT_EQ(fault_of(two), BatchFault::invalid_record);
}

TEST(Validate, every_truncation_is_a_corrupt_message) {
  for (const auto hex : {golden::plain, golden::gzip, golden::snappy, golden::zstd}) {
    const Bytes batch = from_hex(hex);
    for (std::size_t size = 1; size < batch.size(); ++size) {
      EXPECT_EQ(fault_of(Bytes(batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(size))),
                BatchFault::corrupt_message)
          << size;
    }
  }
}

TEST(Validate, damage_anywhere_under_the_checksum_is_a_corrupt_message) {
  const Bytes batch = from_hex(golden::plain);
  for (std::size_t at = header_at::crc; at < batch.size(); ++at) {
    Bytes damaged = batch;
    damaged[at] ^= 0x10;
    EXPECT_EQ(fault_of(damaged), BatchFault::corrupt_message) << at;
  }
}

TEST(Validate, old_and_unknown_magics_are_refused) {
  const Bytes old = with<std::int8_t>(golden::plain, header_at::magic, 1);
  EXPECT_EQ(fault_of(old), BatchFault::invalid_record);
  ValidationRules old_client = rules();
  old_client.produce_version = 2;
  EXPECT_EQ(fault_of(old, old_client), BatchFault::unsupported_for_message_format);
  EXPECT_EQ(fault_of(with<std::int8_t>(golden::plain, header_at::magic, 3)),
            BatchFault::corrupt_message);
}

TEST(Validate, header_promises_are_checked) {
  const auto refused = [](std::size_t at, auto value) {
    return fault_of(with(golden::plain, at, value)) == BatchFault::invalid_record;
  };
  EXPECT_TRUE(refused(header_at::base_offset, std::int64_t{1}));
  EXPECT_TRUE(refused(header_at::base_offset, std::int64_t{-1}));
  EXPECT_TRUE(refused(header_at::records_count, std::int32_t{0}));
  EXPECT_TRUE(refused(header_at::records_count, std::int32_t{-1}));
  EXPECT_TRUE(refused(header_at::records_count, std::int32_t{3}));
  EXPECT_TRUE(refused(header_at::last_offset_delta, std::int32_t{4}));
  EXPECT_TRUE(refused(header_at::producer_id, std::int64_t{-2}));
  EXPECT_TRUE(refused(header_at::producer_id, std::int64_t{7}));  // no epoch, no sequence
  EXPECT_TRUE(refused(header_at::attributes, control_bit));
  EXPECT_TRUE(refused(header_at::attributes, transactional_bit));
  EXPECT_TRUE(refused(header_at::attributes, delete_horizon_bit));
}

TEST(Validate, counts_must_be_those_of_the_records) {
  for (const std::int32_t count : {3, 5}) {
    const Bytes batch = changed(from_hex(golden::plain), [&](std::uint8_t* bytes) {
      store_big(bytes + header_at::records_count, count);
      store_big(bytes + header_at::last_offset_delta, count - 1);
    });
    EXPECT_EQ(fault_of(batch), BatchFault::invalid_record) << count;
    const Bytes squeezed = changed(from_hex(golden::lz4), [&](std::uint8_t* bytes) {
      store_big(bytes + header_at::records_count, count);
      store_big(bytes + header_at::last_offset_delta, count - 1);
    });
    EXPECT_EQ(fault_of(squeezed), BatchFault::invalid_record) << count;
  }
}

TEST(Validate, producer_and_transaction_travel_in_the_info) {
  BatchOptions options;
  options.producer_id = ProducerId(77);
  options.producer_epoch = 2;
  options.base_sequence = 2147483647;
  options.transactional = true;
  const Bytes batch = client_batch({{"a", "1"}, {"b", "2"}}, options);
  const auto judged = validate(Slice::copy_of(batch), rules());
  ASSERT_TRUE(judged) << judged.error().message;
  EXPECT_EQ(judged->info.producer.id, ProducerId(77));
  EXPECT_EQ(judged->info.producer.first_sequence, 2147483647);
  EXPECT_EQ(judged->info.producer.last_sequence, 0);
  EXPECT_TRUE(judged->info.transactional);
}

TEST(Validate, offset_deltas_must_count_up_in_plain_and_compressed_batches) {
  for (const Codec codec : {Codec::none, Codec::gzip}) {
    BatchBuilder builder(packed(codec));
    for (const std::int64_t offset : {0, 2}) {
      Record record;
      record.offset = Offset(offset);
      record.timestamp = Timestamp(golden::t0);
      ASSERT_TRUE(builder.add_at_offset(record));
    }
    const Bytes batch = changed(builder.finish().value(), [](std::uint8_t* bytes) {
      store_big<std::int32_t>(bytes + header_at::last_offset_delta, 1);
    });
    const auto judged = validate(Slice::copy_of(batch), rules());
    ASSERT_FALSE(judged);
    EXPECT_EQ(judged.error().code, BatchFault::invalid_record);
    ASSERT_EQ(judged.error().records.size(), 1U);
    EXPECT_EQ(judged.error().records[0].index, 1);
  }
}

TEST(Validate, compacted_topics_need_keys_and_name_the_records_without) {
  const Bytes batch = client_batch({{"a", "1"}, {std::nullopt, "2"}, {"", "3"}, {{}, "4"}});
  ValidationRules compacted = rules();
  EXPECT_TRUE(validate(Slice::copy_of(batch), compacted));
  compacted.compacted = true;
  const auto judged = validate(Slice::copy_of(batch), compacted);
  ASSERT_FALSE(judged);
  EXPECT_EQ(judged.error().code, BatchFault::invalid_record);
  ASSERT_EQ(judged.error().records.size(), 2U);
  EXPECT_EQ(judged.error().records[0].index, 1);
  EXPECT_EQ(judged.error().records[1].index, 3);
}

TEST(Validate, named_records_are_bounded) {
  const std::vector<Simple> many(1000, Simple{std::nullopt, "x"});
  ValidationRules compacted = rules();
  compacted.compacted = true;
  const auto judged = validate(Slice::copy_of(client_batch(many)), compacted);
  ASSERT_FALSE(judged);
  EXPECT_LE(judged.error().records.size(), 32U);
  EXPECT_NE(judged.error().message.find("1000"), std::string::npos);
}

TEST(Validate, timestamps_outside_the_allowed_span_are_refused) {
  ValidationRules spanned = rules();
  const std::int64_t now = spanned.now.value();
  const auto judge = [&](std::int64_t timestamp) {
    return validate(Slice::copy_of(client_batch({{"a", "1", timestamp}})), spanned);
  };
  EXPECT_TRUE(judge(now + 3600000));
  EXPECT_TRUE(judge(0));
  EXPECT_TRUE(judge(-1));
  ASSERT_FALSE(judge(now + 3600001));
  EXPECT_EQ(judge(now + 3600001).error().code, BatchFault::invalid_timestamp);
  spanned.before_max_ms = 100;
  EXPECT_TRUE(judge(now - 100));
  EXPECT_FALSE(judge(now - 101));
  EXPECT_TRUE(judge(-1));
}

TEST(Validate, timestamp_fault_wins_over_others) {
  ValidationRules compacted = rules();
  compacted.compacted = true;
  const Bytes batch = client_batch({{std::nullopt, "1"}, {"k", "2", golden::t0 * 2}});
  const auto judged = validate(Slice::copy_of(batch), compacted);
  ASSERT_FALSE(judged);
  EXPECT_EQ(judged.error().code, BatchFault::invalid_timestamp);
  EXPECT_EQ(judged.error().records.size(), 2U);
}

TEST(Validate, negative_and_overflowing_timestamps_are_refused) {
  for (const std::int64_t base : {std::int64_t{-2}, std::numeric_limits<std::int64_t>::min(),
                                  std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_EQ(fault_of(with(golden::plain, header_at::base_timestamp, base)),
              BatchFault::invalid_timestamp);
  }
}

TEST(Validate, client_may_not_set_the_log_append_time) {
  const Bytes batch = with(golden::plain, header_at::attributes, log_append_time_bit);
  EXPECT_EQ(fault_of(batch), BatchFault::invalid_timestamp);
  ValidationRules append_time = rules();
  append_time.timestamp_type = TimestampType::log_append_time;
  EXPECT_EQ(fault_of(batch, append_time), BatchFault::invalid_timestamp);
}

TEST(Validate, log_append_time_topic_stamps_the_batch) {
  ValidationRules append_time = rules();
  append_time.timestamp_type = TimestampType::log_append_time;
  for (const auto hex : {golden::plain, golden::zstd}) {
    const Bytes sent = from_hex(hex);
    const auto judged = validate(Slice::copy_of(sent), append_time);
    ASSERT_TRUE(judged) << judged.error().message;
    const ByteView stored = judged->bytes.view();
    EXPECT_TRUE(crc_matches(stored));
    const auto header = parse_header(stored);
    ASSERT_TRUE(header);
    EXPECT_EQ(header->timestamp_type(), TimestampType::log_append_time);
    EXPECT_EQ(header->max_timestamp, append_time.now);
    EXPECT_EQ(judged->info.max_timestamp, append_time.now);
    EXPECT_EQ(header->base_timestamp, Timestamp(golden::t0));
    EXPECT_TRUE(std::equal(stored.begin() + header_bytes, stored.end(),
                           sent.begin() + header_bytes, sent.end()));
    EXPECT_EQ(contents(stored)[2].first, append_time.now.value());
  }
}

TEST(Validate, wrong_max_timestamp_of_a_client_is_corrected) {
  for (const auto hex : {golden::plain, golden::gzip}) {
    const Bytes sent = with<std::int64_t>(hex, header_at::max_timestamp, 5);
    const auto judged = validate(Slice::copy_of(sent), rules());
    ASSERT_TRUE(judged) << judged.error().message;
    EXPECT_TRUE(crc_matches(judged->bytes.view()));
    EXPECT_EQ(judged->info.max_timestamp, Timestamp(golden::t0 + 5));
    EXPECT_EQ(Bytes(judged->bytes.view().begin(), judged->bytes.view().end()), from_hex(hex));
  }
}

TEST(Validate, topic_codec_rebuilds_batches_of_another_codec_only) {
  for (const auto hex : {golden::plain, golden::gzip, golden::snappy, golden::lz4, golden::zstd}) {
    for (const Codec target :
         {Codec::none, Codec::gzip, Codec::snappy, Codec::lz4, Codec::zstd}) {
      ValidationRules recode = rules();
      recode.target = target;
      const Slice sent = Slice::copy_of(from_hex(hex));
      const auto judged = validate(sent, recode);
      ASSERT_TRUE(judged) << judged.error().message;
      const auto header = parse_header(judged->bytes.view());
      ASSERT_TRUE(header);
      EXPECT_EQ(header->codec(), target);
      EXPECT_EQ(header->size(), judged->bytes.size());
      EXPECT_TRUE(crc_matches(judged->bytes.view()));
      EXPECT_EQ(contents(judged->bytes.view()), contents(from_hex(golden::plain)));
      const bool same = decode_header(sent.view()).codec() == target;
      EXPECT_EQ(judged->bytes.data() == sent.data(), same);
    }
  }
}

TEST(Validate, recompression_keeps_producer_and_transaction) {
  BatchOptions options;
  options.producer_id = ProducerId(77);
  options.producer_epoch = 2;
  options.base_sequence = 5;
  options.transactional = true;
  ValidationRules recode = rules();
  recode.target = Codec::lz4;
  recode.level = 12;
  const auto judged = validate(Slice::copy_of(client_batch({{"a", "1"}}, options)), recode);
  ASSERT_TRUE(judged) << judged.error().message;
  const BatchHeader header = decode_header(judged->bytes.view());
  EXPECT_EQ(header.producer_id, ProducerId(77));
  EXPECT_EQ(header.base_sequence, 5);
  EXPECT_TRUE(header.transactional());
}

TEST(Validate, sizes_are_limited_before_and_after_recompression) {
  const Bytes plain = client_batch({{"a", std::string(5000, 'x')}});
  const Bytes squeezed = client_batch({{"a", std::string(5000, 'x')}}, packed(Codec::gzip));
  ValidationRules small = rules();
  small.max_message_bytes = static_cast<std::int64_t>(plain.size());
  EXPECT_TRUE(validate(Slice::copy_of(plain), small));
  --small.max_message_bytes;
  EXPECT_EQ(fault_of(plain, small), BatchFault::message_too_large);
  EXPECT_TRUE(validate(Slice::copy_of(squeezed), small));
  small.target = Codec::none;
  EXPECT_EQ(fault_of(squeezed, small), BatchFault::message_too_large);
  ValidationRules narrow = rules();
  narrow.segment_bytes = static_cast<std::int64_t>(plain.size()) - 1;
  EXPECT_EQ(fault_of(plain, narrow), BatchFault::record_list_too_large);
}

TEST(Validate, zstd_needs_a_client_that_may_write_it) {
  ValidationRules old = rules();
  old.produce_version = 6;
  EXPECT_EQ(fault_of(from_hex(golden::zstd), old), BatchFault::unsupported_compression_type);
  old.produce_version = 7;
  EXPECT_TRUE(validate(Slice::copy_of(from_hex(golden::zstd)), old));
}

TEST(Validate, unassigned_codecs_are_unsupported) {
  for (const std::int16_t codec : std::initializer_list<std::int16_t>{5, 6, 7}) {
    EXPECT_EQ(fault_of(with(golden::plain, header_at::attributes, codec)),
              BatchFault::unsupported_compression_type);
  }
}

TEST(Validate, lz4_that_kafkas_reader_refuses_is_refused) {
  EXPECT_EQ(fault_of(from_hex(golden::lz4_linked)), BatchFault::invalid_record);
}

TEST(Validate, broken_compression_is_a_corrupt_message) {
  for (const auto hex : {golden::gzip, golden::snappy, golden::lz4, golden::zstd}) {
    const Bytes batch = from_hex(hex);
    for (std::size_t at = header_bytes; at < batch.size(); ++at) {
      const Bytes damaged = changed(batch, [&](std::uint8_t* bytes) { bytes[at] ^= 0x55; });
      const auto judged = validate(Slice::copy_of(damaged), rules());
      if (judged) {
        // Not every bit of a stream matters, and snappy has no checksum of its own.
        EXPECT_EQ(contents(judged->bytes.view()).size(), 4U);
      } else {
        EXPECT_NE(judged.error().code, BatchFault::message_too_large) << at;
      }
    }
  }
}

TEST(Validate, malformed_record_is_named) {
  Bytes batch = from_hex(golden::plain);
  // The second record begins behind the first one's 28 bytes; its key length becomes 63.
  batch = changed(batch, [](std::uint8_t* bytes) { bytes[header_bytes + 28 + 4] = 0x7e; });
  const auto judged = validate(Slice::copy_of(batch), rules());
  ASSERT_FALSE(judged);
  EXPECT_EQ(judged.error().code, BatchFault::invalid_record);
  ASSERT_EQ(judged.error().records.size(), 1U);
  EXPECT_EQ(judged.error().records[0].index, 1);
}

TEST(Validate, bomb_in_a_single_record_is_refused_after_bounded_work) {
  for (const Codec codec : {Codec::gzip, Codec::snappy, Codec::lz4, Codec::zstd}) {
    const Bytes batch = client_batch({{"a", std::string(48 * mib, '\0')}}, packed(codec));
    ValidationRules capped = rules();
    capped.max_message_bytes = 1 << 30;
    capped.output_max = 8 * mib;
    const auto judged = validate(Slice::copy_of(batch), capped);
    ASSERT_FALSE(judged) << to_string(codec);
    EXPECT_EQ(judged.error().code, BatchFault::message_too_large);
    EXPECT_TRUE(judged.error().output_over_cap);
    EXPECT_TRUE(needs_pool(batch, capped));
    capped.output_max = 64 * mib;
    EXPECT_TRUE(validate(Slice::copy_of(batch), capped)) << to_string(codec);
  }
}

TEST(Validate, zeros_instead_of_records_end_at_the_first) {
  const Bytes zeros(32 * mib, 0);
  Bytes batch = from_hex(golden::plain);
  batch.resize(header_bytes);
  const Bytes payload = compress(Codec::zstd, 3, zeros).value();
  batch.insert(batch.end(), payload.begin(), payload.end());
  batch = changed(batch, [&](std::uint8_t* bytes) {
    store_big(bytes + header_at::batch_length,
              static_cast<std::int32_t>(header_bytes - prefix_bytes + payload.size()));
    store_big<std::int16_t>(bytes + header_at::attributes, 4);
  });
  EXPECT_EQ(fault_of(batch), BatchFault::invalid_record);
}

TEST(Validate, records_across_pieces_of_output_are_judged_like_others) {
  for (const Codec codec : {Codec::gzip, Codec::snappy, Codec::lz4, Codec::zstd}) {
    std::vector<Simple> records;
    for (int i = 0; i < 3000; ++i) {
      records.push_back({"key" + std::to_string(i), std::string(static_cast<std::size_t>(i % 700),
                                                                'v'),
                         golden::t0 - i});
    }
    records.push_back({std::nullopt, std::string(200000, 'w'), golden::t0 + 9});
    const Bytes batch = client_batch(records, packed(codec));
    const auto judged = validate(Slice::copy_of(batch), rules());
    ASSERT_TRUE(judged) << judged.error().message;
    EXPECT_EQ(judged->info.max_timestamp, Timestamp(golden::t0 + 9));
    ValidationRules compacted = rules();
    compacted.compacted = true;
    const auto refused = validate(Slice::copy_of(batch), compacted);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().records.at(0).index, 3000);
  }
}

TEST(NeedsPool, small_batches_run_where_they_arrive) {
  for (const auto hex : {golden::plain, golden::gzip, golden::snappy, golden::lz4, golden::zstd,
                         golden::raw_snappy}) {
    EXPECT_FALSE(needs_pool(from_hex(hex), rules()));
  }
  EXPECT_FALSE(needs_pool({}, rules()));
}

TEST(NeedsPool, large_output_or_recompression_goes_to_the_pool) {
  const std::string half_mib(512 * 1024, 'x');
  EXPECT_FALSE(needs_pool(client_batch({{"a", half_mib}}), rules()));
  for (const Codec codec : {Codec::gzip, Codec::snappy, Codec::lz4, Codec::zstd}) {
    EXPECT_TRUE(needs_pool(client_batch({{"a", half_mib}}, packed(codec)), rules()));
  }
  ValidationRules recode = rules();
  recode.target = Codec::gzip;
  EXPECT_TRUE(needs_pool(client_batch({{"a", half_mib}}), recode));
  EXPECT_FALSE(needs_pool(from_hex(golden::plain), recode));
}

}  // namespace
}  // namespace polylog::format::kafka
