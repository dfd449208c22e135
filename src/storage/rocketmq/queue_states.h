#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "bytes/slice.h"
#include "bytes/writer.h"
#include "record/producers.h"

// What a recovery point of the commit log says of each queue, in place of its producers
// (docs/formats/sidecar.md).
namespace polylog::storage::rocketmq {

struct QueueState {
  TopicPartition id;
  std::int64_t end = 0;
  ProducerState producers;
};

void encode_queue_state(ByteWriter& writer, const TopicPartition& id, std::int64_t end,
                        const ProducerState& producers);
Result<std::vector<QueueState>> decode_queue_states(ByteView bytes);  // corrupt

}  // namespace polylog::storage::rocketmq
