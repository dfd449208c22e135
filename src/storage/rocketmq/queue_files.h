#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/rocketmq/consume_queue.h"
#include "fs/file_system.h"
#include "storage/filelog/file_cache.h"

// The files of one consume queue (RocketMQ store format, "Simple queue"): a stream of 20-byte
// entries, entry i at byte 20 i, cut into files of equal length, each sparse and named by its first
// byte. They are derived from the commit log: nothing in them is ever the only copy of anything.
namespace polylog::storage::rocketmq {

// What all queues of a store share.
struct QueueFilesContext {
  fs::FileSystem& fs;
  FileCache& files;
  std::int64_t file_bytes;
};

// The caller says which entries exist. All methods wait for disk; reads may run beside each other
// and beside append() of later entries, changes one at a time.
class QueueFiles {
 public:
  QueueFiles(const QueueFilesContext& context, std::string directory)
      : context_(context), directory_(std::move(directory)) {}

  const std::string& directory() const { return directory_; }

  // [first, end) as the file names and lengths allow: where the first file begins, where the last
  // one could end. Both 0 without files. invalid: a file of another length or a name that is no
  // position. A file without its length, that a crash made, ends the stream; with `ours` any that
  // is too short is taken for one.
  struct Extent {
    std::int64_t first = 0;
    std::int64_t capacity = 0;
  };
  Result<Extent> extent(bool ours) const;

  // Entries [from, from + count), fewer where the files end. With `wait` false: would_block.
  Result<std::vector<format::rocketmq::QueueEntry>> read(std::int64_t from, std::size_t count,
                                                         bool wait) const;

  // Writes entries from index `from` on, making directory and files as needed. A first file that
  // does not begin at `from` gets filler before it.
  Result<void> append(std::int64_t from, const std::vector<format::rocketmq::QueueEntry>& entries);

  // Makes the file that holds the entry before `end`, filler up to there. REQUIRES: no files, and
  // end > 0.
  Result<void> begin_at(std::int64_t end);

  // Leaves nothing but zeros at and behind `end`.
  Result<void> cut(std::int64_t end);
  // Deletes whole files that hold entries below `start` only; never the last one.
  Result<void> remove_below(std::int64_t start);
  Result<void> remove_all();

 private:
  std::string path_of(std::int64_t file_base) const;
  std::int64_t entries_per_file() const;
  Result<std::vector<std::int64_t>> list() const;  // bases, in bytes
  Result<fs::FilePtr> file_for(std::int64_t file_base, std::int64_t filler_before);
  Result<void> make_directory() const;

  const QueueFilesContext& context_;
  const std::string directory_;
  bool made_ = false;        // the directory and a file in it are known to exist
  std::int64_t sized_ = -1;  // base of the file last written, which has its length
};

}  // namespace polylog::storage::rocketmq
