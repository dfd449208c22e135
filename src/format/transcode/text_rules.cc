#include "format/transcode/text_rules.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace polylog::format {
namespace {

// What was met in a text besides visible ASCII characters.
struct Met {
  bool separator = false;
  bool control = false;  // separators included
  bool space = false;
  bool malformed = false;  // not UTF-8
};

// True when all eight bytes are visible ASCII characters: 0x21 to 0x7e.
bool all_visible(const char* at) {
  constexpr std::uint64_t ones = 0x0101010101010101;
  constexpr std::uint64_t tops = ones * 0x80;
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof(word));
  const std::uint64_t low = (word - ones * 0x21) & ~word;
  const std::uint64_t high = word | (word + ones);
  return ((low | high) & tops) == 0;
}

// Bytes of the character that begins with a byte above 0x7f; 0 = malformed.
std::size_t sequence_bytes(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const std::size_t size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (text.size() < size) return 0;
  // The second byte excludes overlong forms, surrogates and what lies beyond U+10FFFF.
  const std::uint8_t second_min = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const std::uint8_t second_max = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < second_min || byte(1) > second_max) return 0;
  for (std::size_t i = 2; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  return size;
}

Met look_at(std::string_view text) {
  Met met;
  while (!text.empty()) {
    if (text.size() >= 8 && all_visible(text.data())) {
      text.remove_prefix(8);
      continue;
    }
    const auto byte = static_cast<std::uint8_t>(text[0]);
    std::size_t size = 1;
    if (byte >= 0x80) {
      size = sequence_bytes(text);
      if (size == 0) {
        met.malformed = true;
        return met;
      }
    } else if (byte == ' ') {
      met.space = true;
    } else if (byte < ' ' || byte == 0x7f) {
      met.control = true;
      if (byte == 1 || byte == 2) met.separator = true;
    }
    text.remove_prefix(size);
  }
  return met;
}

}  // namespace

bool is_plain_text(std::string_view text) {
  const Met met = look_at(text);
  return !text.empty() && !met.separator && !met.malformed;
}

bool is_printable(std::string_view text) {
  const Met met = look_at(text);
  return !text.empty() && !met.control && !met.malformed;
}

bool is_token(std::string_view text) {
  const Met met = look_at(text);
  return !text.empty() && !met.control && !met.space && !met.malformed;
}

}  // namespace polylog::format
