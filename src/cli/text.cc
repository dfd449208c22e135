#include "cli/text.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <ctime>

namespace polylog::cli {
namespace {

std::uint8_t byte_at(std::string_view text, std::size_t at) {
  return static_cast<std::uint8_t>(text[at]);
}

// Bytes of the character at the start; 0: none.
std::size_t character_bytes(std::string_view text) {
  const std::uint8_t lead = byte_at(text, 0);
  if (lead < 0x80) return 1;
  const std::size_t size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return 0;
  // The second byte excludes longer forms than needed, surrogates, and what is above U+10FFFF.
  const std::uint8_t second = byte_at(text, 1);
  if (lead == 0xe0 && second < 0xa0) return 0;
  if (lead == 0xed && second > 0x9f) return 0;
  if (lead == 0xf0 && second < 0x90) return 0;
  if (lead == 0xf4 && second > 0x8f) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte_at(text, i) & 0xc0) != 0x80) return 0;
  }
  return size;
}

void add_hex(std::string& out, std::uint8_t byte) {
  constexpr std::string_view digits = "0123456789abcdef";
  out += "\\x";
  out += digits[byte >> 4];
  out += digits[byte & 15];
}

}  // namespace

std::size_t utf8_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t size = character_bytes(text.substr(at));
    if (size == 0) break;
    at += size;
  }
  return at;
}

std::string to_base64(ByteView bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t left = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) group = group << 8 | (i < left ? bytes[at + i] : 0u);
    for (std::size_t i = 0; i < 4; ++i) {
      out += i <= left ? digits[group >> (18 - 6 * i) & 63] : '=';
    }
  }
  return out;
}

std::string quoted(const std::optional<ByteView>& bytes) {
  if (!bytes) return "null";
  std::string out = "\"";
  std::string_view text = as_text(*bytes);
  while (!text.empty()) {
    const std::size_t size = character_bytes(text);
    const char c = text[0];
    if (size == 0) {
      add_hex(out, byte_at(text, 0));
    } else if (size > 1) {
      out += text.substr(0, size);
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte_at(text, 0) < 0x20 || c == 0x7f) {
      add_hex(out, byte_at(text, 0));
    } else {
      out += c;
    }
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return out + '"';
}

std::string format_time(Timestamp time) {
  constexpr std::int64_t year_10000_ms = 253402300800000;
  if (time.value() < 0 || time.value() >= year_10000_ms) return std::to_string(time.value());
  const std::time_t seconds = time.value() / 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[40];
  const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  char rest[8];
  std::snprintf(rest, sizeof rest, ".%03dZ", static_cast<int>(time.value() % 1000));
  return std::string(text, size) + rest;
}

std::string format_size(std::uint64_t bytes) {
  constexpr const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double amount = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (amount >= 1024 && unit + 1 < std::size(units)) {
    amount /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", amount, units[unit]);
  return text;
}

std::string format_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    if (row.size() > widths.size()) widths.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      line.append(widths[i] - row[i].size() + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t number = 0;
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace polylog::cli
