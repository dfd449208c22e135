#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "convert/layouts.h"
#include "fs/file_system.h"
#include "record/log_config.h"
#include "storage/store.h"

namespace polylog::convert {

// One partition of a new store, filled with records that keep their offsets. What each layout needs
// for that is in here, and nowhere else.
class PartitionWriter {
 public:
  explicit PartitionWriter(std::shared_ptr<storage::PartitionLog> log) : log_(std::move(log)) {}
  virtual ~PartitionWriter() = default;
  PartitionWriter(const PartitionWriter&) = delete;
  PartitionWriter& operator=(const PartitionWriter&) = delete;

  storage::PartitionLog& log() { return *log_; }
  // Where the next record may come, buffered ones counted.
  virtual Offset end() const { return log_->offsets().end; }

  // Native batches at or beyond end(), with their own offsets.
  virtual Result<void> write(const std::vector<Batch>& batches) = 0;
  // Nothing more comes: what is buffered is written, and the partition takes exactly `range`,
  // whatever offsets in it have no record. Waits for disk.
  virtual Result<void> finish(OffsetRange range) = 0;

 protected:
  const std::shared_ptr<storage::PartitionLog> log_;
};

struct NewPartition {
  fs::FileSystem& fs;
  const Clock& clock;
  storage::Store& store;
  std::string store_directory;
  storage::SharedLogConfig shared;  // as the store was opened with
  TopicPartition id;
  Uuid topic;
  storage::LogConfig config;
  OffsetRange range;            // what it will have
  Offset first;                 // of its first batch, which may begin below the range
  bool log_append_time = false;  // of the topic
};

// Goes on with the partition where the store has it as a beginning of `range`, makes it otherwise.
Result<std::unique_ptr<PartitionWriter>> open_writer(storage::Layout layout,
                                                     const NewPartition& partition);

}  // namespace polylog::convert
