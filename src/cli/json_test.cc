#include "cli/json.h"

#include <gtest/gtest.h>

namespace polylog::cli {
namespace {

TEST(JsonWriter, puts_commas_where_they_belong) {
  JsonWriter json;
  json.begin_object().field("a", 1).key("b").begin_array().value(true).null().begin_object();
  json.end_object().end_array().field("c", "x").end_object();
  EXPECT_EQ(json.take(), R"({"a":1,"b":[true,null,{}],"c":"x"})");
  EXPECT_EQ(json.begin_array().end_array().take(), "[]");
}

TEST(JsonWriter, escapes_what_json_does_not_allow_in_strings) {
  JsonWriter json;
  json.value("\"\\\n\t\x01\x1f/\xc3\xa9\xff.");
  EXPECT_EQ(json.take(), "\"\\\"\\\\\\n\\t\\u0001\\u001f/\xc3\xa9\\ufffd.\"");
}

TEST(JsonWriter, bytes_that_are_no_text_go_in_base64) {
  JsonWriter json;
  json.begin_object().bytes_field("null", std::nullopt).bytes_field("text", as_bytes("v"));
  json.bytes_field("raw", as_bytes("\xff")).end_object();
  EXPECT_EQ(json.take(), R"({"null":null,"text":"v","raw_base64":"/w=="})");
}

}  // namespace
}  // namespace polylog::cli
