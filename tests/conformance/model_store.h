#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "storage/store.h"

// The storage interface in memory, in both shapes: a log per partition, and one log shared by all
// partitions. What an engine must do, in as few lines as possible: everything is worked out
// anew from the list of frames. Not safe for threads.
namespace polylog::conformance {

enum class Shape { log_per_partition, shared_log };

// What survives a model store: the frames, and how many of them a sync has covered.
struct ModelMedium {
  struct Frame {
    TopicPartition partition;
    BatchInfo info;
    Slice bytes;
    LogPosition start, end;
  };
  struct LogContent {
    std::vector<Frame> frames;
    std::size_t durable = 0;
    std::vector<EpochList::Entry> epochs;
  };
  struct PartitionContent {
    Uuid topic;
    std::int64_t start = 0;
    std::string log;  // key of its log
  };
  std::map<std::string, std::shared_ptr<LogContent>> logs;
  std::map<TopicPartition, PartitionContent> partitions;
  bool clean = true;

  // The process dies and with it what no sync has covered.
  void lose_unsynced();
};

std::unique_ptr<storage::Store> open_model(Shape shape, std::shared_ptr<ModelMedium> medium);

}  // namespace polylog::conformance
