#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cli/dump_files.h"

// Small files that are decoded as a whole.
namespace polylog::cli {

// too_large: more than files of this kind ever have.
Result<std::vector<std::uint8_t>> read_whole(const DumpFile& file);

// Begins the file's part of the report; `decode` gives the content or what is damaged, `show`
// reports its entries and returns how many.
template <typename Decode, typename Show>
Result<void> dump_whole(const DumpFile& file, std::string_view kind, DumpReport& report,
                        Decode&& decode, Show&& show) {
  POLYLOG_ASSIGN(bytes, read_whole(file));
  report.begin_file(file.path, kind, {{"bytes", static_cast<std::int64_t>(bytes.size())}});
  const auto content = decode(ByteView(bytes));
  std::size_t entries = 0;
  if (content) {
    entries = show(*content);
  } else {
    report.damage(0, content.error().context);
  }
  report.end_file({{"entries", static_cast<std::int64_t>(entries)}});
  return {};
}

using DumpValue = std::variant<std::int64_t, std::string>;

// One entry: names (as in JSON) and values.
void show_pairs(const std::vector<std::pair<std::string, DumpValue>>& pairs, DumpReport& report);

}  // namespace polylog::cli
