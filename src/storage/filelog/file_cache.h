#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/result.h"
#include "fs/file_system.h"

namespace polylog::storage {

// Keeps a bounded number of files open, so that a million cold segments don't need a million
// descriptors. The cache's own reference is dropped for the file opened longest ago; whoever
// still holds the FilePtr (a read under way, a dirty segment waiting for its sync) keeps it open.
// Thread-safe.
class FileCache {
 public:
  FileCache(fs::FileSystem& fs, std::size_t open_max) : fs_(fs), open_max_(open_max) {}

  // The file, open for reading and writing; it must exist.
  Result<fs::FilePtr> open(const std::string& path);
  // Puts a file that is open already under the cache's care.
  void adopt(const std::string& path, fs::FilePtr file);
  // Forgets a path that was renamed or removed.
  void forget(const std::string& path);

 private:
  using Order = std::list<std::pair<std::string, fs::FilePtr>>;
  void insert(const std::string& path, fs::FilePtr file);

  fs::FileSystem& fs_;
  const std::size_t open_max_;
  std::mutex mutex_;
  Order order_;  // oldest first
  std::unordered_map<std::string, Order::iterator> by_path_;
};

}  // namespace polylog::storage
