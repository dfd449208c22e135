#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "record/record.h"

namespace polylog::cli::kafka_tools {

// Lines of text as records, as kafka-console-producer's line reader takes them (Kafka 4.4,
// LineMessageReader): [headers TAB] [key TAB] value, with headers name:value,name:value.
class LineParser {
 public:
  // Properties parse.key, key.separator, parse.headers, headers.delimiter, headers.separator,
  // headers.key.separator, null.marker, ignore.error; others are passed over, as there. invalid:
  // separators that cannot be told apart.
  static Result<LineParser> from(
      const std::vector<std::pair<std::string, std::string>>& properties);

  // `record` refers to `line`. invalid: a separator is missing; the words have the line's number.
  Result<void> parse(std::string_view line, std::size_t number, Record& record) const;

 private:
  Result<std::optional<std::string_view>> take(bool enabled, std::string_view& rest,
                                               const std::string& separator, const char* what,
                                               std::string_view line, std::size_t number) const;
  Result<void> take_headers(std::string_view text, std::size_t number, Record& record) const;
  std::optional<ByteView> bytes_or_null(std::string_view text) const;

  bool parse_key_ = false;
  bool parse_headers_ = false;
  bool ignore_error_ = false;
  std::string key_separator_ = "\t";
  std::string headers_delimiter_ = "\t";
  std::string headers_separator_ = ",";
  std::string headers_key_separator_ = ":";
  std::optional<std::string> null_marker_;
};

}  // namespace polylog::cli::kafka_tools
