#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "broker/groups/offsets_topic.h"
#include "bytes/slice.h"
#include "record/record.h"

// Committed offsets as the broker keeps them, whoever committed: records of __consumer_offsets
// (format/kafka/group_records.h).
namespace polylog::convert {

using broker::groups::offsets_topic;
using broker::groups::partition_of_group;
inline constexpr std::int32_t offsets_partitions = 50;

struct GroupOffset {
  std::string group;
  TopicPartition partition;
  std::int64_t offset = 0;  // the next one to read
  auto operator<=>(const GroupOffset&) const = default;
};

// One Kafka batch with all of them, at offset 0 on. REQUIRES: not empty. too_large: a name over
// 32,767 bytes.
Result<std::vector<std::uint8_t>> offsets_batch(const std::vector<GroupOffset>& offsets,
                                                Timestamp committed);

// What a record says; nothing when it is no committed offset. corrupt: it does not read.
Result<std::optional<GroupOffset>> decode_offset(const Record& record);

// RocketMQ's config/consumerOffset.json: topics under their names outside that layout, sorted.
Result<std::vector<GroupOffset>> parse_rocketmq_offsets(std::string_view text);

}  // namespace polylog::convert
