#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/dump_files.h"

namespace polylog::cli {

// Calls visit(position, bytes) for each entry. An entry of zeros begins the space that is
// reserved ahead: nothing may follow in it. Returns how many entries were visited.
template <typename F>
Result<std::int64_t> for_each_dump_entry(const DumpFile& file, std::size_t entry_bytes,
                                         bool reserves, DumpReport& report, F&& visit) {
  constexpr std::size_t chunk_entries = 8192;
  std::vector<std::uint8_t> chunk(chunk_entries * entry_bytes);
  std::int64_t entries = 0;
  std::optional<std::uint64_t> reserved_from;
  std::uint64_t at = 0;
  while (at < file.size) {
    POLYLOG_ASSIGN(got, file.file->read(at, chunk));
    if (got < entry_bytes) break;
    for (std::size_t i = 0; i + entry_bytes <= got; i += entry_bytes) {
      const ByteView entry = ByteView(chunk).subspan(i, entry_bytes);
      const bool zero = reserves && std::all_of(entry.begin(), entry.end(),
                                                [](std::uint8_t byte) { return byte == 0; });
      if (reserved_from) {
        if (zero) continue;
        report.damage(at + i, "an entry behind an entry of zeros");
        return entries;
      }
      if (zero) {
        reserved_from = at + i;
      } else {
        visit(at + i, entry);
        ++entries;
      }
    }
    at += got / entry_bytes * entry_bytes;
  }
  if (reserved_from) {
    report.note(*reserved_from, "zeros to the end of the file, " +
                                    std::to_string(file.size - *reserved_from) +
                                    " bytes: reserved");
  }
  if (file.size % entry_bytes != 0) {
    report.damage(file.size / entry_bytes * entry_bytes,
                  "the file ends inside an entry of " + std::to_string(entry_bytes) + " bytes");
  }
  return entries;
}

}  // namespace polylog::cli
