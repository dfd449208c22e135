#pragma once

#include <functional>

#include "cli/command.h"

namespace CLI {
class App;
}

// CLI11's headers are slow to compile: each of these has a .cc of its own that includes them, and
// what the subcommand does is elsewhere.
namespace polylog::cli {

// What the parsed command line asks for; returns the exit code.
using Action = std::function<int()>;

// Each adds one subcommand, or a group of them, and sets `action` when one is parsed.
void add_serve(CLI::App& app, const Engines& engines, Action& action);
void add_topic(CLI::App& app, Action& action);
void add_group(CLI::App& app, Action& action);
void add_config(CLI::App& app, Action& action);
void add_quota(CLI::App& app, Action& action);
void add_produce(CLI::App& app, Action& action);
void add_consume(CLI::App& app, Action& action);
void add_dump(CLI::App& app, Action& action);
void add_convert(CLI::App& app, const Engines& engines, Action& action);
void add_links(CLI::App& app, Action& action);

// Below the options of each --help.
inline constexpr const char* exit_codes_help = "Exit codes: 0 done, 1 failed, 2 wrong usage.";

}  // namespace polylog::cli
