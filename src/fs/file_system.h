#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "bytes/slice.h"

// The one seam between polylog and a disk. Every byte the broker stores passes here, so that a
// crash, a full disk and a failing device are test cases (see fs/sim_file_system.h).
//
// What a caller may assume after a crash: content is durable once File::sync returned; a created,
// renamed or removed name is durable once FileSystem::sync_directory of its folder returned (or
// Volume::sync). Nothing else is promised, in any order.
namespace polylog::fs {

struct FileInfo {
  std::uint64_t size = 0;
  std::uint64_t inode = 0;
  Timestamp modified;            // ms; Kafka falls back on it for retention
  std::int64_t modified_ns = 0;  // full resolution; binds the sidecar to a file
  bool directory = false;
};

// An open file. Reads and writes at explicit positions may run concurrently from any thread;
// two overlapping writes, or truncate beside a write, need the caller's own lock. The file is
// closed when the last owner drops it; a dirty file must not be dropped before its sync.
class File {
 public:
  virtual ~File() = default;

  // Fills `into` from `position`; returns the bytes read, fewer only at the end of the file.
  // With `wait` false only what is in memory is read: Errc::would_block when nothing is.
  virtual Result<std::size_t> read(std::uint64_t position, MutableBytes into,
                                   bool wait = true) const = 0;

  // Writes all parts back to back at `position`, extending the file as needed. After an error
  // (no_space, io) an unknown prefix may be in place: the caller truncates to its old end.
  virtual Result<void> write(std::uint64_t position, std::span<const ByteView> parts) = 0;
  Result<void> write(std::uint64_t position, ByteView bytes) {
    return write(position, std::span(&bytes, 1));
  }

  // Data and size on stable storage (fdatasync). A failure is final: the pages may look clean
  // without ever having reached the device, so a later success proves nothing.
  virtual Result<void> sync() = 0;

  // Asks the kernel to begin writing dirty pages back; promises nothing.
  virtual void start_writeback(std::uint64_t position, std::uint64_t size) = 0;

  virtual Result<void> truncate(std::uint64_t size) = 0;
  virtual Result<FileInfo> info() const = 0;
};

using FilePtr = std::shared_ptr<File>;

enum class OpenMode {
  read,        // must exist
  write,       // read and write; must exist
  create,      // read and write; made when missing
  create_new,  // read and write; Errc::exists when it exists
};

// Keeps an exclusive lock on a file until destroyed (fcntl record lock, the kind Java's
// FileChannel takes, so that a live Kafka and polylog exclude each other).
class Lock {
 public:
  virtual ~Lock() = default;
};

// A whole mounted file system, held open from the start so that errors are reported to it.
class Volume {
 public:
  virtual ~Volume() = default;
  // Everything dirty on the file system, names included (syncfs). A failure is final for all.
  virtual Result<void> sync() = 0;
};

// All paths are used as given; parents must exist. Safe to call from any thread.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual Result<FilePtr> open(const std::string& path, OpenMode mode) = 0;
  // An existing file for writing past the page cache: a write is on stable storage when it returns,
  // as after sync(), and a failed one is final like a failed sync. REQUIRES of positions, sizes and
  // memory written: multiples of 4096. Reading may need the same. unsupported: not here.
  virtual Result<FilePtr> open_direct(const std::string& path);
  virtual Result<FileInfo> info(const std::string& path) const = 0;  // not_found when missing
  // Names (not paths) in a directory, sorted, without "." and "..".
  virtual Result<std::vector<std::string>> list(const std::string& path) const = 0;
  virtual Result<void> create_directory(const std::string& path) = 0;  // exists when it exists
  virtual Result<void> rename(const std::string& from, const std::string& to) = 0;  // replaces
  virtual Result<void> remove(const std::string& path) = 0;                         // a file
  virtual Result<void> remove_directory(const std::string& path) = 0;               // must be empty
  virtual Result<void> sync_directory(const std::string& path) = 0;
  virtual Result<void> set_modified(const std::string& path, Timestamp time) = 0;
  // Takes the lock without waiting: Errc::locked when another process (or another holder in
  // this one) has it. Makes the file when missing.
  virtual Result<std::unique_ptr<Lock>> lock(const std::string& path) = 0;
  virtual Result<std::unique_ptr<Volume>> open_volume(const std::string& path) = 0;
  virtual Result<std::uint64_t> free_bytes(const std::string& path) const = 0;
  virtual Result<std::uint64_t> total_bytes(const std::string& path) const = 0;  // of the volume
};

bool exists(const FileSystem& fs, const std::string& path);
Result<std::vector<std::uint8_t>> read_file(FileSystem& fs, const std::string& path,
                                            std::size_t bytes_max);
// Creates the directory and its missing parents; each new name is synced into its parent.
Result<void> create_directories(FileSystem& fs, const std::string& path);
// A directory and all below it. Nothing is followed out of it.
Result<void> remove_tree(FileSystem& fs, const std::string& path);
// Replaces `path` as a whole or not at all: writes `path`.tmp, syncs it, renames it over `path`,
// syncs the directory.
Result<void> replace_file(FileSystem& fs, const std::string& path, ByteView content);
std::string parent_of(const std::string& path);
std::string join(const std::string& directory, std::string_view name);

}  // namespace polylog::fs
