#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "storage/rolled/log.h"
#include "storage/segment/position_index.h"
#include "storage/segment/segment.h"

namespace polylog::storage::segment {

// What all logs of one store share beyond that of any rolled log. Outlives them.
struct SegmentStoreContext : RolledContext {
  using RolledContext::RolledContext;
  std::unique_ptr<PositionIndex> index;
  SegmentGrants* grants = nullptr;
  std::string sidecar_directory;
  // Makes a sidecar that fell silent speak again; facts noted before are in it, and synced.
  std::function<Result<void>()> heal_sidecar;
};

// One partition in RobustMQ's layout, a shard there, and its log. Frames don't carry leader epochs:
// they are facts of the sidecar, synced with the first records written under them.
class SegmentLog final : public RolledLog {
 public:
  SegmentLog(SegmentStoreContext& context, TopicPartition id, const Uuid& topic,
             std::string directory, std::string shard, const LogConfig& config);

  Result<void> recover(const Evidence& evidence, Recovery& report) override;

  // A fact about this partition was noted: it must be on the disk with the next round.
  void fact_noted();
  const std::string& shard() const { return shard_; }

 private:
  friend class LogRecovery;

  // The file is looked at when a batch reaches or passes an offset that is a multiple of this,
  // and is full above nine tenths of its limit (RobustMQ storage page, "scroll").
  static constexpr std::int64_t scroll_step = 10'000;
  static constexpr int grant_tries = 3;

  PlacedBytes place(const Batch& batch, const BatchInfo& info) override;
  bool must_roll_for(const BatchInfo& batch, std::uint64_t size,
                     std::uint64_t bytes) const override;
  Result<std::shared_ptr<DataSegment>> make_segment(std::int64_t base) override;
  Result<void> note_state(const BatchInfo& batch, ByteView frame, DataSegment* segment) override;
  Result<void> epoch_starts(const EpochList::Entry& entry) override;
  Result<void> save_indexes(const std::shared_ptr<DataSegment>& segment,
                            std::vector<fs::FilePtr>& files) override;
  Result<void> prepare_round(DirtyLog& out) override;
  bool wants_preparation() const override { return facts_dirty_; }
  void round_dropped() override { facts_dirty_ = true; }
  bool names_tell_bases() const override { return false; }
  // The sidecar's pages may be among those that are lost: what others noted in it, too.
  void round_failed() override { context_.sidecar->silence(); }
  bool nearly_full(std::uint64_t size) const;
  Result<void> ask_for(std::int64_t number, std::int64_t start);

  SegmentStoreContext& store_;
  const std::string shard_;
  // The shard in the position index: with its topic's id, so that entries of a removed topic of
  // that name are never taken for this one's.
  const std::string index_name_;
  std::int64_t next_number_ = 0;  // of the next segment; guarded by the log's lock
  bool facts_dirty_ = false;      // guarded by the log's lock
};

}  // namespace polylog::storage::segment
