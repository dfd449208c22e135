#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace polylog::cli {

// Where to begin reading a partition.
struct StartOffset {
  enum class Kind {
    beginning,
    end,
    offset,      // `value` itself
    before_end,  // `value` records before the end
    time,        // the first record at or after `value`, ms since 1970
  } kind = Kind::beginning;
  std::int64_t value = 0;
  bool operator==(const StartOffset&) const = default;
};

// beginning (or start), end, 42, -10, @1700000000000. invalid otherwise, with the forms there are.
Result<StartOffset> parse_start_offset(std::string_view text);

}  // namespace polylog::cli
