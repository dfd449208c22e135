#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "storage/kafka/log.h"
#include "storage/store.h"

namespace polylog::storage::kafka {

// A Kafka log directory: partition directories, the root checkpoints, meta.properties, .lock and
// the clean-shutdown marker, as Kafka 4.3 has them (Kafka log format, "Directory layout", "Files
// at the root of a log directory"). Nothing of ours is put into it.
class KafkaStore final : public Store, private TransactionIndex {
 public:
  static Result<Opened> open(fs::FileSystem& fs, const Clock& clock, const StoreConfig& config);
  ~KafkaStore() override;

  const Traits& traits() const override;
  std::string directory() const override { return config_.directory; }
  Result<std::shared_ptr<PartitionLog>> create(const TopicPartition& id, const Uuid& topic,
                                               const LogConfig& config) override;
  std::shared_ptr<PartitionLog> find(const TopicPartition& id) const override;
  std::vector<TopicPartition> partitions() const override;
  std::optional<Uuid> topic_id(const TopicPartition& id) const override;
  Result<void> remove(const TopicPartition& id) override;
  Result<Retained> retain(const TopicPartition& id, Offset visible, Timestamp now) override;
  Result<void> checkpoint() override;
  bool points_due() const override;
  std::vector<std::shared_ptr<Log>> advance_points() override;
  Result<void> close() override;
  const TransactionIndex* transactions() const override { return this; }

 private:
  friend class StoreOpening;
  using Offsets = std::map<TopicPartition, std::int64_t>;

  KafkaStore(fs::FileSystem& fs, const Clock& clock, const StoreConfig& config);
  Result<std::vector<AbortedTransaction>> aborted(const PartitionLog& partition,
                                                  OffsetRange range) const override;

  std::string path(std::string_view name) const;
  std::string directory_of(const TopicPartition& id) const;
  Result<std::string> condemn(const TopicPartition& id);  // its new path; empty when it is gone
  Result<void> clear_away(const TopicPartition& id, const Uuid& topic);
  std::vector<std::shared_ptr<KafkaLog>> logs() const;
  // Passes `outcome` on. A failed sync of the root directory is final for every name it covered.
  Result<void> root_synced(Result<void> outcome);
  Result<FileIdentity> write_temporary(std::string_view name, std::string_view text);
  Result<void> put_in_place(std::string_view name);
  Result<void> write_offsets(std::string_view name, const Offsets& offsets);
  // The progress file the sidecar is bound to: its identity is noted before it takes its place.
  Result<void> write_recovery_points(const Offsets& offsets);
  Result<void> save_log_start(const RolledLog& raised, std::int64_t start);
  Result<void> write_log_starts(const RolledLog& raised, std::int64_t start);
  Result<void> write_progress();
  // A new partition must not inherit the progress of a removed one of the same name.
  Result<void> forget_progress(const TopicPartition& id);
  Result<void> rewrite_sidecar(bool clean);
  Result<void> write_sidecar(bool clean);  // the progress lock is held

  RolledContext context_;
  const StoreConfig config_;
  std::unique_ptr<fs::Lock> lock_;
  mutable std::mutex mutex_;  // guards logs_
  std::unordered_map<TopicPartition, std::shared_ptr<KafkaLog>> logs_;
  std::mutex progress_mutex_;  // one writer of the root files; taken before any other lock
  std::map<std::string, Offsets, std::less<>> saved_;  // what the root checkpoints say, by name
  std::vector<FileIdentity> marks_;
};

}  // namespace polylog::storage::kafka
