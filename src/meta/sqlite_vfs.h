#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"
#include "fs/file_system.h"

struct sqlite3_vfs;

namespace polylog::meta {

// SQLite's operating system, made of our FileSystem seam, so that the catalogue is crash-tested
// and full-disk-tested with everything else (SQLite C interface, "sqlite3_vfs" and
// "sqlite3_io_methods", version 1: no shared memory, therefore WAL only in exclusive locking
// mode). One registration per object, under a name of its own; unregistered by the destructor.
//
// Stricter than SQLite asks for, because of what a failed sync means here:
// - After a failed write (other than for want of space), truncate, sync or delete, nothing more
//   is written through this VFS: failed() says so. What SQLite would do next rests on pages that
//   may look clean without having reached the device.
// - Each open file's directory is synced with the file's first sync, whoever made the file: an
//   earlier process may have been killed between making and syncing it.
// - A missing WAL is made at its first write, not when it is opened, so that a catalogue can be
//   read on a disk that is full.
//
// Locks are not taken: the data directory has its own lock, and the catalogue one connection.
class SqliteVfs {
 public:
  // `fs` outlives the object; the object outlives every connection opened with its name.
  static Result<std::unique_ptr<SqliteVfs>> make(fs::FileSystem& fs);
  ~SqliteVfs();
  SqliteVfs(const SqliteVfs&) = delete;
  SqliteVfs& operator=(const SqliteVfs&) = delete;

  const std::string& name() const { return name_; }
  bool failed() const { return failed_; }
  // What the FileSystem said the last time it refused something; any thread.
  Error last_error() const;
  void clear_last_error();

 private:
  friend struct VfsCalls;
  explicit SqliteVfs(fs::FileSystem& fs);

  // Remembers the error and, unless it is a mere lack of space at a write, ends all writing.
  void refuse_writes(Error error);
  void remember(Error error);

  fs::FileSystem& fs_;
  std::string name_;
  std::unique_ptr<sqlite3_vfs> vfs_;
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;  // guards last_error_
  Error last_error_;
};

}  // namespace polylog::meta
