#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "base/result.h"
#include "fs/file_system.h"

namespace rocksdb {
class Env;
}

namespace polylog::storage {

// What our FileSystem refused first, in its own words: RocksDB's statuses keep neither the code
// nor all of the sentence, and call a table that could not be read for the moment corrupt.
// Thread-safe.
class SeamErrors {
 public:
  void note_read(const Error& error);
  void note_change(const Error& error);
  std::optional<Error> read() const;
  std::optional<Error> change() const;  // create, write, sync, rename, remove …

 private:
  mutable std::mutex mutex_;
  std::optional<Error> read_;
  std::optional<Error> change_;
};

// RocksDB's surroundings (rocksdb/env.h, rocksdb/file_system.h, 7.8) with our file system in
// them. `fs` outlives the result.
//
// An error of a write is kept and told by the file's next sync or close, as a page cache would:
// Debian builds RocksDB with its assertions, and one of them stops the process when a file is
// written or flushed again after an error, which RocksDB does while it opens on a full disk.
// Nothing that RocksDB relies on is left without a sync. Want of space is told as a plain I/O
// error (SeamErrors knows better): for the other kind RocksDB starts a thread that polls for room
// and resumes, and the index must not go on after a change was lost. For the same reason its
// second of sleep after an error, which closing would wait for, is cut short.
std::unique_ptr<rocksdb::Env> make_rocksdb_env(fs::FileSystem& fs,
                                               std::shared_ptr<SeamErrors> errors);

}  // namespace polylog::storage
