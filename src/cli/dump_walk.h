#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/dump_files.h"
#include "storage/filelog/scan.h"

// What the dumps of files of frames share.
namespace polylog::cli {

// Visits all frames of a file. Where none begins `step_over(position)` says whether to go on, and
// moves `position` to where.
template <storage::FrameDecoder D, typename Visit, typename StepOver>
Result<void> walk_frames(const DumpFile& file, const D& decoder, std::uint64_t frame_bytes_max,
                         Visit&& visit, StepOver&& step_over) {
  std::uint64_t position = 0;
  bool more = file.size > 0;
  while (more) {
    POLYLOG_ASSIGN(end, storage::scan(*file.file, position, file.size, decoder, frame_bytes_max,
                                      visit));
    position = end.position;
    if (position >= file.size) break;
    POLYLOG_ASSIGN(stepped, step_over(position));
    more = stepped;
  }
  return {};
}

// The first byte at or behind `position` that is not zero.
Result<std::optional<std::uint64_t>> first_other_byte(const DumpFile& file, std::uint64_t position);

// Tells of bytes at `position` that are no record; `next`: where the next one begins. Returns
// where to go on.
std::uint64_t report_lost(const DumpFile& file, std::uint64_t position, std::string_view why,
                          std::optional<std::uint64_t> next, DumpReport& report);

}  // namespace polylog::cli
