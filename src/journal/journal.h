#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "fs/file_system.h"
#include "journal/replay.h"

// One sequential file that makes many small writes to many files durable with one write to the
// device (docs/decisions/journal-recovery-contract.md; its bytes: docs/formats/journal.md).
//
// The files themselves are written as ever, through file_system(), which notes where. cover()
// copies what is noted of some files into the journal; the files are synced later, many at once, by
// a checkpoint, and then their entries count no more. A start after a power cut puts the entries
// back into the files before anybody reads them.
namespace polylog::journal {

struct Options {
  std::string root;       // the data directory: what lies elsewhere is synced, never journalled
  std::string directory;  // the journal's own, below it or not
  std::uint64_t bytes = std::uint64_t{128} << 20;  // of the journal file, at least bytes_min
  // Files below root, relative to it, that another program running on the directory would change.
  std::vector<std::string> witnesses;
  // Checkpoints run on a thread of the journal's own; otherwise whoever finds the journal full
  // waits for one.
  bool own_thread = true;
};
inline constexpr std::uint64_t bytes_min = block_bytes * (1 + 3 * area_count);

std::string journal_path(const std::string& directory);
// Whether a journal lies there that holds something to replay. corrupt: one that does not read.
Result<bool> holds_writes(fs::FileSystem& fs, const std::string& directory);

// All methods may be called from any thread. What file_system() gave must be gone before this is.
class Journal {
 public:
  // Replays what the last run left (see replay()), empties the journal, and makes the file where
  // there is none of the size asked for. no_space: there is no room for it.
  static Result<std::unique_ptr<Journal>> open(fs::FileSystem& fs, const Options& options);
  // For a run without one: replays what an earlier run left, and removes the file. Nothing to do
  // where there is none.
  static Result<Replayed> recover_and_remove(fs::FileSystem& fs, const Options& options);

  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // For the stores. A sync through it, or through a volume it opens, is what it says, and settles
  // what the journal holds of the files; so does a rename, a removal or a cut of a file that the
  // journal holds something of, which waits for a checkpoint first.
  fs::FileSystem& file_system();

  // Makes durable all that was written to the files (opened through file_system()) before the
  // call; their names must be. Small writes go into the journal, in one write for all; files with
  // a lot to cover, or cut since, are synced. A failure is final: the journal refuses all further
  // work until it is opened again.
  Result<void> cover(std::span<const fs::FilePtr> files);
  // Syncs everything and empties the journal of what it held when called.
  Result<void> checkpoint();
  // A clean stop: the journal is left empty. Nothing may be written afterwards.
  Result<void> close();

  const Replayed& replayed() const;

  struct Counters {
    std::uint64_t rounds = 0;       // cover() calls that wrote entries
    std::uint64_t bytes = 0;        // written into the journal, whole blocks
    std::uint64_t checkpoints = 0;  // that emptied an area
  };
  Counters counters() const;

  class Core;

 private:
  explicit Journal(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace polylog::journal
