#include <CLI/CLI.hpp>
#include <memory>

#include "cli/client_options.h"
#include "cli/config.h"
#include "cli/subcommands.h"

namespace polylog::cli {
namespace {

using Options = std::shared_ptr<ConfigOptions>;

constexpr const char* description =
    "Show and change settings while the broker runs.\n\n"
    "  polylog config list topic orders\n"
    "  polylog config set topic orders retention.ms=3600000\n"
    "  polylog config unset cluster log.retention.ms";

constexpr const char* list_description =
    "List settings of a topic, a broker, a group, or all brokers (cluster).\n\n"
    "  polylog config list topic orders\n"
    "  polylog config list broker 1 --all\n"
    "  polylog config list cluster --json";

constexpr const char* get_description =
    "Show some settings, wherever they come from.\n\n"
    "  polylog config get topic orders retention.ms\n"
    "  polylog config get broker 1 log.retention.ms message.max.bytes\n"
    "  polylog config get group billing consumer.session.timeout.ms";

constexpr const char* set_description =
    "Change settings; they last across restarts.\n\n"
    "  polylog config set topic orders retention.ms=3600000\n"
    "  polylog config set cluster log.retention.ms=86400000 --dry-run\n"
    "  polylog config set group billing consumer.session.timeout.ms=60000";

constexpr const char* unset_description =
    "Take changes back.\n"
    "A setting gets what it would have without them: the cluster's, the configuration file's, or\n"
    "the default.\n\n"
    "  polylog config unset topic orders retention.ms\n"
    "  polylog config unset broker 1 log.retention.ms\n"
    "  polylog config unset cluster log.retention.ms --dry-run";

CLI::App* add_verb(CLI::App& config, const char* verb, const char* text, const char* words,
                   const Options& options, int (*run)(const ConfigOptions&), Action& action) {
  CLI::App* const app = config.add_subcommand(verb, text);
  app->footer(exit_codes_help);
  app->add_option("SCOPE", options->words, words)->type_name("")->required();
  add_client_options(*app, options->client);
  app->add_flag("--json", options->json, "Print one JSON document");
  app->callback([=, &action] { action = [=] { return run(*options); }; });
  return app;
}

}  // namespace

void add_config(CLI::App& app, Action& action) {
  CLI::App* const config = app.add_subcommand("config", description);
  config->footer(exit_codes_help);
  config->require_subcommand(1);
  const Options options = std::make_shared<ConfigOptions>();

  CLI::App* const list =
      add_verb(*config, "list", list_description, "topic NAME, broker ID, group NAME or cluster",
               options, config_list, action);
  list->add_flag("--all", options->all, "Settings from elsewhere and defaults as well");

  add_verb(*config, "get", get_description, "The same, then names of settings", options, config_get,
           action);

  CLI::App* const set = add_verb(*config, "set", set_description, "The same, then key=value",
                                 options, config_set, action);
  set->add_flag("--dry-run", options->dry_run, "Let the broker check it, but change nothing");

  CLI::App* const unset =
      add_verb(*config, "unset", unset_description, "The same, then names of settings", options,
               config_unset, action);
  unset->add_flag("--dry-run", options->dry_run, "Let the broker check it, but change nothing");
}

}  // namespace polylog::cli
