#include "cli/dump_walk.h"

#include <algorithm>
#include <vector>

namespace polylog::cli {

Result<std::optional<std::uint64_t>> first_other_byte(const DumpFile& file,
                                                      std::uint64_t position) {
  std::vector<std::uint8_t> chunk(1 << 20);
  while (position < file.size) {
    POLYLOG_ASSIGN(got, file.file->read(position, chunk));
    if (got == 0) break;
    const auto end = chunk.begin() + static_cast<std::ptrdiff_t>(got);
    const auto other =
        std::find_if(chunk.begin(), end, [](std::uint8_t byte) { return byte != 0; });
    if (other != end) return position + static_cast<std::uint64_t>(other - chunk.begin());
    position += got;
  }
  return std::optional<std::uint64_t>();
}

std::uint64_t report_lost(const DumpFile& file, std::uint64_t position, std::string_view why,
                          std::optional<std::uint64_t> next, DumpReport& report) {
  const std::uint64_t end = next.value_or(file.size);
  report.damage(position, "no record begins here (" + std::string(why) + "); " +
                              (next ? "the next one is " : "the last ") +
                              std::to_string(end - position) +
                              (next ? " bytes further on" : " bytes cannot be read"));
  return end;
}

}  // namespace polylog::cli
