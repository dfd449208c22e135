#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "storage/rolled/log.h"

// What a start has to read after a kill is the sum of what lies beyond the recovery points of all
// logs. Each log sees to its own point once 16 MiB lie beyond it, but a thousand logs may have
// 10 MiB each: these rules bound the sum.
namespace polylog::storage {

// Whether it is time for a look: so much was written since the last one.
bool points_due(const RolledContext& context);

// Moves the points of those logs that have the most beyond theirs, until what is left is well
// within the bound. Returns the logs that have writes no sync has covered: their points come with
// their next round. Waits for disk.
std::vector<std::shared_ptr<Log>> advance_points(
    RolledContext& context, const std::vector<std::shared_ptr<RolledLog>>& logs);

}  // namespace polylog::storage
