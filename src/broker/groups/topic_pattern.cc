#include "broker/groups/topic_pattern.h"

#include <re2/re2.h>

#include <utility>

namespace polylog::broker::groups {

struct TopicPattern::Compiled {
  explicit Compiled(const std::string& expression, const re2::RE2::Options& options)
      : regex(expression, options) {}
  re2::RE2 regex;
};

TopicPattern::TopicPattern(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
TopicPattern::TopicPattern(TopicPattern&&) noexcept = default;
TopicPattern& TopicPattern::operator=(TopicPattern&&) noexcept = default;
TopicPattern::~TopicPattern() = default;

Result<TopicPattern> TopicPattern::compile(const std::string& expression) {
  constexpr std::int64_t memory_bytes_max = std::int64_t{1} << 20;
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(memory_bytes_max);
  auto compiled = std::make_unique<Compiled>(expression, options);
  if (!compiled->regex.ok()) return fail(Errc::invalid, compiled->regex.error());
  return TopicPattern(std::move(compiled));
}

bool TopicPattern::matches(std::string_view topic) const {
  return re2::RE2::FullMatch(re2::StringPiece(topic.data(), topic.size()), compiled_->regex);
}

}  // namespace polylog::broker::groups
