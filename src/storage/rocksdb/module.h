#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "fs/file_system.h"
#include "storage/filelog/ordered_index.h"

namespace polylog::storage {

// What polylog_segment_index.so has to offer, under the name `module_symbol`. The two sides share
// C++ types, so they must come from one build.
struct IndexModule {
  const char* build;  // POLYLOG_BUILD of the module
  Result<std::unique_ptr<OrderedIndex>> (*open)(fs::FileSystem& fs, const std::string& directory);
};
inline constexpr const char* module_symbol = "polylog_index_module";
inline constexpr const char* module_file = "polylog_segment_index.so";

}  // namespace polylog::storage
