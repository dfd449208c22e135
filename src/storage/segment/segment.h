#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "storage/rolled/segment.h"
#include "storage/segment/position_index.h"

namespace polylog::storage::segment {

// RobustMQ's record frames, as a rolled log sees them.
class RecordFrames final : public FrameFormat {
 public:
  BatchFormat batch_format() const override { return BatchFormat::segment; }
  std::size_t head_bytes() const override;
  Head head(ByteView head, std::uint64_t remaining) const override;
  Result<BatchInfo> describe(ByteView frame) const override;
  bool carries_epochs() const override { return false; }
  bool crc_matches(ByteView frame) const override;
  bool crc_covers_place() const override { return true; }
  Result<void> for_each_time(ByteView frame, const VisitTime& visit) const override;
  Part part_of(ByteView frame) const override;
};
extern const RecordFrames record_frames;

// One segment file, `{shard}/{number}.msg`, and its entries in the store's position index. A
// sealed one is never written again.
class Segment final : public DataSegment {
 public:
  // An entry for the first frame beyond so many bytes: a seek steps over no more than that. The
  // original has one for every 10,000th offset only; those are kept too.
  static constexpr std::uint64_t index_step_bytes = 64 * 1024;
  static constexpr std::int64_t index_step_offsets = 10'000;

  Segment(SegmentContext context, PositionIndex& index, const std::string& directory,
          std::string shard, std::int64_t number, std::int64_t base_offset);

  void note_frame(const BatchInfo& frame, std::uint64_t position, std::uint64_t bytes,
                  const LogConfig& config) override;
  bool index_full(const LogConfig&) const override { return false; }
  void close_index() override {}
  bool has_unsaved_entries() const override { return covered_bytes_ < size || !pending_.empty(); }
  void forget_indexes() override;
  Result<void> trim_indexes() override;
  Result<std::uint64_t> locate(std::int64_t offset, std::uint64_t size, bool wait) const override;
  Result<std::int64_t> time_floor(Timestamp at) const override;
  Result<Timestamp> largest_timestamp() const override { return max_timestamp; }
  Result<void> remove_files() override;

  // Entries that are not in the index yet, taken and written in two steps so that the log's lock
  // is not held while writing.
  struct Unsaved {
    std::vector<PositionIndex::Entry> entries;
    PositionIndex::Covered covered;
  };
  Unsaved unsaved(std::int64_t next) const;   // under the log's lock; `next` offset behind it
  Result<void> save(const Unsaved& unsaved);  // waits for disk
  void saved(const Unsaved& unsaved);         // under the log's lock

  // --- recovery ---

  // What the index says of this very file, if it can be right.
  std::optional<PositionIndex::Covered> covered() const;
  // Takes over what the index knows of the file up to `covered.position`.
  void adopt(const PositionIndex::Covered& covered);
  // Entries for what the scan will note again from `offset` on are not believed.
  void cut_entries(std::int64_t offset);
  // Times of an appendable segment whose first frame was not scanned.
  Result<void> load_first_time();

 private:
  Result<bool> begins_frame(std::uint64_t position, std::int64_t offset, bool wait) const;

  PositionIndex& index_;
  const std::string shard_;
  mutable std::mutex entries_mutex_;  // guards pending_ and last_: readers look at them
  std::vector<PositionIndex::Entry> pending_;
  std::optional<PositionIndex::Entry> last_;  // newest entry that is in the index
  std::uint64_t bytes_since_entry_ = 0;
  std::uint64_t covered_bytes_ = 0;  // of the file: the index has all entries up to there
};

}  // namespace polylog::storage::segment
