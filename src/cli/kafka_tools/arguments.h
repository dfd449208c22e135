#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

// Command lines as Kafka's tools read theirs (joptsimple 5 without abbreviations): --flag value,
// --flag=value, and one dash for two. What is no flag and no flag's value is passed over.
namespace polylog::cli::kafka_tools {

struct Flag {
  enum class Value { none, required, optional };
  std::string_view name;
  Value value = Value::none;
  std::string_view help;
  // Only with one of these flags beside it, separated by spaces; empty: always.
  std::string_view only_with = {};
};

class Arguments {
 public:
  // invalid: an unknown flag, a value that is missing or not wanted, in joptsimple's words.
  static Result<Arguments> parse(const std::vector<Flag>& flags,
                                 const std::vector<std::string>& words);

  bool has(std::string_view name) const { return given_.contains(name); }
  // Every flag with its value, or an empty one, as they stand.
  const std::vector<std::pair<std::string, std::string>>& in_order() const { return in_order_; }
  // All values of a flag, in order; a flag without one has none.
  std::vector<std::string> values(std::string_view name) const;
  // The only value; nothing when there is none. invalid: several.
  Result<std::optional<std::string>> value(std::string_view name) const;
  // invalid: no whole number that fits, in joptsimple's words.
  Result<std::optional<std::int64_t>> number(std::string_view name, std::int64_t least,
                                             std::int64_t most) const;

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> given_;
  std::vector<std::pair<std::string, std::string>> in_order_;
};

// One line a flag.
std::string flags_help(const std::vector<Flag>& flags);

}  // namespace polylog::cli::kafka_tools
