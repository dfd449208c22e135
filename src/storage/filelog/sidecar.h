#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "fs/file_system.h"
#include "record/epochs.h"
#include "record/log_config.h"
#include "storage/filelog/block_sums.h"
#include "storage/filelog/sidecar_records.h"

// What tells a torn tail from bit rot without changing a byte of a foreign layout: one
// append-only, self-checksummed file per store. Format: docs/formats/sidecar.md.
//
// What it says of durable bytes is a lower bound: a record is written after the sync it describes
// returned and is never itself synced on the acknowledgement path. A lost tail of the file costs a
// longer scan at the next start, never a wrong conclusion. Facts are written twice and numbered:
// one that is lost all the same is missed, and what it may have said counts as unknown.
namespace polylog::storage {

// What binds a note to a file. Equal identity: nobody has written to it since.
struct FileIdentity {
  std::uint64_t size = 0;
  std::uint64_t inode = 0;
  std::int64_t modified_ns = 0;
  bool operator==(const FileIdentity&) const = default;
  static FileIdentity of(const fs::FileInfo& info) {
    return {info.size, info.inode, info.modified_ns};
  }
};

// One data file of a log; the key is its base (kafka: base offset).
struct FileNote {
  std::uint64_t inode = 0;
  BlockSums sums;                      // of the durable prefix; sums.size() bytes
  std::optional<FileIdentity> sealed;  // when it was sealed, or at a clean stop
};

// Where a recovery scan may begin, with the state the log had there.
struct RecoveryPoint {
  std::int64_t base = 0;       // of the data file
  std::uint64_t position = 0;  // in it
  std::int64_t offset = 0;     // of the first record at or beyond that position
  std::uint32_t index_entries = 0;
  std::uint32_t time_entries = 0;
  Timestamp max_timestamp = no_timestamp;
  std::int64_t max_timestamp_offset = -1;
  Timestamp first_timestamp = no_timestamp;  // largest of the file's first batch
  std::vector<EpochList::Entry> epochs;
  std::vector<std::uint8_t> producers;  // in the layout's own encoding
};

struct LogNote {
  std::uint32_t id = 0;  // of this log in the sidecar file
  Uuid topic;
  LogPosition durable{0};
  LeaderEpoch announced = no_epoch;  // the latest epoch a broker may have shown to clients
  std::map<std::int64_t, FileNote> files;
  std::optional<RecoveryPoint> recovery;
  std::optional<LogConfig> config;
  std::vector<EpochList::Entry> epochs;  // of a layout whose bytes don't carry them
  bool epochs_lost = false;              // of earlier epochs than these nothing is known
};

// What a shared log's own files don't tell of one of its partitions. Unlike the rest here it is
// a fact, not a lower bound: it is durable before, or in the same round as, what relies on it.
struct QueueNote {
  Uuid topic;
  std::int64_t birth = 0;  // frames of that name below this position belong to an earlier topic
  std::int64_t start = 0;  // log start offset, where DeleteRecords or retention raised it
  bool removed = false;    // frames below `birth` exist still, the partition does not
  LogConfig config;
  bool operator==(const QueueNote&) const = default;
};

// Everything a sidecar file says, by log name (kafka: the partition directory's name).
struct SidecarState {
  std::map<std::string, LogNote> logs;
  std::map<TopicPartition, QueueNote> queues;
  // Identities of the layout's own progress file that we may have left behind: the last two
  // written. Any other one there means that another program has run on the directory since.
  std::vector<FileIdentity> marks;
  bool clean = false;  // the last record says a clean stop
  bool found = false;
  std::vector<std::string> damage;  // what of the file does not read, a line each
};

// Of one file in one sync round: what became durable.
struct RoundFile {
  std::int64_t base = 0;
  std::uint64_t inode = 0;
  std::uint64_t durable_bytes = 0;
  std::uint32_t first_block = 0;  // number of blocks[0]
  std::vector<BlockSums::Block> blocks;
  BlockSums::Block tail;
};

// The file, open for appending. Thread-safe; nobody who notes something waits for a sync that
// another waits for. A lower bound that finds no room is left out, and until the next rewrite() all
// recovery points are, which may rest on it. After a failed sync, a write that failed half-way, or
// a fact without a Result that found no room, nothing more is said until rewrite() succeeds. What a
// sync round tells waits in memory for write_noted(), or for the next note of another kind,
// whichever comes first: a round over a thousand logs is one write.
class Sidecar {
 public:
  // Reads what is there (a missing or torn file is not an error) and opens it for appending. On a
  // full disk, and of a file that is damaged or of an older version, it opens silent.
  static Result<std::unique_ptr<Sidecar>> open(fs::FileSystem& fs, const std::string& path,
                                               SidecarState& state);

  std::uint32_t begin_log(const std::string& name, const Uuid& topic);
  void end_log(std::uint32_t id);
  void round(std::uint32_t id, LogPosition durable, const std::vector<RoundFile>& files);
  void write_noted();
  void sealed(std::uint32_t id, std::int64_t base, const FileIdentity& identity);
  void files_dropped(std::uint32_t id, std::int64_t below_base);
  bool recovery_point(std::uint32_t id, const RecoveryPoint& point);  // false: left out
  void config(std::uint32_t id, const LogConfig& config);
  void clean_stop();

  // Facts: the caller syncs file() with the round that relies on them. no_space: not noted.
  Result<void> epoch_start(std::uint32_t id, const EpochList::Entry& entry);
  Result<void> queue(const TopicPartition& id, const QueueNote& note);
  fs::FilePtr file() const;
  // The file, and how far a sync that begins now will reach; covered() when it has succeeded.
  struct Extent {
    fs::FilePtr file;
    std::uint64_t end = 0;
  };
  Extent extent() const;
  void covered(const Extent& extent);

  // Synced before they return: what follows them must not become durable first.
  Result<void> mark(const FileIdentity& progress_file);
  Result<void> recovery_point_synced(std::uint32_t id, const RecoveryPoint& point);
  Result<void> cut(std::uint32_t id, std::int64_t base, std::uint64_t bytes, LogPosition end);
  Result<void> queue_synced(const TopicPartition& id, const QueueNote& note);

  // Replaces the file by one that says `state`, and what was noted since begin_rewrite(), which
  // comes before `state` is put together (without it: since this call). A log whose id is 0 gets
  // one, which is written back; no other log ever had it. A log that has no recovery point in
  // `state`, being written to, keeps the one that the file has.
  void begin_rewrite();
  Result<void> rewrite(SidecarState& state);
  // Says nothing more until the next rewrite.
  void silence();
  // Something could not be written or synced: facts noted since then don't count until a rewrite.
  bool silent() const;
  // True when the file has grown enough, or lacks something, for a rewrite to pay.
  bool wants_rewrite() const;

 private:
  struct Note {
    std::uint8_t type;
    std::vector<std::uint8_t> payload;
  };

  Sidecar(fs::FileSystem& fs, std::string path) : fs_(fs), path_(std::move(path)) {}
  bool append(std::uint8_t type, ByteView payload);
  bool write_frames(const SidecarFrames& frames, bool silenced_by_failure);
  void write_pending();
  Result<void> append_synced(std::uint8_t type, ByteView payload);
  bool begin_file();
  void keep_points(SidecarState& state) const;
  Result<void> write_anew(const SidecarState& state);
  // A file written anew: what it says, and where it ends.
  struct Draft {
    fs::FilePtr file;
    std::uint64_t rewritten = 0;
    std::uint64_t end = 0;
    std::uint32_t facts = 0;
  };
  Result<bool> take_place(Draft& draft);

  fs::FileSystem& fs_;
  const std::string path_;
  std::mutex rewrite_mutex_;  // one rewrite at a time; taken before mutex_
  mutable std::mutex mutex_;  // guards the rest; never held over a sync
  fs::FilePtr file_;
  std::uint64_t size_ = 0;
  std::uint64_t durable_ = 0;  // of it, as far as is known
  std::uint32_t facts_ = 0;    // number of the last one
  std::uint64_t rewritten_size_ = 0;
  std::uint32_t next_id_ = 1;
  bool silent_ = false;
  bool missed_ = false;                     // a lower bound was left out
  std::optional<SidecarFrames> pending_;    // not in the file yet, to be written at size_
  std::optional<std::vector<Note>> noted_;  // since a rewrite was begun
};

// The decoder, for dump, verify and the fuzz target: applies every whole record of `bytes` to
// `state` and returns where the last one ends; 0: not a sidecar.
std::size_t decode_sidecar(ByteView bytes, SidecarState& state);

}  // namespace polylog::storage
