#include "format/rocketmq/names.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/assert.h"
#include "format/rocketmq/message.h"

namespace polylog::format::rocketmq {
namespace {

constexpr std::size_t position_digits = 20;

constexpr std::array<std::string_view, 4> internal_prefixes{"%RETRY%", "%DLQ%", "%LMQ%",
                                                            "rmq_sys_"};
constexpr std::array<std::string_view, 10> internal_topics{
    schedule_topic,     half_topic,           half_operations_topic, "TRANS_CHECK_MAX_TIME_TOPIC",
    "TBW102",           "BenchmarkTest",      "SELF_TEST_TOPIC",     "OFFSET_MOVED_EVENT",
    "CHECKPOINT_TOPIC", "RMQ_SYS_TRACE_TOPIC"};

// Stored as it is, and nothing else is ever stored as it.
bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

}  // namespace

std::string file_name(std::int64_t position) {
  POLYLOG_ASSERT(position >= 0);
  const std::string digits = std::to_string(position);
  return std::string(position_digits - digits.size(), '0') + digits;
}

std::optional<std::int64_t> parse_file_name(std::string_view name) {
  if (name.size() != position_digits ||
      name.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  std::int64_t position = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), position);
  if (error != std::errc()) return std::nullopt;  // beyond 2^63-1
  return position;
}

Result<std::string> to_stored_topic(std::string_view name) {
  if (name.empty()) return fail(Errc::invalid, "a topic name may not be empty");
  std::string stored;
  for (const char c : name) {
    if (is_plain(c)) {
      stored += c;
    } else if (c == '.') {
      stored += "%2E";
    } else if (c == '%') {
      stored += "%25";
    } else {
      return fail(Errc::invalid,
                  "a topic of this layout consists of ASCII letters, digits, '.', '_', '-' and "
                  "'%' only");
    }
  }
  if (stored.size() > topic_bytes_max_v1) {
    return fail(Errc::too_large,
                "a topic name takes at most 127 bytes in this layout ('.' and "
                "'%' take three each), not " +
                    std::to_string(stored.size()));
  }
  return stored;
}

std::string from_stored_topic(std::string_view stored) {
  if (stored.size() > topic_bytes_max_v1 || is_internal_topic(stored)) return std::string(stored);
  std::string name;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    if (is_plain(stored[i])) {
      name += stored[i];
      continue;
    }
    const std::string_view code = stored.substr(i, 3);
    if (code == "%2E") {
      name += '.';
    } else if (code == "%25") {
      name += '%';
    } else {
      return std::string(stored);
    }
    i += 2;
  }
  return name;
}

bool is_internal_topic(std::string_view stored) {
  return std::any_of(internal_prefixes.begin(), internal_prefixes.end(),
                     [&](std::string_view prefix) { return stored.starts_with(prefix); }) ||
         std::find(internal_topics.begin(), internal_topics.end(), stored) != internal_topics.end();
}

Result<void> check_stored_topic(std::string_view stored) {
  if (stored.empty()) return fail(Errc::invalid, "a topic name may not be empty");
  if (stored.size() > topic_bytes_max) {
    return fail(Errc::too_large, "a topic name takes at most 255 bytes");
  }
  for (const char c : stored) {
    if (!is_plain(c) && c != '%' && c != '|') {
      return fail(Errc::invalid,
                  "a stored topic consists of ASCII letters, digits, '%', '|', '_' and '-' only");
    }
  }
  return {};
}

}  // namespace polylog::format::rocketmq
