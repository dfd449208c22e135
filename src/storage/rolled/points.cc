#include "storage/rolled/points.h"

#include <algorithm>
#include <utility>

namespace polylog::storage {
namespace {

// A point costs two small files and a note: with more logs than these, more is left for a start to
// read than to save next to nothing with each.
constexpr std::uint64_t logs_within_bound = 2048;
// A quarter of the bound comes to be written between two looks.
constexpr std::uint64_t look_divisor = 4;

}  // namespace

bool points_due(const RolledContext& context) {
  return context.written_since_look.load(std::memory_order_relaxed) >=
         context.scan_bytes_max / look_divisor;
}

std::vector<std::shared_ptr<Log>> advance_points(
    RolledContext& context, const std::vector<std::shared_ptr<RolledLog>>& logs) {
  context.written_since_look.store(0, std::memory_order_relaxed);
  std::vector<std::pair<std::uint64_t, std::shared_ptr<RolledLog>>> behind;
  std::uint64_t beyond = 0;
  for (const auto& log : logs) {
    const std::uint64_t bytes = log->bytes_to_scan();
    if (bytes == 0) continue;
    behind.emplace_back(bytes, log);
    beyond += bytes;
  }
  const std::uint64_t kept =
      std::max(context.scan_bytes_max - context.scan_bytes_max / look_divisor,
               behind.size() * (context.scan_bytes_max / logs_within_bound));
  std::vector<std::shared_ptr<Log>> unsynced;
  if (beyond <= kept) return unsynced;
  std::sort(behind.begin(), behind.end(),
            [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [bytes, log] : behind) {
    if (beyond <= kept) break;
    beyond -= bytes;
    // A log that can't write its indexes now keeps its older recovery point.
    const Result<bool> moved = log->advance_point();
    if (moved && !*moved) unsynced.push_back(log);
  }
  return unsynced;
}

}  // namespace polylog::storage
