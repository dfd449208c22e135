#include "cli/json.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "cli/text.h"

namespace polylog::cli {

JsonWriter& JsonWriter::key(std::string_view name) {
  comma();
  quote(name);
  out_ += ':';
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, number);
  return raw({text, end});
}

JsonWriter& JsonWriter::value(std::string_view text) {
  comma();
  quote(text);
  return *this;
}

JsonWriter& JsonWriter::bytes_field(std::string_view name, const std::optional<ByteView>& content) {
  if (!content) return key(name).null();
  if (utf8_prefix(as_text(*content)) == content->size()) return field(name, as_text(*content));
  return field(std::string(name) + "_base64", to_base64(*content));
}

std::string JsonWriter::take() {
  first_ = true;
  return std::exchange(out_, {});
}

JsonWriter& JsonWriter::open(char bracket) {
  comma();
  out_ += bracket;
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  out_ += bracket;
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view text) {
  comma();
  out_ += text;
  return *this;
}

void JsonWriter::comma() {
  if (!first_) out_ += ',';
  first_ = false;
}

void JsonWriter::quote(std::string_view text) {
  out_ += '"';
  while (!text.empty()) {
    const std::size_t valid = utf8_prefix(text);
    for (const char c : text.substr(0, valid)) {
      if (c == '"' || c == '\\') {
        out_ += '\\';
        out_ += c;
      } else if (c == '\n') {
        out_ += "\\n";
      } else if (c == '\t') {
        out_ += "\\t";
      } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
        char escape[8];
        std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
        out_ += escape;
      } else {
        out_ += c;
      }
    }
    text.remove_prefix(valid);
    if (text.empty()) break;
    out_ += "\\ufffd";
    text.remove_prefix(1);
  }
  out_ += '"';
}

}  // namespace polylog::cli
