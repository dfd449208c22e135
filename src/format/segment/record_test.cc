#include "format/segment/record.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <limits>

#include "bytes/endian.h"
#include "format/segment/record_parts.h"
#include "format/segment/record_rig.h"

namespace polylog::format::segment {
namespace {

using rig::Bytes;
using rig::from_hex;
using rig::full;
using rig::full_hex;
using rig::message;
using rig::message_hex;
using rig::plain;
using rig::plain_hex;
using rig::same;
using rig::stored;

std::vector<Bytes> samples() {
  return {from_hex(plain_hex), from_hex(full_hex), from_hex(message_hex)};
}

// A frame around these parts, as if somebody had written them.
Bytes frame_of(ByteView metadata, ByteView protocol_data, ByteView data) {
  Bytes out;
  EXPECT_TRUE(encode(Frame{Offset(1), metadata, protocol_data, data}, out));
  return out;
}

Errc code_of(ByteView frame) {
  const auto record = decode(frame);
  EXPECT_FALSE(record);
  return record ? Errc::io : record.error().code;
}

TEST(SegmentRecord, has_the_documented_bytes) {
  EXPECT_EQ(stored(plain()), from_hex(plain_hex));
  EXPECT_EQ(stored(full()), from_hex(full_hex));
  EXPECT_EQ(stored(message()), from_hex(message_hex));
}

TEST(SegmentRecord, documented_bytes_are_read_back) {
  const std::vector<StoredRecord> records{plain(), full(), message()};
  const std::vector<Bytes> frames = samples();
  for (std::size_t i = 0; i < records.size(); ++i) {
    EXPECT_TRUE(crc_matches(frames[i])) << i;
    const auto back = decode(frames[i]);
    ASSERT_TRUE(back) << i << ": " << back.error().context;
    EXPECT_TRUE(same(*back, records[i])) << i;
    const auto head = decode_head(frames[i]);
    ASSERT_TRUE(head) << i << ": " << head.error().context;
    EXPECT_EQ(head->offset, records[i].record.offset);
    EXPECT_EQ(head->shown_time, records[i].shown_time());
    EXPECT_EQ(head->producer, records[i].producer);
  }
}

TEST(SegmentRecord, appends_behind_what_is_there) {
  Bytes out;
  ASSERT_TRUE(encode(plain(), out));
  const std::size_t size = out.size();
  ASSERT_TRUE(encode(message(), out));
  place(MutableBytes(out).first(size), Offset(5));
  place(MutableBytes(out).subspan(size), Offset(0));
  Bytes both = from_hex(plain_hex);
  const Bytes second = from_hex(message_hex);
  both.insert(both.end(), second.begin(), second.end());
  EXPECT_EQ(out, both);
}

TEST(SegmentRecord, every_flipped_bit_is_noticed) {
  for (const Bytes& frame : samples()) {
    for (std::size_t bit = 0; bit < 8 * frame.size(); ++bit) {
      Bytes flipped = frame;
      flipped[bit / 8] = static_cast<std::uint8_t>(flipped[bit / 8] ^ (1U << bit % 8));
      EXPECT_FALSE(crc_matches(flipped)) << bit;
      (void)decode(flipped);
      (void)decode_head(flipped);
    }
  }
}

TEST(SegmentRecord, every_truncation_is_refused) {
  for (const Bytes& frame : samples()) {
    for (std::size_t size = 0; size < frame.size(); ++size) {
      const ByteView cut = ByteView(frame).first(size);
      EXPECT_EQ(code_of(cut), Errc::corrupt) << size;
      EXPECT_FALSE(decode_head(cut)) << size;
      EXPECT_FALSE(crc_matches(cut)) << size;
    }
  }
}

TEST(SegmentRecord, parts_cut_inside_a_sound_frame_are_refused) {
  for (const Bytes& bytes : samples()) {
    const Frame frame = *parse_frame(bytes);
    for (std::size_t size = 0; size < frame.metadata.size(); ++size) {
      const Bytes cut = frame_of(frame.metadata.first(size), frame.protocol_data, frame.data);
      EXPECT_EQ(code_of(cut), Errc::corrupt) << size;
    }
    const std::size_t producer_bytes = 12;  // full()'s: without what follows it is a record too
    for (std::size_t size = 1; size < frame.protocol_data.size(); ++size) {
      const Bytes cut = frame_of(frame.metadata, frame.protocol_data.first(size), frame.data);
      if (frame.data.empty() && size == producer_bytes) continue;
      EXPECT_EQ(code_of(cut), Errc::corrupt) << size;
    }
    Bytes longer = to_vector(frame.metadata);
    longer.push_back(0);
    EXPECT_EQ(code_of(frame_of(longer, {}, {})), Errc::corrupt);
  }
}

TEST(SegmentRecord, an_unplaced_frame_does_not_pass_for_a_placed_one) {
  Bytes frame;
  ASSERT_TRUE(encode(plain(), frame));
  EXPECT_FALSE(crc_matches(frame));
  place(frame, Offset(0));
  EXPECT_TRUE(crc_matches(frame));
  place(frame, Offset(0));
  EXPECT_FALSE(crc_matches(frame));
}

TEST(SegmentRecord, frames_moved_to_another_offset_are_noticed) {
  Bytes frame = stored(plain());
  store_big(frame.data(), std::uint64_t{6});
  EXPECT_FALSE(crc_matches(frame));
}

TEST(SegmentRecord, null_and_empty_stay_different) {
  for (const bool key : {false, true}) {
    for (const bool value : {false, true}) {
      StoredRecord record;
      if (key) record.record.key = ByteView();
      if (value) record.record.value = ByteView();
      const Bytes frame = stored(record);
      const auto back = decode(frame);
      ASSERT_TRUE(back);
      EXPECT_EQ(back->record.key.has_value(), key);
      EXPECT_EQ(back->record.value.has_value(), value);
    }
  }
}

TEST(SegmentRecord, times_of_all_values_come_back) {
  constexpr std::int64_t first = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t last = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t created : {first, std::int64_t{-1}, std::int64_t{0}, last}) {
    for (const std::int64_t other : {first, std::int64_t{-2}, std::int64_t{-1}, last}) {
      StoredRecord record = plain();
      record.record.timestamp = Timestamp(created);
      record.append_time = Timestamp(other);
      record.expires = Timestamp(other);
      record.shows_append_time = created == 0;
      const Bytes frame = stored(record);
      const auto back = decode(frame);
      ASSERT_TRUE(back);
      EXPECT_TRUE(same(*back, record)) << created << ' ' << other;
      EXPECT_EQ(decode_head(frame)->shown_time, record.shown_time());
    }
  }
}

TEST(SegmentRecord, shown_without_an_append_time_shows_none) {
  StoredRecord record = plain();
  record.shows_append_time = true;
  const Bytes frame = stored(record);
  EXPECT_EQ(decode_head(frame)->shown_time, no_timestamp);
  EXPECT_TRUE(same(*decode(frame), record));
}

TEST(SegmentRecord, other_versions_and_flags_are_unsupported) {
  for (const auto& [at, value] : {std::pair{0, 0}, {0, 2}, {0, 'c'}, {1, 0x40}, {1, 0x80}}) {
    Bytes frame = from_hex(plain_hex);
    frame[frame_at::metadata + static_cast<std::size_t>(at)] = static_cast<std::uint8_t>(value);
    EXPECT_EQ(code_of(frame), Errc::unsupported);
    EXPECT_EQ(decode_head(frame).error().code, Errc::unsupported);
    EXPECT_FALSE(is_ours(*parse_frame(frame)));
    EXPECT_FALSE(crc_matches(frame));
  }
  const Bytes ours = from_hex(plain_hex);
  EXPECT_TRUE(is_ours(*parse_frame(ours)));
  EXPECT_FALSE(is_ours(*parse_frame(frame_of(as_bytes("\x01"), {}, {}))));
}

TEST(SegmentRecord, unknown_parts_are_skipped) {
  const Bytes bytes = from_hex(full_hex);
  const Frame frame = *parse_frame(bytes);
  Bytes parts = to_vector(frame.protocol_data);
  const Bytes later{0x80, 0x01, 2, 'x', 'y'};  // tag 128
  parts.insert(parts.end(), later.begin(), later.end());
  const Bytes extended = frame_of(frame.metadata, parts, frame.data);
  const auto back = decode(extended);
  ASSERT_TRUE(back) << back.error().context;
  EXPECT_EQ(back->producer, full().producer);
  EXPECT_TRUE(same(back->mqtt, full().mqtt));
}

TEST(SegmentRecord, parts_twice_or_out_of_order_are_corrupt) {
  const Bytes metadata = from_hex("010000000000" "00");
  const auto with = [&](std::string_view hex) {
    return frame_of(metadata, from_hex(hex), as_bytes("d"));
  };
  const std::string producer = "01050200000002";
  const std::string mqtt = "03020000";
  EXPECT_TRUE(decode(with(producer + mqtt)));
  EXPECT_EQ(code_of(with(producer + producer)), Errc::corrupt);
  EXPECT_EQ(code_of(with(mqtt + producer)), Errc::corrupt);
  EXPECT_EQ(code_of(with("0000")), Errc::corrupt);
}

TEST(SegmentRecord, impossible_parts_are_corrupt) {
  const Bytes metadata = from_hex("010000000000" "00");
  const auto code = [&](std::string_view hex) {
    return code_of(frame_of(metadata, from_hex(hex), as_bytes("d")));
  };
  EXPECT_EQ(code("01050300000002"), Errc::corrupt);        // producer id -2
  EXPECT_EQ(code("01050203000002"), Errc::corrupt);        // epoch -2
  EXPECT_EQ(code("0107028080040000" "02"), Errc::corrupt);  // epoch 32768
  EXPECT_EQ(code("01050200030002"), Errc::corrupt);        // base sequence -2
  EXPECT_EQ(code("01050200000102"), Errc::corrupt);        // index -1
  EXPECT_EQ(code("01050200000202"), Errc::corrupt);        // index 1 of 1
  EXPECT_EQ(code("01050200000000"), Errc::corrupt);        // index 0 of 0
  EXPECT_EQ(code("0106020000000200"), Errc::corrupt);      // one byte too many
  EXPECT_EQ(code("03020300"), Errc::corrupt);              // QoS 3
  EXPECT_EQ(code("03020800"), Errc::unsupported);          // an attribute of later
  EXPECT_EQ(code("03020080"), Errc::unsupported);          // a field of later
  EXPECT_EQ(code("030300ff01"), Errc::unsupported);
  EXPECT_EQ(code("03020001"), Errc::corrupt);              // the topic is missing
  const std::string hosts = "04010203040004010203040000" "00" "00";
  EXPECT_TRUE(decode(frame_of(metadata, from_hex("02110000" + hosts), as_bytes("d"))));
  EXPECT_EQ(code("02110020" + hosts), Errc::corrupt);  // sys flag with a host bit
  EXPECT_EQ(code("02100000" "030102030004010203040000" "00" "00"), Errc::corrupt);  // 3 bytes
}

TEST(SegmentRecord, impossible_metadata_is_corrupt) {
  const auto code = [](std::string_view hex, std::string_view data) {
    return code_of(frame_of(from_hex(hex), {}, as_bytes(data)));
  };
  EXPECT_EQ(code("010200000000" "00", "d"), Errc::corrupt);            // null with bytes
  EXPECT_EQ(code("010400000000" "00" "00", ""), Errc::corrupt);        // a list of no headers
  EXPECT_EQ(code("010400000000" "00" "02" "0001", ""), Errc::corrupt);  // one of two headers
  EXPECT_EQ(code("010400000000" "00" "01" "0003", ""), Errc::corrupt);  // value of length -2
  EXPECT_EQ(code("010400000000" "00" "ffffffff0f" "0001", ""), Errc::corrupt);
  EXPECT_EQ(code("010100000000" "00" "ffffffff0f", ""), Errc::corrupt);   // key of 4 GiB
  EXPECT_EQ(code("010100000000" "00" "ffffffff1f", ""), Errc::corrupt);   // beyond 32 bits
  EXPECT_EQ(code("010100000000" "00" "808080808000", ""), Errc::corrupt);  // six groups
  EXPECT_EQ(code("010000000000" "ffffffffffffffffff02", ""), Errc::corrupt);
}

TEST(SegmentRecord, what_no_reader_takes_is_not_written) {
  Bytes out;
  const auto code = [&](const StoredRecord& record) {
    const auto done = encode(record, out);
    EXPECT_TRUE(out.empty());
    return done ? Errc::io : done.error().code;
  };
  StoredRecord record = plain();
  record.mqtt = MqttPart{.qos = 3};
  EXPECT_EQ(code(record), Errc::invalid);
  record = plain();
  record.producer = ProducerPart{ProducerId(1), 0, 0, 3, 3};
  EXPECT_EQ(code(record), Errc::invalid);
  record = message();
  record.rocketmq->born_address = record.rocketmq->born_address.first(3);
  EXPECT_EQ(code(record), Errc::invalid);
  record = message();
  record.rocketmq->sys_flag |= 0x20;
  EXPECT_EQ(code(record), Errc::invalid);
}

TEST(SegmentRecord, sizes_beyond_an_int_are_refused) {
  // Address space alone: nothing of it is ever read.
  const std::size_t size = std::size_t{1} << 31;
  void* const room = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(room, MAP_FAILED);
  const ByteView bytes(static_cast<const std::uint8_t*>(room), size);
  Bytes out;
  StoredRecord record = plain();
  record.record.value = bytes;
  EXPECT_EQ(encode(record, out).error().code, Errc::too_large);
  record.record.value = bytes.first(size / 2);
  record.record.key = bytes.first(size / 2);
  EXPECT_EQ(encode(record, out).error().code, Errc::too_large);
  record = plain();
  record.record.headers = {{as_text(bytes), std::nullopt}};
  EXPECT_EQ(encode(record, out).error().code, Errc::invalid);
  EXPECT_TRUE(out.empty());
  ::munmap(room, size);
}

TEST(SegmentRecord, folded_heads_describe_their_batch) {
  StoredRecord record = plain();
  std::optional<BatchInfo> info;
  const std::int64_t times[] = {5, 9, 7};
  for (std::int32_t i = 0; i < 3; ++i) {
    record.record.offset = Offset(100 + i);
    record.record.timestamp = Timestamp(times[i]);
    record.producer = ProducerPart{ProducerId(8), 2, 2'147'483'646, i, 3};
    const auto head = decode_head(stored(record));
    ASSERT_TRUE(head);
    if (info) {
      fold(*info, *head);
    } else {
      info = to_info(*head);
    }
  }
  EXPECT_EQ(info->first, Offset(100));
  EXPECT_EQ(info->last, Offset(102));
  EXPECT_EQ(info->records, 3);
  EXPECT_EQ(info->max_timestamp, Timestamp(9));
  EXPECT_EQ(info->producer.id, ProducerId(8));
  EXPECT_EQ(info->producer.epoch, 2);
  EXPECT_EQ(info->producer.first_sequence, 2'147'483'646);
  EXPECT_EQ(info->producer.last_sequence, 0);
  EXPECT_FALSE(info->transactional || info->control);
}

TEST(SegmentRecord, records_without_a_producer_have_no_stamp) {
  const RecordHead head{Offset(3), Timestamp(4), std::nullopt};
  BatchInfo info = to_info(head);
  EXPECT_EQ(info.producer.id, no_producer);
  EXPECT_EQ(info.producer.first_sequence, -1);
  fold(info, {Offset(4), Timestamp(1), ProducerPart{ProducerId(1), 0, 5, 0, 1}});
  EXPECT_EQ(info.records, 2);
  EXPECT_EQ(info.producer.id, no_producer);
  EXPECT_EQ(info.producer.last_sequence, -1);
  EXPECT_EQ(to_info({Offset(0), Timestamp(0), ProducerPart{ProducerId(1), 0, -1, 4, 5}})
                .producer.first_sequence,
            -1);
}

}  // namespace
}  // namespace polylog::format::segment
