#pragma once

#include <string>
#include <vector>

#include "cli/dump_report.h"
#include "fs/file_system.h"

namespace polylog::cli {

struct DumpOptions {
  std::vector<std::string> paths;  // files, and directories of files
  bool json = false;
  bool records = false;  // each record
  bool deep = false;     // check records, follow indexes
};

// `polylog dump`: shows every path, on stdout. Returns the exit code.
int dump(const DumpOptions& options);

// The same through any file system, into `report`. Nothing is shown when one of the paths has no
// known name: invalid. Other errors: a file cannot be read.
Result<void> dump_paths(fs::FileSystem& fs, const DumpOptions& options, DumpReport& report);

}  // namespace polylog::cli
