#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "storage/rolled/recovery.h"
#include "storage/segment/log.h"

namespace polylog::storage::segment {

// What recovery of a partition in RobustMQ's layout does beyond that of any rolled log: it finds
// out where each file begins, and how far the position index goes. Without a recovery point the
// scan begins at the first segment: nothing else tells of the producers.
class LogRecovery final : public RolledRecovery {
 public:
  LogRecovery(SegmentLog& log, const RolledLog::Evidence& evidence, Recovery& report)
      : RolledRecovery(log, evidence, report), log_(log) {}

 private:
  Result<void> load_segments() override;
  Result<std::shared_ptr<Segment>> load_segment(std::int64_t number);
  Result<std::int64_t> first_offset(const Segment& segment,
                                    const std::optional<PositionIndex::Covered>& covered);
  Result<void> load_epochs() override;
  Result<bool> use_point(DataSegment& segment, const RecoveryPoint& point, Start& start) override;
  Result<Start> start_without_point() override;
  Result<void> prepare_scan(DataSegment& segment, std::uint64_t position) override;
  bool wants_indexes(const DataSegment& segment) const override;
  Result<void> drop_indexes(DataSegment& segment) override;
  void save_indexes(DataSegment& segment) override;
  bool possible(const DataSegment&, const BatchInfo&) const override { return true; }
  Result<void> load_times(DataSegment& segment) override;

  SegmentLog& log_;
};

}  // namespace polylog::storage::segment
