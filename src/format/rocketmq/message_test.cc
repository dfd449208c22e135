#include "format/rocketmq/message.h"

#include <gtest/gtest.h>

#include <limits>

#include "bytes/endian.h"
#include "format/rocketmq/check_values.h"

namespace polylog::format::rocketmq {
namespace {

using check::Bytes;
using check::from_hex;

template <typename T>
Bytes patched(Bytes bytes, std::size_t at, T value) {
  store_big(bytes.data() + at, value);
  return bytes;
}

Bytes encoded(const Message& message) {
  Bytes bytes;
  const auto done = encode(message, bytes);
  EXPECT_TRUE(done) << done.error().to_string();
  return bytes;
}

Host v6_host(std::uint8_t last, std::int32_t port) {
  Host host;
  host.v6 = true;
  host.address = {0x20, 0x01, 0x0d, 0xb8};
  host.address[15] = last;
  host.port = port;
  return host;
}

void expect_equal(const Message& a, const Message& b) {
  EXPECT_EQ(a.queue_id, b.queue_id);
  EXPECT_EQ(a.flag, b.flag);
  EXPECT_EQ(a.queue_offset, b.queue_offset);
  EXPECT_EQ(a.physical_offset, b.physical_offset);
  EXPECT_EQ(a.born_timestamp, b.born_timestamp);
  EXPECT_EQ(a.born_host, b.born_host);
  EXPECT_EQ(a.store_timestamp, b.store_timestamp);
  EXPECT_EQ(a.store_host, b.store_host);
  EXPECT_EQ(a.reconsume_times, b.reconsume_times);
  EXPECT_EQ(a.prepared_transaction_offset, b.prepared_transaction_offset);
  EXPECT_EQ(Bytes(a.body.begin(), a.body.end()), Bytes(b.body.begin(), b.body.end()));
  EXPECT_EQ(a.topic, b.topic);
  EXPECT_EQ(a.properties, b.properties);
}

TEST(Message, check_value_encodes_to_the_published_bytes) {
  const Bytes bytes = encoded(check::message());
  EXPECT_EQ(bytes, from_hex(check::record));
  EXPECT_EQ(check::message().size(), 165U);
}

TEST(Message, check_value_parses_to_the_published_fields) {
  const Bytes bytes = from_hex(check::record);
  const auto message = parse(bytes);
  ASSERT_TRUE(message) << message.error().to_string();
  expect_equal(*message, check::message());
  EXPECT_EQ(message->magic, magic_v1);
  EXPECT_EQ(message->sys_flag, 0);
  EXPECT_EQ(message->body_crc, 0x3610a686U);
  EXPECT_TRUE(crc_matches(*message));
}

TEST(Message, body_crc_is_cut_to_31_bits) {
  EXPECT_EQ(body_crc(as_bytes("a")), 0x68b7be43U);
  EXPECT_EQ(body_crc({}), 0U);
}

TEST(Message, smallest_record_has_91_bytes_and_its_topic) {
  Message message;
  message.topic = "t";
  const Bytes bytes = encoded(message);
  EXPECT_EQ(bytes.size(), fixed_bytes_min + 1);
  const auto parsed = parse(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(parsed->body.empty());
  EXPECT_TRUE(parsed->properties.empty());
  EXPECT_TRUE(crc_matches(*parsed));
}

TEST(Message, hosts_set_their_bits_and_take_20_bytes_when_v6) {
  for (const bool born : {false, true}) {
    for (const bool store : {false, true}) {
      Message message = check::message();
      message.sys_flag = sys_flag::compressed | 0x300 | (born ? 0 : sys_flag::born_host_v6);
      if (born) message.born_host = v6_host(1, 50000);
      if (store) message.store_host = v6_host(2, 10911);
      const Bytes bytes = encoded(message);
      EXPECT_EQ(bytes.size(), 165U + (born ? 12 : 0) + (store ? 12 : 0));
      const auto parsed = parse(bytes);
      ASSERT_TRUE(parsed) << parsed.error().to_string();
      expect_equal(*parsed, message);
      EXPECT_EQ(parsed->sys_flag, sys_flag::compressed | 0x300 |
                                      (born ? sys_flag::born_host_v6 : 0) |
                                      (store ? sys_flag::store_host_v6 : 0));
      EXPECT_EQ(parsed->size(), bytes.size());
    }
  }
}

TEST(Message, topic_of_127_bytes_is_v1_and_of_128_to_255_v2) {
  for (const std::size_t size : {1U, 127U, 128U, 255U}) {
    Message message = check::message();
    const std::string topic(size, 'x');
    message.topic = topic;
    const Bytes bytes = encoded(message);
    EXPECT_EQ(load_big<std::uint32_t>(bytes.data() + 4), size <= 127 ? magic_v1 : magic_v2);
    const auto parsed = parse(bytes);
    ASSERT_TRUE(parsed) << size;
    expect_equal(*parsed, message);
    EXPECT_EQ(parsed->size(), bytes.size());
  }
  Message message = check::message();
  const std::string topic(256, 'x');
  message.topic = topic;
  Bytes bytes;
  EXPECT_EQ(encode(message, bytes).error().code, Errc::too_large);
  EXPECT_TRUE(bytes.empty());
}

TEST(Message, v2_with_a_short_topic_is_read_and_stays_v2) {
  Message message = check::message();
  message.magic = magic_v2;
  const Bytes bytes = encoded(message);
  EXPECT_EQ(bytes.size(), 166U);
  const auto parsed = parse(bytes);
  ASSERT_TRUE(parsed);
  expect_equal(*parsed, message);
  EXPECT_EQ(encoded(*parsed), bytes);
}

TEST(Message, properties_of_32767_bytes_fit_and_one_more_do_not) {
  Message message = check::message();
  const std::string most(properties_bytes_max, 'p');
  message.properties = most;
  const auto parsed = parse(encoded(message));
  ASSERT_TRUE(parsed);
  const std::string more(properties_bytes_max + 1, 'p');
  message.properties = more;
  Bytes bytes;
  EXPECT_EQ(encode(message, bytes).error().code, Errc::too_large);
}

TEST(Message, without_topic_or_with_a_negative_queue_is_invalid) {
  Message message = check::message();
  message.topic = {};
  Bytes bytes;
  EXPECT_EQ(encode(message, bytes).error().code, Errc::invalid);
  message = check::message();
  message.queue_id = -1;
  EXPECT_EQ(encode(message, bytes).error().code, Errc::invalid);
}

TEST(Message, encode_appends) {
  Bytes bytes{1, 2, 3};
  ASSERT_TRUE(encode(check::message(), bytes));
  EXPECT_EQ(bytes.size(), 168U);
  EXPECT_EQ(Bytes(bytes.begin() + 3, bytes.end()), from_hex(check::record));
}

TEST(Message, structure_that_does_not_hold_together_is_corrupt) {
  const Bytes good = from_hex(check::record);
  const std::vector<Bytes> bad{
      {},
      patched<std::int32_t>(good, 0, 164),                       // TOTALSIZE
      patched<std::uint32_t>(good, 4, magic_blank),              // magic
      patched<std::uint32_t>(good, 4, magic_v2),                 // topic length is then 0x0954
      patched<std::int32_t>(good, 12, -1),                       // queue id
      patched<std::int64_t>(good, 20, -1),                       // queue offset
      patched<std::int64_t>(good, 28, -1),                       // physical offset
      patched<std::int32_t>(good, 36, sys_flag::store_host_v6),  // all shifted by 12
      patched<std::int32_t>(good, 84, -1),                       // body length
      patched<std::int32_t>(good, 84, 4),
      patched<std::int32_t>(good, 84, 6),
      patched<std::int32_t>(good, 84, std::numeric_limits<std::int32_t>::max()),
      patched<std::int8_t>(good, 93, 0),  // topic length
      patched<std::int8_t>(good, 93, -1),
      patched<std::int8_t>(good, 93, 127),
      patched<std::int16_t>(good, 103, 59),  // properties length
      patched<std::int16_t>(good, 103, 61),
      patched<std::int16_t>(good, 103, -1)};
  for (std::size_t i = 0; i < bad.size(); ++i) {
    const auto parsed = parse(bad[i]);
    ASSERT_FALSE(parsed) << i;
    EXPECT_EQ(parsed.error().code, Errc::corrupt) << i;
  }
}

TEST(Message, no_cut_of_a_record_is_read_beyond_its_end) {
  Message message = check::message();
  message.born_host = v6_host(1, 1);
  message.store_host = v6_host(2, 2);
  message.magic = magic_v2;
  const Bytes whole = encoded(message);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    if (size >= 4) store_big(cut.data(), static_cast<std::int32_t>(size));
    EXPECT_FALSE(parse(cut)) << size;
  }
}

TEST(Message, placement_is_patched_where_parse_finds_it) {
  for (const bool v6 : {false, true}) {
    Message message = check::message();
    if (v6) message.born_host = v6_host(1, 50000);
    Bytes bytes = encoded(message);
    patch_placement(bytes, {17, 1'073'741'824'123, 1'700'000'000'999});
    const auto parsed = parse(bytes);
    ASSERT_TRUE(parsed);
    message.queue_offset = 17;
    message.physical_offset = 1'073'741'824'123;
    message.store_timestamp = 1'700'000'000'999;
    expect_equal(*parsed, message);
  }
}

TEST(MessageFrames, are_judged_by_their_first_8_bytes) {
  struct Case {
    std::int32_t size;
    std::uint32_t magic;
    std::uint64_t remaining;
    FrameState state;
    std::uint64_t frame_size;
  };
  for (const Case& c : {
           Case{165, magic_v1, 165, FrameState::complete, 165},
           Case{165, magic_v2, 1'000'000, FrameState::complete, 165},
           Case{91, magic_v1, 91, FrameState::complete, 91},
           Case{90, magic_v1, 1000, FrameState::corrupt, 0},
           Case{-1, magic_v1, 1000, FrameState::corrupt, 0},
           Case{166, magic_v1, 165, FrameState::torn, 166},
           Case{165, magic_v1, 7, FrameState::torn, 0},
           Case{0, 0, 8, FrameState::zeros, 0},
           Case{0, 0, 7, FrameState::torn, 0},
           Case{0, 0, 0, FrameState::torn, 0},
           Case{165, 0, 1000, FrameState::corrupt, 0},
           Case{0, magic_v1, 1000, FrameState::corrupt, 0},
           Case{8, magic_blank, 8, FrameState::blank, 8},
           Case{1000, magic_blank, 8, FrameState::blank, 1000},
           Case{-1, magic_blank, 8, FrameState::corrupt, 0},
           Case{165, 0xdaa320a8, 1000, FrameState::corrupt, 0},
       }) {
    Bytes head(8);
    store_big(head.data(), c.size);
    store_big(head.data() + 4, c.magic);
    const FrameHead frame = next_frame(head, c.remaining);
    EXPECT_EQ(frame.state, c.state) << c.size << ' ' << std::hex << c.magic;
    EXPECT_EQ(frame.size, c.frame_size) << c.size << ' ' << std::hex << c.magic;
  }
}

TEST(MessageFrames, blank_record_says_what_remains) {
  const auto blank = blank_record(173);
  EXPECT_EQ(Bytes(blank.begin(), blank.end()), from_hex("000000adcbd43194"));
  EXPECT_EQ(next_frame(blank, 173).state, FrameState::blank);
}

TEST(MessageFrames, for_each_walks_whole_records_only) {
  Bytes bytes = from_hex(check::record);
  ASSERT_TRUE(encode(check::message(), bytes));
  int seen = 0;
  const auto count = [&](ByteView record, const Message& message) -> Result<void> {
    EXPECT_EQ(record.size(), message.size());
    ++seen;
    return {};
  };
  EXPECT_TRUE(for_each_message(bytes, count));
  EXPECT_EQ(seen, 2);
  bytes.push_back(0);
  EXPECT_EQ(for_each_message(bytes, count).error().code, Errc::corrupt);
}

TEST(MessageIds, are_host_and_offset_in_upper_case_hex) {
  EXPECT_EQ(offset_message_id(check::message().store_host, 0), "C0A8010200002A9F0000000000000000");
  for (const Host& host : {check::message().store_host, v6_host(0xab, 10911)}) {
    const std::string id = offset_message_id(host, 0x123456789abcdef0);
    EXPECT_EQ(id.size(), host.v6 ? 56U : 32U);
    const auto parsed = parse_offset_message_id(id);
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->store_host, host);
    EXPECT_EQ(parsed->physical_offset, 0x123456789abcdef0);
  }
}

TEST(MessageIds, other_texts_are_invalid) {
  EXPECT_TRUE(parse_offset_message_id("c0a8010200002a9f0000000000000000"));
  for (const char* text :
       {"", "C0A8010200002A9F000000000000000", "C0A8010200002A9F00000000000000000",
        "G0A8010200002A9F0000000000000000", "C0A8010200002A9FFFFFFFFFFFFFFFFF",
        "C0A8010200002A9F 000000000000000"}) {
    const auto parsed = parse_offset_message_id(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Errc::invalid);
  }
}

TEST(Message, hosts_are_read_from_text_in_both_families) {
  const auto v4 = parse_host("10.1.2.3:10911");
  ASSERT_TRUE(v4);
  EXPECT_EQ(v4->address[0], 10);
  EXPECT_EQ(v4->port, 10911);
  const auto v6 = parse_host("[::1]:9");
  ASSERT_TRUE(v6);
  EXPECT_TRUE(v6->v6);
  EXPECT_EQ(v6->address[15], 1);
  for (const char* const bad : {"", "10.1.2.3", "10.1.2:1", "10.1.2.256:1", "host:1", "1.2.3.4:x",
                                "1.2.3.4:65536", "1.2.3.4:-1", "::1:9"}) {
    EXPECT_FALSE(parse_host(bad)) << bad;
  }
}

}  // namespace
}  // namespace polylog::format::rocketmq
