#include "cli/dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "format/kafka/checkpoint.h"
#include "format/kafka/golden_vectors.h"
#include "format/kafka/index.h"
#include "format/kafka/record_batch.h"
#include "fs/sim_file_system.h"
#include "journal/journal.h"
#include "storage/filelog/sidecar.h"

namespace polylog::cli {
namespace {

using format::kafka::golden::from_hex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

const std::string folder = "/t-0";
const std::string log_path = folder + "/00000000000000000042.log";
const std::string index_path = folder + "/00000000000000000042.index";
const std::string time_index_path = folder + "/00000000000000000042.timeindex";

std::vector<std::uint8_t> operator+(std::vector<std::uint8_t> a,
                                    const std::vector<std::uint8_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

template <std::size_t N>
std::vector<std::uint8_t> to_bytes(const std::array<std::uint8_t, N>& bytes) {
  return {bytes.begin(), bytes.end()};
}

class Dump : public testing::Test {
 protected:
  Dump() { EXPECT_TRUE(fs_.create_directory(folder)); }

  void put(const std::string& path, const std::vector<std::uint8_t>& bytes) {
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

TEST_F(Dump, shows_batches_and_records_of_a_log) {
  put(log_path, from_hex(format::kafka::golden::v2) + from_hex(format::kafka::golden::v3));
  EXPECT_EQ(dump(log_path, {.records = true}),
            "/t-0/00000000000000000042.log: log, base offset 42, bytes 186\n"
            "  @0 offsets 42..44 records 3 bytes 108 codec none epoch 3 "
            "time 2023-11-14T22:13:20.000Z..2023-11-14T22:13:20.005Z producer 4000/1 sequence 7..9 "
            "crc 72bc16b9 ok\n"
            "    42 2023-11-14T22:13:20.000Z key \"key-1\" value \"value-1\" header \"h1\"=\"x\" "
            "header \"h2\"=null\n"
            "    43 2023-11-14T22:13:20.005Z key null value \"\"\n"
            "    44 2023-11-14T22:13:19.997Z key \"key-3\" value null\n"
            "  @108 offsets 45..45 records 1 bytes 78 codec none epoch 3 "
            "time 2023-11-14T22:13:20.000Z producer 4000/1 transactional control crc 61ca681a ok\n"
            "    45 commit coordinator epoch 9\n"
            "  batches 2, records 4, first offset 42, last offset 45, no damage\n");
  EXPECT_EQ(damage_, 0u);
}

TEST_F(Dump, shows_the_same_as_json_one_object_a_line) {
  put(log_path, from_hex(format::kafka::golden::v2) + from_hex(format::kafka::golden::v3));
  EXPECT_EQ(
      dump(log_path, {.json = true, .records = true}),
      R"({"type":"file","path":"/t-0/00000000000000000042.log","kind":"log","base_offset":42,)"
      R"("bytes":186})"
      "\n"
      R"({"type":"batch","position":0,"bytes":108,"first_offset":42,"last_offset":44,"records":3,)"
      R"("codec":"none","leader_epoch":3,"base_timestamp":1700000000000,)"
      R"("max_timestamp":1700000000005,"timestamp_type":"create_time","producer_id":4000,)"
      R"("producer_epoch":1,"first_sequence":7,"last_sequence":9,"transactional":false,)"
      R"("control":false,"delete_horizon":false,"crc":"72bc16b9","crc_ok":true})"
      "\n"
      R"({"type":"record","offset":42,"timestamp":1700000000000,"key":"key-1",)"
      R"("value":"value-1","headers":[{"name":"h1","value":"x"},{"name":"h2","value":null}]})"
      "\n"
      R"({"type":"record","offset":43,"timestamp":1700000000005,"key":null,"value":"",)"
      R"("headers":[]})"
      "\n"
      R"({"type":"record","offset":44,"timestamp":1699999999997,"key":"key-3","value":null,)"
      R"("headers":[]})"
      "\n"
      R"({"type":"batch","position":108,"bytes":78,"first_offset":45,"last_offset":45,)"
      R"("records":1,"codec":"none","leader_epoch":3,"base_timestamp":1700000000000,)"
      R"("max_timestamp":1700000000000,"timestamp_type":"create_time","producer_id":4000,)"
      R"("producer_epoch":1,"first_sequence":-1,"last_sequence":-1,"transactional":true,)"
      R"("control":true,"delete_horizon":false,"crc":"61ca681a","crc_ok":true})"
      "\n"
      R"({"type":"control","offset":45,"control":"commit","coordinator_epoch":9})"
      "\n"
      R"({"type":"end","batches":2,"records":4,"first_offset":42,"last_offset":45,)"
      R"("damaged_places":0})"
      "\n");
}

TEST_F(Dump, an_empty_batch_that_compaction_left_is_no_damage) {
  put(log_path, from_hex(format::kafka::golden::v4));
  EXPECT_THAT(dump(log_path, {.records = true, .deep = true}),
              HasSubstr("offsets 42..44 records 0 bytes 61"));
  EXPECT_EQ(damage_, 0u);
}

TEST_F(Dump, every_codec_is_opened_for_its_records) {
  namespace golden = format::kafka::golden;
  const std::string path = folder + "/00000000000000000000.log";
  for (const auto& [codec, hex] : {std::pair{"none", golden::plain},
                                   {"gzip", golden::gzip},
                                   {"snappy", golden::snappy},
                                   {"snappy", golden::raw_snappy},
                                   {"lz4", golden::lz4},
                                   {"zstd", golden::zstd}}) {
    put(path, from_hex(hex));
    const std::string text = dump(path, {.records = true});
    EXPECT_THAT(text, HasSubstr(std::string("codec ") + codec + " "));
    EXPECT_THAT(text, HasSubstr("key \"key-1\" value \"value-1\""));
    EXPECT_THAT(text, HasSubstr("polylog polylog"));
    EXPECT_EQ(damage_, 0u) << codec;
  }
}

TEST_F(Dump, a_wrong_checksum_is_damage_and_the_rest_is_shown) {
  auto bytes = from_hex(format::kafka::golden::v2);
  bytes[80] ^= 1;
  put(log_path, bytes + from_hex(format::kafka::golden::v3));
  const std::string text = dump(log_path);
  EXPECT_THAT(text, HasSubstr("crc 72bc16b9 WRONG"));
  EXPECT_THAT(text, HasSubstr("DAMAGED at byte 0: the batch's checksum is wrong"));
  EXPECT_THAT(text, HasSubstr("@108"));
  EXPECT_THAT(text, EndsWith("damaged places 1\n"));
  EXPECT_EQ(damage_, 1u);
}

TEST_F(Dump, a_batch_that_the_file_cuts_off_is_damage) {
  auto bytes = from_hex(format::kafka::golden::v2) + from_hex(format::kafka::golden::v3);
  bytes.resize(150);
  put(log_path, bytes);
  EXPECT_THAT(dump(log_path), HasSubstr("DAMAGED at byte 108: the file ends inside a batch: "
                                        "42 of 78 bytes are there"));
  bytes.resize(110);
  put(log_path, bytes);
  EXPECT_THAT(dump(log_path), HasSubstr("the file ends inside a batch: 2 bytes are there"));
  EXPECT_EQ(damage_, 1u);
}

TEST_F(Dump, reserved_space_is_no_damage_but_something_behind_it_is) {
  auto bytes = from_hex(format::kafka::golden::v2);
  bytes.resize(5000);
  put(log_path, bytes);
  EXPECT_THAT(dump(log_path), HasSubstr("at byte 108: zeros to the end of the file, 4892 bytes"));
  EXPECT_EQ(damage_, 0u);
  bytes[4000] = 1;
  put(log_path, bytes);
  EXPECT_THAT(dump(log_path), HasSubstr("DAMAGED at byte 108: 3892 zero bytes"));
  EXPECT_EQ(damage_, 1u);
}

TEST_F(Dump, what_is_no_batch_ends_the_log_with_damage) {
  put(log_path, from_hex(format::kafka::golden::v2) + std::vector<std::uint8_t>(100, 0xee));
  EXPECT_THAT(dump(log_path), HasSubstr("DAMAGED at byte 108: no batch begins here"));
  EXPECT_THAT(dump(log_path), HasSubstr("the last 100 bytes cannot be read"));
}

TEST_F(Dump, batches_out_of_order_or_below_the_base_are_damage) {
  put(log_path, from_hex(format::kafka::golden::v2) + from_hex(format::kafka::golden::v2));
  EXPECT_THAT(dump(log_path), HasSubstr("DAMAGED at byte 108: the batch does not lie behind"));
  put(log_path, from_hex(format::kafka::golden::v1));
  EXPECT_THAT(dump(log_path), HasSubstr("below the segment's base offset"));
}

TEST_F(Dump, only_deep_looks_into_records_that_are_not_shown) {
  // A record whose value is announced one byte longer than it is, under a right checksum.
  auto bytes = from_hex(format::kafka::golden::v1);
  bytes[bytes.size() - 3] = 0x04;
  format::kafka::patch_crc(std::span(bytes).first<format::kafka::header_bytes>(),
                           ByteView(bytes).subspan(format::kafka::header_bytes));
  const std::string path = folder + "/00000000000000000000.log";
  put(path, bytes);
  EXPECT_THAT(dump(path), HasSubstr("no damage"));
  EXPECT_THAT(dump(path, {.deep = true}), HasSubstr("DAMAGED at byte 0: the batch's records: "));
}

TEST_F(Dump, offset_index_entries_are_shown_and_followed) {
  put(index_path, from_hex("00000003 0000006c"));
  EXPECT_EQ(dump(index_path),
            "/t-0/00000000000000000042.index: offset index, base offset 42, bytes 8\n"
            "  offset 45 position 108\n"
            "  entries 1, no damage\n");
  EXPECT_THAT(dump(index_path, {.json = true}),
              HasSubstr(R"({"type":"entry","offset":45,"position":108})"));
  put(log_path, from_hex(format::kafka::golden::v2) + from_hex(format::kafka::golden::v3));
  EXPECT_THAT(dump(index_path, {.deep = true}), HasSubstr("no damage"));
  put(index_path, from_hex("00000003 0000006b"));
  EXPECT_THAT(dump(index_path, {.deep = true}), HasSubstr("no batch begins at position 107"));
  put(index_path, from_hex("00000002 0000006c"));
  EXPECT_THAT(dump(index_path, {.deep = true}), HasSubstr("begins with offset 45"));
  put(index_path, from_hex("00000003 00001000"));
  EXPECT_THAT(dump(index_path, {.deep = true}), HasSubstr("lies behind its end"));
}

TEST_F(Dump, index_damage_is_told_from_reserved_space) {
  put(index_path, from_hex("00000003 0000006c 00000003 00000070"));
  EXPECT_THAT(dump(index_path), HasSubstr("DAMAGED at byte 8: the entry does not lie behind"));
  auto bytes = from_hex("00000003 0000006c");
  bytes.resize(80);
  put(index_path, bytes);
  EXPECT_THAT(dump(index_path), HasSubstr("at byte 8: zeros to the end of the file, 72 bytes"));
  EXPECT_EQ(damage_, 0u);
  bytes[79] = 1;
  put(index_path, bytes);
  EXPECT_THAT(dump(index_path), HasSubstr("DAMAGED at byte 72: an entry behind an entry of zeros"));
  bytes.resize(13);
  put(index_path, bytes);
  EXPECT_THAT(dump(index_path), HasSubstr("DAMAGED at byte 8: the file ends inside an entry"));
}

TEST_F(Dump, an_index_larger_than_one_read_is_shown_whole) {
  std::vector<std::uint8_t> bytes;
  for (int i = 1; i <= 20'000; ++i) {
    bytes = std::move(bytes) +
            to_bytes(format::kafka::encode(format::kafka::OffsetIndexEntry{i, i * 100}));
  }
  put(index_path, bytes);
  const std::string text = dump(index_path);
  EXPECT_THAT(text, HasSubstr("offset 20042 position 2000000\n"));
  EXPECT_THAT(text, EndsWith("entries 20000, no damage\n"));
}

TEST_F(Dump, time_index_entries_are_shown_and_followed) {
  put(log_path, from_hex(format::kafka::golden::v2));
  put(time_index_path, from_hex("0000018bcfe56805 00000002"));
  EXPECT_THAT(dump(time_index_path, {.deep = true}),
              HasSubstr("  time 2023-11-14T22:13:20.005Z offset 44\n  entries 1, no damage"));
  put(time_index_path, from_hex("0000018bcfe56806 00000002"));
  EXPECT_THAT(dump(time_index_path, {.deep = true}), HasSubstr("no batch of the log has that"));
  put(time_index_path, from_hex("0000018bcfe56805 00000009"));
  EXPECT_THAT(dump(time_index_path, {.deep = true}), HasSubstr("lies behind the end of the log"));
  put(time_index_path, from_hex("0000018bcfe56805 00000002 0000018bcfe56805 00000003"));
  EXPECT_THAT(dump(time_index_path), HasSubstr("DAMAGED at byte 12"));
}

TEST_F(Dump, aborted_transactions_are_shown) {
  const std::string path = folder + "/00000000000000000042.txnindex";
  put(path, to_bytes(format::kafka::encode(
                AbortedTransaction{ProducerId(4000), Offset(42), Offset(45), Offset(46)})));
  EXPECT_THAT(dump(path), HasSubstr("  producer 4000 aborted offsets 42..45 last stable offset 46\n"
                                    "  entries 1, no damage\n"));
  put(path, from_hex("0001"));
  dump(path);
  EXPECT_EQ(damage_, 1u);
}

TEST_F(Dump, producer_snapshots_are_shown) {
  const std::string path = folder + "/00000000000000000045.snapshot";
  auto bytes = from_hex(format::kafka::golden::snapshot_one_producer);
  put(path, bytes);
  EXPECT_THAT(dump(path),
              HasSubstr("  producer 4000/1 last sequence 9 last offset 44 offset delta 2 "
                        "time 2023-11-14T22:13:20.005Z coordinator epoch -1 "
                        "transaction open since offset 42\n  entries 1, no damage"));
  EXPECT_THAT(dump(path, {.json = true}), HasSubstr(R"("transaction_first_offset":42})"));
  bytes[20] ^= 1;
  put(path, bytes);
  EXPECT_THAT(dump(path), HasSubstr("DAMAGED at byte 0: "));
}

TEST_F(Dump, the_text_files_are_shown) {
  put("/leader-epoch-checkpoint", "0\n1\n3 42\n");
  EXPECT_THAT(dump("/leader-epoch-checkpoint"), HasSubstr("  epoch 3 start offset 42\n"));
  put("/replication-offset-checkpoint", "0\n1\na-b 3 42\n");
  EXPECT_THAT(dump("/replication-offset-checkpoint"), HasSubstr("  a-b-3 offset 42\n"));
  EXPECT_THAT(dump("/replication-offset-checkpoint", {.json = true}),
              HasSubstr(R"({"type":"entry","topic":"a-b","partition":3,"offset":42})"));
  const Uuid id = Uuid::random();
  put("/partition.metadata", format::kafka::format_partition_metadata(id));
  EXPECT_THAT(dump("/partition.metadata"), HasSubstr("  topic id " + id.to_string() + "\n"));
  format::kafka::MetaProperties properties;
  properties.cluster_id = "some-cluster";
  properties.node_id = 7;
  put("/meta.properties", format::kafka::format_meta_properties(properties));
  EXPECT_THAT(dump("/meta.properties"), HasSubstr("cluster id some-cluster node id 7"));
  put("/.kafka_cleanshutdown", format::kafka::format_clean_shutdown(5));
  EXPECT_THAT(dump("/.kafka_cleanshutdown"), HasSubstr("  broker epoch 5\n"));
  put("/log-start-offset-checkpoint", "0\n2\na 0 1\n");
  EXPECT_THAT(dump("/log-start-offset-checkpoint"), HasSubstr("DAMAGED"));
}

TEST_F(Dump, the_sidecar_is_shown_and_its_torn_end_is_no_damage) {
  const std::string path = "/kafka.sidecar";
  storage::SidecarState state;
  {
    const auto sidecar = storage::Sidecar::open(fs_, path, state);
    ASSERT_TRUE(sidecar);
    const std::uint32_t id = (*sidecar)->begin_log("t-0", Uuid::random());
    storage::RoundFile file;
    file.base = 42;
    file.inode = 9;
    file.durable_bytes = 186;
    (*sidecar)->round(id, LogPosition(46), {file});
    (*sidecar)->clean_stop();
  }
  const std::string text = dump(path, {.records = true});
  EXPECT_THAT(text, HasSubstr(" begin_log bytes "));
  EXPECT_THAT(text, HasSubstr("  log t-0 topic "));
  EXPECT_THAT(text, HasSubstr(" durable to 46\n    file 42 durable bytes 186 blocks 0 inode 9\n"));
  EXPECT_THAT(text, EndsWith("records 5, logs 1, queues 0, marks 0, clean stop 1, no damage\n"));

  const auto file = fs_.open(path, fs::OpenMode::write);
  const std::uint64_t size = (*file)->info()->size;
  ASSERT_TRUE((*file)->truncate(size - 1));
  EXPECT_THAT(dump(path), HasSubstr("the file ends inside a record"));
  EXPECT_EQ(damage_, 0u);
  ASSERT_TRUE((*file)->write(50, from_hex("ffff")));
  EXPECT_THAT(dump(path), HasSubstr("  log t-0 topic ")) << "there is a second copy";
  EXPECT_EQ(damage_, 1u);
}

TEST_F(Dump, a_journal_shows_what_it_would_put_back) {
  ASSERT_TRUE(fs::create_directories(fs_, "/data"));
  journal::Options options;
  options.root = "/data";
  options.directory = "/data";
  options.bytes = journal::bytes_min;
  options.own_thread = false;
  const auto journal = journal::Journal::open(fs_, options);
  ASSERT_TRUE(journal);
  const auto file = *(*journal)->file_system().open("/data/a", fs::OpenMode::create);
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE((*journal)->file_system().sync_directory("/data"));
  ASSERT_TRUE(file->write(0, as_bytes("bytes")));
  ASSERT_TRUE((*journal)->cover(std::span(&file, 1)));
  const std::string path = journal::journal_path("/data");
  const std::string text = dump(path, {.records = true});
  EXPECT_THAT(text, HasSubstr(" file a inode "));
  EXPECT_THAT(text, HasSubstr(" write a at 0 bytes 5\n"));
  EXPECT_THAT(text, EndsWith("entries 3, writes 1, bytes written 5, no damage\n"));
  EXPECT_THAT(dump(path, {.json = true, .records = true}),
              HasSubstr(R"("entry":"write","path":"a","at":0,"bytes":5})"));
  ASSERT_TRUE((*journal)->close());
  EXPECT_THAT(dump(path), EndsWith("entries 0, writes 0, bytes written 0, no damage\n"));
  put("/bad.journal", "not one");
  EXPECT_THAT(dump("/bad.journal"), HasSubstr("DAMAGED"));
}

TEST_F(Dump, the_sidecar_of_a_shared_log_shows_its_queues) {
  const std::string path = "/rocketmq.sidecar";
  storage::SidecarState state;
  {
    const auto sidecar = storage::Sidecar::open(fs_, path, state);
    ASSERT_TRUE(sidecar);
    const std::uint32_t id = (*sidecar)->begin_log("commitlog", Uuid());
    ASSERT_TRUE((*sidecar)->epoch_start(id, {LeaderEpoch(1), LogPosition(0)}));
    storage::QueueNote queue;
    queue.birth = 512;
    queue.start = 7;
    queue.removed = true;
    ASSERT_TRUE((*sidecar)->queue({"orders", 3}, queue));
  }
  const std::string text = dump(path, {.records = true});
  EXPECT_THAT(text, HasSubstr(" epoch_start bytes "));
  EXPECT_THAT(text, HasSubstr("\n    epoch 1 from 0\n"));
  EXPECT_THAT(text, HasSubstr("  queue orders-3 topic "));
  EXPECT_THAT(text, HasSubstr(" born at 512 log start 7 removed\n"));
  EXPECT_THAT(text, HasSubstr("logs 1, queues 1, marks 0"));
}

TEST_F(Dump, a_directory_shows_each_known_file_in_it) {
  put(log_path, from_hex(format::kafka::golden::v2));
  put(index_path, std::vector<std::uint8_t>());
  put(folder + "/leader-epoch-checkpoint", "0\n1\n3 42\n");
  put(folder + "/notes.txt", "not ours");
  put(folder + "/broken.log", "nor this");
  const std::string text = dump(folder + "/");
  EXPECT_THAT(text, HasSubstr("/t-0/00000000000000000042.log: log"));
  EXPECT_THAT(text, HasSubstr("\n\n/t-0/leader-epoch-checkpoint: leader epoch checkpoint"));
  EXPECT_THAT(text, Not(HasSubstr("notes")));
  EXPECT_EQ(error_, "");
}

TEST_F(Dump, files_that_compaction_or_deletion_renamed_are_known) {
  put(log_path + ".deleted", from_hex(format::kafka::golden::v2));
  EXPECT_THAT(dump(log_path + ".deleted"), HasSubstr("offsets 42..44"));
}

TEST_F(Dump, an_unknown_name_is_an_error_before_anything_is_shown) {
  put(log_path, from_hex(format::kafka::golden::v2));
  put("/notes.txt", "");
  put("/42.log", "");
  for (const char* path : {"/notes.txt", "/42.log", "/missing.log", "/"}) {
    EXPECT_EQ(dump(path), "") << path;
    EXPECT_THAT(error_, HasSubstr(path)) << path;
  }
}

TEST_F(Dump, a_device_error_is_an_error_and_not_damage) {
  put(log_path, from_hex(format::kafka::golden::v2));
  fs_.fail_path(log_path, fs::Fault::read_eio);
  dump(log_path);
  EXPECT_NE(error_, "");
  EXPECT_EQ(damage_, 0u);
}

}  // namespace
}  // namespace polylog::cli
