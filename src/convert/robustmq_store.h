#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "fs/file_system.h"
#include "storage/store.h"

// RobustMQ's own segment files, to be read from (RobustMQ storage page, "on-disk layout of a
// record"; docs/formats/segment-file.md, "RobustMQ's filling").
namespace polylog::convert {

// Names for topics by the ids that their shards are named after.
using TopicNames = std::map<std::string, std::string>;

// A directory of `<shard>/<segment number>.msg`, by its names alone.
bool is_robustmq_directory(const fs::FileSystem& fs, const std::string& path);

// The partition of a shard: its name is the topic's id, a dash and the partition. Any other name
// is a topic with one partition.
TopicPartition parse_robustmq_shard(const std::string& shard);

// A stopped RobustMQ's shards, read and never written: its records come out as batches in polylog's
// filling of the frame, and what would change something answers `unsupported`. Opening reads all
// files once. Frames have no checksum as a whole, and RobustMQ mends nothing: what its last write
// left incomplete at the end of a shard's last file is passed over, with a note. Used by one
// thread.
class RobustmqStore final : public storage::Store {
 public:
  // `fs` outlives the store. corrupt: a file does not read before its end, and where; invalid:
  // names that don't fit the shards, or files of polylog's own.
  static Result<storage::Opened> open(fs::FileSystem& fs, const std::string& directory,
                                      const TopicNames& names);

  const storage::Traits& traits() const override;
  Result<std::shared_ptr<storage::PartitionLog>> create(const TopicPartition& id, const Uuid& topic,
                                                        const storage::LogConfig& config) override;
  std::shared_ptr<storage::PartitionLog> find(const TopicPartition& id) const override;
  std::vector<TopicPartition> partitions() const override;
  std::optional<Uuid> topic_id(const TopicPartition&) const override { return std::nullopt; }
  Result<void> remove(const TopicPartition& id) override;
  Result<storage::Retained> retain(const TopicPartition& id, Offset visible,
                                   Timestamp now) override;
  Result<void> checkpoint() override { return {}; }
  Result<void> close() override { return {}; }

 private:
  std::map<TopicPartition, std::shared_ptr<storage::PartitionLog>> shards_;
};

}  // namespace polylog::convert
