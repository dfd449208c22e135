#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "format/page_table.h"
#include "format/segment/frame.h"
#include "format/segment/record.h"
#include "format/segment/record_parts.h"
#include "format/segment/robustmq.h"

// The tables of docs/formats/segment-file.md must say what the code does.
namespace polylog::format::segment {
namespace {

const std::string file = "segment-file.md";

page::Named bit(std::uint8_t mask, const char* name) {
  EXPECT_EQ(std::popcount(mask), 1) << name;
  return {static_cast<std::size_t>(std::countr_zero(mask)), name};
}

TEST(FormatPages, tables_equal_the_code) {
  EXPECT_EQ(page::table_of(file, 0), page::rows_of(frame_fields));
  EXPECT_EQ(page::table_of(file, 1), page::rows_of(metadata_fields));
  EXPECT_EQ(page::table_of(file, 2), page::rows_of(robustmq_root_fields));
}

TEST(FormatPages, flags_equal_the_code) {
  const std::vector<page::Named> expected{
      bit(record_flags::has_key, "hasKey"),
      bit(record_flags::null_value, "nullValue"),
      bit(record_flags::has_headers, "hasHeaders"),
      bit(record_flags::has_append_time, "hasAppendTime"),
      bit(record_flags::shows_append_time, "showsAppendTime"),
      bit(record_flags::expires, "expires"),
  };
  EXPECT_EQ(page::named_of(file, "bit", 0), expected);
  EXPECT_EQ(record_flags::known, (1U << expected.size()) - 1);
}

TEST(FormatPages, parts_equal_the_code) {
  const std::vector<page::Named> expected{{part_tag::producer, "producer"},
                                          {part_tag::rocketmq, "rocketmq"},
                                          {part_tag::mqtt, "mqtt"}};
  EXPECT_EQ(page::named_of(file, "tag", 0), expected);
  const std::vector<page::Named> fields{
      bit(mqtt_fields::topic, "topic"),
      bit(mqtt_fields::payload_format, "payloadFormat"),
      bit(mqtt_fields::content_type, "contentType"),
      bit(mqtt_fields::response_topic, "responseTopic"),
      bit(mqtt_fields::correlation, "correlation"),
      bit(mqtt_fields::client_id, "clientId"),
      bit(mqtt_fields::expiry_interval, "expiryInterval"),
  };
  EXPECT_EQ(page::named_of(file, "bit", 1), fields);
  EXPECT_EQ(mqtt_fields::known, (1U << fields.size()) - 1);
}

TEST(FormatPages, numbers_equal_the_code) {
  EXPECT_TRUE(page::says(file, "| version | " + std::to_string(record_version) + " |"));
  EXPECT_TRUE(page::says(file, std::to_string(frame_fixed_bytes) + " bytes are fixed"));
  EXPECT_TRUE(page::says(file, std::to_string(robustmq_root_bytes) + " bytes, at the end"));
  EXPECT_TRUE(page::says(file, "release " + std::string(robustmq_release)));
  EXPECT_TRUE(page::says(file, "`" + std::string(robustmq_tag_header) + "`"));
}

// The page names two sizes of whole frames.
TEST(FormatPages, sizes_equal_the_code) {
  const std::vector<std::uint8_t> value(100), key(8);
  StoredRecord record;
  record.record.timestamp = Timestamp(1'790'000'000'000);
  record.append_time = Timestamp(1'790'000'000'007);
  record.record.value = value;
  std::vector<std::uint8_t> frame;
  ASSERT_TRUE(encode(record, frame));
  EXPECT_TRUE(page::says(file, "takes " + std::to_string(frame.size()) + " bytes"));
  frame.clear();
  record.record.key = key;
  record.producer = ProducerPart{ProducerId(4711), 3, 1000, 5, 20};
  ASSERT_TRUE(encode(record, frame));
  EXPECT_TRUE(page::says(file, ", " + std::to_string(frame.size()) + " with a key"));
}

}  // namespace
}  // namespace polylog::format::segment
