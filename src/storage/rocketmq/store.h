#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "storage/rocketmq/log.h"
#include "storage/store.h"

namespace polylog::storage::rocketmq {

// A RocketMQ store directory: commitlog/, consumequeue/, index/, config/, checkpoint, abort, lock,
// as RocketMQ 5.x has them (RocketMQ store format, "Directory tree"). Nothing of ours is put into
// it.
class RocketmqStore final : public Store, private KeyIndex {
 public:
  static Result<Opened> open(fs::FileSystem& fs, const Clock& clock, const StoreConfig& config);
  ~RocketmqStore() override;

  const Traits& traits() const override;
  std::string directory() const override { return config_.directory; }
  Result<std::shared_ptr<PartitionLog>> create(const TopicPartition& id, const Uuid& topic,
                                               const LogConfig& config) override;
  std::shared_ptr<PartitionLog> find(const TopicPartition& id) const override;
  std::vector<TopicPartition> partitions() const override;
  std::optional<Uuid> topic_id(const TopicPartition& id) const override;
  Result<void> remove(const TopicPartition& id) override;
  Result<Retained> retain(const TopicPartition& id, Offset visible, Timestamp now) override;
  Result<void> tend(Timestamp now) override;
  Result<void> checkpoint() override;
  Result<void> close() override;
  const KeyIndex* key_index() const override;

  // Queues of RocketMQ's own topics too, which partitions() does not offer to other protocols.
  std::shared_ptr<Queue> find_queue(std::string_view stored_topic, std::int32_t queue_id) const;
  const std::shared_ptr<SharedLog>& shared_log() const { return log_; }
  // A file under config/, or its backup when it is no use; empty when there is neither.
  Result<std::string> read_config(std::string_view name) const;
  // Replaces it as a whole; what was there becomes the backup.
  Result<void> write_config(std::string_view name, std::string_view text);

 private:
  friend class StoreOpening;

  RocketmqStore(fs::FileSystem& fs, const Clock& clock, const StoreConfig& config);
  Result<std::vector<Found>> find_by_key(const KeyQuery& query) const override;
  Result<bool> expiry_due(Timestamp now, bool& forced);

  fs::FileSystem& fs_;
  const StoreConfig config_;
  std::shared_ptr<SharedLog> log_;
  std::unique_ptr<fs::Lock> lock_;
};

}  // namespace polylog::storage::rocketmq
