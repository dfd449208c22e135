#include "format/transcode/base64.h"

#include <array>

namespace polylog::format {
namespace {

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr char padding = '=';
constexpr std::uint8_t no_digit = 0xff;

constexpr std::array<std::uint8_t, 256> digits = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(no_digit);
  for (std::size_t i = 0; i < alphabet.size(); ++i) {
    values[static_cast<std::uint8_t>(alphabet[i])] = static_cast<std::uint8_t>(i);
  }
  return values;
}();

std::uint32_t digit(char c) { return digits[static_cast<std::uint8_t>(c)]; }

}  // namespace

void append_base64(std::string& text, ByteView bytes) {
  const std::size_t start = text.size();
  text.resize(start + base64_size(bytes.size()), padding);
  char* out = text.data() + start;
  for (; bytes.size() >= 3; bytes = bytes.subspan(3)) {
    const std::uint32_t group =
        (std::uint32_t{bytes[0]} << 16) | (std::uint32_t{bytes[1]} << 8) | std::uint32_t{bytes[2]};
    *out++ = alphabet[group >> 18];
    *out++ = alphabet[(group >> 12) & 63];
    *out++ = alphabet[(group >> 6) & 63];
    *out++ = alphabet[group & 63];
  }
  if (bytes.empty()) return;
  const std::uint32_t second = bytes.size() == 2 ? bytes[1] : 0U;
  const std::uint32_t group = (std::uint32_t{bytes[0]} << 16) | (second << 8);
  *out++ = alphabet[group >> 18];
  *out++ = alphabet[(group >> 12) & 63];
  if (bytes.size() == 2) *out++ = alphabet[(group >> 6) & 63];
}

bool decode_base64(std::string_view text, std::vector<std::uint8_t>& out) {
  if (text.size() % 4 != 0) return false;
  std::size_t padded = 0;
  while (padded < 2 && padded < text.size() && text[text.size() - 1 - padded] == padding) ++padded;
  const std::size_t start = out.size();
  out.resize(start + text.size() / 4 * 3 - padded);
  std::uint8_t* at = out.data() + start;
  std::uint32_t bad = 0;
  const std::size_t whole = text.size() - (padded == 0 ? 0 : 4);
  for (std::size_t i = 0; i < whole; i += 4) {
    const std::uint32_t a = digit(text[i]);
    const std::uint32_t b = digit(text[i + 1]);
    const std::uint32_t c = digit(text[i + 2]);
    const std::uint32_t d = digit(text[i + 3]);
    bad |= a | b | c | d;
    const std::uint32_t group = (a << 18) | (b << 12) | (c << 6) | d;
    *at++ = static_cast<std::uint8_t>(group >> 16);
    *at++ = static_cast<std::uint8_t>(group >> 8);
    *at++ = static_cast<std::uint8_t>(group);
  }
  if (padded != 0) {
    const std::uint32_t a = digit(text[whole]);
    const std::uint32_t b = digit(text[whole + 1]);
    const std::uint32_t c = padded == 1 ? digit(text[whole + 2]) : 0;
    bad |= a | b | c;
    const std::uint32_t group = (a << 18) | (b << 12) | (c << 6);
    if ((group & (padded == 1 ? 0xffU : 0xffffU)) != 0) bad = no_digit;
    *at++ = static_cast<std::uint8_t>(group >> 16);
    if (padded == 1) *at++ = static_cast<std::uint8_t>(group >> 8);
  }
  if (bad >= alphabet.size()) {
    out.resize(start);
    return false;
  }
  return true;
}

}  // namespace polylog::format
