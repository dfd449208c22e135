#include "meta/sqlite_vfs.h"

#include <sqlite3.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <new>
#include <random>
#include <thread>
#include <utility>

namespace polylog::meta {
namespace {

constexpr int sector_bytes = 4096;
constexpr int path_bytes_max = 4096;
constexpr std::int64_t julian_ms_of_1970 = 210866760000000;
constexpr double ms_per_day = 86400000.0;

// What SQLite allocates for an open file: its base first, ours behind.
struct VfsFile {
  sqlite3_file base;
  SqliteVfs* vfs;
  std::string path;
  fs::FilePtr file;  // null: a WAL that was not there and has not been written yet
  bool directory_synced;
};

VfsFile& file_of(sqlite3_file* base) { return *reinterpret_cast<VfsFile*>(base); }
SqliteVfs& vfs_of(sqlite3_vfs* vfs) { return *static_cast<SqliteVfs*>(vfs->pAppData); }

Error named(const Error& error, const char* doing, const std::string& path) {
  return Error{error.code, std::string(doing) + " " + path + ": " + error.context};
}

}  // namespace

// The C entry points, in one struct so that SqliteVfs can befriend them.
struct VfsCalls {
  static int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* base, int flags,
                  int* flags_out);
  static int remove(sqlite3_vfs* vfs, const char* name, int sync_directory);
  static int access(sqlite3_vfs* vfs, const char* name, int flags, int* result);
  static int full_path(sqlite3_vfs* vfs, const char* name, int size, char* out);
  static int randomness(sqlite3_vfs* vfs, int size, char* out);
  static int sleep(sqlite3_vfs* vfs, int microseconds);
  static int current_time(sqlite3_vfs* vfs, double* julian_days);
  static int last_error(sqlite3_vfs* vfs, int size, char* out);

  static int close(sqlite3_file* base);
  static int read(sqlite3_file* base, void* into, int size, sqlite3_int64 position);
  static int write(sqlite3_file* base, const void* from, int size, sqlite3_int64 position);
  static int truncate(sqlite3_file* base, sqlite3_int64 size);
  static int sync(sqlite3_file* base, int flags);
  static int size(sqlite3_file* base, sqlite3_int64* size);
  static int lock(sqlite3_file*, int) { return SQLITE_OK; }
  static int check_reserved(sqlite3_file*, int* result) {
    *result = 0;
    return SQLITE_OK;
  }
  static int control(sqlite3_file* base, int operation, void* argument);
  static int sector(sqlite3_file*) { return sector_bytes; }
  // A torn write does not change the bytes beside it, as for every append of polylog's. Without
  // this SQLite pads a commit with copies of its last frame; running out of space among those
  // would leave a whole commit behind that was answered with an error.
  static int characteristics(sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }
};

namespace {

const sqlite3_io_methods io_methods = [] {
  sqlite3_io_methods methods{};
  methods.iVersion = 1;
  methods.xClose = VfsCalls::close;
  methods.xRead = VfsCalls::read;
  methods.xWrite = VfsCalls::write;
  methods.xTruncate = VfsCalls::truncate;
  methods.xSync = VfsCalls::sync;
  methods.xFileSize = VfsCalls::size;
  methods.xLock = VfsCalls::lock;
  methods.xUnlock = VfsCalls::lock;
  methods.xCheckReservedLock = VfsCalls::check_reserved;
  methods.xFileControl = VfsCalls::control;
  methods.xSectorSize = VfsCalls::sector;
  methods.xDeviceCharacteristics = VfsCalls::characteristics;
  return methods;
}();

std::string next_name() {
  static std::atomic<std::uint64_t> count{0};
  return "polylog-" + std::to_string(++count);
}

}  // namespace

int VfsCalls::open(sqlite3_vfs* vfs, const char* name, sqlite3_file* base, int flags,
                   int* flags_out) {
  base->pMethods = nullptr;  // tells SQLite not to call close after an error
  SqliteVfs& self = vfs_of(vfs);
  if (name == nullptr) {
    self.remember(Error{Errc::unsupported, "a temporary file was asked for"});
    return SQLITE_CANTOPEN;
  }
  const std::string path(name);
  const bool create = (flags & SQLITE_OPEN_CREATE) != 0;
  const bool wal = (flags & SQLITE_OPEN_WAL) != 0;
  fs::OpenMode mode = fs::OpenMode::read;
  if ((flags & SQLITE_OPEN_READWRITE) != 0) {
    mode = create && !wal ? fs::OpenMode::create : fs::OpenMode::write;
  }
  auto opened = self.fs_.open(path, mode);
  const bool later = !opened && opened.error().code == Errc::not_found && create && wal;
  if (!opened && !later) {
    self.remember(named(opened.error(), "opening", path));
    return SQLITE_CANTOPEN;
  }
  auto* file = new (base) VfsFile{};
  file->vfs = &self;
  file->path = path;
  if (!later) file->file = std::move(*opened);
  file->base.pMethods = &io_methods;
  if (flags_out != nullptr) *flags_out = flags;
  return SQLITE_OK;
}

int VfsCalls::close(sqlite3_file* base) {
  file_of(base).~VfsFile();
  return SQLITE_OK;
}

int VfsCalls::read(sqlite3_file* base, void* into, int size, sqlite3_int64 position) {
  VfsFile& file = file_of(base);
  auto* bytes = static_cast<std::uint8_t*>(into);
  const auto wanted = static_cast<std::size_t>(size);
  std::size_t got = 0;
  if (file.file != nullptr) {
    auto result = file.file->read(static_cast<std::uint64_t>(position), {bytes, wanted});
    if (!result) {
      file.vfs->remember(named(result.error(), "reading", file.path));
      return SQLITE_IOERR_READ;
    }
    got = *result;
  }
  if (got == wanted) return SQLITE_OK;
  // SQLite relies on zeros behind a short read.
  std::memset(bytes + got, 0, wanted - got);
  return SQLITE_IOERR_SHORT_READ;
}

int VfsCalls::write(sqlite3_file* base, const void* from, int size, sqlite3_int64 position) {
  VfsFile& file = file_of(base);
  SqliteVfs& self = *file.vfs;
  if (self.failed_) return SQLITE_IOERR_WRITE;
  if (file.file == nullptr) {
    auto made = self.fs_.open(file.path, fs::OpenMode::create);
    if (!made) {
      self.remember(named(made.error(), "making", file.path));
      return made.error().code == Errc::no_space ? SQLITE_FULL : SQLITE_IOERR_WRITE;
    }
    file.file = std::move(*made);
  }
  const ByteView bytes{static_cast<const std::uint8_t*>(from), static_cast<std::size_t>(size)};
  auto written = file.file->write(static_cast<std::uint64_t>(position), bytes);
  if (written) return SQLITE_OK;
  if (written.error().code == Errc::no_space) {
    // The transaction is rolled back and a later one may find room.
    self.remember(named(written.error(), "writing", file.path));
    return SQLITE_FULL;
  }
  self.refuse_writes(named(written.error(), "writing", file.path));
  return SQLITE_IOERR_WRITE;
}

int VfsCalls::truncate(sqlite3_file* base, sqlite3_int64 size) {
  VfsFile& file = file_of(base);
  if (file.vfs->failed_) return SQLITE_IOERR_TRUNCATE;
  if (file.file == nullptr) return SQLITE_OK;
  if (auto done = file.file->truncate(static_cast<std::uint64_t>(size)); !done) {
    file.vfs->refuse_writes(named(done.error(), "truncating", file.path));
    return SQLITE_IOERR_TRUNCATE;
  }
  return SQLITE_OK;
}

int VfsCalls::sync(sqlite3_file* base, int) {
  VfsFile& file = file_of(base);
  if (file.vfs->failed_) return SQLITE_IOERR_FSYNC;
  if (file.file == nullptr) return SQLITE_OK;
  if (auto done = file.file->sync(); !done) {
    file.vfs->refuse_writes(named(done.error(), "syncing", file.path));
    return SQLITE_IOERR_FSYNC;
  }
  if (!file.directory_synced) {
    const std::string directory = fs::parent_of(file.path);
    if (auto done = file.vfs->fs_.sync_directory(directory); !done) {
      file.vfs->refuse_writes(named(done.error(), "syncing directory", directory));
      return SQLITE_IOERR_DIR_FSYNC;
    }
    file.directory_synced = true;
  }
  return SQLITE_OK;
}

int VfsCalls::size(sqlite3_file* base, sqlite3_int64* size) {
  VfsFile& file = file_of(base);
  *size = 0;
  if (file.file == nullptr) return SQLITE_OK;
  auto info = file.file->info();
  if (!info) {
    file.vfs->remember(named(info.error(), "looking at", file.path));
    return SQLITE_IOERR_FSTAT;
  }
  *size = static_cast<sqlite3_int64>(info->size);
  return SQLITE_OK;
}

int VfsCalls::control(sqlite3_file*, int operation, void* argument) {
  // The WAL stays when the last connection closes: its blocks are the room that a change needs
  // when the disk is full.
  if (operation == SQLITE_FCNTL_PERSIST_WAL) {
    *static_cast<int*>(argument) = 1;
    return SQLITE_OK;
  }
  return SQLITE_NOTFOUND;
}

int VfsCalls::remove(sqlite3_vfs* vfs, const char* name, int sync_directory) {
  SqliteVfs& self = vfs_of(vfs);
  if (self.failed_) return SQLITE_IOERR_DELETE;
  const std::string path(name);
  if (auto done = self.fs_.remove(path); !done) {
    if (done.error().code == Errc::not_found) return SQLITE_IOERR_DELETE_NOENT;
    self.refuse_writes(named(done.error(), "removing", path));
    return SQLITE_IOERR_DELETE;
  }
  if (sync_directory != 0) {
    const std::string directory = fs::parent_of(path);
    if (auto done = self.fs_.sync_directory(directory); !done) {
      self.refuse_writes(named(done.error(), "syncing directory", directory));
      return SQLITE_IOERR_DIR_FSYNC;
    }
  }
  return SQLITE_OK;
}

int VfsCalls::access(sqlite3_vfs* vfs, const char* name, int, int* result) {
  SqliteVfs& self = vfs_of(vfs);
  *result = 0;
  auto info = self.fs_.info(name);
  if (!info) {
    if (info.error().code == Errc::not_found) return SQLITE_OK;
    self.remember(named(info.error(), "looking at", name));
    return SQLITE_IOERR_ACCESS;
  }
  // As SQLite's own VFS for Unix: an empty journal or WAL counts as none.
  *result = info->directory || info->size > 0 ? 1 : 0;
  return SQLITE_OK;
}

int VfsCalls::full_path(sqlite3_vfs*, const char* name, int size, char* out) {
  const std::size_t length = std::strlen(name);
  if (length >= static_cast<std::size_t>(size)) return SQLITE_CANTOPEN;
  std::memcpy(out, name, length + 1);
  return SQLITE_OK;
}

int VfsCalls::randomness(sqlite3_vfs*, int size, char* out) {
  std::random_device device;
  for (int i = 0; i < size; ++i) out[i] = static_cast<char>(device());
  return size;
}

int VfsCalls::sleep(sqlite3_vfs*, int microseconds) {
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
  return microseconds;
}

int VfsCalls::current_time(sqlite3_vfs*, double* julian_days) {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(since_1970).count();
  *julian_days = static_cast<double>(ms + julian_ms_of_1970) / ms_per_day;
  return SQLITE_OK;
}

int VfsCalls::last_error(sqlite3_vfs* vfs, int size, char* out) {
  if (size > 0) {
    std::snprintf(out, static_cast<std::size_t>(size), "%s",
                  vfs_of(vfs).last_error().context.c_str());
  }
  return 0;
}

SqliteVfs::SqliteVfs(fs::FileSystem& fs)
    : fs_(fs), name_(next_name()), vfs_(std::make_unique<sqlite3_vfs>()) {
  vfs_->iVersion = 1;
  vfs_->szOsFile = sizeof(VfsFile);
  vfs_->mxPathname = path_bytes_max;
  vfs_->zName = name_.c_str();
  vfs_->pAppData = this;
  vfs_->xOpen = VfsCalls::open;
  vfs_->xDelete = VfsCalls::remove;
  vfs_->xAccess = VfsCalls::access;
  vfs_->xFullPathname = VfsCalls::full_path;
  vfs_->xRandomness = VfsCalls::randomness;
  vfs_->xSleep = VfsCalls::sleep;
  vfs_->xCurrentTime = VfsCalls::current_time;
  vfs_->xGetLastError = VfsCalls::last_error;
}

Result<std::unique_ptr<SqliteVfs>> SqliteVfs::make(fs::FileSystem& fs) {
  std::unique_ptr<SqliteVfs> made(new SqliteVfs(fs));
  if (sqlite3_vfs_register(made->vfs_.get(), 0) != SQLITE_OK) {
    return fail(Errc::unavailable, "SQLite does not accept another VFS");
  }
  return made;
}

SqliteVfs::~SqliteVfs() { sqlite3_vfs_unregister(vfs_.get()); }

Error SqliteVfs::last_error() const {
  const std::lock_guard hold(mutex_);
  return last_error_;
}

void SqliteVfs::clear_last_error() { remember(Error{}); }

void SqliteVfs::remember(Error error) {
  const std::lock_guard hold(mutex_);
  last_error_ = std::move(error);
}

void SqliteVfs::refuse_writes(Error error) {
  failed_ = true;
  remember(std::move(error));
}

}  // namespace polylog::meta
