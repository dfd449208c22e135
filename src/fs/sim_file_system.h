#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "fs/file_system.h"

namespace polylog::fs {

namespace sim {
struct Disk;
}

enum class Fault {
  eio,          // the call fails with Errc::io, nothing of it is done
  no_space,     // the call fails with Errc::no_space, nothing of it is done
  short_write,  // the first half of a write is done, then Errc::no_space; else as no_space
  read_eio,     // reading fails with Errc::io (fail_path only); all else works
};

struct SimCounters {
  std::uint64_t bytes_written = 0;
  std::uint64_t bytes_synced = 0;  // of the bytes written, those a successful sync covered
  std::uint64_t syncs = 0;         // successful ones that were asked for on this file or volume
};

// One state the disk may be in after the power went, or the process did.
struct CrashChoice {
  enum class Mode {
    lose_all,     // only what was synced
    keep_all,     // everything had reached the disk by itself
    kill,         // no power cut, kill -9: all is kept, and what was unsynced still is
    prefix,       // the first `kept` operations, and `torn_bytes` bytes of the next if a write
    subset,       // any operations; of writes also some sectors or the first bytes, by `seed`
    zero_filled,  // the first `kept` operations; later writes only extend files, with zeros
    names_only,   // all creates, renames and removes, no data: renamed but empty
    data_only,    // all data, no creates, renames or removes
  };
  Mode mode = Mode::lose_all;
  std::uint64_t seed = 0;
  std::size_t kept = 0;
  std::uint64_t torn_bytes = 0;

  bool operator==(const CrashChoice&) const = default;
  std::string to_string() const;
};

// A disk in memory that remembers what was synced and what was not, so that a test can stop at
// any call, look at any state a real disk might be found in afterwards, and go on from there.
//
// The model:
// - File::sync makes content and size durable, never the name. sync_directory makes the names
//   in that directory durable, never the content. Volume::sync makes everything durable.
// - Unsynced operations survive a crash in any combination, writes also in part; names keep
//   their order where losing it would lose a file nobody removed (all journalling file systems
//   do at least that). A rename is one operation. What was synced is never lost.
// - A failed sync is final for what it covered: a later sync that succeeds does not make it
//   durable, though reads see it until the crash.
// - Every mutating call is a step, counted from 1: write, truncate, sync, set_modified, create
//   (opening or locking a missing file), mkdir, rename, remove, rmdir, sync_directory and
//   Volume::sync. Calls refused for their arguments are not counted, nor are empty writes.
// - A write through open_direct() is two steps, the write and its sync.
// - Equal calls give equal disks, inodes and times. Inodes are never used twice.
// - The directory "/" exists. Relative paths start there.
//
// Safe from any thread: one lock inside. Files, locks and volumes may outlive it.
class SimFileSystem final : public FileSystem {
 public:
  // Times come from `clock`, which must outlive this and all crash states made from it, or else
  // from a counter that moves on by 1 ms with every change.
  explicit SimFileSystem(const Clock* clock = nullptr);
  ~SimFileSystem() override;

  Result<FilePtr> open(const std::string& path, OpenMode mode) override;
  Result<FilePtr> open_direct(const std::string& path) override;
  Result<FileInfo> info(const std::string& path) const override;
  Result<std::vector<std::string>> list(const std::string& path) const override;
  Result<void> create_directory(const std::string& path) override;
  Result<void> rename(const std::string& from, const std::string& to) override;
  Result<void> remove(const std::string& path) override;
  Result<void> remove_directory(const std::string& path) override;
  Result<void> sync_directory(const std::string& path) override;
  Result<void> set_modified(const std::string& path, Timestamp time) override;
  Result<std::unique_ptr<Lock>> lock(const std::string& path) override;
  Result<std::unique_ptr<Volume>> open_volume(const std::string& path) override;
  Result<std::uint64_t> free_bytes(const std::string& path) const override;
  Result<std::uint64_t> total_bytes(const std::string& path) const override;

  // Failing. From step `step` on every call fails with Errc::io "power is off"; that step itself
  // fails too, but with `applied` it took effect. 0 means never.
  std::uint64_t steps() const;
  void crash_at(std::uint64_t step, bool applied);
  void power_off();
  bool powered_off() const;
  void fail_step(std::uint64_t step, Fault fault);  // that one call only
  // All steps on paths that contain `part`, for files the path that leads to them now or last
  // did; a volume sync fails while any such file is dirty.
  void fail_path(std::string part, Fault fault);
  void clear_faults();  // not the power
  // Counts file sizes, holes included; names are free. A write is done as far as it fits.
  void set_capacity(std::uint64_t bytes);
  // Reads with wait = false answer would_block on each present file until it was read waiting.
  void evict();
  void set_tracing(bool on);
  std::vector<std::string> trace() const;  // "step call path" since tracing was set

  // Crashing. Both work with the power on or off and leave this disk as it is.
  std::size_t unsynced() const;  // operations no successful sync has covered
  // A new disk in the chosen state, with power, without locks, faults and open files.
  std::unique_ptr<SimFileSystem> crash_state(const CrashChoice& choice) const;
  // At most `count` choices, spread over all modes: lose_all and keep_all first, random subsets
  // for the rest. Fewer when nothing is unsynced.
  std::vector<CrashChoice> crash_choices(std::uint64_t seed, std::size_t count) const;

  // Bit rot: changes a file in memory and on the disk, as no step. REQUIRES: the file exists;
  // corrupt and flip_bit: the bytes do too.
  void corrupt(const std::string& path, std::uint64_t position, ByteView bytes);
  void flip_bit(const std::string& path, std::uint64_t position, unsigned bit);
  void truncate_raw(const std::string& path, std::uint64_t size);
  void append_raw(const std::string& path, ByteView bytes);

  SimCounters counters(const std::string& path) const;  // by the path it had at the time
  SimCounters totals() const;
  std::string dump_tree() const;  // one line per name, with what is not durable

 private:
  explicit SimFileSystem(std::shared_ptr<sim::Disk> disk);

  std::shared_ptr<sim::Disk> disk_;
};

}  // namespace polylog::fs
