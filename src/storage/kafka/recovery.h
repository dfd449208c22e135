#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "storage/kafka/log.h"
#include "storage/rolled/recovery.h"

namespace polylog::storage::kafka {

// What recovery of a partition in Kafka's layout does beyond that of any rolled log: it finishes
// interrupted file operations, reads snapshots and the epoch file, and counts index entries.
//
// | without the sidecar's recovery point the scan begins at | when                        |
// |----------------------------------------------------------|-----------------------------|
// | last index entry of the last segment                     | the last stop was orderly   |
// | the segment of Kafka's recovery point                    | it was not                  |
class LogRecovery final : public RolledRecovery {
 public:
  LogRecovery(KafkaLog& log, const RolledLog::Evidence& evidence, Recovery& report)
      : RolledRecovery(log, evidence, report), log_(log) {}

 private:
  Result<void> finish_interrupted() override;
  Result<void> finish_swap(
      const std::vector<std::pair<std::string, format::kafka::SegmentFileName>>& swaps);
  Result<void> load_segments() override;
  Result<std::shared_ptr<Segment>> load_segment(std::int64_t base);
  Result<void> load_epochs() override;
  Result<bool> use_point(DataSegment& segment, const RecoveryPoint& point, Start& start) override;
  Result<Start> start_without_point() override;
  Result<std::optional<std::int64_t>> load_snapshot(std::int64_t limit);
  // Nothing: it did not read and is gone.
  Result<std::optional<ProducerState>> read_snapshot(std::int64_t offset);
  Result<void> prepare_scan(DataSegment& segment, std::uint64_t position) override;
  bool wants_indexes(const DataSegment& segment) const override;
  Result<void> drop_indexes(DataSegment& segment) override;
  void save_indexes(DataSegment& segment) override;
  bool possible(const DataSegment& segment, const BatchInfo& frame) const override;
  Result<void> finish_layout(std::int64_t end) override;
  Result<void> load_times(DataSegment& segment) override;
  static Result<void> trim_indexes(Segment& segment, std::uint32_t index, std::uint32_t time,
                                   std::uint32_t aborted);

  KafkaLog& log_;
  std::vector<std::int64_t> snapshots_;  // offsets in the names
};

}  // namespace polylog::storage::kafka
