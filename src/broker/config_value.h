#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// Values of settings as text, checked the way Kafka's ConfigDef does: blanks around a value do
// not count, numbers are decimal without units. Pure; the errors name the key and the rule.
namespace polylog::broker {

std::string_view trimmed(std::string_view text);

// [min, max], both allowed.
Result<std::int64_t> parse_integer(std::string_view key, std::string_view text, std::int64_t min,
                                   std::int64_t max);
Result<double> parse_real(std::string_view key, std::string_view text, double min, double max);
Result<bool> parse_boolean(std::string_view key, std::string_view text);  // true, false
// Comma-separated; blanks trimmed; "" is the empty list; an empty item is invalid.
Result<std::vector<std::string>> parse_list(std::string_view key, std::string_view text);
// One of the words, which are separated by '|'.
Result<std::string> parse_word(std::string_view key, std::string_view text,
                               std::string_view words);

// The known name that a mistyped one most likely meant, or "": by edit distance (insert, drop,
// replace, swap neighbours), or because one is the other with a "log." in front.
std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& known);

}  // namespace polylog::broker
