#include "storage/filelog/file_cache.h"

namespace polylog::storage {

Result<fs::FilePtr> FileCache::open(const std::string& path) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = by_path_.find(path);
    if (found != by_path_.end()) {
      order_.splice(order_.end(), order_, found->second);
      return found->second->second;
    }
  }
  // Opened outside the lock: a slow directory must not stop everybody else's lookups.
  POLYLOG_ASSIGN(file, fs_.open(path, fs::OpenMode::write));
  const std::lock_guard lock(mutex_);
  insert(path, file);
  return file;
}

void FileCache::adopt(const std::string& path, fs::FilePtr file) {
  const std::lock_guard lock(mutex_);
  insert(path, std::move(file));
}

void FileCache::forget(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto found = by_path_.find(path);
  if (found == by_path_.end()) return;
  order_.erase(found->second);
  by_path_.erase(found);
}

void FileCache::insert(const std::string& path, fs::FilePtr file) {
  const auto found = by_path_.find(path);
  if (found != by_path_.end()) {
    found->second->second = std::move(file);
    return;
  }
  order_.emplace_back(path, std::move(file));
  by_path_[path] = std::prev(order_.end());
  while (order_.size() > open_max_) {
    by_path_.erase(order_.front().first);
    order_.pop_front();
  }
}

}  // namespace polylog::storage
