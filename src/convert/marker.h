#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "fs/file_system.h"
#include "storage/store.h"

// The file that says that a data directory is the unfinished result of a conversion: made first,
// removed when everything in the directory was compared with its source.
namespace polylog::convert {

inline constexpr const char* marker_file = "conversion.unfinished";

struct Marker {
  std::string source;  // absolute path
  std::string layout;
  bool operator==(const Marker&) const = default;
};

// Nothing: there is none. corrupt: it does not read.
Result<std::optional<Marker>> read_marker(fs::FileSystem& fs, const std::string& directory);
// Durable when they return.
Result<void> write_marker(fs::FileSystem& fs, const std::string& directory, const Marker& marker);
Result<void> remove_marker(fs::FileSystem& fs, const std::string& directory);

// For whoever wants to use the directory: invalid, with what to do, when it is unfinished.
Result<void> check_finished(fs::FileSystem& fs, const std::string& directory);

}  // namespace polylog::convert
