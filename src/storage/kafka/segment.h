#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "format/kafka/index.h"
#include "format/kafka/names.h"
#include "format/kafka/record_batch.h"
#include "record/producers.h"
#include "storage/filelog/block_check.h"
#include "storage/filelog/block_sums.h"
#include "storage/filelog/file_cache.h"
#include "storage/filelog/scan.h"
#include "storage/filelog/sidecar.h"
#include "storage/store.h"

// One segment of a partition in Kafka's layout: NAME.log, NAME.index, NAME.timeindex and, when a
// transaction was aborted in it, NAME.txnindex, where NAME is the 20-digit base offset: the offset
// of the first record that was or will be written into it (a lower bound after compaction).
namespace polylog::storage::kafka {

// What every segment of a store shares.
struct SegmentContext {
  fs::FileSystem& fs;
  const Clock& clock;
  FileCache& files;
};

// Finds whole batches for the scan loop. A stored batch may exceed today's limits, so only the
// file's size bounds it.
struct BatchDecoder {
  FrameSize frame_size(ByteView window) const;
};

// Fields are guarded by the lock of the log that owns the segment; a sealed segment changes no
// more, except through the methods that say so.
class Segment {
 public:
  Segment(SegmentContext context, std::string directory, std::int64_t base_offset);

  const std::int64_t base;  // base offset

  // Path of one of its files.
  std::string path(format::kafka::SegmentFile file) const;
  Result<fs::FilePtr> data() const;  // the .log, through the file cache

  // --- appending (active segment, under the log's lock) ---

  // Notes a batch that lies at `position` of the data file: time maximum, sparse index entries.
  // The same function serves append and recovery.
  void note_batch(const BatchInfo& batch, std::uint64_t position, std::uint64_t bytes,
                  const LogConfig& config);
  bool index_full(const LogConfig& config) const;
  // Adds the closing time index entry, so that the last entry is the segment's true maximum.
  void close_time_index();

  // --- index files (the log's sync lock held, not its own) ---

  // Entries that are not in the index files yet, taken and written in two steps so that the log's
  // lock is not held while writing.
  struct Unsaved {
    std::uint32_t index_from = 0, time_from = 0, aborted_from = 0;
    std::vector<format::kafka::OffsetIndexEntry> index;
    std::vector<format::kafka::TimeIndexEntry> time;
    std::vector<AbortedTransaction> aborted;
  };
  Unsaved unsaved() const;                                        // under the log's lock
  Result<std::vector<fs::FilePtr>> save(const Unsaved& unsaved);  // waits for disk
  void saved(const Unsaved& unsaved);                             // under the log's lock

  // --- reading (no lock needed beyond a consistent `size`) ---

  // Where to begin a scan for `offset`: start of a batch at or before it, as the index says and
  // the batch found there confirms; 0 when the index is of no use.
  Result<std::uint64_t> locate(std::int64_t offset, std::uint64_t size, bool wait) const;
  // Offset to begin scanning at for a record with timestamp >= `at`.
  Result<std::int64_t> time_floor(Timestamp at) const;
  // Largest timestamp and the last offset of the batch that has it; (-1, base) when none has one.
  Result<format::kafka::TimeIndexEntry> largest_time() const;
  Result<std::vector<AbortedTransaction>> aborted() const;

  // Checks the 64 KiB blocks that cover [from, to) against the sums the sidecar kept, each once.
  // False: some block does not match; the frames in it must prove themselves.
  Result<bool> blocks_match(std::uint64_t from, std::uint64_t to, bool wait) const;
  // First position beyond `position` where a batch starts, as the sums remember.
  std::optional<std::uint64_t> next_frame_after(std::uint64_t position) const;

  // --- recovery ---

  Result<void> count_entries();     // of the index files as they are
  Result<void> trim_index_files();  // to the counted entries
  void forget_indexes();            // all entries, and what is known of its times
  // How many of the transaction index's entries ended below `offset`.
  Result<std::uint32_t> aborted_below(std::int64_t offset) const;
  bool wants_indexes() const;                  // has data but an index file is missing or empty
  Result<std::uint64_t> last_indexed() const;  // batch position of the last index entry, or 0
  // Running maximum and first batch's time, from the last time index entry and the first header.
  Result<void> load_times();

  Result<void> remove_files();
  void let_go();  // closes what only the cache and this object keep open

  std::uint64_t size = 0;  // of the data file as written
  bool sealed = false;
  bool dirty = false;  // written since the last sync round
  bool fresh = false;  // its names are not synced yet
  fs::FilePtr held;    // keeps a dirty file open until its sync
  std::uint64_t inode = 0;
  std::uint32_t index_entries = 0, time_entries = 0, aborted_entries = 0;  // in the files
  std::vector<format::kafka::OffsetIndexEntry> index_pending;
  std::vector<format::kafka::TimeIndexEntry> time_pending;
  std::vector<AbortedTransaction> aborted_pending;
  mutable std::optional<format::kafka::TimeIndexEntry> last_time;  // nullopt: not loaded
  Timestamp max_timestamp = no_timestamp;                          // running; active segment only
  std::int64_t max_timestamp_offset = -1;    // last offset of the batch that has it
  Timestamp first_timestamp = no_timestamp;  // largest of the first batch: rolls by time
  std::uint64_t bytes_since_index = 0;
  Timestamp created = no_timestamp;  // when this object was made; rolls by time without stamps
  std::int64_t jitter_ms = 0;
  std::uint64_t writeback_from = 0;
  std::uint64_t durable_bytes = 0;    // covered by a sync
  BlockSums::Block durable_tail;      // sum of the partial block at that point
  std::uint32_t reported_blocks = 0;  // told to the sidecar
  BlockSums sums;                     // of [0, size), or of the trusted prefix after a start

  // Sums to check on first read from disk, loaded from the sidecar. Before the log is served.
  void expect(const BlockSums& sums_in);

 private:
  Result<std::optional<format::kafka::OffsetIndexEntry>> index_floor(std::int64_t relative) const;
  Result<std::optional<format::kafka::TimeIndexEntry>> time_entry_floor(Timestamp at) const;
  Result<std::uint32_t> entries_in(format::kafka::SegmentFile which, std::size_t entry_bytes) const;

  SegmentContext context_;
  const std::string directory_;
  std::shared_ptr<const BlockCheck> check_;  // null: nothing is known of what was on disk
};

}  // namespace polylog::storage::kafka
