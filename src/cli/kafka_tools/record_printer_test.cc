#include "cli/kafka_tools/record_printer.h"

#include <gtest/gtest.h>

namespace polylog::cli::kafka_tools {
namespace {

using Properties = std::vector<std::pair<std::string, std::string>>;

std::string printed(const Properties& properties, const Record& record, bool append_time = false) {
  const auto printer = RecordPrinter::from(properties);
  if (!printer) return printer.error().context;
  const TopicPartition where{"t", 3};
  std::string out;
  printer->print({where, record, append_time}, out);
  return out;
}

Record sample() {
  Record record;
  record.offset = Offset(7);
  record.timestamp = Timestamp(1700000000000);
  record.key = as_bytes("k");
  record.value = as_bytes("v");
  record.headers = {{"h", as_bytes("x")}, {"n", std::nullopt}};
  return record;
}

TEST(RecordPrinter, prints_values_unless_asked_otherwise) {
  EXPECT_EQ(printed({}, sample()), "v\n");
  EXPECT_EQ(printed({{"print.key", "true"}}, sample()), "k\tv\n");
  EXPECT_EQ(printed({{"print.key", "true"}, {"print.value", "false"}}, sample()), "k\n");
}

TEST(RecordPrinter, everything_comes_in_the_originals_order) {
  const Properties all = {
      {"print.value", "true"},     {"print.key", "true"},    {"print.headers", "true"},
      {"print.epoch", "true"},     {"print.offset", "true"}, {"print.partition", "true"},
      {"print.timestamp", "true"}, {"key.separator", "|"},   {"null.literal", "NIL"},
      {"headers.separator", ";"},  {"line.separator", "<>"}};
  EXPECT_EQ(printed(all, sample()),
            "CreateTime:1700000000000|Partition:3|Offset:7|Epoch:NOT_PRESENT|h:x;n:NIL|k|v<>");
  EXPECT_EQ(printed({{"print.timestamp", "true"}}, sample(), true),
            "LogAppendTime:1700000000000\tv\n");
}

TEST(RecordPrinter, what_is_missing_has_a_word) {
  Record record;
  EXPECT_EQ(printed({{"print.key", "true"}, {"print.headers", "true"}, {"print.timestamp", "true"}},
                    record),
            "NO_TIMESTAMP\tNO_HEADERS\tnull\tnull\n");
}

TEST(RecordPrinter, only_deserializers_of_strings_and_bytes_are_taken) {
  EXPECT_EQ(
      printed({{"value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer"}},
              sample()),
      "v\n");
  EXPECT_NE(
      printed({{"key.deserializer", "org.apache.kafka.common.serialization.LongDeserializer"}},
              sample()),
      "v\n");
}

}  // namespace
}  // namespace polylog::cli::kafka_tools
