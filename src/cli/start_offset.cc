#include "cli/start_offset.h"

#include <string>

#include "cli/text.h"

namespace polylog::cli {

Result<StartOffset> parse_start_offset(std::string_view text) {
  using Kind = StartOffset::Kind;
  if (text == "beginning" || text == "start") return StartOffset{Kind::beginning, 0};
  if (text == "end") return StartOffset{Kind::end, 0};
  const bool is_time = text.starts_with('@');
  const std::optional<std::int64_t> number = parse_integer(text.substr(is_time ? 1 : 0));
  const bool negative = number && *number < 0;
  if (!number || (is_time && negative) || (negative && *number == INT64_MIN)) {
    return fail(Errc::invalid, "'" + std::string(text) +
                                   "' is no place to begin: write beginning, end, an offset, "
                                   "-N for the last N records, or @MS for a time");
  }
  if (is_time) return StartOffset{Kind::time, *number};
  if (text.starts_with('-')) return StartOffset{Kind::before_end, -*number};
  return StartOffset{Kind::offset, *number};
}

}  // namespace polylog::cli
