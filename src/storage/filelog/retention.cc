#include "storage/filelog/retention.h"

#include <algorithm>

namespace polylog::storage {
namespace {

bool may_go(const RetainedFile& file, const RetentionRule& rule) {
  return rule.visible >= file.end && (!file.active || file.bytes > 0);
}

std::size_t by_start(std::span<const RetainedFile> files, const RetentionRule& rule) {
  std::size_t count = 0;
  // The start-offset rule never takes the active file: an empty log keeps its file.
  while (count < files.size() && !files[count].active && files[count].end <= rule.start) ++count;
  return count;
}

std::size_t by_size(std::span<const RetainedFile> files, const RetentionRule& rule) {
  if (rule.bytes < 0) return 0;
  std::int64_t total = 0;
  for (const RetainedFile& file : files) total += static_cast<std::int64_t>(file.bytes);
  std::int64_t excess = total - rule.bytes;
  std::size_t count = 0;
  while (count < files.size() && may_go(files[count], rule) &&
         excess - static_cast<std::int64_t>(files[count].bytes) >= 0) {
    excess -= static_cast<std::int64_t>(files[count].bytes);
    ++count;
  }
  return count;
}

std::size_t by_time(std::span<const RetainedFile> files, const RetentionRule& rule, Timestamp now) {
  if (rule.time_ms < 0) return 0;
  std::size_t count = 0;
  while (count < files.size() && may_go(files[count], rule) &&
         now - files[count].last_time > rule.time_ms) {
    ++count;
  }
  return count;
}

}  // namespace

std::size_t plan_retention(std::span<const RetainedFile> files, const RetentionRule& rule,
                           Timestamp now) {
  return std::max({by_start(files, rule), by_size(files, rule), by_time(files, rule, now)});
}

}  // namespace polylog::storage
