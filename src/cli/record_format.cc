#include "cli/record_format.h"

#include <charconv>

#include "cli/json.h"

namespace polylog::cli {
namespace {

constexpr std::string_view tokens = "tpoTkshKS";

Error wrong(std::string_view text, std::size_t at, const std::string& what) {
  return {Errc::invalid,
          "format '" + std::string(text) + "', character " + std::to_string(at + 1) + ": " + what};
}

// Reads the escape behind the backslash at `at` and moves `at` to its last character.
Result<char> parse_escape(std::string_view text, std::size_t& at) {
  const std::size_t backslash = at;
  const char c = at + 1 < text.size() ? text[++at] : '\0';
  switch (c) {
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case '0': return '\0';
    case '\\': return '\\';
    default: break;
  }
  unsigned value = 0;
  const std::string_view digits = text.substr(std::min(at + 1, text.size()), 2);
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (c != 'x' || digits.size() != 2 || parsed.ptr != digits.data() + 2) {
    return fail(wrong(text, backslash, "escapes are \\n \\r \\t \\\\ \\0 and \\xHH"));
  }
  at += 2;
  return static_cast<char>(value);
}

void add_bytes(const std::optional<ByteView>& bytes, std::string& out) {
  if (bytes) out += as_text(*bytes);
}

void add_length(const std::optional<ByteView>& bytes, std::string& out) {
  out += bytes ? std::to_string(bytes->size()) : "-1";
}

void add_headers(const Record& record, std::string& out) {
  bool first = true;
  for (const Header& header : record.headers) {
    if (!first) out += ',';
    first = false;
    out += header.name;
    out += '=';
    if (header.value) {
      out += as_text(*header.value);
    } else {
      out += "NULL";
    }
  }
}

void add_token(char token, const RecordPlace& place, const Record& record, std::string& out) {
  switch (token) {
    case 't': out += place.topic; break;
    case 'p': out += std::to_string(place.partition); break;
    case 'o': out += std::to_string(record.offset.value()); break;
    case 'T': out += std::to_string(record.timestamp.value()); break;
    case 'k': add_bytes(record.key, out); break;
    case 's': add_bytes(record.value, out); break;
    case 'h': add_headers(record, out); break;
    case 'K': add_length(record.key, out); break;
    case 'S': add_length(record.value, out); break;
    default: break;
  }
}

}  // namespace

Result<RecordFormat> RecordFormat::parse(std::string_view text) {
  RecordFormat format;
  std::string literal;
  const auto end_literal = [&] {
    if (!literal.empty()) format.parts_.emplace_back(std::exchange(literal, {}));
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\') {
      POLYLOG_ASSIGN(c, parse_escape(text, at));
      literal += c;
    } else if (text[at] != '%') {
      literal += text[at];
    } else if (at + 1 < text.size() && text[at + 1] == '%') {
      literal += '%';
      ++at;
    } else if (at + 1 < text.size() && tokens.find(text[at + 1]) != std::string_view::npos) {
      end_literal();
      format.parts_.emplace_back(text[++at]);
    } else {
      return fail(wrong(text, at, "tokens are %t %p %o %T %k %s %h %K %S and %%"));
    }
  }
  end_literal();
  return format;
}

void RecordFormat::print(const RecordPlace& place, const Record& record, std::string& out) const {
  for (const auto& part : parts_) {
    if (const char* token = std::get_if<char>(&part)) {
      add_token(*token, place, record, out);
    } else {
      out += std::get<std::string>(part);
    }
  }
}

void add_record_fields(JsonWriter& json, const Record& record) {
  json.field("timestamp", record.timestamp.value());
  json.bytes_field("key", record.key).bytes_field("value", record.value);
  json.key("headers").begin_array();
  for (const Header& header : record.headers) {
    json.begin_object().field("name", header.name);
    json.bytes_field("value", header.value).end_object();
  }
  json.end_array();
}

void print_json(const RecordPlace& place, const Record& record, std::string& out) {
  JsonWriter json;
  json.begin_object().field("topic", place.topic).field("partition", place.partition);
  json.field("offset", record.offset.value());
  add_record_fields(json, record);
  json.end_object();
  out += json.text();
  out += '\n';
}

}  // namespace polylog::cli
