#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace polylog::cli {

struct ConvertOptions {
  std::string source;
  std::string target;
  std::string layout;
  std::string config;                // TOML file; empty: none
  std::vector<std::string> set;      // key=value, over the file
  std::vector<std::string> exclude;  // topics
  std::vector<std::string> topics;   // id=name, of RobustMQ's
  std::string kafka_metadata;        // Kafka's metadata.log.dir; empty: in the source
  bool verify_only = false;
  bool quiet = false;
};
// A stopped data directory into a new one in another layout, record by record.
int convert(const ConvertOptions& options, const Engines& engines);

}  // namespace polylog::cli
