#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "journal/journal.h"
#include "journal/tracked_files.h"

// The inside of a Journal. Included by this folder only.
namespace polylog::journal {

// Memory that may be written past the page cache.
class AlignedBuffer {
 public:
  explicit AlignedBuffer(std::size_t capacity);
  std::size_t capacity() const { return capacity_; }
  std::uint8_t* data() { return bytes_.get(); }

 private:
  struct Free {
    void operator()(std::uint8_t* bytes) const;
  };
  std::size_t capacity_;
  std::unique_ptr<std::uint8_t, Free> bytes_;
};

// The journal file: where entries go, and the heads of its areas. Not thread-safe.
class JournalFile {
 public:
  // The file must exist and read. `heads` as it was read.
  static Result<std::unique_ptr<JournalFile>> open(fs::FileSystem& fs, const std::string& path,
                                                   const Heads& heads);
  // Makes it, full of zeros; on the disk when this returns.
  static Result<void> create(fs::FileSystem& fs, const std::string& path, std::uint64_t bytes);

  struct Area {
    std::uint64_t epoch = 0;
    std::uint64_t at = 0;  // where the next write goes
    std::uint64_t end = 0;
    std::uint64_t sequence = 0;  // of the next entry
    std::uint32_t generations = 0;
    bool begun = false;  // has entries
  };
  const Area& area(std::size_t index) const { return areas_[index]; }
  std::uint64_t capacity() const { return heads_.area_bytes - block_bytes; }
  std::uint64_t bytes_written() const { return bytes_written_; }

  // Entries collect in memory until flush(). All sizes count heads.
  bool has_room(std::size_t index, std::size_t bytes) const;  // in the area
  bool fits_buffer(std::size_t bytes) const;
  // Where the payload of the next entry goes. REQUIRES: has_room() and fits_buffer().
  MutableBytes payload(std::size_t payload_bytes);
  void add(std::size_t index, EntryKind kind, std::uint32_t generation, std::uint64_t position,
           std::size_t payload_bytes);
  std::uint32_t next_generation(std::size_t index) { return ++areas_[index].generations; }
  // On the disk when it returns. REQUIRES: everything collected is of this area.
  Result<void> flush(std::size_t index);

  // Nothing that lies in the area counts any more.
  Result<void> empty(std::size_t index);

 private:
  JournalFile(fs::FilePtr file, bool direct, const Heads& heads);
  Result<void> write(std::uint64_t position, ByteView bytes);

  const fs::FilePtr file_;
  const bool direct_;
  const Heads heads_;
  std::array<Area, area_count> areas_;
  std::uint64_t last_epoch_;
  std::unique_ptr<AlignedBuffer> buffer_;  // made when first needed
  AlignedBuffer head_{block_bytes};
  std::size_t filled_ = 0;
  std::uint64_t bytes_written_ = 0;
};

class NotingFileSystem;

class Journal::Core {
 public:
  Core(fs::FileSystem& fs, const Options& options, std::unique_ptr<JournalFile> file,
       std::unique_ptr<fs::Volume> volume, Replayed replayed);
  ~Core();

  fs::FileSystem& outer();
  Result<void> cover(std::span<const fs::FilePtr> files);
  Result<void> checkpoint();
  Counters counters() const;
  const Replayed& replayed() const { return replayed_; }

  // --- what the file system that notes calls ---

  fs::FileSystem& disk() { return disk_; }
  TrackedFiles& files() { return files_; }
  Result<void> sync(const TrackedFilePtr& state, fs::File& file);
  Result<void> truncate(const TrackedFilePtr& state, fs::File& file, std::uint64_t size);
  Result<void> rename(const std::string& from, const std::string& to);
  Result<void> remove(const std::string& path);

 private:
  using Lock = std::unique_lock<std::mutex>;
  // A file of a round, and what of it goes into the journal.
  struct Covered {
    TrackedFilePtr state;
    fs::FilePtr file;
    bool synced = false;       // it is synced, not journalled
    std::uint64_t number = 0;  // of the journalling under way; 0: none
  };
  struct Plan {
    std::vector<Covered> files;
    std::size_t syncs = 0;
    std::uint64_t bytes = 0;  // to be journalled
  };

  Plan plan(std::span<const fs::FilePtr> files) const;
  Result<void> cover_all(Lock& lock, Plan& plan);
  Result<void> sync_file(Lock& lock, const TrackedFilePtr& state, fs::File& file);
  Result<void> journal_file(Lock& lock, Covered& covered);
  Result<bool> add_writes(Covered& covered, std::size_t bytes);
  static Result<std::size_t> read_written(const Covered& covered, std::uint64_t at,
                                          MutableBytes into);

  bool is_live(const TrackedFile& state) const;
  bool is_live(const TrackedFile& state, std::size_t area) const;
  std::uint64_t live_end(const TrackedFile& state) const;
  bool any_live_below(const std::string& directory);
  bool holds_entries() const;

  // Makes sure that so many bytes of entries fit the active area, going on in the other one.
  Result<void> make_room(Lock& lock, std::size_t bytes);
  void go_on_in_other_area();
  void begin_area();
  // REQUIRES of these: make_room() for what they add.
  void add(EntryKind kind, std::uint32_t generation, std::uint64_t position, ByteView payload);
  void name(TrackedFile& state);  // the file's lock is held
  void settle(const TrackedFilePtr& state);
  static std::size_t settled_bytes(TrackedFile& state);
  Result<void> flush();

  // Runs `task` under the lock once the journal holds nothing of what `involved` finds.
  Result<void> when_settled(const std::function<bool()>& involved,
                            const std::function<Result<void>(Lock&)>& task);
  struct VolumeSync {
    struct UnderWay {
      TrackedFilePtr state;
      std::uint64_t number;
      bool unnamed;
    };
    std::vector<UnderWay> files;
    Result<void> outcome;
  };
  VolumeSync sync_volume();  // the lock may be held or not
  Result<void> volume_synced(VolumeSync sync);
  Result<void> empty_full(std::uint64_t epoch);
  Result<void> check() const;
  Result<void> final_failure(Result<void> outcome);  // the lock is held
  Witness witness_of(const std::string& name, const Result<fs::FileInfo>& info) const;
  std::optional<std::string> below_root(const std::string& path) const;
  std::optional<std::string> as_witness(const std::string& path) const;
  void loop();

  fs::FileSystem& disk_;
  const Options options_;
  const std::string root_;         // without "//" and "/./"
  const std::size_t front_bytes_;  // of the entries that begin an area
  const Replayed replayed_;
  const std::unique_ptr<fs::Volume> volume_;
  std::unique_ptr<NotingFileSystem> outer_;
  TrackedFiles files_;

  std::mutex checkpoint_mutex_;  // taken first: one checkpoint at a time
  mutable std::mutex mutex_;     // guards everything below; before the locks of files
  std::condition_variable changed_;
  std::unique_ptr<JournalFile> file_;
  std::vector<TrackedFilePtr> settling_;  // by entries that are not on the disk yet
  std::size_t active_ = 0;
  bool full_ = false;  // the area that is not active waits to be emptied
  std::optional<Error> failure_;
  Counters counters_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace polylog::journal
