#include "storage/rocksdb/seam.h"

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/io_status.h>
#include <rocksdb/system_clock.h>

#include <algorithm>
#include <utility>

namespace polylog::storage {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

constexpr int sleep_us_max = 2000;

using ErrorsPtr = std::shared_ptr<SeamErrors>;

IOStatus to_status(const Error& error) {
  switch (error.code) {
    case Errc::not_found: return IOStatus::PathNotFound(error.context);
    case Errc::corrupt: return IOStatus::Corruption(error.context);
    default: return IOStatus::IOError(std::string(to_string(error.code)), error.context);
  }
}

// That a file is missing is an answer to many a question of RocksDB's.
IOStatus unread(const ErrorsPtr& errors, const Error& error) {
  if (error.code != Errc::not_found) errors->note_read(error);
  return to_status(error);
}

IOStatus refused(const ErrorsPtr& errors, const Error& error) {
  if (error.code != Errc::not_found) errors->note_change(error);
  return to_status(error);
}

IOStatus told(const ErrorsPtr& errors, const Result<void>& done) {
  return done ? IOStatus::OK() : refused(errors, done.error());
}

IOStatus read_at(const ErrorsPtr& errors, const fs::File& file, std::uint64_t position,
                 std::size_t size, rocksdb::Slice* result, char* scratch) {
  const auto got = file.read(position, {reinterpret_cast<std::uint8_t*>(scratch), size});
  if (!got) {
    *result = {};
    return unread(errors, got.error());
  }
  *result = rocksdb::Slice(scratch, *got);
  return IOStatus::OK();
}

class SequentialFile final : public rocksdb::FSSequentialFile {
 public:
  SequentialFile(ErrorsPtr errors, fs::FilePtr file)
      : errors_(std::move(errors)), file_(std::move(file)) {}

  IOStatus Read(std::size_t size, const IOOptions&, rocksdb::Slice* result, char* scratch,
                IODebugContext*) override {
    const IOStatus status = read_at(errors_, *file_, position_, size, result, scratch);
    position_ += result->size();
    return status;
  }
  IOStatus Skip(std::uint64_t size) override {
    position_ += size;
    return IOStatus::OK();
  }

 private:
  const ErrorsPtr errors_;
  const fs::FilePtr file_;
  std::uint64_t position_ = 0;
};

class RandomAccessFile final : public rocksdb::FSRandomAccessFile {
 public:
  RandomAccessFile(ErrorsPtr errors, fs::FilePtr file)
      : errors_(std::move(errors)), file_(std::move(file)) {}

  IOStatus Read(std::uint64_t position, std::size_t size, const IOOptions&, rocksdb::Slice* result,
                char* scratch, IODebugContext*) const override {
    return read_at(errors_, *file_, position, size, result, scratch);
  }

 private:
  const ErrorsPtr errors_;
  const fs::FilePtr file_;
};

class WritableFile final : public rocksdb::FSWritableFile {
 public:
  WritableFile(ErrorsPtr errors, fs::FilePtr file, std::uint64_t size)
      : errors_(std::move(errors)), file_(std::move(file)), size_(size) {}

  using FSWritableFile::Append;
  IOStatus Append(const rocksdb::Slice& data, const IOOptions&, IODebugContext*) override {
    if (!error_) keep(file_->write(size_, as_bytes({data.data(), data.size()})));
    size_ += data.size();
    return IOStatus::OK();
  }
  IOStatus Truncate(std::uint64_t size, const IOOptions&, IODebugContext*) override {
    if (!error_) keep(file_->truncate(size));
    size_ = size;
    return IOStatus::OK();
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return kept(); }
  IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    if (!error_) keep(file_->sync());
    return kept();
  }
  IOStatus RangeSync(std::uint64_t position, std::uint64_t size, const IOOptions&,
                     IODebugContext*) override {
    file_->start_writeback(position, size);
    return IOStatus::OK();
  }
  std::uint64_t GetFileSize(const IOOptions&, IODebugContext*) override { return size_; }

 private:
  void keep(const Result<void>& done) {
    if (!done) error_ = refused(errors_, done.error());
  }
  IOStatus kept() const { return error_ ? *error_ : IOStatus::OK(); }

  const ErrorsPtr errors_;
  const fs::FilePtr file_;
  std::uint64_t size_;
  std::optional<IOStatus> error_;  // of the first write that failed
};

class Directory final : public rocksdb::FSDirectory {
 public:
  Directory(ErrorsPtr errors, fs::FileSystem& fs, std::string path)
      : errors_(std::move(errors)), fs_(fs), path_(std::move(path)) {}

  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    return told(errors_, fs_.sync_directory(path_));
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }

 private:
  const ErrorsPtr errors_;
  fs::FileSystem& fs_;
  const std::string path_;
};

class HeldLock final : public rocksdb::FileLock {
 public:
  explicit HeldLock(std::unique_ptr<fs::Lock> lock) : lock_(std::move(lock)) {}

 private:
  const std::unique_ptr<fs::Lock> lock_;
};

class Seam final : public rocksdb::FileSystem {
 public:
  Seam(fs::FileSystem& fs, ErrorsPtr errors) : fs_(fs), errors_(std::move(errors)) {}

  const char* Name() const override { return "polylog"; }

  IOStatus NewSequentialFile(const std::string& path, const FileOptions&,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result,
                             IODebugContext*) override;
  IOStatus NewRandomAccessFile(const std::string& path, const FileOptions&,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                               IODebugContext*) override;
  IOStatus NewWritableFile(const std::string& path, const FileOptions&,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           IODebugContext*) override;
  IOStatus ReopenWritableFile(const std::string& path, const FileOptions&,
                              std::unique_ptr<rocksdb::FSWritableFile>* result,
                              IODebugContext*) override;
  IOStatus NewDirectory(const std::string& path, const IOOptions&,
                        std::unique_ptr<rocksdb::FSDirectory>* result, IODebugContext*) override;

  IOStatus FileExists(const std::string& path, const IOOptions&, IODebugContext*) override;
  IOStatus GetChildren(const std::string& path, const IOOptions&, std::vector<std::string>* result,
                       IODebugContext*) override;
  IOStatus GetFileSize(const std::string& path, const IOOptions&, std::uint64_t* size,
                       IODebugContext*) override;
  IOStatus GetFileModificationTime(const std::string& path, const IOOptions&,
                                   std::uint64_t* seconds, IODebugContext*) override;
  IOStatus IsDirectory(const std::string& path, const IOOptions&, bool* directory,
                       IODebugContext*) override;
  IOStatus GetFreeSpace(const std::string& path, const IOOptions&, std::uint64_t* bytes,
                        IODebugContext*) override;

  IOStatus DeleteFile(const std::string& path, const IOOptions&, IODebugContext*) override {
    return told(errors_, fs_.remove(path));
  }
  IOStatus Truncate(const std::string& path, std::size_t size, const IOOptions&,
                    IODebugContext*) override;
  IOStatus CreateDir(const std::string& path, const IOOptions&, IODebugContext*) override {
    return told(errors_, fs_.create_directory(path));
  }
  IOStatus CreateDirIfMissing(const std::string& path, const IOOptions&, IODebugContext*) override;
  IOStatus DeleteDir(const std::string& path, const IOOptions&, IODebugContext*) override {
    return told(errors_, fs_.remove_directory(path));
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions&,
                      IODebugContext*) override {
    return told(errors_, fs_.rename(from, to));
  }

  IOStatus LockFile(const std::string& path, const IOOptions&, rocksdb::FileLock** lock,
                    IODebugContext*) override;
  IOStatus UnlockFile(rocksdb::FileLock* lock, const IOOptions&, IODebugContext*) override {
    delete lock;
    return IOStatus::OK();
  }

  IOStatus GetTestDirectory(const IOOptions&, std::string*, IODebugContext*) override {
    return IOStatus::NotSupported("no test directory");
  }
  IOStatus GetAbsolutePath(const std::string& path, const IOOptions&, std::string* absolute,
                           IODebugContext*) override {
    *absolute = path;
    return IOStatus::OK();
  }

 private:
  Result<fs::FilePtr> open_empty(const std::string& path);

  fs::FileSystem& fs_;
  const ErrorsPtr errors_;
};

IOStatus Seam::NewSequentialFile(const std::string& path, const FileOptions&,
                                 std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                 IODebugContext*) {
  result->reset();
  auto file = fs_.open(path, fs::OpenMode::read);
  if (!file) return unread(errors_, file.error());
  *result = std::make_unique<SequentialFile>(errors_, std::move(*file));
  return IOStatus::OK();
}

IOStatus Seam::NewRandomAccessFile(const std::string& path, const FileOptions&,
                                   std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                   IODebugContext*) {
  result->reset();
  auto file = fs_.open(path, fs::OpenMode::read);
  if (!file) return unread(errors_, file.error());
  *result = std::make_unique<RandomAccessFile>(errors_, std::move(*file));
  return IOStatus::OK();
}

Result<fs::FilePtr> Seam::open_empty(const std::string& path) {
  POLYLOG_ASSIGN(file, fs_.open(path, fs::OpenMode::create));
  POLYLOG_ASSIGN(info, file->info());
  if (info.size > 0) POLYLOG_TRY(file->truncate(0));
  return file;
}

IOStatus Seam::NewWritableFile(const std::string& path, const FileOptions&,
                               std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext*) {
  result->reset();
  auto file = open_empty(path);
  if (!file) return refused(errors_, file.error());
  *result = std::make_unique<WritableFile>(errors_, std::move(*file), 0);
  return IOStatus::OK();
}

IOStatus Seam::ReopenWritableFile(const std::string& path, const FileOptions&,
                                  std::unique_ptr<rocksdb::FSWritableFile>* result,
                                  IODebugContext*) {
  result->reset();
  auto file = fs_.open(path, fs::OpenMode::create);
  if (!file) return refused(errors_, file.error());
  const auto info = (*file)->info();
  if (!info) return refused(errors_, info.error());
  *result = std::make_unique<WritableFile>(errors_, std::move(*file), info->size);
  return IOStatus::OK();
}

IOStatus Seam::NewDirectory(const std::string& path, const IOOptions&,
                            std::unique_ptr<rocksdb::FSDirectory>* result, IODebugContext*) {
  result->reset();
  const auto info = fs_.info(path);
  if (!info) return unread(errors_, info.error());
  *result = std::make_unique<Directory>(errors_, fs_, path);
  return IOStatus::OK();
}

IOStatus Seam::FileExists(const std::string& path, const IOOptions&, IODebugContext*) {
  const auto info = fs_.info(path);
  if (info) return IOStatus::OK();
  if (info.error().code == Errc::not_found) return IOStatus::NotFound();
  return unread(errors_, info.error());
}

IOStatus Seam::GetChildren(const std::string& path, const IOOptions&,
                           std::vector<std::string>* result, IODebugContext*) {
  auto names = fs_.list(path);
  if (!names) {
    result->clear();
    return unread(errors_, names.error());
  }
  *result = std::move(*names);
  return IOStatus::OK();
}

IOStatus Seam::GetFileSize(const std::string& path, const IOOptions&, std::uint64_t* size,
                           IODebugContext*) {
  const auto info = fs_.info(path);
  *size = info ? info->size : 0;
  return info ? IOStatus::OK() : unread(errors_, info.error());
}

IOStatus Seam::GetFileModificationTime(const std::string& path, const IOOptions&,
                                       std::uint64_t* seconds, IODebugContext*) {
  const auto info = fs_.info(path);
  *seconds = info ? static_cast<std::uint64_t>(info->modified.value() / 1000) : 0;
  return info ? IOStatus::OK() : unread(errors_, info.error());
}

IOStatus Seam::IsDirectory(const std::string& path, const IOOptions&, bool* directory,
                           IODebugContext*) {
  const auto info = fs_.info(path);
  *directory = info && info->directory;
  return info ? IOStatus::OK() : unread(errors_, info.error());
}

IOStatus Seam::GetFreeSpace(const std::string& path, const IOOptions&, std::uint64_t* bytes,
                            IODebugContext*) {
  const auto free = fs_.free_bytes(path);
  *bytes = free ? *free : 0;
  return free ? IOStatus::OK() : unread(errors_, free.error());
}

IOStatus Seam::Truncate(const std::string& path, std::size_t size, const IOOptions&,
                        IODebugContext*) {
  const auto file = fs_.open(path, fs::OpenMode::write);
  if (!file) return refused(errors_, file.error());
  return told(errors_, (*file)->truncate(size));
}

IOStatus Seam::CreateDirIfMissing(const std::string& path, const IOOptions&, IODebugContext*) {
  const auto made = fs_.create_directory(path);
  if (!made && made.error().code == Errc::exists) return IOStatus::OK();
  return told(errors_, made);
}

IOStatus Seam::LockFile(const std::string& path, const IOOptions&, rocksdb::FileLock** lock,
                        IODebugContext*) {
  *lock = nullptr;
  auto held = fs_.lock(path);
  if (!held) return refused(errors_, held.error());
  *lock = new HeldLock(std::move(*held));
  return IOStatus::OK();
}

// Also paces writers when compactions fall behind, in steps of a millisecond.
class BriefClock final : public rocksdb::SystemClockWrapper {
 public:
  using SystemClockWrapper::SystemClockWrapper;
  const char* Name() const override { return "polylog"; }
  void SleepForMicroseconds(int us) override {
    SystemClockWrapper::SleepForMicroseconds(std::min(us, sleep_us_max));
  }
};

class Surroundings final : public rocksdb::EnvWrapper {
 public:
  explicit Surroundings(std::unique_ptr<rocksdb::Env> env) : EnvWrapper(std::move(env)) {
    system_clock_ = std::make_shared<BriefClock>(rocksdb::SystemClock::Default());
  }
  const char* Name() const override { return "polylog"; }
};

}  // namespace

void SeamErrors::note_read(const Error& error) {
  const std::scoped_lock guard(mutex_);
  if (!read_) read_ = error;
}

void SeamErrors::note_change(const Error& error) {
  const std::scoped_lock guard(mutex_);
  if (!change_) change_ = error;
}

std::optional<Error> SeamErrors::read() const {
  const std::scoped_lock guard(mutex_);
  return read_;
}

std::optional<Error> SeamErrors::change() const {
  const std::scoped_lock guard(mutex_);
  return change_;
}

std::unique_ptr<rocksdb::Env> make_rocksdb_env(fs::FileSystem& fs,
                                               std::shared_ptr<SeamErrors> errors) {
  return std::make_unique<Surroundings>(
      rocksdb::NewCompositeEnv(std::make_shared<Seam>(fs, std::move(errors))));
}

}  // namespace polylog::storage
