#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "fs/file_system.h"
#include "storage/filelog/ordered_index.h"

namespace polylog::storage {

// An OrderedIndex for tests: all of it in memory, its changes in one file, `directory`/changes,
// so that what a crash leaves of the file is what it leaves of the index. Opening replays the
// file, cuts a torn tail off and is quick; the file only grows. Needs `fs` for as long as it
// lives, and that nobody else has the directory open.
//
// The file is a mark of 12 bytes, then one record a write(): length u32, CRC-32C u32, payload. The
// checksum continues the one before, so that a record left over from before a crash never
// follows a newer one. The mark, durable end u64 and its CRC-32C, is written after a sync: a
// record that doesn't read is a torn tail beyond it and corrupt below.
Result<std::unique_ptr<OrderedIndex>> open_memory_index(fs::FileSystem& fs,
                                                        const std::string& directory);

}  // namespace polylog::storage
