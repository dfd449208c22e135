#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "format/kafka/index.h"
#include "format/kafka/names.h"
#include "format/kafka/record_batch.h"
#include "record/producers.h"
#include "storage/rolled/segment.h"

// One segment of a partition in Kafka's layout: NAME.log, NAME.index, NAME.timeindex and, when a
// transaction was aborted in it, NAME.txnindex, where NAME is the 20-digit base offset: the offset
// of the first record that was or will be written into it (a lower bound after compaction).
namespace polylog::storage::kafka {

// Kafka's record batches, as a rolled log sees them.
class BatchFrames final : public FrameFormat {
 public:
  BatchFormat batch_format() const override { return BatchFormat::kafka; }
  std::size_t head_bytes() const override { return format::kafka::header_bytes; }
  Head head(ByteView head, std::uint64_t remaining) const override;
  Result<BatchInfo> describe(ByteView frame) const override;
  bool carries_epochs() const override { return true; }
  bool crc_matches(ByteView frame) const override;
  bool crc_covers_place() const override { return false; }  // nor length, magic and epoch
  Result<void> for_each_time(ByteView frame, const VisitTime& visit) const override;
};
extern const BatchFrames batch_frames;

class Segment final : public DataSegment {
 public:
  Segment(SegmentContext context, std::string directory, std::int64_t base_offset);

  // Path of one of its files.
  std::string path(format::kafka::SegmentFile file) const;

  // Time maximum, sparse index entries.
  void note_frame(const BatchInfo& batch, std::uint64_t position, std::uint64_t bytes,
                  const LogConfig& config) override;
  bool index_full(const LogConfig& config) const override;
  // Adds the closing time index entry, so that the last entry is the segment's true maximum.
  void close_index() override;
  bool has_unsaved_entries() const override {
    return !index_pending_.empty() || !time_pending_.empty() || !aborted_pending_.empty();
  }

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

  Result<std::uint64_t> locate(std::int64_t offset, std::uint64_t size, bool wait) const override;
  Result<std::int64_t> time_floor(Timestamp at) const override;
  Result<Timestamp> largest_timestamp() const override;
  // Largest timestamp and the last offset of the batch that has it; (-1, base) when none has one.
  Result<format::kafka::TimeIndexEntry> confirmed_time(
      const format::kafka::TimeIndexEntry& last) const;
  Result<format::kafka::TimeIndexEntry> largest_time() const;
  Result<std::vector<AbortedTransaction>> aborted() const;

  // --- recovery ---

  Result<void> count_entries();          // of the index files as they are
  Result<void> trim_indexes() override;  // to the counted entries
  void forget_indexes() override;
  void forget_beyond(std::int64_t end) override;
  Lasting lasting() const override;
  // How many of the transaction index's entries ended below `offset`.
  Result<std::uint32_t> aborted_below(std::int64_t offset) const;
  bool wants_indexes() const;                  // has data but an index file is missing or empty
  Result<std::uint64_t> last_indexed() const;  // batch position of the last index entry, or 0
  // Where notes must be taken again when the index files, which are not synced on their own, lack
  // some of what they had: so many entries, all of batches below `end` of the data file. What is
  // left beyond that batch is forgotten, its time maximum too. Nothing: they have all.
  struct Resume {
    std::uint64_t position = 0;
    std::int64_t offset = 0;  // first of that batch
  };
  Result<std::optional<Resume>> cut_to_whole_entries(std::uint32_t index, std::uint32_t time,
                                                     std::uint64_t end);
  // Takes the last time index entry as it stands if it agrees with the running maximum, which a
  // recovery point told, of what lies below offset `end`: no batch has to be read to confirm it.
  Result<void> load_last_time(std::int64_t end);
  // Running maximum and first batch's time, from the last time index entry and the first header.
  Result<void> load_times();

  Result<void> remove_files() override;
  void let_go() override;

  void note_aborted(const AbortedTransaction& transaction);

  std::uint32_t index_entries = 0, time_entries = 0, aborted_entries = 0;  // in the files
  mutable std::optional<format::kafka::TimeIndexEntry> last_time;          // nullopt: not loaded

 private:
  Result<std::optional<format::kafka::OffsetIndexEntry>> index_floor(std::int64_t relative) const;
  Result<std::optional<format::kafka::TimeIndexEntry>> time_entry_floor(Timestamp at) const;
  Result<std::uint32_t> entries_in(format::kafka::SegmentFile which, std::size_t entry_bytes) const;

  Result<std::uint32_t> filled_entries(format::kafka::SegmentFile which, std::size_t entry_bytes,
                                       std::uint32_t count) const;
  Result<std::optional<std::uint32_t>> last_at_or_below(format::kafka::SegmentFile which,
                                                        std::uint32_t count,
                                                        std::int64_t relative) const;
  Result<format::kafka::TimeIndexEntry> last_time_entry() const;  // REQUIRES: there is one
  void close_index_locked();

  const std::string directory_;
  // Guards the entries that wait, and how many are in the files: readers look at them without the
  // log's lock.
  mutable std::mutex entries_mutex_;
  std::vector<format::kafka::OffsetIndexEntry> index_pending_;
  std::vector<format::kafka::TimeIndexEntry> time_pending_;
  std::vector<AbortedTransaction> aborted_pending_;
  Offset aborted_through_{-1};  // markers up to there are in the file, and noted again
  std::uint64_t bytes_since_index_ = 0;
};

}  // namespace polylog::storage::kafka
