#include "cli/kafka_tools/line_parser.h"

#include <gtest/gtest.h>

#include "cli/kafka_tools/java_text.h"

namespace polylog::cli::kafka_tools {
namespace {

using Properties = std::vector<std::pair<std::string, std::string>>;

std::string shown(const std::optional<ByteView>& bytes) {
  return bytes ? std::string(as_text(*bytes)) : "<null>";
}

// "key=value", and each header behind a semicolon.
std::string parsed(const Properties& properties, std::string_view line) {
  const auto parser = LineParser::from(properties);
  if (!parser) return parser.error().context;
  Record record;
  if (const auto done = parser->parse(line, 7, record); !done) return done.error().context;
  std::string out = shown(record.key) + "=" + shown(record.value);
  for (const Header& header : record.headers) {
    out += ";" + std::string(header.name) + "=" + shown(header.value);
  }
  return out;
}

TEST(LineParser, a_line_is_a_value_unless_asked_otherwise) {
  EXPECT_EQ(parsed({}, "a\tb"), "<null>=a\tb");
  EXPECT_EQ(parsed({}, ""), "<null>=");
  EXPECT_EQ(parsed({{"parse.key", "true"}}, "k\tv\tw"), "k=v\tw");
  EXPECT_EQ(parsed({{"parse.key", "TRUE"}, {"key.separator", "=>"}}, "k=>v"), "k=v");
}

TEST(LineParser, headers_stand_before_the_key) {
  const Properties both = {{"parse.headers", "true"}, {"parse.key", "true"}};
  EXPECT_EQ(parsed(both, "h1:v1,h2:v:2\tk\tv"), "k=v;h1=v1;h2=v:2");
  EXPECT_EQ(parsed({{"parse.headers", "true"}}, "h:\tv"), "<null>=v;h=");
}

TEST(LineParser, the_null_marker_stands_for_null) {
  const Properties all = {{"parse.headers", "true"}, {"parse.key", "true"}, {"null.marker", "NUL"}};
  EXPECT_EQ(parsed(all, "NUL\tNUL\tNUL"), "<null>=<null>");
  EXPECT_EQ(parsed(all, "h:NUL\tk\tv"), "k=v;h=<null>");
  EXPECT_EQ(parsed(all, "NUL:x\tk\tv"),
            "Header keys should not be equal to the null marker 'NUL' as they can't be null");
}

TEST(LineParser, what_is_missing_is_named_with_its_line) {
  EXPECT_EQ(parsed({{"parse.key", "true"}}, "nokey"),
            "No key separator found on line number 7: 'nokey'");
  EXPECT_EQ(parsed({{"parse.headers", "true"}}, "x"),
            "No headers delimiter found on line number 7: 'x'");
  EXPECT_EQ(parsed({{"parse.headers", "true"}}, "a:b,c\tv"),
            "No header key separator found in pair 'c' on line number 7");
  EXPECT_EQ(parsed({{"parse.key", "true"}, {"ignore.error", "true"}}, "nokey"), "<null>=nokey");
}

TEST(LineParser, separators_must_differ) {
  EXPECT_EQ(parsed({{"headers.separator", ":"}}, ""),
            "headers.separator and headers.key.separator may not be equal");
  EXPECT_EQ(parsed({{"null.marker", "\t"}}, ""),
            "headers.delimiter and null.marker may not be equal");
  EXPECT_EQ(parsed({{"key.separator", ""}}, ""), "key.separator may not be empty");
}

TEST(JavaText, doubles_as_java_writes_them) {
  EXPECT_EQ(java_double(0), "0.0");
  EXPECT_EQ(java_double(1), "1.0");
  EXPECT_EQ(java_double(2048.5), "2048.5");
  EXPECT_EQ(java_double(0.001), "0.001");
  EXPECT_EQ(java_double(9999999), "9999999.0");
  EXPECT_EQ(java_double(10485760), "1.048576E7");
  EXPECT_EQ(java_double(1e7), "1.0E7");
  EXPECT_EQ(java_double(-0.0005), "-5.0E-4");
}

}  // namespace
}  // namespace polylog::cli::kafka_tools
