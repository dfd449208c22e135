#include "cli/kafka_tools/line_parser.h"

namespace polylog::cli::kafka_tools {
namespace {

bool is_true(const std::string& text) {
  return text.size() == 4 && (text[0] | 32) == 't' && (text[1] | 32) == 'r' &&
         (text[2] | 32) == 'u' && (text[3] | 32) == 'e';
}

}  // namespace

Result<LineParser> LineParser::from(
    const std::vector<std::pair<std::string, std::string>>& properties) {
  LineParser parser;
  for (const auto& [key, value] : properties) {
    if (key == "parse.key") parser.parse_key_ = is_true(value);
    if (key == "parse.headers") parser.parse_headers_ = is_true(value);
    if (key == "ignore.error") parser.ignore_error_ = is_true(value);
    if (key == "key.separator") parser.key_separator_ = value;
    if (key == "headers.delimiter") parser.headers_delimiter_ = value;
    if (key == "headers.separator") parser.headers_separator_ = value;
    if (key == "headers.key.separator") parser.headers_key_separator_ = value;
    if (key == "null.marker") parser.null_marker_ = value;
  }
  struct Named {
    const char* name;
    std::optional<std::string> text;
  };
  const std::vector<Named> names = {{"headers.delimiter", parser.headers_delimiter_},
                                    {"headers.separator", parser.headers_separator_},
                                    {"headers.key.separator", parser.headers_key_separator_},
                                    {"null.marker", parser.null_marker_},
                                    {"key.separator", parser.key_separator_}};
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].text && names[i].text->empty() && names[i].name != std::string("null.marker")) {
      return fail(Errc::invalid, std::string(names[i].name) + " may not be empty");
    }
    for (std::size_t j = i + 1; j < names.size(); ++j) {
      // The delimiter behind headers and the one behind the key may be the same, and are so.
      const bool may = names[j].name == std::string("key.separator") &&
                       names[i].name != std::string("null.marker");
      if (may || !names[i].text || names[i].text != names[j].text) continue;
      return fail(Errc::invalid,
                  std::string(names[i].name) + " and " + names[j].name + " may not be equal");
    }
  }
  return parser;
}

std::optional<ByteView> LineParser::bytes_or_null(std::string_view text) const {
  if (null_marker_ && text == *null_marker_) return std::nullopt;
  return as_bytes(text);
}

Result<std::optional<std::string_view>> LineParser::take(bool enabled, std::string_view& rest,
                                                         const std::string& separator,
                                                         const char* what, std::string_view line,
                                                         std::size_t number) const {
  if (!enabled) return std::optional<std::string_view>{};
  const std::size_t at = rest.find(separator);
  if (at == std::string_view::npos) {
    if (ignore_error_) return std::optional<std::string_view>{};
    return fail(Errc::invalid, std::string("No ") + what + " found on line number " +
                                   std::to_string(number) + ": '" + std::string(line) + "'");
  }
  const std::string_view taken = rest.substr(0, at);
  rest.remove_prefix(at + separator.size());
  return std::optional<std::string_view>(taken);
}

Result<void> LineParser::parse(std::string_view line, std::size_t number, Record& record) const {
  std::string_view rest = line;
  POLYLOG_ASSIGN(headers,
                 take(parse_headers_, rest, headers_delimiter_, "headers delimiter", line, number));
  POLYLOG_ASSIGN(key, take(parse_key_, rest, key_separator_, "key separator", line, number));
  if (key) record.key = bytes_or_null(*key);
  record.value = bytes_or_null(rest);
  if (!headers || (null_marker_ && *headers == *null_marker_)) return {};
  return take_headers(*headers, number, record);
}

Result<void> LineParser::take_headers(std::string_view text, std::size_t number,
                                      Record& record) const {
  for (bool more = true; more;) {
    const std::size_t end = text.find(headers_separator_);
    const std::string_view pair = text.substr(0, end);
    more = end != std::string_view::npos;
    if (more) text.remove_prefix(end + headers_separator_.size());
    const std::size_t colon = pair.find(headers_key_separator_);
    if (colon == std::string_view::npos) {
      if (!ignore_error_) {
        return fail(Errc::invalid, "No header key separator found in pair '" + std::string(pair) +
                                       "' on line number " + std::to_string(number));
      }
      record.headers.push_back({pair, std::nullopt});
      continue;
    }
    const std::string_view name = pair.substr(0, colon);
    if (null_marker_ && name == *null_marker_) {
      return fail(Errc::invalid, "Header keys should not be equal to the null marker '" +
                                     *null_marker_ + "' as they can't be null");
    }
    record.headers.push_back(
        {name, bytes_or_null(pair.substr(colon + headers_key_separator_.size()))});
  }
  return {};
}

}  // namespace polylog::cli::kafka_tools
