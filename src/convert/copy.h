#pragma once

#include <functional>

#include "convert/convert.h"
#include "convert/data_directory.h"
#include "convert/plan.h"
#include "convert/target.h"

namespace polylog::convert {

// Copies one partition from where the target has it. `step` is told the next offset and the bytes
// written since the last call; what it returns ends the work.
using CopyStep = std::function<Result<void>(Offset next, std::uint64_t bytes)>;
Result<void> copy_partition(const DataDirectory& source, Target& target, const PlannedTopic& topic,
                            std::int32_t partition, const broker::Settings& settings,
                            const CopyStep& step);

// Brings the committed offsets that the source has outside __consumer_offsets into the target's.
Result<void> write_group_offsets(const std::vector<GroupOffset>& offsets, Target& target,
                                 const Uuid& topic, const storage::LogConfig& config,
                                 Timestamp now);
// Those in an opened directory's __consumer_offsets, the latest for each group and partition.
Result<std::vector<GroupOffset>> read_group_offsets(const DataDirectory& directory);

}  // namespace polylog::convert
