#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "fs/file_system.h"
#include "storage/filelog/ordered_index.h"

namespace polylog::storage {

struct RocksdbIndexOptions {
  // Changes gather in memory up to this size before they go to a file; two such buffers at most.
  std::uint64_t write_buffer_bytes = 4 << 20;
  std::uint64_t block_cache_bytes = 4 << 20;
  int open_files_max = 64;
  // Room kept beside the index so that it can be opened on a full disk; 0: none.
  std::uint64_t ballast_bytes = 4 << 20;
  // RocksDB's own diary (LOG, and one LOG.old) up to so many bytes each; 0: none is written.
  std::uint64_t diary_bytes = 0;
};

// The OrderedIndex in RocksDB (Debian 12's 7.8; table format 5), all of whose files go through
// `fs`, so that a simulated crash, a full disk and a failing device reach it too. `fs` outlives
// the index. There is no write-ahead log: sync() writes the buffered changes to a table and syncs
// it, then the manifest. Flushes and compactions run on two threads of the process that have
// nothing to do with this index or `fs` any more when its destructor returns.
//
// Opening writes a few KiB. On a disk that is full it gives its ballast up (ballast.h); when even
// that is not enough the answer is no_space.
// Errors besides: corrupt; unsupported (made by a newer RocksDB, or not by polylog); locked; io.
Result<std::unique_ptr<OrderedIndex>> open_rocksdb_index(fs::FileSystem& fs,
                                                         const std::string& directory,
                                                         const RocksdbIndexOptions& options = {});

}  // namespace polylog::storage
