#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace polylog::cli {

struct ServeOptions {
  std::string data = "data";
  std::string kafka = "localhost:9092";
  std::string http = "127.0.0.1:9644";
  std::string config;            // TOML file; empty: none
  std::vector<std::string> set;  // key=value, over the file
};
// Runs the broker in this process until SIGTERM or SIGINT.
int serve(const ServeOptions& options, const Engines& engines);

}  // namespace polylog::cli
