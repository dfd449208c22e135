#include "fs/posix_file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <limits>
#include <utility>

#include "fs/posix_error.h"
#include "fs/posix_lock.h"

namespace polylog::fs {
namespace {

constexpr std::uint64_t position_max =
    static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());

Errc code_of(int code) {
  switch (code) {
    case ENOENT: return Errc::not_found;
    case EEXIST: return Errc::exists;
    case ENOSPC:
    case EDQUOT: return Errc::no_space;
    case EMFILE:
    case ENFILE:
    case ENOMEM: return Errc::unavailable;
    case EAGAIN: return Errc::would_block;
    case EFBIG: return Errc::too_large;
    case EBADF:  // written through a file opened for reading
    case EINVAL:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case ENOTDIR:
    case ENOTEMPTY: return Errc::invalid;
    default: return Errc::io;
  }
}

tl::unexpected<Error> failed(std::string_view call, const std::string& path) {
  return fail(posix_error(call, path, errno));
}

FileInfo info_of(const struct stat& from) {
  const std::int64_t seconds = from.st_mtim.tv_sec;
  FileInfo info;
  info.size = S_ISDIR(from.st_mode) ? 0 : static_cast<std::uint64_t>(from.st_size);
  info.inode = from.st_ino;
  info.modified = Timestamp(seconds * 1000 + from.st_mtim.tv_nsec / 1'000'000);
  info.modified_ns = seconds * 1'000'000'000 + from.st_mtim.tv_nsec;
  info.directory = S_ISDIR(from.st_mode);
  return info;
}

// A descriptor of a directory, or of anything else that no lock can hang on.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

Result<Descriptor> open_directory(const std::string& path) {
  const int descriptor =
      retry_interrupted([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (descriptor < 0) return failed("open", path);
  return Descriptor(descriptor);
}

// Where a gathered write has got to.
class PartCursor {
 public:
  explicit PartCursor(std::span<const ByteView> parts) : parts_(parts) { skip_empty(); }

  bool done() const { return parts_.empty(); }

  std::size_t fill(std::span<iovec> into) const {
    std::size_t count = 0;
    std::size_t skip = skip_;
    for (std::size_t i = 0; i < parts_.size() && count < into.size(); ++i) {
      const ByteView rest = parts_[i].subspan(skip);
      skip = 0;
      if (rest.empty()) continue;
      // iovec has one type for reading and writing; pwritev does not write through it.
      into[count++] = {const_cast<std::uint8_t*>(rest.data()), rest.size()};
    }
    return count;
  }

  void advance(std::size_t count) {
    skip_ += count;
    skip_empty();
  }

 private:
  void skip_empty() {
    while (!parts_.empty() && skip_ >= parts_.front().size()) {
      skip_ -= parts_.front().size();
      parts_ = parts_.subspan(1);
    }
  }

  std::span<const ByteView> parts_;
  std::size_t skip_ = 0;  // bytes of the first part already written
};

class PosixFile final : public File {
 public:
  PosixFile(int descriptor, FileIdentity identity, std::string path)
      : descriptor_(descriptor), identity_(identity), path_(std::move(path)) {}
  ~PosixFile() override { close_beside_locks(identity_, descriptor_); }
  PosixFile(const PosixFile&) = delete;
  PosixFile& operator=(const PosixFile&) = delete;

  Result<std::size_t> read(std::uint64_t position, MutableBytes into, bool wait) const override {
    if (position > position_max || into.size() > position_max - position) {
      return fail(Errc::invalid, "read " + path_ + ": position out of range");
    }
    if (!wait && nowait_.load(std::memory_order_relaxed)) {
      Result<std::size_t> got = read_cached(position, into);
      if (got || got.error().code != Errc::unsupported) return got;
      nowait_.store(false, std::memory_order_relaxed);
    }
    return read_whole(position, into);
  }

  Result<void> write(std::uint64_t position, std::span<const ByteView> parts) override {
    std::array<iovec, IOV_MAX> vectors;
    PartCursor cursor(parts);
    while (!cursor.done()) {
      const std::size_t count = cursor.fill(vectors);
      if (position > position_max) {
        return fail(Errc::invalid, "pwritev " + path_ + ": position out of range");
      }
      const ssize_t written = retry_interrupted([&] {
        return ::pwritev(descriptor_, vectors.data(), static_cast<int>(count),
                         static_cast<off_t>(position));
      });
      if (written < 0) return failed("pwritev", path_);
      if (written == 0) return fail(Errc::io, "pwritev " + path_ + ": nothing was written");
      position += static_cast<std::uint64_t>(written);
      cursor.advance(static_cast<std::size_t>(written));
    }
    return {};
  }

  Result<void> sync() override {
    if (retry_interrupted([&] { return ::fdatasync(descriptor_); }) != 0) {
      return failed("fdatasync", path_);
    }
    return {};
  }

  void start_writeback(std::uint64_t position, std::uint64_t size) override {
    // Only a hint: what goes wrong here comes back from the sync.
    static_cast<void>(::sync_file_range(descriptor_, static_cast<off_t>(position),
                                        static_cast<off_t>(size), SYNC_FILE_RANGE_WRITE));
  }

  Result<void> truncate(std::uint64_t size) override {
    if (size > position_max) {
      return fail(Errc::invalid, "ftruncate " + path_ + ": size out of range");
    }
    const auto length = static_cast<off_t>(size);
    if (retry_interrupted([&] { return ::ftruncate(descriptor_, length); }) != 0) {
      return failed("ftruncate", path_);
    }
    return {};
  }

  Result<FileInfo> info() const override {
    struct stat from{};
    if (::fstat(descriptor_, &from) != 0) return failed("fstat", path_);
    return info_of(from);
  }

 private:
  Result<std::size_t> read_whole(std::uint64_t position, MutableBytes into) const {
    std::size_t done = 0;
    while (done < into.size()) {
      const MutableBytes rest = into.subspan(done);
      const ssize_t count = retry_interrupted([&] {
        return ::pread(descriptor_, rest.data(), rest.size(), static_cast<off_t>(position + done));
      });
      if (count < 0) return failed("pread", path_);
      if (count == 0) break;
      done += static_cast<std::size_t>(count);
    }
    return done;
  }

  // One call: it stops at the first page that is not in memory, and asking again there would
  // only be told so. Errc::unsupported where the file system cannot do it.
  Result<std::size_t> read_cached(std::uint64_t position, MutableBytes into) const {
    const iovec vector{into.data(), into.size()};
    const ssize_t count = retry_interrupted([&] {
      return ::preadv2(descriptor_, &vector, 1, static_cast<off_t>(position), RWF_NOWAIT);
    });
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno == EOPNOTSUPP || errno == ENOSYS) return fail(Errc::unsupported, "");
    return failed("preadv2", path_);
  }

  int descriptor_;
  FileIdentity identity_;
  std::string path_;
  mutable std::atomic<bool> nowait_{true};
};

class PosixVolume final : public Volume {
 public:
  PosixVolume(Descriptor descriptor, std::string path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

  Result<void> sync() override {
    if (retry_interrupted([&] { return ::syncfs(descriptor_.get()); }) != 0) {
      return failed("syncfs", path_);
    }
    return {};
  }

 private:
  Descriptor descriptor_;
  std::string path_;
};

int open_flags(OpenMode mode) {
  switch (mode) {
    case OpenMode::read: return O_RDONLY;
    case OpenMode::write: return O_RDWR;
    case OpenMode::create: return O_RDWR | O_CREAT;
    case OpenMode::create_new: return O_RDWR | O_CREAT | O_EXCL;
  }
  return O_RDONLY;
}

}  // namespace

Error posix_error(std::string_view call, const std::string& path, int code) {
  std::string context(call);
  context += ' ';
  context += path;
  context += ": ";
  context += std::strerror(code);
  return {code_of(code), std::move(context)};
}

namespace {

Result<FilePtr> open_with(const std::string& path, int flags) {
  // A read of what was just written would write its access time: a third of what the read takes.
  flags |= O_CLOEXEC | O_NOATIME;
  int descriptor = retry_interrupted([&] { return ::open(path.c_str(), flags, 0644); });
  if (descriptor < 0 && errno == EPERM) {  // another user's file
    flags &= ~O_NOATIME;
    descriptor = retry_interrupted([&] { return ::open(path.c_str(), flags, 0644); });
  }
  if (descriptor < 0) return failed("open", path);
  Descriptor owned(descriptor);
  struct stat from{};
  if (::fstat(descriptor, &from) != 0) return failed("fstat", path);
  if (S_ISDIR(from.st_mode)) return fail(posix_error("open", path, EISDIR));
  const FileIdentity identity{from.st_dev, from.st_ino};
  return std::make_shared<PosixFile>(owned.release(), identity, path);
}

}  // namespace

Result<FilePtr> PosixFileSystem::open(const std::string& path, OpenMode mode) {
  return open_with(path, open_flags(mode));
}

Result<FilePtr> PosixFileSystem::open_direct(const std::string& path) {
  auto file = open_with(path, O_RDWR | O_DIRECT | O_DSYNC);
  // What file systems without it say.
  if (file || file.error().code != Errc::invalid) return file;
  return fail(Errc::unsupported, file.error().context);
}

Result<FileInfo> PosixFileSystem::info(const std::string& path) const {
  struct stat from{};
  if (::stat(path.c_str(), &from) != 0) return failed("stat", path);
  return info_of(from);
}

Result<std::vector<std::string>> PosixFileSystem::list(const std::string& path) const {
  POLYLOG_ASSIGN(descriptor, open_directory(path));
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(descriptor.get()), ::closedir);
  if (stream == nullptr) return failed("fdopendir", path);
  descriptor.release();  // the stream closes it
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return failed("readdir", path);
  std::sort(names.begin(), names.end());
  return names;
}

Result<void> PosixFileSystem::create_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) != 0) return failed("mkdir", path);
  return {};
}

Result<void> PosixFileSystem::rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return failed("rename", from + " to " + to);
  return {};
}

Result<void> PosixFileSystem::remove(const std::string& path) {
  if (::unlink(path.c_str()) != 0) return failed("unlink", path);
  return {};
}

Result<void> PosixFileSystem::remove_directory(const std::string& path) {
  if (::rmdir(path.c_str()) != 0) return failed("rmdir", path);
  return {};
}

Result<void> PosixFileSystem::sync_directory(const std::string& path) {
  POLYLOG_ASSIGN(descriptor, open_directory(path));
  if (retry_interrupted([&] { return ::fsync(descriptor.get()); }) != 0) {
    return failed("fsync", path);
  }
  return {};
}

Result<void> PosixFileSystem::set_modified(const std::string& path, Timestamp time) {
  const std::int64_t ms = time.value();
  const std::int64_t below = ((ms % 1000) + 1000) % 1000;  // times before 1970 count down
  std::array<timespec, 2> times{};
  times[0].tv_nsec = UTIME_OMIT;
  times[1].tv_sec = (ms - below) / 1000;
  times[1].tv_nsec = below * 1'000'000;
  if (::utimensat(AT_FDCWD, path.c_str(), times.data(), 0) != 0) return failed("utimensat", path);
  return {};
}

Result<std::unique_ptr<Lock>> PosixFileSystem::lock(const std::string& path) {
  return take_posix_lock(path);
}

Result<std::unique_ptr<Volume>> PosixFileSystem::open_volume(const std::string& path) {
  POLYLOG_ASSIGN(descriptor, open_directory(path));
  return std::make_unique<PosixVolume>(std::move(descriptor), path);
}

Result<std::uint64_t> PosixFileSystem::free_bytes(const std::string& path) const {
  struct statvfs space{};
  if (retry_interrupted([&] { return ::statvfs(path.c_str(), &space); }) != 0) {
    return failed("statvfs", path);
  }
  return static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
}

// What users can have of it: the reserve for root counts as neither used nor free, as in df.
Result<std::uint64_t> PosixFileSystem::total_bytes(const std::string& path) const {
  struct statvfs space{};
  if (retry_interrupted([&] { return ::statvfs(path.c_str(), &space); }) != 0) {
    return failed("statvfs", path);
  }
  const auto used = space.f_blocks - space.f_bfree;
  return static_cast<std::uint64_t>(used + space.f_bavail) * space.f_frsize;
}

}  // namespace polylog::fs
