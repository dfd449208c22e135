#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "storage/kafka/log.h"

namespace polylog::storage::kafka {

// Brings one partition directory back: finishes interrupted file operations, loads the segments,
// reads what lies beyond the last recovery point, and decides about what does not read.
//
// | scan begins at                          | when                                           |
// |-----------------------------------------|------------------------------------------------|
// | the sidecar's recovery point            | the sidecar may be believed and has one        |
// | last index entry of the last segment    | no such point, but the last stop was orderly   |
// | the segment of Kafka's recovery point   | neither                                        |
//
// What does not read above the durable end is a torn tail: it is cut off, and segments behind it
// go. Below the durable end it is damage: reported, stepped over, never cut. Without a sidecar
// nothing is known to be durable and Kafka's own rule applies.
class LogRecovery {
 public:
  LogRecovery(KafkaLog& log, const KafkaLog::Evidence& evidence, Recovery& report)
      : log_(log), evidence_(evidence), report_(report) {}

  Result<void> run();

 private:
  struct Start {
    std::size_t segment = 0;
    std::uint64_t position = 0;
    std::int64_t offset = 0;  // nothing below may come there
  };

  Result<void> finish_interrupted();
  Result<void> finish_swap(
      const std::vector<std::pair<std::string, format::kafka::SegmentFileName>>& swaps);
  Result<void> load_segments();
  Result<std::shared_ptr<Segment>> load_segment(std::int64_t base);
  bool use_recovery_point(Start& start);
  Result<Start> choose_start();
  Result<std::optional<std::int64_t>> load_snapshot(std::int64_t limit);
  Result<void> load_epochs();
  Result<void> scan_from(const Start& start);
  Result<void> scan_segment(std::size_t index, std::uint64_t position);
  ScanStep visit(Segment& segment, const ScanFrame& frame);
  bool never_reached(std::size_t index) const;
  Result<bool> handle_damage(std::size_t index, const ScanEnd& end, std::uint64_t& position);
  Result<void> cut(std::size_t index, std::uint64_t position);
  Result<void> trim_indexes(Segment& segment, std::uint32_t index, std::uint32_t time,
                            std::uint32_t aborted);
  Result<void> rebuild_indexes(Segment& segment);
  static void save_indexes(Segment& segment);
  Result<void> sum_up(Segment& segment);
  Result<void> rewrite(Segment& segment, std::uint64_t from);
  Result<void> finish();
  std::uint64_t durable_bytes(const Segment& segment) const;
  const FileNote* file_note(const Segment& segment) const;
  void note(const std::string& text);

  KafkaLog& log_;
  const KafkaLog::Evidence& evidence_;
  Recovery& report_;
  std::vector<std::int64_t> snapshots_;  // offsets in the names
  std::int64_t next_ = 0;                // offset the next batch has at least
  bool damaged_tail_ = false;            // the last segment's end does not read
  std::int64_t producers_from_ = 0;      // batches below are in the loaded snapshot
};

}  // namespace polylog::storage::kafka
