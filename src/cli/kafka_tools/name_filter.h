#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace polylog::cli::kafka_tools {

// A pattern for names of topics as Kafka's tools take it: a regular expression that fits the whole
// name, where a comma is an "or". Its syntax is ECMAScript's, which for such names is Java's.
class NameFilter {
 public:
  // invalid: no regular expression.
  static Result<NameFilter> parse(std::string_view pattern);
  bool fits(const std::string& name) const;

 private:
  struct Pattern;
  std::shared_ptr<const Pattern> pattern_;
};

}  // namespace polylog::cli::kafka_tools
