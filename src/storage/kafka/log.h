#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/kafka/segment.h"
#include "storage/rolled/log.h"

namespace polylog::storage::kafka {

// One partition in Kafka's layout, and its log: what Kafka keeps beside the batches is its index
// files, a snapshot of the producers for each segment, and leader-epoch-checkpoint.
class KafkaLog final : public RolledLog {
 public:
  KafkaLog(RolledContext& context, TopicPartition id, const Uuid& topic, std::string directory,
           const LogConfig& config);

  Result<void> recover(const Evidence& evidence, Recovery& report) override;

  // For the store.
  Result<std::vector<AbortedTransaction>> aborted(OffsetRange range) const;
  // Start offset for log-start-offset-checkpoint, or nullopt when the first file name tells it.
  std::optional<std::int64_t> start_checkpoint() const;
  std::int64_t recovery_checkpoint() const;  // never beyond a segment whose indexes are unsaved

 private:
  friend class LogRecovery;

  PlacedBytes place(const Batch& batch, const BatchInfo& info) override;
  bool must_roll_for(const BatchInfo& batch, std::uint64_t size,
                     std::uint64_t bytes) const override;
  Result<std::shared_ptr<DataSegment>> make_segment(std::int64_t base) override;
  Result<void> note_state(const BatchInfo& batch, ByteView frame, DataSegment* segment) override;
  void epochs_changed() override { epochs_dirty_ = true; }
  std::vector<std::uint8_t> sealed_state() const override;
  Result<void> save_indexes(const std::shared_ptr<DataSegment>& segment,
                            std::vector<fs::FilePtr>& files) override;
  Result<void> save_sealed_state(const Sealing& sealing, std::vector<fs::FilePtr>& files) override;
  Result<void> prepare_round(DirtyLog& out) override;
  void round_dropped() override { epochs_dirty_ = true; }
  bool names_tell_bases() const override { return true; }
  Result<void> save_progress() override;
  Result<void> write_closing_state() override;
  void fill_point(RecoveryPoint& point) const override;

  std::string snapshot_path(std::int64_t offset) const;
  Result<void> write_epochs_file(const std::string& text);

  bool epochs_dirty_ = false;  // leader-epoch-checkpoint is behind; guarded by the log's lock
};

}  // namespace polylog::storage::kafka
