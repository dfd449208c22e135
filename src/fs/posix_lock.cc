#include "fs/posix_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "fs/posix_error.h"

namespace polylog::fs {
namespace {

FileIdentity identity_of(const struct stat& info) { return {info.st_dev, info.st_ino}; }

struct Registry {
  std::mutex mutex;
  // Per locked file every descriptor that must stay open; the first one carries the lock.
  std::map<FileIdentity, std::vector<int>> held;
};

Registry& registry() {
  static Registry& instance = *new Registry;  // outlives every static that may own a File
  return instance;
}

class PosixLock final : public Lock {
 public:
  explicit PosixLock(FileIdentity identity) : identity_(identity) {}
  ~PosixLock() override {
    Registry& locks = registry();
    const std::lock_guard guard(locks.mutex);
    const auto found = locks.held.find(identity_);
    POLYLOG_ASSERT(found != locks.held.end());
    for (const int descriptor : found->second) ::close(descriptor);
    locks.held.erase(found);
  }
  PosixLock(const PosixLock&) = delete;
  PosixLock& operator=(const PosixLock&) = delete;

 private:
  FileIdentity identity_;
};

struct flock whole_file() {
  struct flock range{};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  return range;  // length 0: to the end of the file however far it grows
}

Error locked_elsewhere(const std::string& path, int descriptor) {
  struct flock range = whole_file();
  std::string holder = "another process";
  if (::fcntl(descriptor, F_GETLK, &range) == 0 && range.l_type != F_UNLCK && range.l_pid > 0) {
    holder = "process " + std::to_string(range.l_pid);
  }
  return {Errc::locked, "lock " + path + ": held by " + holder};
}

Error locked_here(const std::string& path) {
  return {Errc::locked, "lock " + path + ": already held by this process"};
}

}  // namespace

Result<std::unique_ptr<Lock>> take_posix_lock(const std::string& path) {
  Registry& locks = registry();
  const std::lock_guard guard(locks.mutex);
  struct stat info{};
  // Before opening: closing the new descriptor again would drop the lock we already have.
  if (::stat(path.c_str(), &info) == 0 && locks.held.contains(identity_of(info))) {
    return fail(locked_here(path));
  }
  const int descriptor =
      retry_interrupted([&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644); });
  if (descriptor < 0) return fail(posix_error("open", path, errno));
  if (::fstat(descriptor, &info) != 0) {
    const int code = errno;
    ::close(descriptor);
    return fail(posix_error("fstat", path, code));
  }
  const FileIdentity identity = identity_of(info);
  if (const auto found = locks.held.find(identity); found != locks.held.end()) {
    found->second.push_back(descriptor);  // the name moved to a file of ours just now
    return fail(locked_here(path));
  }
  struct flock range = whole_file();
  if (retry_interrupted([&] { return ::fcntl(descriptor, F_SETLK, &range); }) != 0) {
    const int code = errno;
    Error error = code == EACCES || code == EAGAIN ? locked_elsewhere(path, descriptor)
                                                   : posix_error("fcntl", path, code);
    ::close(descriptor);
    return fail(std::move(error));
  }
  locks.held.emplace(identity, std::vector<int>{descriptor});
  return std::make_unique<PosixLock>(identity);
}

void close_beside_locks(const FileIdentity& identity, int descriptor) {
  Registry& locks = registry();
  const std::lock_guard guard(locks.mutex);
  if (const auto found = locks.held.find(identity); found != locks.held.end()) {
    found->second.push_back(descriptor);
    return;
  }
  // An error here would say nothing new: what had to be durable was synced before.
  ::close(descriptor);
}

}  // namespace polylog::fs
