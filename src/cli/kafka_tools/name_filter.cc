#include "cli/kafka_tools/name_filter.h"

#include <algorithm>
#include <regex>

namespace polylog::cli::kafka_tools {

struct NameFilter::Pattern {
  std::regex expression;
};

Result<NameFilter> NameFilter::parse(std::string_view pattern) {
  constexpr std::size_t pattern_bytes_max = 4096;
  if (pattern.size() > pattern_bytes_max) {
    return fail(Errc::too_large, "a regular expression of more than 4096 bytes");
  }
  std::string text(pattern);
  std::replace(text.begin(), text.end(), ',', '|');
  const auto quote_or_blank = [](char c) { return c == '"' || c == '\'' || c == ' '; };
  text.erase(std::remove_if(text.begin(), text.end(), quote_or_blank), text.end());
  NameFilter filter;
  try {
    filter.pattern_ = std::make_shared<Pattern>(Pattern{std::regex(text)});
  } catch (const std::regex_error&) {
    return fail(Errc::invalid, text + " is an invalid regex.");
  }
  return filter;
}

bool NameFilter::fits(const std::string& name) const {
  try {
    return std::regex_match(name, pattern_->expression);
  } catch (const std::regex_error&) {
    return false;  // too complex for the library
  }
}

}  // namespace polylog::cli::kafka_tools
