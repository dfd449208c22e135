#include <CLI/CLI.hpp>

#include "cli/command.h"

namespace polylog::cli {
namespace {

constexpr const char* description =
    "polylog: one broker for Kafka clients over Kafka's own files.\n\n"
    "  polylog serve --data ./data\n"
    "  echo hello | kcat -P -b localhost:9092 -t greetings\n"
    "  polylog dump ./data/kafka/greetings-0/00000000000000000000.log";

void add_serve(CLI::App& app, ServeOptions& options) {
  CLI::App* const serve = app.add_subcommand("serve", "Run the broker until SIGTERM or SIGINT");
  serve->add_option("--data", options.data, "Data directory, made when missing")
      ->capture_default_str();
  serve->add_option("--kafka", options.kafka, "Where Kafka clients connect, HOST:PORT")
      ->capture_default_str();
  serve->add_option("--http", options.http, "Health and metrics, HOST:PORT")
      ->capture_default_str();
  serve->add_option("--config", options.config,
                    "TOML file with settings under Kafka's own names");
  serve->add_option("--set", options.set, "One setting, key=value; wins over the file")
      ->allow_extra_args(false);
}

}  // namespace

int run(int argc, char** argv, const Engines& engines) {
  CLI::App app(description, "polylog");
  app.require_subcommand(1);
  app.set_version_flag("--version", POLYLOG_VERSION);
  ServeOptions options;
  add_serve(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? exit_done : exit_usage;
  }
  return serve(options, engines);
}

}  // namespace polylog::cli
