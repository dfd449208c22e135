#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "dialects.h"

namespace load {

// Reads every partition of a Kafka topic from offset 0 to its high watermark, the partitions spread
// over the connections, one request of each under way, 1 MiB of a partition at most. Looks at no
// more than the headers of the batches, and prints what came.
void fetch_all(const std::string& host, std::uint16_t port, const Shape& shape,
               std::size_t connections);

}  // namespace load
