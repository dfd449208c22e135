#include "storage/rocksdb/index.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/table.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <utility>

#include "storage/filelog/ballast.h"
#include "storage/rocksdb/seam.h"

namespace polylog::storage {
namespace {

constexpr std::uint64_t table_bytes = 8 << 20;
constexpr std::uint64_t level_bytes = 32 << 20;

class SilentLog final : public rocksdb::Logger {
 public:
  SilentLog() : Logger(rocksdb::InfoLogLevel::FATAL_LEVEL) {}
  using Logger::Logv;
  void Logv(const char*, va_list) override {}
};

rocksdb::Slice slice_of(const std::string& text) { return {text.data(), text.size()}; }
ByteView view_of(const rocksdb::Slice& slice) { return as_bytes({slice.data(), slice.size()}); }
std::string text_of(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

Errc code_of(const rocksdb::Status& status) {
  if (status.IsCorruption()) return Errc::corrupt;
  if (status.IsNoSpace()) return Errc::no_space;
  if (status.IsInvalidArgument() || status.IsNotSupported()) return Errc::unsupported;
  if (status.IsShutdownInProgress() || status.IsAborted()) return Errc::unavailable;
  return Errc::io;
}

// RocksDB is not written for exceptions, but allocates; none leaves this module.
template <typename F>
auto guarded(const std::string& directory, F&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& exception) {
    return fail(Errc::unavailable, directory + ": " + exception.what());
  }
}

rocksdb::Options options_of(const RocksdbIndexOptions& wanted, rocksdb::Env* env) {
  rocksdb::Options options;
  options.env = env;
  options.create_if_missing = true;
  options.paranoid_checks = true;
  // Small memory: two buffers, one small cache, few open tables.
  options.write_buffer_size = wanted.write_buffer_bytes;
  options.max_write_buffer_number = 2;
  options.max_open_files = wanted.open_files_max;
  options.target_file_size_base = table_bytes;
  options.max_bytes_for_level_base = level_bytes;
  // One thread flushes, one compacts.
  options.max_background_jobs = 2;
  options.max_subcompactions = 1;
  options.max_file_opening_threads = 1;
  // Nothing of its own accord: no statistics, no going on after an error.
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.skip_stats_update_on_db_open = true;
  options.max_bgerror_resume_count = 0;
  options.avoid_flush_during_shutdown = true;
  // Positions compress to little already: keys share their beginnings.
  options.compression = rocksdb::kNoCompression;
  options.keep_log_file_num = 2;
  options.max_log_file_size = wanted.diary_bytes;
  if (wanted.diary_bytes == 0) options.info_log = std::make_shared<SilentLog>();

  rocksdb::BlockBasedTableOptions table;
  table.format_version = 5;
  table.block_cache = rocksdb::NewLRUCache(wanted.block_cache_bytes, 0);
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

class RocksdbIndex final : public OrderedIndex {
 public:
  RocksdbIndex(fs::FileSystem& fs, std::string directory, const RocksdbIndexOptions& options)
      : directory_(std::move(directory)),
        errors_(std::make_shared<SeamErrors>()),
        ballast_(fs, directory_, options.ballast_bytes),
        env_(make_rocksdb_env(fs, errors_)) {}
  ~RocksdbIndex() override {
    // Waits for flushes and compactions under way; a failed close has nothing to lose.
    if (db_ != nullptr) static_cast<void>(db_->Close());
  }

  Result<void> open(const RocksdbIndexOptions& options);

  Result<void> write(const Changes& changes) override;
  Result<std::optional<Entry>> floor(const std::string& key,
                                     const std::string& lowest) const override;
  Result<void> scan(const std::string& from, const std::string& to,
                    const std::function<bool(ByteView key, ByteView value)>& visit) const override;
  Result<void> sync() override;

 private:
  Error error_of(const rocksdb::Status& status, const std::optional<Error>& cause) const;
  Result<void> check_usable() const;
  Result<void> changed(const rocksdb::Status& status);

  const std::string directory_;
  const std::shared_ptr<SeamErrors> errors_;
  Ballast ballast_;
  std::mutex sync_mutex_;  // one sync at a time; guards ballast_
  const std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> db_;  // uses all of the above
  std::atomic<bool> failed_{false};
};

Error RocksdbIndex::error_of(const rocksdb::Status& status,
                             const std::optional<Error>& cause) const {
  if (cause) return Error{cause->code, directory_ + ": " + cause->context};
  return Error{code_of(status), directory_ + ": " + status.ToString()};
}

Result<void> RocksdbIndex::open(const RocksdbIndexOptions& options) {
  POLYLOG_TRY(ballast_.give_back_if_short());
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status =
      rocksdb::DB::Open(options_of(options, env_.get()), directory_, &db);
  db_.reset(db);
  if (!status.ok()) {
    const auto change = errors_->change();
    // The index itself names the file: it is not whole, and can be made anew.
    if (status.IsPathNotFound() && !change) {
      return fail(Errc::corrupt, directory_ + ": " + status.ToString());
    }
    return fail(error_of(status, change ? change : errors_->read()));
  }
  // The next start can do without, this one need not fail.
  static_cast<void>(ballast_.lay_if_roomy());
  return {};
}

Result<void> RocksdbIndex::check_usable() const {
  if (!failed_) return {};
  return fail(Errc::unavailable, directory_ + ": the index failed earlier");
}

Result<void> RocksdbIndex::changed(const rocksdb::Status& status) {
  if (status.ok()) return {};
  failed_ = true;
  return fail(error_of(status, errors_->change()));
}

Result<void> RocksdbIndex::write(const Changes& changes) {
  POLYLOG_TRY(check_usable());
  if (changes.empty()) return {};
  return guarded(directory_, [&]() -> Result<void> {
    rocksdb::WriteBatch batch;
    for (const auto& [from, to] : changes.removed_ranges) {
      if (from < to) batch.DeleteRange(slice_of(from), slice_of(to));
    }
    for (const auto& [key, value] : changes.puts) batch.Put(slice_of(key), slice_of(value));
    rocksdb::WriteOptions options;
    options.disableWAL = true;
    return changed(db_->Write(options, &batch));
  });
}

Result<std::optional<OrderedIndex::Entry>> RocksdbIndex::floor(const std::string& key,
                                                               const std::string& lowest) const {
  using Found = Result<std::optional<Entry>>;
  POLYLOG_TRY(check_usable());
  return guarded(directory_, [&]() -> Found {
    const rocksdb::Slice low = slice_of(lowest);
    rocksdb::ReadOptions options;
    options.iterate_lower_bound = &low;
    const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(options));
    at->SeekForPrev(slice_of(key));
    if (at->Valid()) return Entry(text_of(at->key()), text_of(at->value()));
    if (!at->status().ok()) return fail(error_of(at->status(), std::nullopt));
    return std::nullopt;
  });
}

Result<void> RocksdbIndex::scan(
    const std::string& from, const std::string& to,
    const std::function<bool(ByteView key, ByteView value)>& visit) const {
  POLYLOG_TRY(check_usable());
  if (from >= to) return {};
  return guarded(directory_, [&]() -> Result<void> {
    const rocksdb::Slice end = slice_of(to);
    rocksdb::ReadOptions options;
    options.iterate_upper_bound = &end;
    options.fill_cache = false;
    const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(options));
    for (at->Seek(slice_of(from)); at->Valid(); at->Next()) {
      if (!visit(view_of(at->key()), view_of(at->value()))) return {};
    }
    if (!at->status().ok()) return fail(error_of(at->status(), std::nullopt));
    return {};
  });
}

Result<void> RocksdbIndex::sync() {
  const std::scoped_lock guard(sync_mutex_);
  POLYLOG_TRY(check_usable());
  return guarded(directory_, [&]() -> Result<void> {
    POLYLOG_TRY(changed(db_->Flush(rocksdb::FlushOptions())));
    static_cast<void>(ballast_.lay_if_roomy());
    return {};
  });
}

}  // namespace

Result<std::unique_ptr<OrderedIndex>> open_rocksdb_index(fs::FileSystem& fs,
                                                         const std::string& directory,
                                                         const RocksdbIndexOptions& options) {
  return guarded(directory, [&]() -> Result<std::unique_ptr<OrderedIndex>> {
    POLYLOG_TRY(fs::create_directories(fs, directory));
    // Also where the directory was there before: who made it may not have lived to sync its name.
    POLYLOG_TRY(fs.sync_directory(fs::parent_of(directory)));
    auto index = std::make_unique<RocksdbIndex>(fs, directory, options);
    POLYLOG_TRY(index->open(options));
    return index;
  });
}

}  // namespace polylog::storage

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
// Debian's RocksDB is not instrumented: the thread sanitizer sees what it does through memcpy and
// new, but not the atomics that order it.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:librocksdb\nmutex:librocksdb\ndeadlock:librocksdb\n";
}
#endif
#endif
