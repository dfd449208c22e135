#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <sstream>

#include "cli/command.h"
#include "cli/kafka_tools/tool.h"
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

// Subcommands have a screen of description; the list above them shows the first line of it.
class Screen : public CLI::Formatter {
 public:
  std::string make_subcommand(const CLI::App* sub) const override {
    const std::string text = sub->get_description();
    std::ostringstream out;
    CLI::detail::format_help(out, sub->get_display_name(true), text.substr(0, text.find('\n')),
                             get_column_width());
    return out.str();
  }
  std::string make_usage(const CLI::App* app, std::string name) const override {
    return "\n" + Formatter::make_usage(app, name);
  }
  // What a value is and what it is without the option; limits come up when they are broken.
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    std::string out = " " + option->get_type_name();
    if (!option->get_default_str().empty()) out += " [" + option->get_default_str() + "]";
    if (option->get_items_expected_max() > 1) out += " ...";
    return out + (option->get_required() ? " (required)" : "");
  }
};

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
  // Called by the name of one of Kafka's tools, or with it as the subcommand.
  for (int i = 0; i < std::min(argc, 2); ++i) {
    if (const kafka_tools::Tool* const tool = kafka_tools::find_tool(argv[i])) {
      return kafka_tools::run_tool(*tool, {argv + i + 1, argv + argc});
    }
  }
  CLI::App app(description, "polylog");
  const auto screen = std::make_shared<Screen>();
  screen->column_width(32);
  app.formatter(screen);
  app.require_subcommand(1);
  app.footer(footer);
  app.set_version_flag("--version", POLYLOG_VERSION);
  Action action;
  add_serve(app, engines, action);
  add_topic(app, action);
  add_group(app, action);
  add_config(app, action);
  add_quota(app, action);
  add_produce(app, action);
  add_consume(app, action);
  add_dump(app, action);
  add_convert(app, engines, action);
  add_links(app, action);
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
