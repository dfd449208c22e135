#include "format/kafka/records.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>

#include "bytes/endian.h"
#include "format/kafka/golden_vectors.h"
#include "format/kafka/varint.h"

namespace polylog::format::kafka {
namespace {

using Bytes = std::vector<std::uint8_t>;
using golden::from_hex;

constexpr std::size_t output_max = 16 * 1024 * 1024;

// A record that owns its bytes, for comparing.
struct Owned {
  std::int64_t offset = 0;
  std::int64_t timestamp = 0;
  std::optional<std::string> key;
  std::optional<std::string> value;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
  bool operator==(const Owned&) const = default;
};

std::optional<std::string> owned(const std::optional<ByteView>& bytes) {
  if (!bytes) return std::nullopt;
  return std::string(as_text(*bytes));
}

Result<std::vector<Owned>> read_all(ByteView batch, std::size_t cap = output_max) {
  std::vector<Owned> all;
  POLYLOG_TRY(for_each_record(batch, cap, [&all](const Record& record) {
    Owned copy{record.offset.value(), record.timestamp.value(), owned(record.key),
               owned(record.value), {}};
    for (const Header& header : record.headers) {
      copy.headers.emplace_back(std::string(header.name), owned(header.value));
    }
    all.push_back(std::move(copy));
    return true;
  }));
  return all;
}

std::optional<ByteView> view(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  return as_bytes(*text);
}

Bytes build(const BatchOptions& options, const std::vector<Owned>& records) {
  BatchBuilder builder(options);
  for (const Owned& owned_record : records) {
    Record record;
    record.offset = Offset(owned_record.offset);
    record.timestamp = Timestamp(owned_record.timestamp);
    record.key = view(owned_record.key);
    record.value = view(owned_record.value);
    for (const auto& [name, value] : owned_record.headers) {
      record.headers.push_back({name, view(value)});
    }
    const Result<void> added = builder.add_at_offset(record);
    EXPECT_TRUE(added) << added.error().to_string();
  }
  auto batch = builder.finish();
  EXPECT_TRUE(batch);
  return *batch;
}

const std::vector<Owned> v2_records{
    {42, golden::t0, "key-1", "value-1", {{"h1", "x"}, {"h2", std::nullopt}}},
    {43, golden::t0 + 5, std::nullopt, "", {}},
    {44, golden::t0 - 3, "key-3", std::nullopt, {}},
};

std::string polylog_30_times() {
  std::string text;
  for (int i = 0; i < 30; ++i) text += "polylog ";
  return text;
}

const std::vector<Owned> golden_records{
    {0, golden::t0, "key-1", "value-1", {{"h1", "x"}, {"h2", std::nullopt}}},
    {1, golden::t0 + 5, std::nullopt, "", {}},
    {2, golden::t0 - 3, "key-3", std::nullopt, {}},
    {3, golden::t0 + 1, "", polylog_30_times(), {{"", ""}}},
};

// A batch around a hand-written payload.
Bytes around(std::string_view payload_hex, std::int32_t count,
             std::int32_t last_offset_delta, std::int16_t attributes = 0) {
  const Bytes payload = from_hex(payload_hex);
  BatchHeader header;
  header.batch_length = static_cast<std::int32_t>(header_bytes - prefix_bytes + payload.size());
  header.attributes = attributes;
  header.last_offset_delta = last_offset_delta;
  header.base_timestamp = header.max_timestamp = Timestamp(golden::t0);
  header.records_count = count;
  Bytes batch(header_bytes + payload.size());
  const HeaderBytes head(batch.data(), header_bytes);
  encode_header(header, head);
  std::copy(payload.begin(), payload.end(), batch.begin() + header_bytes);
  patch_crc(head, payload);
  return batch;
}

Errc read_error(const Bytes& batch, std::size_t cap = output_max) {
  const auto all = read_all(batch, cap);
  EXPECT_FALSE(all.has_value());
  return all ? Errc::io : all.error().code;
}

TEST(Records, published_vectors_decode) {
  EXPECT_EQ(read_all(from_hex(golden::v1)).value(),
            (std::vector<Owned>{{0, golden::t0, "k", "v", {}}}));
  EXPECT_EQ(read_all(from_hex(golden::v2)).value(), v2_records);
  EXPECT_TRUE(read_all(from_hex(golden::v4)).value().empty());
}

TEST(Records, batches_of_another_program_decode_under_every_codec) {
  for (const auto hex : {golden::plain, golden::gzip, golden::snappy, golden::lz4, golden::zstd,
                         golden::raw_snappy, golden::gzip_members, golden::xerial_glued,
                         golden::lz4_linked}) {
    const auto all = read_all(from_hex(hex));
    ASSERT_TRUE(all) << all.error().to_string();
    EXPECT_EQ(*all, golden_records);
  }
}

TEST(Records, published_vectors_are_built_byte_for_byte) {
  BatchOptions options;
  options.epoch = LeaderEpoch(0);
  EXPECT_EQ(build(options, {{0, golden::t0, "k", "v", {}}}), from_hex(golden::v1));
  options = {};
  options.base_offset = Offset(42);
  options.epoch = LeaderEpoch(3);
  options.producer_id = ProducerId(4000);
  options.producer_epoch = 1;
  options.base_sequence = 7;
  EXPECT_EQ(build(options, v2_records), from_hex(golden::v2));
  options.last_offset_delta = 2;
  options.max_timestamp = Timestamp(golden::t0 + 5);
  EXPECT_EQ(build(options, {}), from_hex(golden::v4));
}

TEST(Records, plain_batch_of_another_program_is_built_byte_for_byte) {
  // kafka-python leaves the leader epoch at 0.
  BatchOptions options;
  options.epoch = LeaderEpoch(0);
  EXPECT_EQ(build(options, golden_records), from_hex(golden::plain));
}

TEST(Records, empty_and_null_stay_apart) {
  const std::vector<Owned> records{{0, 1, "", "", {{"a", ""}, {"a", std::nullopt}, {"", "x"}}},
                                   {1, 1, std::nullopt, std::nullopt, {}},
                                   {2, 1, "k", std::nullopt, {}}};
  for (const Codec codec : {Codec::none, Codec::snappy, Codec::zstd}) {
    BatchOptions options;
    options.codec = codec;
    EXPECT_EQ(read_all(build(options, records)).value(), records);
  }
}

TEST(Records, random_batches_survive_every_codec) {
  std::mt19937 random(20240607);
  const auto text = [&random](std::size_t size_max) -> std::optional<std::string> {
    if (random() % 8 == 0) return std::nullopt;
    std::string bytes(random() % (size_max + 1), '\0');
    for (char& c : bytes) c = static_cast<char>(random() % 7 == 0 ? random() : 'a');
    return bytes;
  };
  for (int round = 0; round < 60; ++round) {
    std::vector<Owned> records;
    std::int64_t offset = static_cast<std::int64_t>(random());
    BatchOptions options;
    options.codec = static_cast<Codec>(round % 5);
    options.base_offset = Offset(offset);
    const std::size_t count = 1 + random() % 200;
    for (std::size_t i = 0; i < count; ++i) {
      Owned record{offset, static_cast<std::int64_t>(random()), text(40), text(3000), {}};
      for (std::size_t h = random() % 4; h > 0; --h) {
        record.headers.emplace_back(text(9).value_or(""), text(20));
      }
      offset += 1 + static_cast<std::int64_t>(random() % 3);
      records.push_back(std::move(record));
    }
    EXPECT_EQ(read_all(build(options, records)).value(), records) << round;
  }
}

TEST(Records, record_across_many_pieces_of_output_is_put_together) {
  std::vector<Owned> records;
  for (int i = 0; i < 5; ++i) {
    records.push_back({i, 1, "key", std::string(300000 + static_cast<std::size_t>(i), 'x'), {}});
  }
  for (const Codec codec : {Codec::gzip, Codec::snappy, Codec::lz4, Codec::zstd}) {
    BatchOptions options;
    options.codec = codec;
    EXPECT_EQ(read_all(build(options, records)).value(), records) << to_string(codec);
  }
}

TEST(Records, log_append_time_overrides_the_deltas) {
  BatchOptions options;
  options.append_time = Timestamp(99);
  const auto all = read_all(build(options, {{0, 5, "a", "b", {}}, {1, 6, "a", "b", {}}}));
  EXPECT_EQ(all.value()[0].timestamp, 99);
  EXPECT_EQ(all.value()[1].timestamp, 99);
}

TEST(Records, delete_horizon_is_only_the_reference_of_the_deltas) {
  BatchOptions options;
  options.delete_horizon = Timestamp(golden::t0 + 86400000);
  const Bytes batch = build(options, {{0, golden::t0, "a", std::nullopt, {}}});
  const auto header = parse_header(batch);
  ASSERT_TRUE(header);
  EXPECT_TRUE(header->has_delete_horizon());
  EXPECT_EQ(header->base_timestamp, Timestamp(golden::t0 + 86400000));
  EXPECT_EQ(header->max_timestamp, Timestamp(golden::t0));
  EXPECT_EQ(read_all(batch).value()[0].timestamp, golden::t0);
}

TEST(Records, gaps_of_compaction_are_legal_and_other_orders_are_not) {
  EXPECT_EQ(read_all(around("10000000026b027600 10000008026b027600", 2, 9)).value()[1].offset, 4);
  EXPECT_EQ(read_error(around("10000004026b027600 10000004026b027600", 2, 9)), Errc::invalid);
  EXPECT_EQ(read_error(around("10000004026b027600 10000002026b027600", 2, 9)), Errc::invalid);
  EXPECT_EQ(read_error(around("10000014026b027600", 1, 9)), Errc::invalid);
  EXPECT_EQ(read_error(around("10000001026b027600", 1, 9)), Errc::invalid);
}

TEST(Records, malformed_encodings_are_invalid) {
  const struct {
    const char* what;
    std::string_view payload;
  } cases[] = {
      {"length 0", "00"},
      {"negative length", "01"},
      {"length past the end", "12 00 00 00 02 6b 02 76 00"},
      {"length that hides a byte", "0e 00 00 00 02 6b 02 76 00"},
      {"a byte left over in the record", "12 00 00 00 02 6b 02 76 00 00"},
      {"bytes behind the last record", "10 00 00 00 02 6b 02 76 00 00"},
      {"key past its record", "10 00 00 00 7e 6b 02 76 00"},
      {"value past its record", "10 00 00 00 02 6b 08 76 00"},
      {"no header count", "0e 00 00 00 02 6b 02 76"},
      {"negative header count", "10 00 00 00 02 6b 02 76 01"},
      {"more headers than bytes", "10 00 00 00 02 6b 02 76 02"},
      {"a million headers", "14 00 00 00 02 6b 02 76 80897a"},
      {"null header key", "14 00 00 00 02 6b 02 76 02 01 00"},
      {"header value past its record", "14 00 00 00 02 6b 02 76 02 00 04"},
      {"varint of six groups", "808080808000 00 00 00 02 6b 02 76 00"},
      {"varint beyond 32 bits", "ffffffff7f 00 00 00 02 6b 02 76 00"},
      {"no record at all", ""},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(read_error(around(c.payload, 1, 0)), Errc::invalid) << c.what;
  }
}

TEST(Records, lengths_need_not_be_minimal) {
  EXPECT_EQ(read_all(around("9000 00 00 00 02 6b 02 76 00", 1, 0)).value()[0].value, "v");
  EXPECT_EQ(read_all(around("12 00 00 00 8200 6b 02 76 00", 1, 0)).value()[0].key, "k");
}

TEST(Records, any_negative_length_reads_as_null) {
  const auto all = read_all(around("0c 00 00 00 03 05 00", 1, 0));
  ASSERT_TRUE(all) << all.error().to_string();
  EXPECT_EQ(all.value()[0].key, std::nullopt);
  EXPECT_EQ(all.value()[0].value, std::nullopt);
}

TEST(Records, huge_timestamp_deltas_are_survived) {
  // The largest delta added to a base above 0 wraps instead of being undefined.
  const auto wrapped = read_all(around("22 00 feffffffffffffffff01 00 02 6b 02 76 00", 1, 0));
  ASSERT_TRUE(wrapped) << wrapped.error().to_string();
  EXPECT_LT(wrapped.value()[0].timestamp, 0);
  BatchOptions options;
  const std::vector<Owned> far{{0, 0, "a", "b", {}},
                               {1, std::numeric_limits<std::int64_t>::max(), "a", "b", {}}};
  EXPECT_EQ(read_all(build(options, far)).value(), far);
}

TEST(Records, unassigned_codecs_are_corrupt) {
  for (const std::int16_t codec : std::initializer_list<std::int16_t>{5, 6, 7}) {
    EXPECT_EQ(read_error(around("10 00 00 00 02 6b 02 76 00", 1, 0, codec)), Errc::corrupt);
  }
}

TEST(Records, output_limit_holds_for_records_and_batches) {
  BatchOptions options;
  options.codec = Codec::gzip;
  const Bytes batch = build(options, {{0, 1, "a", std::string(500000, 'x'), {}}});
  EXPECT_EQ(read_error(batch, 100000), Errc::too_large);
  EXPECT_TRUE(read_all(batch, 600000));
}

TEST(Records, every_truncation_of_every_vector_is_an_error) {
  for (const auto hex : {golden::v1, golden::v2, golden::v3, golden::plain, golden::gzip,
                         golden::snappy, golden::lz4, golden::zstd, golden::raw_snappy}) {
    const Bytes batch = from_hex(hex);
    for (std::size_t size = 0; size < batch.size(); ++size) {
      const Bytes cut(batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_EQ(read_error(cut), Errc::corrupt) << size;
      if (size < header_bytes) continue;
      // The same with a length that agrees, so that the records themselves are cut.
      Bytes agreeing = cut;
      store_big(agreeing.data() + header_at::batch_length,
                static_cast<std::int32_t>(size - prefix_bytes));
      EXPECT_FALSE(read_all(agreeing)) << size;
    }
  }
}

TEST(Records, no_flipped_byte_reads_out_of_bounds) {
  for (const auto hex : {golden::v2, golden::plain, golden::gzip, golden::snappy, golden::lz4,
                         golden::zstd, golden::raw_snappy}) {
    const Bytes batch = from_hex(hex);
    for (std::size_t at = 0; at < batch.size(); ++at) {
      for (const std::uint8_t flip : std::initializer_list<std::uint8_t>{0x01, 0x80, 0xff}) {
        Bytes damaged = batch;
        damaged[at] ^= flip;
        const auto all = read_all(damaged);
        EXPECT_LE(all ? all->size() : 0, batch.size());
      }
    }
  }
}

TEST(BatchBuilder, refuses_what_a_batch_cannot_hold) {
  BatchBuilder builder({.base_offset = Offset(10)});
  Record record;
  record.timestamp = Timestamp(-2);
  EXPECT_EQ(builder.add(record).error().code, Errc::invalid);
  record.timestamp = no_timestamp;
  record.offset = Offset(9);
  EXPECT_EQ(builder.add_at_offset(record).error().code, Errc::invalid);
  record.offset = Offset(10);
  EXPECT_TRUE(builder.add_at_offset(record));
  EXPECT_EQ(builder.add_at_offset(record).error().code, Errc::invalid);
  record.offset = Offset(10 + (std::int64_t{1} << 31));
  EXPECT_EQ(builder.add_at_offset(record).error().code, Errc::invalid);
  record.offset = Offset(10 + (std::int64_t{1} << 31) - 1);
  EXPECT_TRUE(builder.add_at_offset(record));
  EXPECT_EQ(builder.count(), 2);
}

TEST(BatchBuilder, can_be_used_again_after_finish) {
  BatchBuilder builder({});
  Record record;
  record.timestamp = Timestamp(5);
  ASSERT_TRUE(builder.add(record));
  const Bytes first = *builder.finish();
  ASSERT_TRUE(builder.add(record));
  EXPECT_EQ(*builder.finish(), first);
}

TEST(ControlRecords, published_marker_is_read_and_built_byte_for_byte) {
  const Bytes batch = from_hex(golden::v3);
  const auto control = parse_control(batch);
  ASSERT_TRUE(control) << control.error().to_string();
  EXPECT_EQ(control->type, ControlType::commit);
  EXPECT_TRUE(control->is_end_transaction());
  EXPECT_EQ(control->coordinator_epoch, 9);
  Marker marker;
  marker.commit = true;
  marker.offset = Offset(45);
  marker.epoch = LeaderEpoch(3);
  marker.producer_id = ProducerId(4000);
  marker.producer_epoch = 1;
  marker.coordinator_epoch = 9;
  marker.timestamp = Timestamp(golden::t0);
  EXPECT_EQ(build_marker(marker), batch);
  marker.commit = false;
  EXPECT_EQ(parse_control(build_marker(marker)).value().type, ControlType::abort);
}

TEST(ControlRecords, unknown_types_are_passed_on_and_short_keys_refused) {
  const auto unknown =
      parse_control(around("14 00 00 00 08 0000 0063 01 00", 1, 0, control_bit));
  ASSERT_TRUE(unknown) << unknown.error().to_string();
  EXPECT_EQ(static_cast<int>(unknown->type), 0x63);
  EXPECT_FALSE(unknown->is_end_transaction());
  const auto short_key = parse_control(around("12 00 00 00 06 000000 01 00", 1, 0, control_bit));
  ASSERT_FALSE(short_key);
  EXPECT_EQ(short_key.error().to_string(),
            "invalid: a control record's key is shorter than 4 bytes");
  const auto null_key = parse_control(around("0c 00 00 00 01 01 00", 1, 0, control_bit));
  ASSERT_FALSE(null_key);
  EXPECT_EQ(null_key.error().to_string(), short_key.error().to_string());
  const auto short_value =
      parse_control(around("18 00 00 00 08 0000 0001 04 0000 00", 1, 0, control_bit));
  ASSERT_FALSE(short_value);
  EXPECT_EQ(short_value.error().to_string(),
            "invalid: a marker's value is shorter than 6 bytes");
}

TEST(Varint, published_vectors_hold_in_both_directions) {
  const struct {
    std::int32_t value;
    std::string_view hex;
  } cases[] = {{0, "00"},   {-1, "01"},    {1, "02"},
               {63, "7e"},  {-64, "7f"},   {64, "8001"},
               {300, "d804"}, {2147483647, "feffffff0f"}, {-2147483647 - 1, "ffffffff0f"}};
  for (const auto& c : cases) {
    const Bytes bytes = from_hex(c.hex);
    const std::uint8_t* at = bytes.data();
    std::int32_t value = 0;
    EXPECT_TRUE(read_varint(at, bytes.data() + bytes.size(), value));
    EXPECT_EQ(value, c.value);
    EXPECT_EQ(at, bytes.data() + bytes.size());
    Bytes written(10);
    written.resize(static_cast<std::size_t>(write_varlong(written.data(), c.value) -
                                            written.data()));
    EXPECT_EQ(written, bytes);
    EXPECT_EQ(varint_size(c.value), bytes.size());
  }
}

}  // namespace
}  // namespace polylog::format::kafka
