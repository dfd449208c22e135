#include "format/segment/robustmq.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "bytes/endian.h"
#include "convert/convert_rig.h"
#include "convert/marker.h"
#include "convert/robustmq_store.h"
#include "format/segment/record.h"

// Segment files as RobustMQ leaves them: frames that its libraries made (tests/golden/robustmq),
// with offsets of our choice.
namespace polylog::convert {
namespace {

namespace segment = format::segment;
using storage::Layout;
using Bytes = std::vector<std::uint8_t>;

constexpr const char* topic_id = "cq1h2k3l4m5n6p7q8r9s";

std::vector<Bytes> golden_frames() {
  const char* const source = std::getenv("POLYLOG_SOURCE_DIR");
  const std::string path =
      std::string(source != nullptr ? source : ".") + "/tests/golden/robustmq/records.msg";
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  const Bytes bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  std::vector<Bytes> frames;
  EXPECT_TRUE(segment::for_each_frame(bytes, [&](ByteView frame) -> Result<void> {
    frames.push_back(to_vector(frame));
    return {};
  }));
  return frames;
}

// The offset stands in the frame and in the archive's root.
Bytes at_offset(Bytes frame, std::int64_t offset) {
  const std::size_t metadata =
      load_big<std::uint32_t>(frame.data() + segment::frame_at::metadata_length);
  const std::size_t root = segment::frame_at::metadata + metadata - segment::robustmq_root_bytes;
  store_big(frame.data(), static_cast<std::uint64_t>(offset));
  for (std::size_t i = 0; i < 8; ++i) frame[root + i] = static_cast<std::uint8_t>(offset >> 8 * i);
  EXPECT_TRUE(segment::decode_robustmq(frame));
  return frame;
}

class Robustmq : public ConvertRig {
 protected:
  Robustmq() { EXPECT_TRUE(disk->create_directory(source)); }

  std::string path_of(const std::string& shard, int number) const {
    return std::string(source) + "/" + shard + "/" + std::to_string(number) + ".msg";
  }
  void write(const std::string& shard, int number, const Bytes& bytes) {
    EXPECT_TRUE(fs::create_directories(*disk, std::string(source) + "/" + shard));
    const auto file = disk->open(path_of(shard, number), fs::OpenMode::create);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->truncate(0));
    ASSERT_TRUE((*file)->write(0, ByteView(bytes)));
  }
  // Frames [from, to) of the golden ones at the offsets from `first` on; what they are goes to
  // `wanted`.
  Bytes frames(std::size_t from, std::size_t to, std::int64_t first) {
    Bytes bytes;
    for (std::size_t i = from; i < to; ++i) {
      const Bytes frame = at_offset(golden[i], first++);
      const auto decoded = segment::decode_robustmq(frame);
      const segment::StoredRecord stored = segment::to_stored(*decoded);
      OwnedRecord record;
      record.offset = stored.record.offset.value();
      record.timestamp = stored.record.timestamp.value();
      record.key = owned(stored.record.key);
      record.value = owned(stored.record.value);
      for (const Header& header : stored.record.headers) {
        record.headers.emplace_back(std::string(header.name), owned(header.value));
      }
      wanted.push_back(std::move(record));
      bytes.insert(bytes.end(), frame.begin(), frame.end());
    }
    return bytes;
  }
  std::string shard(int partition) const {
    return std::string(topic_id) + "-" + std::to_string(partition);
  }
  Bytes content(const std::string& path) { return *fs::read_file(*disk, path, 1 << 24); }
  bool noted(const std::string& words) const {
    return std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
      return note.find(words) != std::string::npos;
    });
  }

  // Without what Kafka's readers are shown of the MQTT part.
  static std::vector<OwnedRecord> own_fields(std::vector<OwnedRecord> records,
                                             std::size_t& with_mqtt) {
    for (OwnedRecord& record : records) {
      const std::size_t removed = std::erase_if(
          record.headers, [](const auto& header) { return header.first.starts_with("mqtt."); });
      if (removed > 0) ++with_mqtt;
    }
    return records;
  }

  std::vector<Bytes> golden = golden_frames();
  std::vector<OwnedRecord> wanted;
};

TEST_F(Robustmq, goes_into_every_layout_and_stays_as_it_is) {
  write(shard(0), 0, frames(0, 100, 0));
  write(shard(0), 1, frames(100, golden.size(), 100));
  write(shard(0), 2, {});
  const auto first = std::exchange(wanted, {});
  write(shard(2), 7, frames(10, 30, 500));
  const std::string files[] = {path_of(shard(0), 0), path_of(shard(0), 1), path_of(shard(2), 7)};
  std::vector<Bytes> before;
  for (const std::string& path : files) before.push_back(content(path));
  for (const Layout layout : {Layout::kafka, Layout::rocketmq, Layout::segment}) {
    SCOPED_TRACE(broker::layout_name(layout));
    const std::string to = "/polylog-test/" + std::string(broker::layout_name(layout));
    Options named = options(source, to, layout);
    named.topic_names = {{topic_id, "orders"}};
    const auto summary = run(named);
    ASSERT_TRUE(summary) << summary.error().to_string();
    EXPECT_EQ(summary->topics, 1U);
    EXPECT_EQ(summary->partitions, 3U);
    EXPECT_EQ(summary->records, first.size() + wanted.size());
    EXPECT_TRUE(noted("\"nats\""));
    EXPECT_TRUE(check_finished(*disk, to));
    const auto topics = topics_of(to);
    ASSERT_EQ(topics.size(), 1U);
    EXPECT_EQ(topics[0].name, "orders");
    EXPECT_FALSE(topics[0].id.is_zero());
    EXPECT_EQ(topics[0].configs.at("polylog.retention.suspended"), "true");
    std::size_t with_mqtt = 0;
    const Found zero = read(to, layout, "orders", 0);
    EXPECT_EQ(zero.start, 0);
    EXPECT_EQ(zero.end, static_cast<std::int64_t>(first.size()));
    EXPECT_EQ(own_fields(zero.records, with_mqtt), first);
    EXPECT_GT(with_mqtt, 10U);
    EXPECT_EQ(read(to, layout, "orders", 1).end, 0);
    const Found two = read(to, layout, "orders", 2);
    EXPECT_EQ(two.start, 500);
    EXPECT_EQ(own_fields(two.records, with_mqtt), wanted);
    Options again = named;
    again.verify_only = true;
    EXPECT_TRUE(run(again));
    ASSERT_TRUE(fs::remove_tree(*disk, to));
  }
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(content(files[i]), before[i]);
  EXPECT_EQ(disk->list(source)->size(), 2U);
  EXPECT_EQ(disk->list("/polylog-test"), std::vector<std::string>{"src"});
}

TEST_F(Robustmq, a_segment_target_keeps_what_mqtt_and_expiry_said) {
  write(shard(0), 0, frames(0, 20, 0));
  std::size_t mqtt_wanted = 0, expiring_wanted = 0;
  for (std::size_t i = 0; i < 20; ++i) {
    const auto record = segment::decode_robustmq(golden[i]);
    mqtt_wanted += record->mqtt ? 1U : 0;
    expiring_wanted += record->expires ? 1U : 0;
  }
  EXPECT_GT(mqtt_wanted, 2U);
  EXPECT_GT(expiring_wanted, 0U);
  converted(source, target, Layout::segment);
  const Bytes made = content(std::string(target) + "/segment/" + shard(0) + "/0.msg");
  std::size_t mqtt = 0, expiring = 0;
  EXPECT_TRUE(segment::for_each_frame(made, [&](ByteView frame) -> Result<void> {
    EXPECT_TRUE(segment::crc_matches(frame));
    POLYLOG_ASSIGN(record, segment::decode(frame));
    mqtt += record.mqtt ? 1U : 0;
    expiring += record.expires ? 1U : 0;
    return {};
  }));
  EXPECT_EQ(mqtt, mqtt_wanted);
  EXPECT_EQ(expiring, expiring_wanted);
}

TEST_F(Robustmq, topics_are_named_after_their_ids_unless_told_otherwise) {
  EXPECT_EQ(parse_robustmq_shard("abc-12"), (TopicPartition{"abc", 12}));
  EXPECT_EQ(parse_robustmq_shard("a-b-0"), (TopicPartition{"a-b", 0}));
  EXPECT_EQ(parse_robustmq_shard("inner-core"), (TopicPartition{"inner-core", 0}));
  EXPECT_EQ(parse_robustmq_shard("a-01"), (TopicPartition{"a-01", 0}));
  EXPECT_EQ(parse_robustmq_shard("-1"), (TopicPartition{"-1", 0}));
  write(shard(0), 0, frames(0, 3, 0));
  write("other-0", 0, frames(0, 3, 0));
  converted(source, target, Layout::kafka);
  const auto topics = topics_of(target);
  ASSERT_EQ(topics.size(), 2U);
  EXPECT_EQ(topics[0].name, topic_id);
  EXPECT_EQ(topics[1].name, "other");
  Options wrong = options(source, "/polylog-test/2", Layout::kafka);
  wrong.topic_names = {{"nobody", "x"}};
  refused(wrong, {"--topic nobody=x"});
  wrong.topic_names = {{topic_id, "other"}};
  refused(wrong, {"partition 0 of topic other"});
  wrong = options(target, "/polylog-test/2", Layout::kafka);
  wrong.topic_names = {{topic_id, "x"}};
  refused(wrong, {"--topic"});
}

TEST_F(Robustmq, what_a_last_write_left_is_cut_at_every_byte) {
  const Bytes whole = frames(0, 6, 0);
  const auto records = wanted;
  const std::size_t last = whole.size() - at_offset(golden[5], 5).size();
  for (std::size_t size = last + 1; size < whole.size(); ++size) {
    SCOPED_TRACE(size);
    write(shard(0), 0, {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
    RobustmqStore store;
    const auto opened = RobustmqStore::open(*disk, source, {});
    ASSERT_TRUE(opened) << opened.error().to_string();
    const auto log = opened->store->find({topic_id, 0});
    EXPECT_EQ(log->offsets(), (OffsetRange{Offset(0), Offset(5)}));
    ASSERT_EQ(opened->recovery.notes.size(), 1U);
    EXPECT_NE(opened->recovery.notes[0].find("0.msg, position " + std::to_string(last) + ":"),
              std::string::npos)
        << opened->recovery.notes[0];
  }
  const Bytes left = content(path_of(shard(0), 0));
  converted(source, target, Layout::rocketmq);
  EXPECT_TRUE(noted("position " + std::to_string(last)));
  const auto found = read(target, Layout::rocketmq, topic_id, 0).records;
  EXPECT_EQ(found, std::vector<OwnedRecord>(records.begin(), records.end() - 1));
  EXPECT_EQ(content(path_of(shard(0), 0)), left);
}

TEST_F(Robustmq, zeros_and_bad_contents_at_the_end_are_an_unfinished_write_too) {
  Bytes bytes = frames(0, 6, 0);
  const std::size_t end = bytes.size();
  bytes.resize(end + 5000);
  write(shard(0), 0, bytes);
  converted(source, target, Layout::kafka);
  EXPECT_TRUE(noted("position " + std::to_string(end) + ": zeros"));
  EXPECT_EQ(read(target, Layout::kafka, topic_id, 0).end, 6);
  bytes.resize(end);
  bytes.back() ^= 1;  // of the last record's data
  write(shard(0), 0, bytes);
  converted(source, "/polylog-test/2", Layout::kafka);
  EXPECT_TRUE(noted("CRC-32"));
  EXPECT_EQ(read("/polylog-test/2", Layout::kafka, topic_id, 0).end, 5);
}

TEST_F(Robustmq, damage_with_records_behind_it_ends_the_conversion) {
  Bytes bytes = frames(0, 6, 0);
  const std::size_t third = at_offset(golden[0], 0).size() + at_offset(golden[1], 1).size();
  const std::string where = path_of(shard(0), 0) + ", position " + std::to_string(third);
  // An offset, the lengths, metadata: whatever is hit, nothing is taken for a torn end.
  for (std::size_t at = third; at < third + 60; ++at) {
    SCOPED_TRACE(at - third);
    bytes[at] ^= 0x40;
    write(shard(0), 0, bytes);
    const auto opened = RobustmqStore::open(*disk, source, {});
    if (opened) {
      // Not covered by any checksum of RobustMQ's, but no record is missing.
      EXPECT_EQ(opened->store->find({topic_id, 0})->offsets().end, Offset(6));
      EXPECT_TRUE(opened->recovery.notes.empty());
    } else {
      EXPECT_NE(opened.error().context.find(where), std::string::npos)
          << opened.error().to_string();
    }
    bytes[at] ^= 0x40;
  }
  bytes[third + 8] ^= 0x40;  // a length that reaches beyond the file
  write(shard(0), 0, bytes);
  refused(options(source, target, Layout::segment), {where, "ends inside a record"});
  EXPECT_FALSE(fs::exists(*disk, target));
  bytes[third + 8] ^= 0x40;
  // In a file that others follow there is no unfinished write.
  bytes.pop_back();
  write(shard(0), 0, bytes);
  write(shard(0), 1, frames(6, 8, 6));
  refused(options(source, target, Layout::segment), {path_of(shard(0), 0), "position"});
}

TEST_F(Robustmq, records_written_behind_a_torn_one_are_not_lost_quietly) {
  Bytes bytes = frames(0, 6, 0);
  bytes.resize(bytes.size() - 7);
  const Bytes behind = frames(6, 8, 6);
  bytes.insert(bytes.end(), behind.begin(), behind.end());
  write(shard(0), 0, bytes);
  const auto opened = RobustmqStore::open(*disk, source, {});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::corrupt);
  // Offsets given twice, as after a crash before RobustMQ noted the first ones.
  bytes = frames(0, 6, 0);
  const Bytes twice = frames(6, 8, 4);
  bytes.insert(bytes.end(), twice.begin(), twice.end());
  write(shard(0), 0, bytes);
  refused(options(source, target, Layout::kafka), {"offset 4 behind offset 5"});
}

TEST_F(Robustmq, an_unfinished_run_goes_on_under_the_same_names_only) {
  write(shard(0), 0, frames(0, 50, 0));
  Options named = options(source, target, Layout::rocketmq);
  named.topic_names = {{topic_id, "orders"}};
  Options stopped = named;
  stopped.stop = [] { return true; };
  refused(stopped, {"goes on"});
  refused(options(source, target, Layout::rocketmq), {"unfinished", "=orders"});
  const auto summary = run(named);
  ASSERT_TRUE(summary) << summary.error().to_string();
  EXPECT_TRUE(summary->resumed);
  EXPECT_EQ(summary->records, 50U);
}

TEST_F(Robustmq, a_shard_that_polylog_does_not_serve_is_not_left_out_quietly) {
  Directory directory = open_directory(source);
  make_topic(directory, "t", Layout::segment, 2);
  append(directory, "t", 0, batch_of({OwnedRecord()}));
  append(directory, "t", 1, batch_of({OwnedRecord()}));
  close(directory);
  write("segment/t-1", 0, frames(0, 3, 0));
  refused(options(source, target, Layout::kafka), {"t-1", "RobustMQ"});
}

TEST_F(Robustmq, files_of_polylogs_own_are_not_taken_for_robustmqs) {
  Directory directory = open_directory(source);
  make_topic(directory, "t", Layout::segment, 1);
  append(directory, "t", 0, batch_of({OwnedRecord()}));
  close(directory);
  refused(options(std::string(source) + "/segment", target, Layout::kafka), {"data directory"});
}

}  // namespace
}  // namespace polylog::convert
