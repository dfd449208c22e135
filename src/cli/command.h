#pragma once

#include <string>
#include <vector>

#include "storage/store.h"

namespace CLI {
class App;
}

namespace polylog::cli {

// Exit codes of every subcommand: done, failed, wrong usage.
inline constexpr int exit_done = 0;
inline constexpr int exit_failed = 1;
inline constexpr int exit_usage = 2;

// What main.cc knows and subcommands don't: the engines by layout.
struct Engines {
  storage::OpenStore kafka = nullptr;
};

// Runs one command line: `polylog SUBCOMMAND ...`. Returns the process's exit code.
int run(int argc, char** argv, const Engines& engines);

struct ServeOptions {
  std::string data = "data";
  std::string kafka = "localhost:9092";
  std::string http = "127.0.0.1:9644";
  std::string config;               // TOML file; empty: none
  std::vector<std::string> set;     // key=value, over the file
};
int serve(const ServeOptions& options, const Engines& engines);

}  // namespace polylog::cli
