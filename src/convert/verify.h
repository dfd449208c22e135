#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "convert/layouts.h"
#include "storage/store.h"

namespace polylog::convert {

struct Compared {
  std::uint64_t records = 0;
  ProducerId largest_producer = no_producer;  // in the source
};

// Reads a partition from two stores to the end and compares: the offset range, and each record with
// its offset, timestamp, key, value and headers in their order. Where both are in one layout the
// stored frames themselves are compared.
// invalid: they differ, and where. io, corrupt, ...: one of them can't be read.
// `step` is called with the next offset now and then; what it returns ends the comparison.
// Partitions may be compared on several threads at once.
using Step = std::function<Result<void>(Offset next)>;
Result<Compared> compare(const storage::PartitionLog& source, BatchFormat source_format,
                         const storage::PartitionLog& target, BatchFormat target_format,
                         const Surroundings& surroundings, const Step& step);

}  // namespace polylog::convert
