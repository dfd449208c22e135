#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "fs/file_system.h"

// Record locks of this process. fcntl locks belong to the process: they do not exclude a second
// holder inside it, and closing *any* descriptor of a file drops its lock. So every lock is
// also kept in one process-wide registry by inode, and whoever closes a descriptor asks it.
namespace polylog::fs {

struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  auto operator<=>(const FileIdentity&) const = default;
};

// Errors: locked (the context names the process that holds it), or as open.
Result<std::unique_ptr<Lock>> take_posix_lock(const std::string& path);

// Closes the descriptor, or, while this process holds a lock on that file, keeps it open until
// the lock is released. Safe from any thread.
void close_beside_locks(const FileIdentity& identity, int descriptor);

}  // namespace polylog::fs
