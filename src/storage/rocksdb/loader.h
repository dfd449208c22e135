#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "fs/file_system.h"
#include "storage/filelog/ordered_index.h"

namespace polylog::storage {

// open_rocksdb_index() out of the module polylog_segment_index.so, which is loaded when the first
// index is opened and stays: a broker without topics in the segment layout does not carry
// RocksDB's libraries in its memory. The module is looked for beside the running program and in
// ../lib/polylog/ from there; one of another version or kind of build is refused.
//
// `fs` outlives the index. unsupported: there is no module that fits, with a sentence fit to be
// shown; otherwise the errors of open_rocksdb_index(). Any thread.
Result<std::unique_ptr<OrderedIndex>> load_rocksdb_index(fs::FileSystem& fs,
                                                         const std::string& directory);

}  // namespace polylog::storage
