#pragma once

#include <array>
#include <cstdint>

#include "base/result.h"
#include "bytes/slice.h"
#include "format/rocketmq/fields.h"

// The store's `checkpoint` file (RocketMQ store format, "checkpoint, abort, lock"). Byte table:
// docs/formats/rocketmq-checkpoint.md.
namespace polylog::format::rocketmq {

inline constexpr std::size_t checkpoint_bytes = 4096;
inline constexpr std::size_t checkpoint_used_bytes = 40;

inline constexpr std::array<Field, 5> checkpoint_fields{{
    {"physicMsgTimestamp", 0, 8},
    {"logicsMsgTimestamp", 8, 8},
    {"indexMsgTimestamp", 16, 8},
    {"masterFlushedOffset", 24, 8},
    {"confirmPhyOffset", 32, 8},
}};
static_assert(contiguous(checkpoint_fields, checkpoint_used_bytes));

struct Checkpoint {
  std::int64_t physical_timestamp = 0;  // ms: records stored before it are synced in the log
  std::int64_t queue_timestamp = 0;     // ms: so are the queue entries of such records
  std::int64_t index_timestamp = 0;     // ms: end of the last full index file
  std::int64_t master_flushed_offset = 0;
  std::int64_t confirm_physical_offset = 0;
  bool operator==(const Checkpoint&) const = default;
};

std::array<std::uint8_t, checkpoint_bytes> encode_checkpoint(const Checkpoint& checkpoint);
// No bytes at all read as zeros, as RocketMQ reads a file it has just made. corrupt: fewer than
// 40 bytes otherwise. What stands in them is not judged.
Result<Checkpoint> decode_checkpoint(ByteView bytes);

// Where recovery after a crash begins: the last commit log file whose first record is not younger.
// Three seconds below the timestamps, never below 0; with the index only when index files are to
// be complete again.
std::int64_t recovery_timestamp(const Checkpoint& checkpoint, bool with_index);

}  // namespace polylog::format::rocketmq
