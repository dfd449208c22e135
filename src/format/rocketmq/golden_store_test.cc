#include <gtest/gtest.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "format/rocketmq/batch_body.h"
#include "format/rocketmq/check_values.h"
#include "format/rocketmq/checkpoint.h"
#include "format/rocketmq/config_json.h"
#include "format/rocketmq/consume_queue.h"
#include "format/rocketmq/consume_queue_ext.h"
#include "format/rocketmq/delay_levels.h"
#include "format/rocketmq/index_file.h"
#include "format/rocketmq/message.h"
#include "format/rocketmq/names.h"
#include "format/rocketmq/property_crc.h"

// Files that RocketMQ wrote, and what RocketMQ reads in them: tests/golden/rocketmq_store.
namespace polylog::format::rocketmq {
namespace {

using check::Bytes;
using check::from_hex;
using Row = std::vector<std::string>;

constexpr std::int64_t log_file_bytes = 40'960;
constexpr std::int64_t queue_file_bytes = 200;
constexpr std::int32_t slots = 16;
constexpr std::int32_t entries = 64;

std::filesystem::path golden(const std::string& name) {
  const char* source = std::getenv("POLYLOG_SOURCE_DIR");
  EXPECT_NE(source, nullptr) << "run through ctest";
  return std::filesystem::path(source != nullptr ? source : ".") / "tests/golden/rocketmq_store" /
         name;
}

Bytes read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string read_text(const std::string& name) {
  const Bytes bytes = read(golden(name));
  return std::string(as_text(bytes));
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  for (std::size_t to = text.find(separator); to != std::string::npos;
       to = text.find(separator, from)) {
    parts.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  if (from < text.size()) parts.push_back(text.substr(from));
  return parts;
}

std::vector<Row> rows_of(const std::string& name) {
  std::vector<Row> rows;
  for (const std::string& line : split(read_text(name), '\n')) rows.push_back(split(line, '\t'));
  EXPECT_FALSE(rows.empty()) << name;
  return rows;
}

std::int64_t number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  EXPECT_TRUE(error == std::errc() && end == text.data() + text.size()) << text;
  return value;
}

// As the generator writes bytes: in hexadecimal, or long ones as length and hash.
std::string shown(std::string_view bytes) {
  if (bytes.size() > 255) {
    return std::to_string(bytes.size()) + "#" + std::to_string(java_hash(bytes));
  }
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<std::uint8_t>(c);
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::string shown(const Host& host) {
  const ByteView address = ByteView(host.address).first(host.v6 ? 16 : 4);
  return shown(as_text(address)) + ":" + std::to_string(host.port);
}

std::string shown_properties(std::string_view text) {
  std::map<std::string_view, std::string_view> sorted;
  for_each_property(text, [&](std::string_view name, std::string_view value) {
    sorted[name] = value;
    return true;
  });
  std::string out;
  for (const auto& [name, value] : sorted) out.append(shown(name) + "=" + shown(value) + ",");
  return out;
}

std::string shown_hashes(const Message& message) {
  std::string out;
  for_each_key(message.properties, [&](std::string_view key) {
    out.append(std::to_string(index_key_hash(message.topic, key)) + ",");
  });
  return out;
}

// What the generator would say of the record.
Row row_of(const std::string& store, ByteView record, const Message& m) {
  const auto text = [](auto value) { return std::to_string(value); };
  const auto tag = find_property(m.properties, property::tags).value_or(std::string_view());
  return {"message",
          store,
          text(m.physical_offset),
          text(record.size()),
          shown(m.topic),
          text(m.queue_id),
          text(m.queue_offset),
          text(m.flag),
          text(m.sys_flag),
          text(m.body_crc),
          text(m.born_timestamp),
          shown(m.born_host),
          text(m.store_timestamp),
          shown(m.store_host),
          text(m.reconsume_times),
          text(m.prepared_transaction_offset),
          shown(as_text(m.body)),
          shown_properties(m.properties),
          offset_message_id(m.store_host, m.physical_offset),
          shown_hashes(m),
          text(tags_code(tag)),
          "."};
}

struct Walked {
  std::vector<Row> rows;
  std::vector<Bytes> records;
};

Walked walk(const std::string& store, std::int64_t file_bytes) {
  Walked walked;
  for (std::int64_t position = 0;; position += file_bytes) {
    const auto path = golden(store + "/commitlog/" + file_name(position));
    if (!std::filesystem::exists(path)) return walked;
    const Bytes file = read(path);
    EXPECT_EQ(static_cast<std::int64_t>(file.size()), file_bytes);
    ByteView rest(file);
    FrameHead head = next_frame(rest, rest.size());
    for (; head.state == FrameState::complete; head = next_frame(rest, rest.size())) {
      const ByteView record = rest.first(static_cast<std::size_t>(head.size));
      const auto message = parse(record);
      EXPECT_TRUE(message) << message.error().to_string();
      if (!message) return walked;
      EXPECT_TRUE(crc_matches(*message));
      walked.rows.push_back(row_of(store, record, *message));
      walked.records.push_back(to_vector(record));
      rest = rest.subspan(record.size());
    }
    if (head.state == FrameState::blank) {
      EXPECT_EQ(head.size, rest.size());
      const auto at = position + file_bytes - static_cast<std::int64_t>(rest.size());
      walked.rows.push_back({"blank", store, std::to_string(at), std::to_string(head.size)});
    } else {
      EXPECT_EQ(head.state, FrameState::zeros);
    }
  }
}

std::vector<Row> expected_rows(const std::string& store) {
  std::vector<Row> rows;
  for (Row& row : rows_of("messages.tsv")) {
    if (row.at(1) == store) rows.push_back(std::move(row));
  }
  return rows;
}

TEST(GoldenStore, records_are_read_as_rocketmq_reads_them) {
  const Walked plain = walk("plain", log_file_bytes);
  EXPECT_EQ(plain.rows, expected_rows("plain"));
  EXPECT_GT(plain.records.size(), 30U);
  const Walked crc = walk("crc", 4096);
  EXPECT_EQ(crc.rows, expected_rows("crc"));
  EXPECT_EQ(crc.records.size(), 7U);
}

TEST(GoldenStore, records_are_encoded_to_the_same_bytes) {
  for (const auto& [store, bytes] : {std::pair{"plain", log_file_bytes}, std::pair{"crc", 4096L}}) {
    for (const Bytes& record : walk(store, bytes).records) {
      const Message message = parse(record).value();
      Bytes again;
      ASSERT_TRUE(encode(message, again));
      EXPECT_EQ(again, record);
      patch_placement(again,
                      {message.queue_offset, message.physical_offset, message.store_timestamp});
      EXPECT_EQ(again, record);
    }
  }
}

TEST(GoldenStore, property_checksums_are_the_same) {
  for (const Bytes& record : walk("plain", log_file_bytes).records) {
    EXPECT_EQ(check_property_crc(record), PropertyCrc::absent);
  }
  for (const Bytes& record : walk("crc", 4096).records) {
    EXPECT_EQ(check_property_crc(record), PropertyCrc::good);
    Bytes again = record;
    again[again.size() - 5] = '?';
    patch_property_crc(again);
    EXPECT_EQ(again, record);
  }
}

TEST(GoldenStore, queue_entries_point_to_the_records) {
  const DelayLevels levels = DelayLevels::standard();
  std::map<std::string, std::int64_t> counts;
  for (const Bytes& record : walk("plain", log_file_bytes).records) {
    const Message message = parse(record).value();
    const std::string queue = "plain/consumequeue/" + std::string(message.topic) + "/" +
                              std::to_string(message.queue_id) + "/";
    const auto at = message.queue_offset * static_cast<std::int64_t>(queue_entry_bytes);
    const Bytes file = read(golden(queue + file_name(at - at % queue_file_bytes)));
    ASSERT_EQ(static_cast<std::int64_t>(file.size()), queue_file_bytes);
    const QueueEntry entry = decode_entry(file.data() + at % queue_file_bytes);
    EXPECT_EQ(entry, (QueueEntry{message.physical_offset, static_cast<std::int32_t>(record.size()),
                                 entry_tags_code(message, levels)}));
    EXPECT_EQ(message.queue_offset, counts[queue]++);
  }
}

// The index file that the records' keys make, by the rules of the page.
Bytes indexed(const std::vector<Bytes>& records) {
  Bytes file(index_file_bytes(slots, entries));
  IndexHeader header;
  for (const Bytes& record : records) {
    const Message message = parse(record).value();
    for_each_key(message.properties, [&](std::string_view key) {
      IndexEntry entry;
      entry.key_hash = index_key_hash(message.topic, key);
      entry.physical_offset = message.physical_offset;
      entry.seconds = index_seconds(header.begin_timestamp, message.store_timestamp);
      std::uint8_t* slot = file.data() + index_slot_at(index_slot_of(entry.key_hash, slots));
      entry.previous = index_previous(load_big<std::int32_t>(slot), header.next_entry);
      encode_index_entry(entry, file.data() + index_entry_at(slots, header.next_entry));
      store_big(slot, header.next_entry);
      if (header.next_entry == 1) {
        header.begin_timestamp = message.store_timestamp;
        header.begin_physical_offset = message.physical_offset;
      }
      if (entry.previous == 0) ++header.slots_used;
      ++header.next_entry;
      header.end_timestamp = message.store_timestamp;
      header.end_physical_offset = message.physical_offset;
    });
  }
  EXPECT_TRUE(plausible(header, slots, entries));
  encode_index_header(header, file.data());
  return file;
}

TEST(GoldenStore, index_is_what_the_keys_make_byte_for_byte) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(golden("plain/index"))) {
    EXPECT_TRUE(is_index_file_name(entry.path().filename().string()));
    EXPECT_EQ(read(entry.path()), indexed(walk("plain", log_file_bytes).records));
    ++files;
  }
  EXPECT_EQ(files, 1);
}

TEST(GoldenStore, checkpoint_is_encoded_to_the_same_bytes) {
  const Bytes bytes = read(golden("plain/checkpoint"));
  const auto checkpoint = decode_checkpoint(bytes);
  ASSERT_TRUE(checkpoint);
  const auto again = encode_checkpoint(*checkpoint);
  EXPECT_EQ(Bytes(again.begin(), again.end()), bytes);
  const Row last = expected_rows("plain").back();
  EXPECT_EQ(checkpoint->queue_timestamp, number(last.at(12)));
}

TEST(GoldenStore, extension_units_are_the_same) {
  const std::int64_t file_bytes = 256;
  std::int64_t position = 0;
  Bytes file = read(golden("ext/Ext/0/" + file_name(0)));
  for (const Row& row : rows_of("ext.tsv")) {
    auto unit =
        parse_ext_unit(ByteView(file).subspan(static_cast<std::size_t>(position % file_bytes)));
    ASSERT_TRUE(unit);
    if (!*unit) {
      position += file_bytes - position % file_bytes;
      file = read(golden("ext/Ext/0/" + file_name(position)));
      unit = parse_ext_unit(file);
      ASSERT_TRUE(unit && *unit);
    }
    EXPECT_EQ(to_ext_address(position), number(row.at(0)));
    EXPECT_EQ((*unit)->tags_code, number(row.at(1)));
    EXPECT_EQ((*unit)->store_timestamp, number(row.at(2)));
    EXPECT_EQ(shown(as_text((*unit)->bit_map)), row.at(3));
    Bytes again;
    ASSERT_TRUE(encode_ext_unit(**unit, again));
    const auto at = file.begin() + position % file_bytes;
    EXPECT_TRUE(std::equal(again.begin(), again.end(), at));
    EXPECT_TRUE(ext_unit_fits(again.size(), static_cast<std::size_t>(file.end() - at)));
    position += static_cast<std::int64_t>(again.size());
  }
  EXPECT_GT(position, 2 * file_bytes);
}

TEST(GoldenStore, batch_bodies_are_encoded_to_the_same_bytes) {
  for (const int count : {3, 5}) {
    const Bytes body = read(golden("batch_body_" + std::to_string(count)));
    Bytes again;
    int flag = 0;
    const auto done = for_each_batch_item(body, [&](const BatchItem& item) -> Result<void> {
      EXPECT_EQ(item.flag, flag);
      EXPECT_EQ(item.body.size(), static_cast<std::size_t>(flag * 200));
      EXPECT_EQ(find_property(item.properties, property::tags), "tag" + std::to_string(flag));
      ++flag;
      return append_batch_item(item, again);
    });
    ASSERT_TRUE(done) << done.error().to_string();
    EXPECT_EQ(flag, count);
    EXPECT_EQ(again, body);
  }
}

TEST(GoldenStore, tables_are_read) {
  const auto topics = parse_topics(read_text("config/topics.json"));
  ASSERT_TRUE(topics) << topics.error().to_string();
  EXPECT_EQ(topics->version.counter, 1);
  EXPECT_EQ(topics->version.state_version, 3);
  EXPECT_EQ(topics->topics.at("TopicTest").write_queue_nums, 9);
  EXPECT_EQ(topics->topics.at("Batch").attributes, (Attributes{{"queue.type", "BatchCQ"}}));
  EXPECT_TRUE(topics->topics.at("Batch").order);

  const auto groups = parse_subscription_groups(read_text("config/subscriptionGroup.json"));
  ASSERT_TRUE(groups) << groups.error().to_string();
  EXPECT_EQ(groups->groups.at("group").retry_max_times, 5);
  GroupConfig plain;
  plain.others = {{"groupRetryPolicy", R"({"type":"CUSTOMIZED"})"}};
  EXPECT_EQ(groups->groups.at("plain"), plain);

  const auto offsets = parse_consumer_offsets(read_text("config/consumerOffset.json"));
  ASSERT_TRUE(offsets) << offsets.error().to_string();
  EXPECT_EQ(offsets->offsets.at("TopicTest@group"),
            (QueueOffsets{{0, 12}, {1, std::numeric_limits<std::int64_t>::max()}}));
  EXPECT_TRUE(offsets->offsets.at("%RETRY%group@group").empty());

  const auto delays = parse_delay_offsets(read_text("config/delayOffset.json"));
  ASSERT_TRUE(delays) << delays.error().to_string();
  EXPECT_EQ(delays->offsets, (QueueOffsets{{1, 100}, {18, 7}}));
}

TEST(GoldenStore, hashes_of_any_bytes_are_javas) {
  for (const Row& row : rows_of("hashes.tsv")) {
    EXPECT_EQ(java_hash(as_text(from_hex(row.at(0)))), number(row.at(1))) << row.at(0);
  }
}

}  // namespace
}  // namespace polylog::format::rocketmq
