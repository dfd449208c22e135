#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "record/batch.h"
#include "record/log_config.h"
#include "storage/filelog/block_check.h"
#include "storage/filelog/block_sums.h"
#include "storage/filelog/file_cache.h"
#include "storage/filelog/scan.h"
#include "storage/filelog/sidecar.h"

namespace polylog::storage {

// What a rolled log must know of the frames in its files: Kafka's record batches, or RobustMQ's
// record frames. Stateless; any thread.
class FrameFormat {
 public:
  struct Head {
    enum class State { complete, zeros, corrupt } state = State::corrupt;
    std::uint64_t size = 0;  // of the whole frame
    std::int64_t first = 0;  // offset of its first record
    std::int64_t last = 0;   // and of its last one, inclusive
  };

  virtual ~FrameFormat() = default;
  virtual BatchFormat batch_format() const = 0;
  // So many bytes at a frame's front tell its size and offsets.
  virtual std::size_t head_bytes() const = 0;
  // `remaining` is what the file holds from here on: a frame that runs past it is corrupt.
  // REQUIRES: head.size() >= min(remaining, head_bytes()).
  virtual Head head(ByteView head, std::uint64_t remaining) const = 0;
  // Of a whole frame. `epoch` stays unknown where frames don't carry it.
  virtual Result<BatchInfo> describe(ByteView frame) const = 0;
  // A frame may be one part of a batch that counts as a whole or not at all.
  struct Part {
    std::int32_t index = 0;
    std::int32_t count = 1;
  };
  virtual Part part_of([[maybe_unused]] ByteView frame) const { return {}; }
  // Whether describe() tells the leader epoch a frame was written under.
  virtual bool carries_epochs() const = 0;
  virtual bool crc_matches(ByteView frame) const = 0;
  // Whether that checksum covers the frame's offsets, and its epoch where it has one. Where not,
  // they must agree with what stands around the frame when its block is damaged.
  virtual bool crc_covers_place() const = 0;
  // Offset and time of each record, until `visit` says false. corrupt: does not decode.
  using VisitTime = std::function<bool(Offset offset, Timestamp time)>;
  virtual Result<void> for_each_time(ByteView frame, const VisitTime& visit) const = 0;
};

// Puts the parts of a batch together again.
class PartFolder {
 public:
  // The whole batch once its last part has come; nothing while parts are missing.
  std::optional<BatchInfo> add(const BatchInfo& frame, FrameFormat::Part part);
  bool open() const { return next_ > 0; }
  // Whether a frame would go on with the open batch.
  bool continues(const BatchInfo& frame, FrameFormat::Part part) const;
  void drop() { next_ = 0; }

 private:
  BatchInfo batch_;
  std::int32_t next_ = 0;  // index of the part to come; 0: none is open
  std::int32_t count_ = 0;
};

// Finds whole frames for the scan loop. A stored frame may exceed today's limits, so only the
// file's size bounds it.
class FormatDecoder {
 public:
  explicit FormatDecoder(const FrameFormat& format) : format_(format) {}
  FrameSize frame_size(ByteView window) const;

 private:
  const FrameFormat& format_;
};

// The proof a frame in a damaged block owes: its checksum, and, for what that leaves out, a place
// exactly behind the frame before it and the epoch that the log had there.
class FrameProof {
 public:
  // `next`: offset of the frame to come; nothing: not known.
  FrameProof(const FrameFormat& format, std::optional<std::int64_t> next)
      : format_(&format), next_(next) {}

  // `epoch_there`: what the log's list of epochs says of the frame's first offset.
  bool holds(const BatchInfo& frame, ByteView whole, LeaderEpoch epoch_there) const;
  // A good frame that ends before `next` was passed.
  void passed(std::int64_t next) { next_ = next; }
  void lost() { next_.reset(); }
  std::optional<std::int64_t> next() const { return next_; }

 private:
  const FrameFormat* format_;
  std::optional<std::int64_t> next_;
};

// What every segment of a store shares.
struct SegmentContext {
  fs::FileSystem& fs;
  const Clock& clock;
  FileCache& files;
};

// Of an empty file whose name does not tell where it begins: recovery finds out.
inline constexpr std::int64_t unknown_base = -1;

// One data file of a log that is a sequence of such files, and what is known of its content.
// Fields are guarded by the lock of the log that owns the segment; a sealed segment changes no
// more, except through the methods that say so. How the layout indexes it is the subclass's.
class DataSegment {
 public:
  // `number` tells the segment apart in the sidecar; it rises with the base offset.
  DataSegment(SegmentContext context, std::string path, std::int64_t number,
              std::int64_t base_offset);
  virtual ~DataSegment() = default;

  const std::string& data_path() const { return path_; }
  Result<fs::FilePtr> data() const;      // the data file, through the file cache; for readers
  Result<fs::FilePtr> writable() const;  // the same, held open if it is; under the log's lock

  // --- what the layout keeps beside the data ---

  // Notes a frame that lies at `position` of the data file. The same function serves append and
  // recovery.
  virtual void note_frame(const BatchInfo& frame, std::uint64_t position, std::uint64_t bytes,
                          const LogConfig& config) = 0;
  virtual bool index_full(const LogConfig& config) const = 0;
  virtual void close_index() = 0;  // before it is sealed: whatever an index ends with
  virtual bool has_unsaved_entries() const = 0;
  virtual void forget_indexes() = 0;        // all entries, and what is known of its times
  virtual Result<void> trim_indexes() = 0;  // the files, to what forget_indexes() left
  // The same before what lies below `end` is noted again: entries that a recovery point relies on
  // stay in the files.
  virtual void forget_beyond([[maybe_unused]] std::int64_t end) { forget_indexes(); }
  // Entries that a scan from a recovery point does not make again.
  struct Lasting {
    std::uint32_t in_files = 0;
    bool pending = false;  // there are more in memory
  };
  virtual Lasting lasting() const { return {}; }
  bool lasting_synced() const {
    const Lasting entries = lasting();
    return !entries.pending && entries.in_files <= synced_entries;
  }
  // Where to begin a scan for `offset`: start of a frame at or before it, as the index says and
  // the frame found there confirms; 0 when the index is of no use.
  virtual Result<std::uint64_t> locate(std::int64_t offset, std::uint64_t size,
                                       bool wait) const = 0;
  // Offset to begin scanning at for a record with timestamp >= `at`.
  virtual Result<std::int64_t> time_floor(Timestamp at) const = 0;
  virtual Result<Timestamp> largest_timestamp() const = 0;  // no_timestamp when none has one
  virtual Result<void> remove_files() = 0;
  virtual void let_go();  // closes what only the cache and this object keep open

  // --- checks against the sidecar ---

  // Checks the 64 KiB blocks that cover [from, to) against the sums the sidecar kept, each once.
  // False: some block does not match; the frames in it must prove themselves (see FrameProof).
  Result<bool> blocks_match(std::uint64_t from, std::uint64_t to, bool wait) const;
  // First position beyond `position` where a frame starts, as the sums remember.
  std::optional<std::uint64_t> next_frame_after(std::uint64_t position) const;
  // Sums to check on first read from disk, loaded from the sidecar. Before the log is served.
  void expect(const BlockSums& sums_in);
  // The data file is about to be cut to `bytes`; what comes to stand behind is not on trial.
  Result<void> expect_cut(const fs::File& file, std::uint64_t bytes);

  // --- sync rounds ---

  RoundFile capture_round() const;  // what a round that covers the file now would tell
  void round_done(const RoundFile& file);
  // What a rewritten sidecar says, `stopped`: after a clean stop. Nothing when another program
  // wrote the file's beginning.
  std::optional<FileNote> note(bool stopped) const;
  void all_synced();

  const std::int64_t number;
  std::int64_t base;       // offset of the first record that was or will be written into it
  std::uint64_t size = 0;  // of the data file as written
  bool sealed = false;
  bool index_synced = true;  // of a sealed one: a power cut leaves its index files
  bool dirty = false;        // written since the last sync round
  bool fresh = false;        // its names are not synced yet
  fs::FilePtr held;          // keeps a dirty file open until its sync
  // The file held last. Which file the cache closes first is decided without these uses: one that
  // is written all the time is opened again once in a while.
  std::weak_ptr<fs::File> held_before;
  std::uint64_t inode = 0;
  Timestamp max_timestamp = no_timestamp;    // running; active segment only
  std::int64_t max_timestamp_offset = -1;    // last offset of the frame that has it
  Timestamp first_timestamp = no_timestamp;  // largest of the first frame: rolls by time
  Timestamp created = no_timestamp;  // when this object was made; rolls by time without stamps
  std::int64_t jitter_ms = 0;
  std::uint64_t writeback_from = 0;
  std::uint64_t durable_bytes = 0;    // covered by a sync
  BlockSums::Block durable_tail;      // sum of the partial block at that point
  std::uint32_t reported_blocks = 0;  // told to the sidecar
  std::uint32_t synced_entries = 0;   // of the lasting ones
  BlockSums sums;                     // of [0, size), or of the trusted prefix after a start

 protected:
  SegmentContext context_;

 private:
  const std::string path_;
  std::shared_ptr<BlockCheck> check_;  // null: nothing is known of what was on disk
};

}  // namespace polylog::storage
