#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/subcommands.h"

namespace polylog::cli {
namespace {

constexpr const char* description =
    "polylog: one broker for Kafka clients over Kafka's own files.\n\n"
    "  polylog serve --data ./data\n"
    "  echo hello | polylog produce -t greetings && polylog consume -t greetings -e\n"
    "  polylog dump ./data/kafka/greetings-0/00000000000000000000.log";

constexpr const char* footer =
    "`polylog SUBCOMMAND --help` has examples for each.\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage.";

// One line: what is wrong, and whose --help says how it goes.
std::string usage_line(const CLI::App* app, const CLI::Error& error) {
  std::string command = "polylog";
  for (const CLI::App* at = app;;) {
    const auto parsed = at->get_subcommands();
    if (parsed.empty()) break;
    at = parsed.front();
    command += " " + at->get_name();
  }
  std::string what = error.what();
  while (!what.empty() && (what.back() == '.' || what.back() == '\n')) what.pop_back();
  return what + "; see " + command + " --help";
}

}  // namespace

int run(int argc, char** argv, const Engines& engines) {
  CLI::App app(description, "polylog");
  app.require_subcommand(1);
  app.footer(footer);
  app.set_version_flag("--version", POLYLOG_VERSION);
  Action action;
  add_serve(app, engines, action);
  add_topic(app, action);
  add_produce(app, action);
  add_consume(app, action);
  add_dump(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wanted) {
    return app.exit(wanted);  // --help and --version
  } catch (const CLI::ParseError& error) {
    return complain(usage_line(&app, error), exit_usage);
  }
  return action();
}

}  // namespace polylog::cli
