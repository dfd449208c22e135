#pragma once

#include <cstdio>
#include <string_view>

#include "base/result.h"
#include "storage/store.h"

namespace polylog::cli {

// Exit codes of every subcommand: done, failed, wrong usage.
inline constexpr int exit_done = 0;
inline constexpr int exit_failed = 1;
inline constexpr int exit_usage = 2;

// What main.cc knows and subcommands don't: the engines by layout.
struct Engines {
  storage::OpenStore kafka = nullptr;
  storage::OpenStore rocketmq = nullptr;  // null: not in this build
  storage::OpenStore segment = nullptr;   // the same
};

// Runs one command line: `polylog SUBCOMMAND ...`. Returns the process's exit code.
int run(int argc, char** argv, const Engines& engines);

// Says on stderr what went wrong, in one line that begins with "polylog: ". Returns `code`.
int complain(std::string_view what, int code = exit_failed);

// Flushes a command's results. io: they could not all be written, on a full disk say.
Result<void> finish(std::FILE* out);

// The last lines of a subcommand that wrote results: exit_failed when they did not all arrive.
int finished(std::FILE* out, int code = exit_done);

}  // namespace polylog::cli
