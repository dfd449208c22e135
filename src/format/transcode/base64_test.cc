#include "format/transcode/base64.h"

#include <gtest/gtest.h>

namespace polylog::format {
namespace {

std::string encoded(std::string_view text) {
  std::string out;
  append_base64(out, as_bytes(text));
  return out;
}

TEST(Base64, encodes_the_vectors_of_its_rfc_and_decodes_them) {
  const std::pair<std::string_view, std::string_view> vectors[] = {{"", ""},
                                                                   {"f", "Zg=="},
                                                                   {"fo", "Zm8="},
                                                                   {"foo", "Zm9v"},
                                                                   {"foob", "Zm9vYg=="},
                                                                   {"fooba", "Zm9vYmE="},
                                                                   {"foobar", "Zm9vYmFy"},
                                                                   {"\xfb\xff", "+/8="}};
  for (const auto& [plain, text] : vectors) {
    EXPECT_EQ(encoded(plain), text);
    EXPECT_EQ(base64_size(plain.size()), text.size());
    std::vector<std::uint8_t> out{7};
    EXPECT_TRUE(decode_base64(text, out));
    EXPECT_EQ(as_text(ByteView(out).subspan(1)), plain);
  }
}

TEST(Base64, refuses_every_second_text_for_a_value) {
  for (const std::string_view text : {"Zg=", "Zg", "Zg===", "=Zg=", "Zh==", "Zm9=", "Zm 8",
                                      "Zm9v\n", "Zg==Zg==", "Z===", "====", "Zm9-"}) {
    std::vector<std::uint8_t> out{7};
    EXPECT_FALSE(decode_base64(text, out)) << text;
    EXPECT_EQ(out.size(), 1U);
  }
}

}  // namespace
}  // namespace polylog::format
