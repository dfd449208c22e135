#pragma once

#include <memory>

#include "base/result.h"
#include "storage/store.h"

namespace polylog::broker {

// Stands for a partition that the catalogue has and the disk could not be given at start, most
// likely because it is full: empty, readable, and every write answers `why`. The broker goes on
// trying to make the real one. Immutable, so any thread.
std::shared_ptr<storage::PartitionLog> make_missing_partition(Error why);

}  // namespace polylog::broker
