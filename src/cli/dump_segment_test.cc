#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "cli/dump.h"
#include "format/segment/record_rig.h"
#include "fs/sim_file_system.h"

// `polylog dump` of a RobustMQ shard's files.
namespace polylog::cli {
namespace {

namespace rig = format::segment::rig;
using format::segment::StoredRecord;
using rig::Bytes;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

const std::string directory = "/segment/orders-3";
const std::string path = directory + "/0.msg";

Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Bytes record_at(std::int64_t offset, std::string_view value = "v") {
  StoredRecord record = rig::plain();
  record.record.offset = Offset(offset);
  record.record.value = as_bytes(value);
  return rig::stored(record);
}

Bytes part_at(std::int64_t offset, std::int32_t index, std::int32_t count) {
  StoredRecord record = rig::plain();
  record.record.offset = Offset(offset);
  record.producer = format::segment::ProducerPart{ProducerId(7), 0, 40, index, count};
  return rig::stored(record);
}

class DumpSegment : public testing::Test {
 protected:
  DumpSegment() {
    EXPECT_TRUE(fs_.create_directory("/segment"));
    EXPECT_TRUE(fs_.create_directory(directory));
  }

  void put(const std::string& to, const Bytes& bytes) {
    const auto file = fs_.open(to, fs::OpenMode::create);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->truncate(0));
    ASSERT_TRUE((*file)->write(0, bytes));
  }

  // What `polylog dump` prints; damage_ and error_ tell how it went.
  std::string dump(const std::string& what, DumpOptions options = {}) {
    options.paths = {what};
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

TEST_F(DumpSegment, records_are_shown_one_a_line) {
  put(path, rig::from_hex(rig::plain_hex) + rig::from_hex(rig::full_hex));
  EXPECT_EQ(dump(path, {.records = true}),
            "/segment/orders-3/0.msg: segment, number 0, bytes 124\n"
            "  @0 offset 5 bytes 39 time 2023-11-14T22:13:20.000Z key 1 value 1 crc 60cdafeb ok\n"
            "    key \"k\" value \"v\"\n"
            "  @39 offset 4328719365 bytes 85 time 2023-11-14T22:13:20.000Z "
            "appended 2023-11-14T22:13:20.007Z log-append-time expires 2023-11-14T22:13:19.000Z "
            "key 0 value null headers 3 producer 4711/3 sequence 2147483646 record 3 of 3 "
            "mqtt qos 1 retain crc 7963b564 ok\n"
            "    key \"\" value null header \"a\"=\"b\" header \"a\"=null header \"\"=\"\"\n"
            "  records 2, first offset 5, last offset 4328719365, no damage\n");
  EXPECT_EQ(damage_, 0u);
}

TEST_F(DumpSegment, records_are_the_same_as_json) {
  put(path, rig::from_hex(rig::full_hex));
  EXPECT_EQ(
      dump(path, {.json = true, .records = true}),
      R"({"type":"file","path":"/segment/orders-3/0.msg","kind":"segment","number":0,"bytes":85})"
      "\n"
      R"({"type":"frame","position":0,"bytes":85,"offset":4328719365,"filling":"polylog",)"
      R"("metadata_bytes":26,"protocol_bytes":35,"data_bytes":0,"timestamp":1700000000000,)"
      R"("append_timestamp":1700000000007,"timestamp_type":"log_append_time",)"
      R"("expires":1699999999000,"producer":{"id":4711,"epoch":3,"base_sequence":2147483646,)"
      R"("index":2,"count":3},"rocketmq":false,"mqtt":true,"crc":"7963b564","crc_ok":true})"
      "\n"
      R"({"type":"record","offset":4328719365,"timestamp":1700000000000,"key":"","value":null,)"
      R"("headers":[{"name":"a","value":"b"},{"name":"a","value":null},{"name":"","value":""}]})"
      "\n"
      R"({"type":"end","records":1,"first_offset":4328719365,"last_offset":4328719365,)"
      R"("damaged_places":0})"
      "\n");
}

TEST_F(DumpSegment, a_message_shows_its_body_and_properties) {
  put(path, rig::stored(rig::message()));
  const std::string printed = dump(path, {.records = true});
  EXPECT_THAT(printed, HasSubstr(" value 4 rocketmq crc "));
  EXPECT_THAT(printed, HasSubstr("\n    body \"body\" \"TAGS\"=\"a\"\n"));
}

TEST_F(DumpSegment, robustmqs_own_records_are_recognised) {
  const char* const source = std::getenv("POLYLOG_SOURCE_DIR");
  ASSERT_NE(source, nullptr) << "run through ctest";
  std::ifstream in(std::string(source) + "/tests/golden/robustmq/records.msg", std::ios::binary);
  put(path, Bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()});
  const std::string printed = dump(path, {.records = true});
  EXPECT_EQ(damage_, 0u);
  EXPECT_THAT(printed, HasSubstr(" of RobustMQ, shard \"cq1h2k3l4m5n6p7q8r9s-0\" segment 0 time "));
  EXPECT_THAT(printed, HasSubstr("\n    key \"k\" value \"key\"\n"));
  EXPECT_THAT(printed, HasSubstr(" unread part nats"));
  EXPECT_THAT(printed, Not(HasSubstr(" crc ")));
  const std::string json = dump(path, {.json = true});
  EXPECT_THAT(json, HasSubstr(R"("filling":"robustmq")"));
  EXPECT_THAT(json, HasSubstr(R"("shard":"cq1h2k3l4m5n6p7q8r9s-0","segment":0)"));
}

TEST_F(DumpSegment, a_wrong_checksum_is_damage_and_the_rest_is_shown) {
  Bytes first = record_at(0);
  first.back() ^= 1;
  put(path, first + record_at(1));
  const std::string printed = dump(path);
  EXPECT_THAT(printed, HasSubstr(" WRONG\n  DAMAGED at byte 0: the record's checksum is wrong\n"));
  EXPECT_THAT(printed, HasSubstr("records 2"));
  EXPECT_EQ(damage_, 1u);
}

TEST_F(DumpSegment, an_unknown_filling_is_damage) {
  Bytes frame = record_at(0);
  frame[format::segment::frame_at::metadata] = 9;
  put(path, frame);
  const std::string printed = dump(path);
  EXPECT_THAT(printed, HasSubstr("@0 offset 0 bytes 39 metadata 14 protocol data 0 data 1\n"));
  EXPECT_THAT(printed, HasSubstr("DAMAGED at byte 0: the filling is neither polylog's version 1 "
                                 "nor that of RobustMQ 0.4.11 ("));
  EXPECT_EQ(damage_, 1u);
}

TEST_F(DumpSegment, a_torn_tail_is_reported_with_its_place) {
  const Bytes whole = record_at(0);
  for (std::size_t bytes = 1; bytes < whole.size(); ++bytes) {
    put(path, whole + Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes)));
    const std::string printed = dump(path);
    if (bytes >= format::segment::frame_head_bytes) {
      EXPECT_THAT(printed, HasSubstr("DAMAGED at byte 39: the file ends inside a record: " +
                                     std::to_string(bytes) + " of 39 bytes are there"));
    }
    EXPECT_THAT(printed, HasSubstr("records 1, ")) << bytes;
    EXPECT_THAT(printed, HasSubstr(" byte 39: ")) << bytes;
  }
}

TEST_F(DumpSegment, the_dump_goes_on_behind_damage) {
  const Bytes garbage(100, 0xa5);
  put(path, record_at(0) + garbage + record_at(1, "behind"));
  const std::string printed = dump(path, {.records = true});
  EXPECT_THAT(printed, HasSubstr("DAMAGED at byte 39: no record begins here (lengths out of "
                                 "range); the next one is 100 bytes further on\n"));
  EXPECT_THAT(printed, HasSubstr("value \"behind\""));
  EXPECT_EQ(damage_, 1u);
}

// The lengths in front still announce a whole frame; the inner ones don't add up.
TEST_F(DumpSegment, a_frame_that_does_not_add_up_is_stepped_over) {
  Bytes broken = record_at(1);
  broken[format::segment::frame_at::metadata + 14 + 3] = 1;
  put(path, record_at(0) + broken + record_at(2));
  const std::string printed = dump(path);
  EXPECT_THAT(printed, HasSubstr("DAMAGED at byte 39: no record begins here ("));
  EXPECT_THAT(printed, HasSubstr("the next one is 39 bytes further on\n  @78 offset 2 "));
  EXPECT_EQ(damage_, 1u);
}

TEST_F(DumpSegment, bytes_that_are_no_record_to_the_end_are_one_damage) {
  put(path, record_at(0) + Bytes(500, 0xff));
  EXPECT_THAT(dump(path), HasSubstr("DAMAGED at byte 39: no record begins here (lengths out of "
                                    "range); the last 500 bytes cannot be read\n"));
  EXPECT_EQ(damage_, 1u);
}

TEST_F(DumpSegment, zeros_at_the_end_are_a_remark_and_before_records_damage) {
  put(path, record_at(0) + Bytes(64));
  EXPECT_THAT(dump(path), HasSubstr("\n  at byte 39: zeros to the end of the file, 64 bytes"));
  EXPECT_EQ(damage_, 0u);
  put(path, record_at(0) + Bytes(64) + record_at(1));
  EXPECT_THAT(dump(path), HasSubstr("DAMAGED at byte 39: no record begins here (zeros); the next "
                                    "one is 64 bytes further on\n  @103 offset 1 "));
  EXPECT_EQ(damage_, 1u);
}

TEST_F(DumpSegment, offsets_must_rise) {
  put(path, record_at(4) + record_at(4) + record_at(9));
  EXPECT_THAT(dump(path), HasSubstr("DAMAGED at byte 39: the record does not lie behind"));
  EXPECT_EQ(damage_, 1u);
}

TEST_F(DumpSegment, a_batch_without_its_last_records_gets_a_remark) {
  put(path, part_at(0, 0, 2) + part_at(1, 1, 2) + part_at(2, 0, 3) + part_at(3, 1, 3));
  const auto printed = dump(path);
  const std::string place = std::to_string(2 * part_at(0, 0, 2).size());
  EXPECT_THAT(printed,
              HasSubstr("\n  at byte " + place + ": the last batch has 2 of its 3 records"));
  EXPECT_EQ(damage_, 0u);
  put(path, part_at(0, 0, 2) + part_at(1, 1, 2));
  EXPECT_THAT(dump(path), Not(HasSubstr("the last batch")));
}

TEST_F(DumpSegment, files_of_a_directory_come_in_the_order_of_their_numbers) {
  for (const char* name : {"/10.msg", "/2.msg", "/0.msg", "/x.msg"}) {
    put(directory + name, record_at(1));
  }
  const std::string printed = dump(directory);
  EXPECT_LT(printed.find("/0.msg"), printed.find("/2.msg"));
  EXPECT_LT(printed.find("/2.msg"), printed.find("/10.msg: segment, number 10, "));
  EXPECT_THAT(printed, Not(HasSubstr("x.msg")));
  EXPECT_THAT(printed, EndsWith("no damage\n"));
}

TEST_F(DumpSegment, an_empty_file_has_no_records) {
  put(path, {});
  EXPECT_THAT(dump(path), EndsWith("  records 0, no damage\n"));
}

}  // namespace
}  // namespace polylog::cli
