#include "cli/record_format.h"

#include <gtest/gtest.h>

namespace polylog::cli {
namespace {

const RecordPlace place{"orders", 3};

Record full_record() {
  Record record;
  record.offset = Offset(42);
  record.timestamp = Timestamp(1700000000000);
  record.key = as_bytes("key");
  record.value = as_bytes("value");
  record.headers = {{"h1", as_bytes("x")}, {"h2", std::nullopt}};
  return record;
}

std::string printed(std::string_view format, const Record& record) {
  const auto parsed = RecordFormat::parse(format);
  EXPECT_TRUE(parsed) << format;
  std::string out;
  if (parsed) parsed->print(place, record, out);
  return out;
}

TEST(RecordFormat, every_token_prints_its_field) {
  EXPECT_EQ(printed("%t %p %o %T %k %s %h %K %S %%", full_record()),
            "orders 3 42 1700000000000 key value h1=x,h2=NULL 3 5 %");
}

TEST(RecordFormat, escapes_are_bytes) {
  EXPECT_EQ(printed("\\n\\r\\t\\\\\\x41\\xff|", full_record()), "\n\r\t\\A\xff|");
  EXPECT_EQ(printed("a\\0b", full_record()), std::string("a\0b", 3));
}

TEST(RecordFormat, null_prints_as_nothing_and_has_length_minus_one) {
  Record record;
  EXPECT_EQ(printed("[%k|%s|%h|%K|%S]", record), "[|||-1|-1]");
  record.value = ByteView();
  EXPECT_EQ(printed("%S", record), "0");
}

TEST(RecordFormat, what_it_does_not_know_is_refused_with_its_place) {
  for (const char* text : {"ab%", "ab%x", "ab\\", "ab\\q", "ab\\x4", "ab\\xzz"}) {
    const auto parsed = RecordFormat::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Errc::invalid);
    EXPECT_NE(parsed.error().context.find("character 3"), std::string::npos)
        << parsed.error().context;
  }
}

TEST(RecordFormat, json_tells_null_empty_and_raw_bytes_apart) {
  Record record = full_record();
  record.key = std::nullopt;
  record.value = as_bytes("\xff");
  std::string out;
  print_json(place, record, out);
  EXPECT_EQ(out,
            R"({"topic":"orders","partition":3,"offset":42,"timestamp":1700000000000,"key":null,)"
            R"("value_base64":"/w==","headers":[{"name":"h1","value":"x"},)"
            R"({"name":"h2","value":null}]})"
            "\n");
}

}  // namespace
}  // namespace polylog::cli
