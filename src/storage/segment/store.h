#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "storage/segment/log.h"
#include "storage/store.h"

namespace polylog::storage::segment {

inline constexpr std::string_view removed_suffix = ".removed";
inline constexpr std::string_view clean_stop_file = "segment.clean";

// A directory of shards, `<topic>-<partition>/<number>.msg`, as RobustMQ has it. Nothing of ours is
// put into it: the position index, the lock and what the files don't say of a partition (topic id,
// log start, leader epochs) lie in the sidecar directory.
class SegmentStore final : public Store {
 public:
  static Result<Opened> open(fs::FileSystem& fs, const Clock& clock, const StoreConfig& config,
                             const OpenOrderedIndex& open_index);
  ~SegmentStore() override;

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
  Result<void> tend(Timestamp now) override;
  Result<void> close() override;

 private:
  friend class StoreOpening;

  SegmentStore(fs::FileSystem& fs, const Clock& clock, const StoreConfig& config);

  std::string directory_of(const TopicPartition& id) const;
  std::shared_ptr<SegmentLog> log_of(const TopicPartition& id) const;
  std::vector<std::shared_ptr<SegmentLog>> logs() const;
  // Renames a shard out of the way; from then on it is gone. Returns its new path.
  Result<std::string> condemn(const std::string& directory);
  Result<void> root_synced(Result<void> outcome);
  void report(const std::vector<std::string>& notes) const;
  Result<void> note_start(const TopicPartition& id, std::int64_t start);
  SidecarState sidecar_state() const;
  Result<void> roll_by_age(Timestamp now);
  Result<void> rewrite_sidecar(bool clean);
  Result<void> write_sidecar(bool clean);  // the progress lock is held

  SegmentStoreContext context_;
  const StoreConfig config_;
  std::unique_ptr<fs::Lock> lock_;
  mutable std::mutex mutex_;  // guards the next three
  std::unordered_map<TopicPartition, std::shared_ptr<SegmentLog>> logs_;
  std::map<TopicPartition, QueueNote> facts_;
  std::set<TopicPartition> outdated_;  // removed, and the sidecar may not say so
  Timestamp ages_seen_{0};     // tend()'s: when it last looked at the files' ages
  std::mutex progress_mutex_;  // one writer of the sidecar as a whole; taken before any other lock
};

// "orders-3" for partition 3 of topic "orders".
std::string shard_name(const TopicPartition& id);
std::optional<TopicPartition> parse_shard_name(std::string_view name);

}  // namespace polylog::storage::segment
