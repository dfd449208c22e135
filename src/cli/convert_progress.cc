#include "cli/convert_progress.h"

#include <cstdio>

#include "cli/text.h"

namespace polylog::cli {
namespace {

constexpr double estimate_from_seconds = 2;

std::string counted(std::uint64_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string duration(double seconds) {
  char text[64];
  if (seconds < 100) {
    std::snprintf(text, sizeof text, "%.0f s", seconds);
  } else if (seconds < 6000) {
    std::snprintf(text, sizeof text, "%.0f min", seconds / 60);
  } else {
    std::snprintf(text, sizeof text, "%.1f h", seconds / 3600);
  }
  return text;
}

}  // namespace

std::string progress_text(const convert::Progress& progress, double seconds, std::uint64_t first) {
  const bool copying = progress.phase == convert::Progress::Phase::copying;
  std::string text = copying ? "copying: " : "comparing: ";
  text += std::to_string(progress.partitions_done) + " of " +
          counted(progress.partitions_total, "partition");
  const std::uint64_t total = progress.offsets_total;
  const std::uint64_t percent = total == 0 ? 100 : progress.offsets_done * 100 / total;
  text += ", " + std::to_string(percent) + " % of " + counted(total, "record");
  if (copying) {
    text += ", " + format_size(progress.bytes_done);
    if (seconds > 0) {
      const double rate = static_cast<double>(progress.bytes_done) / seconds;
      text += ", " + format_size(static_cast<std::uint64_t>(rate)) + "/s";
    }
  }
  const std::uint64_t done = progress.offsets_done > first ? progress.offsets_done - first : 0;
  if (seconds >= estimate_from_seconds && done > 0 && progress.offsets_done <= total) {
    const double left = static_cast<double>(total - progress.offsets_done);
    text += ", about " + duration(left * seconds / static_cast<double>(done)) + " left";
  }
  return text;
}

std::string summary_text(const convert::Summary& summary, const std::string& target,
                         const std::string& layout, double seconds) {
  std::string text = target + ": " + counted(summary.topics, "topic") + ", " +
                     counted(summary.partitions, "partition") + ", " +
                     counted(summary.records, "record");
  if (summary.offsets_without_record > 0) {
    text += ", " + counted(summary.offsets_without_record, "offset") + " without one";
  }
  if (summary.group_offsets > 0) {
    text += ", " + counted(summary.group_offsets, "committed offset") + " of RocketMQ's groups";
  }
  return text + " in the " + layout + " layout, each compared with its source; " +
         format_size(summary.bytes_copied) +
         (summary.resumed ? " copied by this run, " : " copied, ") + duration(seconds);
}

}  // namespace polylog::cli
