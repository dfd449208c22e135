#pragma once

#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "fs/file_system.h"

namespace polylog::cli {

enum class DumpKind {
  // Kafka's log directory
  log,
  offset_index,
  time_index,
  transaction_index,
  snapshot,
  epoch_checkpoint,
  offset_checkpoint,
  partition_metadata,
  meta_properties,
  clean_shutdown,
  // RocketMQ's store
  commit_log,
  consume_queue,
  consume_queue_ext,
  key_index,
  store_checkpoint,
  abort_mark,
  topics,
  subscription_groups,
  consumer_offsets,
  delay_offsets,
  // RobustMQ's shards
  segment,
  // polylog's own
  sidecar,
  journal,
};

// A file to be shown, as far as its name and place tell, or, for a name that both a commit log and
// a queue can have, its first bytes.
struct DumpTarget {
  std::string path;
  DumpKind kind = DumpKind::log;
  // What the file's name says; in a RocketMQ store a position, of a .msg file its number.
  Offset base_offset{0};
};

// The files of each path, those of a directory in the order of their names. invalid: no known name,
// or a directory without any.
Result<std::vector<DumpTarget>> find_targets(fs::FileSystem& fs,
                                             const std::vector<std::string>& paths);

}  // namespace polylog::cli
