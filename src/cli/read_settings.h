#pragma once

#include <string>
#include <vector>

#include "broker/settings.h"
#include "fs/file_system.h"

namespace polylog::cli {

// The broker's settings from --config, a TOML file ("": none), and --set, key=value, over it.
Result<broker::Settings> read_settings(fs::FileSystem& fs, const std::string& config,
                                       const std::vector<std::string>& set);

}  // namespace polylog::cli
