#include "format/segment/robustmq.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "base/crc.h"
#include "format/segment/frame.h"
#include "format/segment/record_rig.h"

// Frames that the real rkyv and serde_json filled as RobustMQ 0.4.11 does: tests/golden/robustmq.
namespace polylog::format::segment {
namespace {

using rig::Bytes;

std::string golden(const std::string& name) {
  const char* source = std::getenv("POLYLOG_SOURCE_DIR");
  EXPECT_NE(source, nullptr) << "run through ctest";
  return std::string(source != nullptr ? source : ".") + "/tests/golden/robustmq/" + name;
}

Bytes read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<Bytes> golden_frames() {
  const Bytes bytes = read(golden("records.msg"));
  std::vector<Bytes> frames;
  const auto done = for_each_frame(bytes, [&](ByteView frame) -> Result<void> {
    frames.push_back(to_vector(frame));
    return {};
  });
  EXPECT_TRUE(done) << done.error().context;
  return frames;
}

// The table's way of writing a record down; see the generator.
std::string hex(ByteView bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "x";
  for (const std::uint8_t byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}
std::string hex(std::string_view text) { return hex(as_bytes(text)); }
template <typename T>
std::string hex(const std::optional<T>& bytes) {
  return bytes ? hex(*bytes) : "-";
}

template <typename List, typename F>
std::string list(const List& items, F&& text_of) {
  std::string text = "[";
  for (const auto& item : items) text.append(text.size() > 1 ? "," : "") += text_of(item);
  return text;
}

// A list that is not there and an empty one mean the same to us.
std::string normal(std::string row) {
  std::vector<std::string> cells;
  std::istringstream cut(row);
  for (std::string cell; std::getline(cut, cell, '\t');) cells.push_back(cell);
  for (const std::size_t at : {3U, 5U}) {
    if (cells[at] == "-") cells[at] = "[";
  }
  row.clear();
  for (const std::string& cell : cells) row.append(row.empty() ? "" : "\t").append(cell);
  return row;
}

std::string row_of(const RobustmqRecord& it) {
  std::ostringstream row;
  const char tab = '\t';
  row << it.record.offset.value() << tab << hex(it.shard) << tab << it.segment << tab
      << list(it.record.headers,
              [](const Header& header) { return hex(header.name) + "," + hex(header.value); })
      << tab << hex(it.record.key) << tab
      << list(it.tags, [](std::string_view tag) { return hex(tag); }) << tab
      << it.record.timestamp.value() / 1000 << tab << (it.expires ? it.expires->value() / 1000 : 0)
      << tab << hex(it.record.value);
  if (it.mqtt) {
    const RobustmqMqtt& mqtt = *it.mqtt;
    row << tab << hex(mqtt.client_id) << tab << (mqtt.retain ? "true" : "false") << tab;
    if (mqtt.payload_format) {
      row << int{*mqtt.payload_format};
    } else {
      row << '-';
    }
    row << tab << hex(mqtt.response_topic) << tab
        << (mqtt.correlation ? hex(ByteView(*mqtt.correlation)) : "-") << tab
        << hex(mqtt.content_type) << tab << list(mqtt.user_properties, [](const auto& pair) {
             return hex(pair.first) + "," + hex(pair.second);
           });
  }
  return row.str();
}

TEST(Robustmq, golden_records_are_read) {
  const std::vector<Bytes> frames = golden_frames();
  std::ifstream table(golden("records.tsv"));
  std::size_t count = 0;
  for (std::string row; std::getline(table, row); ++count) {
    ASSERT_LT(count, frames.size());
    const auto record = decode_robustmq(frames[count]);
    ASSERT_TRUE(record) << count << ": " << record.error().context;
    EXPECT_EQ(row_of(*record), normal(row)) << count;
    EXPECT_EQ(record->record.timestamp.value() % 1000, 0);
    EXPECT_FALSE(is_ours(*parse_frame(frames[count]))) << count;
  }
  EXPECT_EQ(count, frames.size());
  EXPECT_GE(count, 200u);
}

TEST(Robustmq, other_parts_are_named) {
  std::size_t nats = 0;
  for (const Bytes& frame : golden_frames()) {
    const auto record = decode_robustmq(frame);
    ASSERT_TRUE(record);
    if (record->other_parts.empty()) continue;
    EXPECT_EQ(record->other_parts, std::vector<std::string>{"nats"});
    ++nats;
  }
  EXPECT_EQ(nats, 1u);
}

TEST(Robustmq, truncations_are_corrupt) {
  const std::vector<Bytes> frames = golden_frames();
  for (const std::size_t i : {7U, 14U, 17U}) {
    for (std::size_t size = 0; size < frames[i].size(); ++size) {
      const auto record = decode_robustmq(ByteView(frames[i]).first(size));
      ASSERT_FALSE(record) << size;
      EXPECT_EQ(record.error().code, Errc::corrupt);
    }
    // The same inside a sound frame: the root is looked for at the end, so it can't be found.
    const Frame whole = *parse_frame(frames[i]);
    for (std::size_t size = 0; size < whole.metadata.size(); ++size) {
      Frame cut = whole;
      cut.metadata = whole.metadata.first(size);
      Bytes bytes;
      ASSERT_TRUE(encode(cut, bytes));
      EXPECT_FALSE(decode_robustmq(bytes)) << size;
    }
  }
}

TEST(Robustmq, flipped_bits_are_refused_where_it_can_be_seen) {
  const Bytes frame = golden_frames()[7];
  const std::size_t data_at = frame.size() - parse_frame(frame)->data.size();
  for (std::size_t bit = 0; bit < 8 * frame.size(); ++bit) {
    Bytes flipped = frame;
    flipped[bit / 8] = static_cast<std::uint8_t>(flipped[bit / 8] ^ (1U << bit % 8));
    const auto record = decode_robustmq(flipped);
    // RobustMQ's checksum is over the data alone; the offset and the lengths are there twice.
    if (bit / 8 < frame_at::metadata || bit / 8 >= data_at - 8) {
      EXPECT_FALSE(record) << bit;
    }
  }
}

// A record of RobustMQ with other bytes in its JSON.
Result<RobustmqRecord> with_json(std::string_view json) {
  const Bytes bytes = golden_frames()[0];
  Frame frame = *parse_frame(bytes);
  frame.protocol_data = as_bytes(json);
  Bytes out;
  EXPECT_TRUE(encode(frame, out));
  auto record = decode_robustmq(out);
  if (record) record->record = {};  // its views end with `out`
  return record;
}

TEST(Robustmq, json_is_read_with_the_rules_of_its_writer) {
  const std::string_view least = R"({"client_id":"c","retain":false,"user_properties":[]})";
  const auto mqtt = [](std::string_view part) {
    return with_json(std::string(R"({"mqtt":)").append(part) + "}");
  };
  EXPECT_EQ(mqtt(least)->mqtt->client_id, "c");
  EXPECT_FALSE(mqtt("null")->mqtt);
  // Parts and members of other releases.
  EXPECT_EQ(with_json(R"({"coap":{}})")->other_parts, std::vector<std::string>{"coap"});
  EXPECT_TRUE(mqtt(R"({"client_id":"","retain":true,"user_properties":[],"qos":2})"));
  for (const std::string_view bad :
       {"[]", "7", "{}", R"({"client_id":7,"retain":false,"user_properties":[]})",
        R"({"client_id":"","retain":0,"user_properties":[]})",
        R"({"client_id":"","retain":false})",
        R"({"client_id":"","retain":false,"user_properties":[["a"]]})",
        R"({"client_id":"","retain":false,"user_properties":[["a",1]]})",
        R"({"client_id":"","retain":false,"user_properties":[],"format_indicator":256})",
        R"({"client_id":"","retain":false,"user_properties":[],"correlation_data":[-1]})",
        R"({"client_id":"","retain":false,"user_properties":[],"correlation_data":"YQ=="})",
        R"({"client_id":"","retain":false,"user_properties":[],"content_type":[]})"}) {
    const auto record = mqtt(bad);
    ASSERT_FALSE(record) << bad;
    EXPECT_EQ(record.error().code, Errc::corrupt) << bad;
  }
  for (const std::string_view bad : {"{", "[]", "null", "{\"mqtt\":null}x", "\xff"}) {
    EXPECT_FALSE(with_json(bad)) << bad;
  }
}

// An archive of `count` headers whose names and values are all the same bytes.
Bytes overlapping(std::uint32_t count) {
  const std::size_t text_bytes = 1000;
  const std::size_t elements = 2 * std::size_t{count};
  Bytes metadata(text_bytes + elements * 8 + robustmq_root_bytes, 'a');
  const auto put = [&](std::size_t at, std::int64_t value) {
    for (std::size_t i = 0; i < 4; ++i) {
      metadata[at + i] = static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) >> (8 * i));
    }
  };
  const std::size_t root = metadata.size() - robustmq_root_bytes;
  std::fill(metadata.begin() + static_cast<std::ptrdiff_t>(root), metadata.end(), std::uint8_t{0});
  for (std::size_t i = 0; i < elements; ++i) {
    const std::size_t at = text_bytes + 8 * i;
    put(at, (text_bytes & 0x3f) | (text_bytes & ~std::size_t{0x3f}) << 2 | 0x80);
    put(at + 4, -static_cast<std::int64_t>(at));
  }
  metadata[root + 8] = 0xff;  // no shard name
  metadata[root + 20] = 1;
  put(root + 24, static_cast<std::int64_t>(text_bytes) - static_cast<std::int64_t>(root + 24));
  put(root + 28, count);
  Bytes out;
  EXPECT_TRUE(encode(Frame{Offset(0), metadata, {}, {}}, out));
  return out;
}

TEST(Robustmq, texts_that_overlap_are_corrupt) {
  // Otherwise the time spent on them would not be bounded by the archive's size.
  EXPECT_TRUE(decode_robustmq(overlapping(0)));
  const auto record = decode_robustmq(overlapping(500));
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().code, Errc::corrupt);
}

TEST(Robustmq, times_that_are_no_milliseconds_are_corrupt) {
  Bytes frame = golden_frames()[0];
  const std::size_t root =
      frame_at::metadata + parse_frame(frame)->metadata.size() - robustmq_root_bytes;
  for (const std::size_t at : {56U, 64U}) {
    Bytes far = frame;
    far[root + at + 7] = 0x7f;
    EXPECT_FALSE(decode_robustmq(far));
  }
}

TEST(Robustmq, becomes_a_record_of_ours_and_is_written_and_read_back) {
  for (const Bytes& frame : golden_frames()) {
    const auto record = decode_robustmq(frame);
    ASSERT_TRUE(record);
    StoredRecord ours = to_stored(*record);
    EXPECT_EQ(ours.append_time, record->record.timestamp);
    EXPECT_EQ(ours.expires, record->expires);
    ASSERT_EQ(ours.mqtt.has_value(), record->mqtt.has_value());
    const std::size_t properties = record->mqtt ? record->mqtt->user_properties.size() : 0;
    EXPECT_EQ(ours.record.headers.size(),
              record->record.headers.size() + record->tags.size() + properties);
    const Bytes stored = rig::stored(ours);
    const auto back = decode(stored);
    ASSERT_TRUE(back);
    EXPECT_TRUE(rig::same(*back, ours));
  }
}

TEST(Robustmq, tags_and_user_properties_become_headers) {
  RobustmqRecord record;
  record.record.headers = {{"own", as_bytes("1")}};
  record.tags = {"t"};
  record.mqtt = RobustmqMqtt{.client_id = "c",
                             .retain = true,
                             .payload_format = std::uint8_t{0},
                             .response_topic = "r",
                             .correlation = Bytes{1, 2},
                             .content_type = "",
                             .user_properties = {{"u", "2"}}};
  const StoredRecord ours = to_stored(record);
  const std::vector<Header> expected{
      {"own", as_bytes("1")}, {"robustmq.tag", as_bytes("t")}, {"u", as_bytes("2")}};
  EXPECT_TRUE(rig::same(ours.record.headers, expected));
  ASSERT_TRUE(ours.mqtt);
  EXPECT_EQ(ours.mqtt->qos, 1);
  EXPECT_TRUE(ours.mqtt->retain);
  EXPECT_EQ(ours.mqtt->payload_format, std::uint8_t{0});
  EXPECT_EQ(ours.mqtt->client_id, "c");
  EXPECT_EQ(ours.mqtt->response_topic, "r");
  EXPECT_EQ(ours.mqtt->content_type, "");
  EXPECT_EQ(to_vector(*ours.mqtt->correlation), (Bytes{1, 2}));
  EXPECT_FALSE(ours.mqtt->expiry_interval_s);
}

}  // namespace
}  // namespace polylog::format::segment
