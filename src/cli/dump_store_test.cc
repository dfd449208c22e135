#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "bytes/endian.h"
#include "cli/dump.h"
#include "format/rocketmq/check_values.h"
#include "format/rocketmq/checkpoint.h"
#include "format/rocketmq/config_json.h"
#include "format/rocketmq/consume_queue.h"
#include "format/rocketmq/consume_queue_ext.h"
#include "format/rocketmq/index_file.h"
#include "format/rocketmq/message.h"
#include "format/rocketmq/property_crc.h"
#include "fs/sim_file_system.h"

// `polylog dump` of a RocketMQ store's files.
namespace polylog::cli {
namespace {

namespace rocketmq = format::rocketmq;
using rocketmq::QueueEntry;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using Bytes = std::vector<std::uint8_t>;

const std::string log_path = "/store/commitlog/00000000000000000000";
const std::string queue_path = "/store/consumequeue/TopicTest/3/00000000000000000000";
const std::string index_path = "/store/index/20231114221320123";
constexpr std::size_t record_bytes = 165;  // of the check values' message

Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The check values' message at a place of its own.
Bytes record_at(std::int64_t physical_offset, std::int64_t queue_offset) {
  Bytes record;
  EXPECT_TRUE(rocketmq::encode(rocketmq::check::message(), record));
  rocketmq::patch_placement(record, {queue_offset, physical_offset, 1'700'000'000'123});
  return record;
}

Bytes two_records() { return record_at(0, 0) + record_at(record_bytes, 1); }

Bytes entries(const std::vector<QueueEntry>& list) {
  Bytes bytes(list.size() * rocketmq::queue_entry_bytes);
  for (std::size_t i = 0; i < list.size(); ++i) {
    rocketmq::encode_entry(list[i], &bytes[i * rocketmq::queue_entry_bytes]);
  }
  return bytes;
}

class DumpStore : public testing::Test {
 protected:
  DumpStore() {
    for (const char* path :
         {"/store", "/store/commitlog", "/store/consumequeue", "/store/consumequeue/TopicTest",
          "/store/consumequeue/TopicTest/3", "/store/consumequeue_ext",
          "/store/consumequeue_ext/TopicTest", "/store/consumequeue_ext/TopicTest/3",
          "/store/consumequeue/SCHEDULE_TOPIC_XXXX", "/store/consumequeue/SCHEDULE_TOPIC_XXXX/2",
          "/store/index", "/store/config", "/elsewhere"}) {
      EXPECT_TRUE(fs_.create_directory(path)) << path;
    }
  }

  void put(const std::string& path, const Bytes& bytes) {
    const auto file = fs_.open(path, fs::OpenMode::create);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->truncate(0));
    ASSERT_TRUE((*file)->write(0, bytes));
  }
  void put(const std::string& path, std::string_view text) { put(path, to_vector(as_bytes(text))); }

  // What `polylog dump` prints; damage_ and error_ tell how it went.
  std::string dump(const std::string& path, DumpOptions options = {}) {
    options.paths = {path};
    char* text = nullptr;
    std::size_t size = 0;
    std::FILE* const out = open_memstream(&text, &size);
    DumpReport report(out, options.json);
    const auto dumped = dump_paths(fs_, options, report);
    std::fclose(out);
    std::string printed(text, size);
    std::free(text);
    damage_ = report.damaged();
    error_ = dumped ? "" : dumped.error().context;
    return printed;
  }

  fs::SimFileSystem fs_;
  std::uint64_t damage_ = 0;
  std::string error_;
};

TEST_F(DumpStore, messages_of_a_commit_log_are_shown_one_a_line) {
  put(log_path, rocketmq::check::from_hex(rocketmq::check::record));
  EXPECT_EQ(dump(log_path, {.records = true}),
            "/store/commitlog/00000000000000000000: commit log, position 0, bytes 165\n"
            "  @0 topic TopicTest queue 3 offset 0 bytes 165 body 5 codec none "
            "stored 2023-11-14T22:13:20.123Z at 192.168.1.2:10911 "
            "born 2023-11-14T22:13:20.000Z at 10.0.0.1:50000 "
            "tag \"TagA\" keys \"K1\" id \"7F00000100002A139C16073E5C610000\" crc 3610a686 ok\n"
            "    body \"hello\" \"TAGS\"=\"TagA\" \"KEYS\"=\"K1\" "
            "\"UNIQ_KEY\"=\"7F00000100002A139C16073E5C610000\"\n"
            "  messages 1, no damage\n");
  EXPECT_EQ(damage_, 0u);
}

TEST_F(DumpStore, messages_are_the_same_as_json) {
  put(log_path, rocketmq::check::from_hex(rocketmq::check::record));
  EXPECT_EQ(
      dump(log_path, {.json = true, .records = true}),
      R"({"type":"file","path":"/store/commitlog/00000000000000000000","kind":"commit_log",)"
      R"("position":0,"bytes":165})"
      "\n"
      R"({"type":"message","position":0,"bytes":165,"version":1,"topic":"TopicTest","queue":3,)"
      R"("queue_offset":0,"physical_offset":0,"message_id":"C0A8010200002A9F0000000000000000",)"
      R"("flag":0,"sys_flag":0,"codec":"none","transaction":"none",)"
      R"("prepared_transaction_offset":0,"inner_batch":false,"reconsume_times":0,)"
      R"("store_timestamp":1700000000123,"store_host":"192.168.1.2:10911",)"
      R"("born_timestamp":1700000000000,"born_host":"10.0.0.1:50000","body_bytes":5,)"
      R"("crc":"3610a686","crc_ok":true,"body":"hello","properties":[{"name":"TAGS",)"
      R"("value":"TagA"},{"name":"KEYS","value":"K1"},{"name":"UNIQ_KEY",)"
      R"("value":"7F00000100002A139C16073E5C610000"}]})"
      "\n"
      R"({"type":"end","messages":1,"damaged_places":0})"
      "\n");
}

TEST_F(DumpStore, ipv6_hosts_long_topics_and_transactions_are_told) {
  rocketmq::Message message = rocketmq::check::message();
  const std::string topic(200, 't');
  message.topic = topic;
  message.store_host.v6 = true;
  message.store_host.address = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  message.sys_flag =
      rocketmq::sys_flag::transaction_commit | rocketmq::sys_flag::compressed | 0x200;
  message.prepared_transaction_offset = 77;
  Bytes record;
  ASSERT_TRUE(rocketmq::encode(message, record));
  put(log_path, record);
  const std::string text = dump(log_path);
  EXPECT_THAT(text, HasSubstr("at [2001:db8:0:0:0:0:0:1]:10911"));
  EXPECT_THAT(text, HasSubstr("codec zstd"));
  EXPECT_THAT(text, HasSubstr("version 2 transaction commit of 77"));
  EXPECT_EQ(damage_, 0u);
}

TEST_F(DumpStore, the_blank_record_ends_the_file) {
  const auto blank = rocketmq::blank_record(100);
  Bytes bytes = two_records() + Bytes(blank.begin(), blank.end());
  bytes.resize(2 * record_bytes + 100);
  put(log_path, bytes);
  EXPECT_THAT(dump(log_path), EndsWith("  @330 blank record, 100 bytes to the end of the file\n"
                                       "  messages 2, no damage\n"));
  EXPECT_THAT(dump(log_path, {.json = true}),
              HasSubstr(R"({"type":"blank","position":330,"remaining":100})"));
  bytes.resize(2 * record_bytes + 101);
  put(log_path, bytes);
  EXPECT_THAT(dump(log_path), HasSubstr("DAMAGED at byte 330: the file goes on for 101 bytes"));
}

TEST_F(DumpStore, the_zero_tail_is_no_damage_nor_is_what_a_truncation_left_behind_it) {
  Bytes bytes = two_records();
  bytes.resize(5000);
  put(log_path, bytes);
  EXPECT_THAT(dump(log_path), HasSubstr("at byte 330: zeros to the end of the file, 4670 bytes"));
  EXPECT_EQ(damage_, 0u);
  bytes[4000] = 1;
  put(log_path, bytes);
  EXPECT_THAT(dump(log_path), HasSubstr("at byte 330: 3670 zero bytes end the log; what lies "
                                        "behind them, from byte 4000, is not part of it"));
  EXPECT_EQ(damage_, 0u);
}

TEST_F(DumpStore, a_body_with_a_wrong_checksum_is_damage_and_the_rest_is_shown) {
  Bytes bytes = two_records();
  bytes[88] ^= 1;  // in the first body
  put(log_path, bytes);
  const std::string text = dump(log_path);
  EXPECT_THAT(text, HasSubstr("crc 3610a686 WRONG\n  DAMAGED at byte 0: the body's checksum"));
  EXPECT_THAT(text, HasSubstr("@165 topic TopicTest queue 3 offset 1"));
  EXPECT_EQ(damage_, 1u);
}

TEST_F(DumpStore, a_record_in_the_wrong_place_is_damage) {
  put("/store/commitlog/00000000000000001000", record_at(1000, 0) + record_at(1000, 1));
  EXPECT_THAT(dump("/store/commitlog/00000000000000001000"),
              HasSubstr("DAMAGED at byte 165: the record says that it lies at 1000, not at 1165"));
  EXPECT_EQ(damage_, 1u);
}

TEST_F(DumpStore, the_record_behind_damaged_bytes_is_found_again) {
  Bytes bytes = record_at(0, 0) + record_at(165, 1) + record_at(330, 2);
  bytes[165 + 4] = 0;  // the second one's magic
  put(log_path, bytes);
  const std::string text = dump(log_path);
  EXPECT_THAT(text, HasSubstr("DAMAGED at byte 165: no record begins here (neither a size nor a "
                              "magic); the next one is 165 bytes further on"));
  EXPECT_THAT(text, HasSubstr("@330 topic TopicTest queue 3 offset 2"));
  EXPECT_EQ(damage_, 1u);

  bytes = record_at(0, 0) + record_at(165, 1) + record_at(330, 2);
  store_big(&bytes[165], std::int32_t{170});  // its size, so that the parts do not add up
  put(log_path, bytes);
  EXPECT_THAT(dump(log_path), HasSubstr("the next one is 165 bytes further on"));
  EXPECT_EQ(damage_, 1u);
  store_big(&bytes[165], std::int32_t{1 << 30});  // a record that the file can't hold
  put(log_path, bytes);
  EXPECT_THAT(dump(log_path), HasSubstr("the next one is 165 bytes further on"));
  EXPECT_EQ(damage_, 1u);
}

TEST_F(DumpStore, a_record_that_the_file_cuts_off_is_damage) {
  Bytes bytes = two_records();
  bytes.resize(200);
  put(log_path, bytes);
  EXPECT_THAT(dump(log_path), HasSubstr("DAMAGED at byte 165: no record begins here (a record of "
                                        "165 bytes, of which the file has 35); the last 35 bytes"));
  bytes.resize(170);
  put(log_path, bytes);
  EXPECT_THAT(dump(log_path), HasSubstr("(a few bytes); the last 5 bytes cannot be read"));
  EXPECT_EQ(damage_, 1u);
  put(log_path, Bytes(300, 0xee));
  EXPECT_THAT(dump(log_path), HasSubstr("DAMAGED at byte 0: no record begins here"));
}

TEST_F(DumpStore, only_deep_checks_the_property_with_the_records_checksum) {
  rocketmq::Message message = rocketmq::check::message();
  std::string properties(rocketmq::check::properties);
  ASSERT_TRUE(rocketmq::add_property_crc_room(properties));
  message.properties = properties;
  Bytes record;
  ASSERT_TRUE(rocketmq::encode(message, record));
  rocketmq::patch_property_crc(record);
  put(log_path, record);
  dump(log_path, {.deep = true});
  EXPECT_EQ(damage_, 0u);
  record[15] = 4;  // another queue
  put(log_path, record);
  dump(log_path);
  EXPECT_EQ(damage_, 0u);
  EXPECT_THAT(dump(log_path, {.deep = true}), HasSubstr("in its last property, is wrong"));
}

TEST_F(DumpStore, consume_queue_entries_are_shown_with_their_offsets) {
  const std::string path = "/store/consumequeue/TopicTest/3/00000000000006000000";
  put(path, entries({rocketmq::filler_entry, {0, 165, 0x27a807}, {165, 165, -5}}));
  EXPECT_EQ(dump(path),
            "/store/consumequeue/TopicTest/3/00000000000006000000: consume queue, "
            "position 6000000, bytes 60\n"
            "  offset 300000 filler\n"
            "  offset 300001 at 0 bytes 165 tags code 2598919\n"
            "  offset 300002 at 165 bytes 165 tags code -5\n"
            "  entries 3, no damage\n");
  EXPECT_THAT(dump(path, {.json = true}),
              HasSubstr(R"({"type":"entry","offset":300001,"physical_offset":0,"size":165,)"
                        R"("tags_code":2598919,"filler":false})"));
}

TEST_F(DumpStore, delivery_times_and_extension_addresses_are_told_from_tags) {
  put(queue_path, entries({{0, 165, rocketmq::to_ext_address(40)}}));
  EXPECT_THAT(dump(queue_path), HasSubstr("offset 0 at 0 bytes 165 extension at 40\n"));
  const std::string path = "/store/consumequeue/SCHEDULE_TOPIC_XXXX/2/00000000000000000000";
  put(path, entries({{0, 165, 1'700'000'010'123}}));
  EXPECT_THAT(dump(path), HasSubstr("due 2023-11-14T22:13:30.123Z\n"));
}

TEST_F(DumpStore, consume_queue_damage_is_told_from_its_zero_tail) {
  Bytes bytes = entries({{165, 165, 0}});
  bytes.resize(200);
  put(queue_path, bytes);
  EXPECT_THAT(dump(queue_path), HasSubstr("at byte 20: zeros to the end of the file, 180 bytes"));
  EXPECT_EQ(damage_, 0u);
  bytes[199] = 1;
  put(queue_path, bytes);
  EXPECT_THAT(dump(queue_path),
              HasSubstr("DAMAGED at byte 180: an entry behind an entry of zeros"));
  put(queue_path, entries({{165, 165, 0}, {0, 165, 0}, {-1, 165, 0}}));
  const std::string text = dump(queue_path);
  EXPECT_THAT(text, HasSubstr("DAMAGED at byte 20: the record does not lie behind"));
  EXPECT_THAT(text, HasSubstr("DAMAGED at byte 40: no entry has these numbers"));
  bytes.resize(30);
  put(queue_path, bytes);
  EXPECT_THAT(dump(queue_path), HasSubstr("DAMAGED at byte 20: the file ends inside an entry"));
}

TEST_F(DumpStore, deep_follows_a_consume_queue_into_the_commit_log) {
  put(log_path, two_records());
  constexpr std::int64_t tag_a = 0x27a807;
  put(queue_path, entries({{0, 165, tag_a}, {165, 165, tag_a}}));
  EXPECT_THAT(dump(queue_path, {.deep = true}), EndsWith("entries 2, no damage\n"));
  const auto damage_of = [&](const QueueEntry& entry) {
    put(queue_path, entries({entry}));
    dump(queue_path);
    EXPECT_EQ(damage_, 0u);  // without --deep
    return dump(queue_path, {.deep = true});
  };
  EXPECT_THAT(damage_of({0, 166, tag_a}), HasSubstr("has a record of 165 bytes"));
  EXPECT_THAT(damage_of({0, 165, 7}), HasSubstr("the tags code is not that of the record's tag"));
  EXPECT_THAT(damage_of({165, 165, tag_a}),
              HasSubstr("has the record of TopicTest, queue 3, offset 1"));
  EXPECT_THAT(damage_of({1, 165, tag_a}), HasSubstr("byte 1 is no record's beginning"));
  EXPECT_THAT(damage_of({330, 165, tag_a}), HasSubstr("byte 330 lies behind the end"));
  EXPECT_EQ(damage_, 1u);
}

TEST_F(DumpStore, entries_of_deleted_commit_log_files_are_no_damage) {
  put("/store/commitlog/00000000000000001000", record_at(1000, 1));
  put(queue_path, entries({{0, 165, 0x27a807}, {1000, 165, 0x27a807}}));
  EXPECT_THAT(dump(queue_path, {.deep = true}), EndsWith("entries 2, no damage\n"));
}

TEST_F(DumpStore, extension_units_are_shown) {
  const std::string path = "/store/consumequeue_ext/TopicTest/3/00000000000000000000";
  const Bytes bit_map(14, 0xff);
  Bytes bytes;
  ASSERT_TRUE(rocketmq::encode_ext_unit({0x27a807, 1'700'000'000'123, bit_map}, bytes));
  bytes.resize(200);
  put(path, bytes);
  EXPECT_THAT(dump(path), HasSubstr("  @0 bytes 34 tags code 2598919 stored "
                                    "2023-11-14T22:13:20.123Z bit map bytes 14\n"
                                    "  entries 1, no damage\n"));
  bytes[35] = 3;  // a unit of three bytes
  put(path, bytes);
  dump(path);
  EXPECT_EQ(damage_, 1u);
}

// An index file with two slots and eight entries, in use: both records' K1.
struct Index {
  static constexpr std::int32_t slots = 2, capacity = 8;

  Index() : bytes(rocketmq::index_file_bytes(slots, capacity)) {
    const std::int32_t hash = rocketmq::index_key_hash("TopicTest", "K1");
    put({hash, 0, 0, 0}, 1);
    put({hash, 165, 1, 1}, 2);
    store_big(&bytes[rocketmq::index_slot_at(rocketmq::index_slot_of(hash, slots))],
              std::int32_t{2});
    header = {1'700'000'000'123, 1'700'000'001'123, 0, 165, 1, 3};
    put_header();
  }
  void put(const rocketmq::IndexEntry& entry, std::int32_t number) {
    rocketmq::encode_index_entry(entry, &bytes[rocketmq::index_entry_at(slots, number)]);
  }
  void put_header() { rocketmq::encode_index_header(header, bytes.data()); }

  Bytes bytes;
  rocketmq::IndexHeader header;
};

TEST_F(DumpStore, index_entries_are_shown_and_followed) {
  const Index index;
  put(index_path, index.bytes);
  put(log_path, two_records());
  const std::string hash = std::to_string(rocketmq::index_key_hash("TopicTest", "K1"));
  EXPECT_EQ(dump(index_path, {.deep = true}),
            "/store/index/20231114221320123: key index, bytes 208\n"
            "  from 2023-11-14T22:13:20.123Z to 2023-11-14T22:13:21.123Z records at 0..165 "
            "slots used 1 next entry 3\n"
            "  entry 1 hash " +
                hash +
                " at 0 about 2023-11-14T22:13:20.123Z previous 0\n"
                "  entry 2 hash " +
                hash +
                " at 165 about 2023-11-14T22:13:21.123Z previous 1\n"
                "  entries 2, slots 2, no damage\n");
  EXPECT_EQ(damage_, 0u);
  EXPECT_THAT(dump(index_path, {.json = true}),
              HasSubstr(R"("physical_offset":165,"seconds":1,"timestamp":1700000001123,)"
                        R"("previous":1})"));
}

TEST_F(DumpStore, entries_for_tags_as_rocketmq_5_5_makes_them_are_no_damage) {
  put(log_path, two_records());
  Index index;
  const std::int32_t hash = rocketmq::index_key_hash("TopicTest", "T#TagA");
  ASSERT_EQ(hash, 1'311'325'016);  // as read from a file that RocketMQ 5.5.1 wrote
  index.put({hash, 0, 0, 0}, 1);
  put(index_path, index.bytes);
  EXPECT_THAT(dump(index_path), EndsWith("entries 2, slots 2, no damage\n"));
  EXPECT_THAT(dump(index_path, {.deep = true}), Not(HasSubstr("without that key")));
}

TEST_F(DumpStore, index_damage_is_found) {
  put(log_path, two_records());
  Index index;
  index.put({index.slots, 165, 1, 2}, 2);
  put(index_path, index.bytes);
  EXPECT_THAT(dump(index_path), HasSubstr("DAMAGED at byte 88: the chain does not lead to an older "
                                          "entry"));
  EXPECT_THAT(dump(index_path, {.deep = true}), HasSubstr("has a record without that key"));

  index = Index();
  index.header.slots_used = 2;
  index.header.end_physical_offset = 100;
  index.put_header();
  put(index_path, index.bytes);
  EXPECT_THAT(dump(index_path), HasSubstr("behind those that the header knows"));
  EXPECT_THAT(dump(index_path, {.deep = true}), HasSubstr("counts 2 used slots, and there are 1"));

  index = Index();
  index.header.next_entry = 4'000'000;
  index.put_header();
  put(index_path, index.bytes);
  EXPECT_THAT(dump(index_path),
              HasSubstr("DAMAGED at byte 0: the header's numbers cannot be meant"));

  put(index_path, Bytes(209));
  EXPECT_THAT(dump(index_path), HasSubstr("no index file has this size"));
  put(index_path, Bytes(208));
  EXPECT_THAT(dump(index_path), HasSubstr("the file is new"));
  EXPECT_EQ(damage_, 0u);
}

TEST_F(DumpStore, only_deep_compares_the_slots_with_the_entries) {
  Index index;
  const std::int32_t hash = rocketmq::index_key_hash("TopicTest", "K1");
  store_big(&index.bytes[rocketmq::index_slot_at(rocketmq::index_slot_of(hash, index.slots))],
            std::int32_t{1});
  put(index_path, index.bytes);
  dump(index_path);
  EXPECT_EQ(damage_, 0u);
  EXPECT_THAT(dump(index_path, {.deep = true}),
              HasSubstr("leads to entry 1, not to the newest, 2"));
}

TEST_F(DumpStore, checkpoint_and_abort_are_shown) {
  rocketmq::Checkpoint checkpoint;
  checkpoint.physical_timestamp = 1'700'000'000'123;
  checkpoint.confirm_physical_offset = 330;
  const auto bytes = rocketmq::encode_checkpoint(checkpoint);
  put("/store/checkpoint", Bytes(bytes.begin(), bytes.end()));
  EXPECT_THAT(dump("/store/checkpoint"),
              HasSubstr("  physical timestamp 2023-11-14T22:13:20.123Z queue timestamp "
                        "1970-01-01T00:00:00.000Z index timestamp 1970-01-01T00:00:00.000Z "
                        "master flushed offset 0 confirm physical offset 330\n"));
  EXPECT_THAT(dump("/store/checkpoint", {.json = true}),
              HasSubstr(R"({"type":"entry","physical_timestamp":1700000000123,)"));
  put("/store/checkpoint", Bytes(39));
  dump("/store/checkpoint");
  EXPECT_EQ(damage_, 1u);
  put("/store/abort", "4711");
  EXPECT_THAT(dump("/store/abort"), HasSubstr("  text \"4711\"\n  at byte 0: the store is in use"));
}

TEST_F(DumpStore, the_config_tables_are_shown) {
  put("/store/config/topics.json",
      R"({"dataVersion":{"counter":2,"stateVersion":0,"timestamp":1700000000123},)"
      R"("topicConfigTable":{"TopicTest":{"attributes":{"queue.type":"SimpleCQ"},"order":false,)"
      R"("perm":6,"readQueueNums":8,"topicFilterType":"SINGLE_TAG","topicName":"TopicTest",)"
      R"("topicSysFlag":0,"writeQueueNums":4}}})");
  EXPECT_THAT(dump("/store/config/topics.json"),
              HasSubstr("  data version counter 2 state version 0 time 2023-11-14T22:13:20.123Z\n"
                        "  topic TopicTest queues read 8 write 4 perm 6 attribute "
                        "\"queue.type\"=\"SimpleCQ\"\n  entries 1, no damage\n"));
  put("/store/config/consumerOffset.json.bak", R"({"offsetTable":{"TopicTest@g":{0:12,1:9}}})");
  EXPECT_THAT(dump("/store/config/consumerOffset.json.bak"),
              HasSubstr("  topic TopicTest group g queue 0 offset 12\n"
                        "  topic TopicTest group g queue 1 offset 9\n  entries 2"));
  EXPECT_THAT(
      dump("/store/config/consumerOffset.json.bak", {.json = true}),
      HasSubstr(R"({"type":"entry","topic":"TopicTest","group":"g","queue":1,"offset":9})"));
  put("/store/config/delayOffset.json", R"({"offsetTable":{3:100}})");
  EXPECT_THAT(dump("/store/config/delayOffset.json"), HasSubstr("  level 3 offset 100\n"));
  rocketmq::GroupTable groups;
  groups.groups["g"].retry_max_times = 3;
  put("/store/config/subscriptionGroup.json", rocketmq::format_subscription_groups(groups));
  EXPECT_THAT(dump("/store/config/subscriptionGroup.json"),
              HasSubstr("  group g consume yes broadcast retry queues 1 max 3 timeout 15 min\n"));
  put("/store/config/topics.json", "{");
  EXPECT_THAT(dump("/store/config/topics.json"), HasSubstr("DAMAGED at byte 0: "));
}

TEST_F(DumpStore, files_outside_a_store_are_known_by_what_they_hold) {
  const std::string path = "/elsewhere/00000000000000000000";
  put(path, two_records());
  EXPECT_THAT(dump(path), HasSubstr(": commit log, "));
  put(path, entries({{165, 165, 7}}));
  EXPECT_THAT(dump(path), HasSubstr(": consume queue, "));
  for (const Bytes& bytes : {Bytes(1000), Bytes(1000, 0xee), Bytes()}) {
    put(path, bytes);
    EXPECT_EQ(dump(path), "");
    EXPECT_THAT(error_, HasSubstr(path));
  }
}

TEST_F(DumpStore, a_directory_of_a_store_shows_each_file_in_it) {
  put(log_path, two_records());
  put("/store/commitlog/00000000000000000330", record_at(330, 2));
  put("/store/commitlog/notes", "not ours");
  const std::string text = dump("/store/commitlog");
  EXPECT_THAT(text, HasSubstr("offset 1 bytes 165"));
  EXPECT_THAT(text, HasSubstr("\n\n/store/commitlog/00000000000000000330: commit log"));
  EXPECT_THAT(text, Not(HasSubstr("notes")));
  put("/store/abort", "4711");
  EXPECT_THAT(dump("/store"), HasSubstr("/store/abort: abort mark"));
}

TEST_F(DumpStore, a_device_error_is_an_error_and_not_damage) {
  put(log_path, two_records());
  put(queue_path, entries({{0, 165, 0x27a807}}));
  fs_.fail_path(log_path, fs::Fault::read_eio);
  dump(log_path);
  EXPECT_NE(error_, "");
  dump(queue_path, {.deep = true});
  EXPECT_NE(error_, "");
  EXPECT_EQ(damage_, 0u);
}

}  // namespace
}  // namespace polylog::cli
