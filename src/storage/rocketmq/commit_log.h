#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "fs/file_system.h"
#include "storage/filelog/block_check.h"
#include "storage/filelog/block_sums.h"
#include "storage/filelog/scan.h"
#include "storage/filelog/sidecar.h"

// The files of the commit log (RocketMQ store format, "Commit log", "Rules shared by all mapped
// file queues"): each has its full, configured length from the start and is named by the position
// of its first byte. A record never crosses a file's end; a blank record of 8 bytes marks where
// the log goes on in the next file.
namespace polylog::storage::rocketmq {

// Finds whole messages for the scan loop. A blank record and zeros end a file's data.
struct MessageDecoder {
  FrameSize frame_size(ByteView window) const;
};

// One file. Fields are guarded by the store's lock, except where a method says otherwise.
struct CommitFile {
  std::string path;
  std::int64_t base = 0;  // position of its first byte
  fs::FilePtr file;
  std::uint64_t inode = 0;
  std::uint64_t end = 0;  // bytes in use, blank record included
  bool full = false;      // a blank record was written: the log goes on in the next file
  bool dirty = false;     // written since the last sync round
  bool fresh = false;     // its name is not synced yet
  std::uint64_t durable_bytes = 0;
  BlockSums::Block durable_tail;
  std::uint32_t reported_blocks = 0;  // told to the sidecar
  std::uint64_t writeback_from = 0;
  BlockSums sums;                           // of [0, end), or of the trusted prefix after a start
  std::shared_ptr<BlockCheck> check;        // what the sidecar kept; null: nothing

  std::int64_t position() const { return base + static_cast<std::int64_t>(end); }
};
using CommitFilePtr = std::shared_ptr<CommitFile>;

// The sequence of files. Guarded by the store's lock; what waits for the disk says so.
class CommitLog {
 public:
  CommitLog(fs::FileSystem& fs, std::string directory, std::int64_t file_bytes)
      : fs_(fs), directory_(std::move(directory)), file_bytes_(file_bytes) {}

  const std::string& directory() const { return directory_; }
  std::int64_t file_bytes() const { return file_bytes_; }
  const std::vector<CommitFilePtr>& files() const { return files_; }
  bool empty() const { return files_.empty(); }
  std::int64_t start() const { return files_.empty() ? 0 : files_.front()->base; }
  std::int64_t end() const { return files_.empty() ? 0 : files_.back()->position(); }
  CommitFile& active() const { return *files_.back(); }
  // The file that holds `position`; null when none does.
  CommitFilePtr find(std::int64_t position) const;

  // Lists and opens what is there. invalid, changing nothing: a file whose length is not the
  // configured one, names that are no positions, gaps. Files at or beyond `durable` may be what a
  // crash left of new ones: without their length they are given it, behind a gap they go.
  // Waits for disk.
  Result<void> load(std::int64_t durable);

  // Makes the file at `base`, or takes the one made ready, and appends it to the sequence.
  Result<void> add_file(std::int64_t base);
  // Whether the file after the active one is ready.
  bool next_ready() const { return prepared_ != nullptr || files_.empty(); }
  // Makes a file for the place after the active one, under another name: the append path may come
  // to need the place meanwhile and make its own. Needs no lock; waits for disk.
  Result<CommitFilePtr> prepare(const std::string& temporary) const;
  // Puts it into its place, unless that is taken. False: it is not needed, and goes.
  Result<bool> adopt_next(CommitFilePtr next);
  // What was made ready and never used; a clean stop removes it.
  CommitFilePtr take_prepared() { return std::exchange(prepared_, nullptr); }

  // Drops the files that begin at or beyond `position` from the sequence and returns them.
  std::vector<CommitFilePtr> drop_from(std::int64_t position);
  // Drops the `count` oldest ones and returns them.
  std::vector<CommitFilePtr> drop_oldest(std::size_t count);

  std::string path_of(std::int64_t base) const;

 private:
  struct Found {
    std::int64_t base;
    fs::FileInfo info;
  };
  Result<std::vector<Found>> list() const;
  Result<CommitFilePtr> make(const std::string& path) const;

  fs::FileSystem& fs_;
  const std::string directory_;
  const std::int64_t file_bytes_;
  std::vector<CommitFilePtr> files_;  // by base, without gaps
  CommitFilePtr prepared_;
};

}  // namespace polylog::storage::rocketmq
