#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/kafka/cluster_metadata.h"
#include "fs/file_system.h"

namespace polylog::convert {

// What the metadata log in a Kafka log directory, or in its metadata.log.dir, comes to: the latest
// snapshot, and the log behind it. Nothing: there is no such log. corrupt: it does not read, and
// where; unsupported: a record of a version that is not known here. What a crash left at its end is
// left out, and noted.
Result<std::optional<format::kafka::ClusterMetadata>> read_kraft_metadata(
    fs::FileSystem& fs, const std::string& directory, std::vector<std::string>& notes);

}  // namespace polylog::convert
