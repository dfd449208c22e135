#include <CLI/CLI.hpp>
#include <memory>

#include "cli/serve.h"
#include "cli/subcommands.h"

namespace polylog::cli {
namespace {

constexpr const char* description =
    "Run the broker until SIGTERM or SIGINT.\n\n"
    "  polylog serve\n"
    "  polylog serve --data /var/lib/polylog --kafka :9092 --config polylog.toml\n"
    "  polylog serve --set num.partitions=6 --set log.retention.hours=24\n\n"
    "A line that begins with `polylog ready` says that clients may connect. --http answers\n"
    "/healthz, /readyz and /metrics. docs/guide/settings.md lists the settings.";

constexpr const char* footer =
    "Exit codes: 0 stopped as asked, 1 failed, 2 wrong usage or a setting that is refused.";

}  // namespace

void add_serve(CLI::App& app, const Engines& engines, Action& action) {
  CLI::App* const serve_app = app.add_subcommand("serve", description);
  serve_app->footer(footer);
  const auto options = std::make_shared<ServeOptions>();
  serve_app->add_option("--data", options->data, "Data directory, made when missing")
      ->type_name("DIR")
      ->capture_default_str();
  serve_app->add_option("--kafka", options->kafka, "Where Kafka clients connect")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  serve_app->add_option("--http", options->http, "Health and metrics")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  serve_app
      ->add_option("--config", options->config, "TOML file with settings under Kafka's own names")
      ->type_name("FILE");
  serve_app->add_option("--set", options->set, "One setting; wins over the file; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  serve_app->callback([options, &engines, &action] {
    action = [=, &engines] { return serve(*options, engines); };
  });
}

}  // namespace polylog::cli
