#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

// Times and spans as people write them on a command line.
namespace polylog::cli {

// ISO 8601 in ms since 1970: YYYY-MM-DDTHH:MM[:SS[.fff]], then Z, +HH, +HH:MM or +HHMM; without a
// zone it is UTC, as Kafka's tools have it. invalid: anything else, with what is missing.
Result<std::int64_t> parse_datetime(std::string_view text);

// An ISO 8601 duration in ms as Java's Duration.parse() takes it: P1D, PT5M, P2DT3H4M5.5S, with
// signs. invalid: anything else.
Result<std::int64_t> parse_duration(std::string_view text);

}  // namespace polylog::cli
