#include "format/transcode/text_rules.h"

#include <gtest/gtest.h>

#include <string>

namespace polylog::format {
namespace {

// At every place of a longer text too, since eight bytes are looked at together.
template <typename F>
void everywhere(std::string_view piece, F&& f) {
  f(std::string(piece));
  for (std::size_t at = 0; at <= 17; ++at) {
    std::string text(17, 'a');
    f(text.insert(at, piece));
  }
}

TEST(TextRules, every_ascii_character_is_judged_alike_at_every_place) {
  for (int c = 0; c < 0x80; ++c) {
    everywhere(std::string(1, static_cast<char>(c)), [c](const std::string& text) {
      EXPECT_EQ(is_plain_text(text), c != 1 && c != 2) << c;
      EXPECT_EQ(is_printable(text), c >= 0x20 && c != 0x7f) << c;
      EXPECT_EQ(is_token(text), c > 0x20 && c != 0x7f) << c;
    });
  }
}

TEST(TextRules, malformed_utf8_is_no_text) {
  for (const std::string_view good :
       {"\xc3\xbc", "\xe6\x94\xaf", "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf"}) {
    everywhere(good, [](const std::string& text) { EXPECT_TRUE(is_token(text)); });
  }
  for (const std::string_view bad : {"\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                                     "\xf4\x90\x80\x80", "\xf0\x80\x80\x80", "\xff", "\xe6\x94"}) {
    everywhere(bad, [](const std::string& text) {
      EXPECT_FALSE(is_plain_text(text));
      EXPECT_FALSE(is_printable(text));
      EXPECT_FALSE(is_token(text));
    });
  }
  EXPECT_FALSE(is_plain_text("") || is_printable("") || is_token(""));
}

}  // namespace
}  // namespace polylog::format
