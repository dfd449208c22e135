#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "fs/file_system.h"

namespace polylog::convert {

// Where changed pages are kept: in memory, and beyond a limit in one file. Thread-safe.
class PageScratch {
 public:
  static constexpr std::size_t page_bytes = 4096;
  static constexpr std::size_t memory_pages_max = (std::size_t{64} << 20) / page_bytes;

  // `path` is made when memory no longer suffices, and removed with this object.
  PageScratch(fs::FileSystem& fs, std::string path) : fs_(fs), path_(std::move(path)) {}
  ~PageScratch();

  // REQUIRES: page.size() == page_bytes. Returns its number.
  Result<std::uint64_t> add(ByteView page);
  Result<void> replace(std::uint64_t number, ByteView page);
  Result<void> read(std::uint64_t number, MutableBytes page) const;
  void drop(std::uint64_t number);

 private:
  Result<void> store(std::uint64_t number, ByteView page);

  fs::FileSystem& fs_;
  const std::string path_;
  mutable std::mutex mutex_;
  std::vector<std::vector<std::uint8_t>> pages_;  // the first memory_pages_max of them
  std::vector<std::uint64_t> free_;
  std::uint64_t next_ = 0;
  fs::FilePtr file_;
};

// A file system whose changes stay apart from the one below it: what is written, made, renamed or
// removed is seen through this object only, and nothing below is touched. So a stopped store can
// be opened, which is to recover it, where not a byte may change. Bytes written over equal ones
// take no room, so what recovery writes again costs nothing.
//
// lock() takes the lock below when its file exists there, as whoever runs on the directory has
// made it; a missing one is held by nobody. Directories of the file system below can't be renamed
// (unsupported). Syncs do nothing. Safe from any thread.
class OverlayFileSystem final : public fs::FileSystem {
 public:
  // `below` outlives the object; `scratch` is a file name for the exclusive use of this object.
  OverlayFileSystem(fs::FileSystem& below, const std::string& scratch);
  ~OverlayFileSystem() override;

  Result<fs::FilePtr> open(const std::string& path, fs::OpenMode mode) override;
  Result<fs::FileInfo> info(const std::string& path) const override;
  Result<std::vector<std::string>> list(const std::string& path) const override;
  Result<void> create_directory(const std::string& path) override;
  Result<void> rename(const std::string& from, const std::string& to) override;
  Result<void> remove(const std::string& path) override;
  Result<void> remove_directory(const std::string& path) override;
  Result<void> sync_directory(const std::string& path) override;
  Result<void> set_modified(const std::string& path, Timestamp time) override;
  Result<std::unique_ptr<fs::Lock>> lock(const std::string& path) override;
  Result<std::unique_ptr<fs::Volume>> open_volume(const std::string& path) override;
  Result<std::uint64_t> free_bytes(const std::string& path) const override;
  Result<std::uint64_t> total_bytes(const std::string& path) const override;

 private:
  class Content;
  class OverlayFile;
  class HeldLock;
  struct Held {  // names locked through this object alone
    std::mutex mutex;
    std::set<std::string> paths;
  };
  // What this object says about a name, before the file system below is asked.
  struct Entry {
    std::shared_ptr<Content> content;  // a file
    bool removed = false;              // nothing is there; neither: a directory
  };

  Result<fs::FileInfo> info_locked(const std::string& path) const;
  Result<std::vector<std::string>> list_locked(const std::string& path) const;
  // The file's content object, made for one below when it has none yet. not_found, invalid.
  Result<std::shared_ptr<Content>> content_locked(const std::string& path);
  Result<void> check_parent(const std::string& path) const;
  std::string scratch_volume() const;
  // Leaves nothing at `path`.
  void erase_locked(const std::string& path);

  fs::FileSystem& below_;
  const std::string scratch_path_;
  const std::shared_ptr<PageScratch> scratch_;
  const std::shared_ptr<Held> held_;
  mutable std::mutex mutex_;  // guards all below
  std::map<std::string, Entry> entries_;
  std::uint64_t next_inode_;
};

}  // namespace polylog::convert
