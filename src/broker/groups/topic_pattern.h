#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace polylog::broker::groups {

// A subscription by regular expression, in RE2's syntax. Matching takes time linear in the topic's
// name whatever the expression, and an expression that needs too much memory is refused, so that
// any client may send any.
class TopicPattern {
 public:
  // invalid, with the reason.
  static Result<TopicPattern> compile(const std::string& expression);
  TopicPattern(TopicPattern&&) noexcept;
  TopicPattern& operator=(TopicPattern&&) noexcept;
  ~TopicPattern();

  bool matches(std::string_view topic) const;  // the whole name

 private:
  struct Compiled;
  explicit TopicPattern(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace polylog::broker::groups
