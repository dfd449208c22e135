#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "record/record.h"

namespace polylog::cli {

struct RecordPlace {
  std::string_view topic;
  std::int32_t partition = 0;
};

// How `consume -f` prints a record; the tokens are kcat's:
//   %t topic  %p partition  %o offset  %T timestamp, ms  %k key  %s value  %h headers, a=1,b=2
//   %K and %S lengths of key and value in bytes, -1 for null  %% a percent sign
//   \n \r \t \\ \0 \xHH
class RecordFormat {
 public:
  // invalid: an unknown token or a broken escape, with its place.
  static Result<RecordFormat> parse(std::string_view text);
  // Appends one record.
  void print(const RecordPlace& place, const Record& record, std::string& out) const;

 private:
  // Literal text, or the letter of a token.
  std::vector<std::variant<std::string, char>> parts_;
};

// One record as one line of JSON; docs/guide/cli.md has the contract.
void print_json(const RecordPlace& place, const Record& record, std::string& out);

// The fields timestamp, key, value and headers, as `dump` prints them too.
class JsonWriter;
void add_record_fields(JsonWriter& json, const Record& record);

}  // namespace polylog::cli
