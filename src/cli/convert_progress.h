#pragma once

#include <cstdint>
#include <string>

#include "convert/convert.h"

namespace polylog::cli {

// "copying: 12 of 48 partitions, 31 %, 1.20 GiB, 210.00 MiB/s, about 40 s left". `seconds` is how
// long the phase has taken so far; `first` the offsets that were done when it began.
std::string progress_text(const convert::Progress& progress, double seconds, std::uint64_t first);

// The last line: what was converted.
std::string summary_text(const convert::Summary& summary, const std::string& target,
                         const std::string& layout, double seconds);

}  // namespace polylog::cli
