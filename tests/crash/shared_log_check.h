#pragma once

#include <string>

#include "fs/file_system.h"
#include "storage/store.h"

namespace polylog::crash {

// What the files of an open RocketMQ store must say, whatever happened before: the log reads as
// whole records up to its end and nothing reads behind it; the queues hold an entry for each
// record of a live topic at its offset, and nothing else; a key finds exactly its records. Says
// what is wrong, or an empty string.
std::string check_shared_log(fs::FileSystem& disk, storage::Store& store,
                             const storage::StoreConfig& config);

}  // namespace polylog::crash
