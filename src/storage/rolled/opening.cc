#include "storage/rolled/opening.h"

#include <algorithm>
#include <atomic>
#include <thread>

namespace polylog::storage {

void for_all_partitions(std::size_t count, std::size_t threads,
                        const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  const auto take = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> helpers;
  for (std::size_t i = 1; i < std::min(threads, count); ++i) helpers.emplace_back(take);
  take();
  for (std::thread& helper : helpers) helper.join();
}

void add_recovery(Recovery& all, const Recovery& one) {
  all.bytes_scanned += one.bytes_scanned;
  all.bytes_truncated += one.bytes_truncated;
  all.indexes_rebuilt += one.indexes_rebuilt;
  all.notes.insert(all.notes.end(), one.notes.begin(), one.notes.end());
}

void remove_doomed(fs::FileSystem& fs, const std::vector<std::string>& paths, Recovery& report) {
  for (const std::string& path : paths) {
    if (auto removed = fs::remove_tree(fs, path); !removed) {
      report.notes.push_back(removed.error().to_string());
    }
  }
}

Result<void> sync_recovered(fs::FileSystem& fs, const std::string& directory,
                            const std::vector<std::shared_ptr<RolledLog>>& logs, bool wrote) {
  const auto synced = [](const auto& log) { return log->indexes_synced(); };
  if (!wrote && std::all_of(logs.begin(), logs.end(), synced)) return {};
  POLYLOG_ASSIGN(volume, fs.open_volume(directory));
  POLYLOG_TRY(volume->sync());
  for (const auto& log : logs) log->all_synced();
  return {};
}

void begin_sidecar(RolledContext& context, const Result<void>& rewritten, Recovery& report) {
  if (!rewritten) {
    report.notes.push_back("the sidecar can't be written now: " + rewritten.error().to_string());
    context.sidecar->silence();
  }
  context.lay_ballast();
}

}  // namespace polylog::storage
