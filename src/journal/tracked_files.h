#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "journal/entries.h"

// What was written to files since it was last made durable.
namespace polylog::journal {

struct Range {
  std::uint64_t from = 0, to = 0;  // half-open
};

// Changes of one file that no sync and no journal entry has covered.
class Dirt {
 public:
  void note_write(std::uint64_t from, std::uint64_t to);
  // Something that ranges don't express: only a sync of the file covers it.
  void note_other() { other_ = true; }
  void merge(const Dirt& more);

  bool empty() const { return ranges_.empty() && !other_; }
  bool needs_sync() const { return other_; }
  std::uint64_t bytes() const;
  const std::vector<Range>& ranges() const { return ranges_; }
  void tidy();  // sorts the ranges and joins those that touch

 private:
  std::vector<Range> ranges_;
  bool other_ = false;
};

// What was written to one file last, kept so that a round need not read it back: at any time the
// same bytes as in the file. Of all files together no more than a few MiB; what finds no room is
// read from the file.
class Recent {
 public:
  Recent() = default;
  ~Recent() { forget(); }
  Recent(const Recent&) = delete;
  Recent& operator=(const Recent&) = delete;

  void note_write(std::uint64_t at, std::span<const ByteView> parts);
  void forget();
  // The bytes of [from, from + size); nothing: ask the file.
  std::optional<ByteView> bytes(std::uint64_t from, std::size_t size) const;

 private:
  static std::atomic<std::int64_t> held_;  // by all
  std::uint64_t from_ = 0;
  std::vector<std::uint8_t> bytes_;
};

// One file, by its inode, whatever handles are open on it.
struct TrackedFile {
  TrackedFile(std::uint64_t inode_in, std::string path_in, bool named_in)
      : inode(inode_in), path(std::move(path_in)), named(named_in) {}

  // A point in time: a sync or a journal write that begins now covers everything written before,
  // which is under way until it is done. Returns its number. REQUIRES: `mutex` held, as for all
  // below.
  std::uint64_t begin();
  void done(std::uint64_t number);      // it succeeded: nothing from before it is left
  void put_back(std::uint64_t number);  // it did not
  Dirt uncovered() const;               // all that nobody has made durable yet

  const std::uint64_t inode;
  std::mutex mutex;  // held across each write, so that what is copied is never half a write
  std::string path;
  Dirt dirt;
  Recent recent;
  std::vector<std::pair<std::uint64_t, Dirt>> under_way;  // by rising number
  std::uint64_t begun = 0;                                // the latest number
  bool named;                                             // its name is on the disk
  bool removed = false;  // it has no name any more: what is in it does not matter
  // Renamed with its directory, or a sync of its name failed: it may not be found after a crash.
  bool synced_only = false;

  // In each area, guarded by the journal's lock.
  struct Entries {
    std::uint64_t epoch = 0;  // of the area at the time: what follows holds in that epoch only
    std::uint32_t generation = 0;
    bool live = false;      // has write entries that count
    std::uint64_t end = 0;  // of the furthest of them
  };
  std::array<Entries, area_count> entries;
};
using TrackedFilePtr = std::shared_ptr<TrackedFile>;

// All files that were opened for writing and still matter. Thread-safe; taken before the lock of
// a file.
class TrackedFiles {
 public:
  // The file just opened at `path`; `made`: by this very call.
  TrackedFilePtr opened(std::uint64_t inode, const std::string& path, bool made);
  TrackedFilePtr find(std::uint64_t inode) const;
  std::vector<TrackedFilePtr> all() const;
  std::vector<TrackedFilePtr> unnamed_in(const std::string& directory) const;
  // `file` had its last name removed; null: nobody knew it. By now its inode may be another file's.
  void removed(const TrackedFilePtr& file);
  // The journal's lock is held: what it says of the file under the old name must not go on.
  void renamed(std::uint64_t inode, const std::string& to);
  void directory_renamed(const std::string& from, const std::string& to);
  // Forgets files that nobody has open and that have nothing to cover; `keep` says which else stay.
  template <typename Keep>
  void prune(Keep&& keep) {
    const std::lock_guard lock(mutex_);
    std::erase_if(by_inode_, [&](const auto& item) {
      const TrackedFilePtr& file = item.second;
      if (file.use_count() > 1 || keep(*file)) return false;
      const std::lock_guard file_lock(file->mutex);
      return file->dirt.empty() && file->under_way.empty() && file->named;
    });
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, TrackedFilePtr> by_inode_;
};

// "//" and "/./" out, so that the same file has the same path.
std::string plain_path(const std::string& path);
// Whether `path` lies in `directory` or anywhere below it.
bool lies_below(const std::string& path, const std::string& directory);

}  // namespace polylog::journal
