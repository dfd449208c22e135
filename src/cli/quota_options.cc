#include <CLI/CLI.hpp>
#include <memory>

#include "cli/client_options.h"
#include "cli/quota.h"
#include "cli/subcommands.h"

namespace polylog::cli {
namespace {

using Options = std::shared_ptr<QuotaOptions>;

constexpr const char* description =
    "Limit what users, client ids and addresses may take.\n\n"
    "  polylog quota list\n"
    "  polylog quota set --client-id reports consumer_byte_rate=1048576\n"
    "  polylog quota remove --client-id reports";

constexpr const char* list_description =
    "List the quotas, or those of some.\n\n"
    "  polylog quota list\n"
    "  polylog quota list --user alice\n"
    "  polylog quota list --json | jq '.quotas[].limits'";

constexpr const char* set_description =
    "Set limits.\n"
    "There are producer_byte_rate and consumer_byte_rate (bytes a second), request_percentage and\n"
    "controller_mutation_rate, and of addresses connection_creation_rate.\n\n"
    "  polylog quota set --user alice producer_byte_rate=1048576\n"
    "  polylog quota set --user alice --client-id app request_percentage=50\n"
    "  polylog quota set --default-client-id consumer_byte_rate=10485760";

constexpr const char* remove_description =
    "Take limits away: those named, or all.\n\n"
    "  polylog quota remove --user alice\n"
    "  polylog quota remove --user alice producer_byte_rate\n"
    "  polylog quota remove --default-ip connection_creation_rate";

CLI::App* add_verb(CLI::App& quota, const char* verb, const char* text, const Options& options,
                   int (*run)(const QuotaOptions&), Action& action) {
  CLI::App* const app = quota.add_subcommand(verb, text);
  app->footer(exit_codes_help);
  app->add_option("--user", options->user, "A user")->type_name("NAME");
  app->add_option("--client-id", options->client_id, "A client id")->type_name("NAME");
  app->add_option("--ip", options->ip, "An address")->type_name("ADDRESS");
  app->add_flag("--default-user", options->default_user, "Users without their own");
  app->add_flag("--default-client-id", options->default_client_id, "Client ids without their own");
  app->add_flag("--default-ip", options->default_ip, "Addresses without their own");
  add_client_options(*app, options->client);
  app->add_flag("--json", options->json, "Print one JSON document");
  app->callback([=, &action] { action = [=] { return run(*options); }; });
  return app;
}

}  // namespace

void add_quota(CLI::App& app, Action& action) {
  CLI::App* const quota = app.add_subcommand("quota", description);
  quota->footer(exit_codes_help);
  quota->require_subcommand(1);
  const Options options = std::make_shared<QuotaOptions>();
  add_verb(*quota, "list", list_description, options, quota_list, action);

  CLI::App* const set = add_verb(*quota, "set", set_description, options, quota_set, action);
  set->add_option("QUOTA=LIMIT", options->words, "Limits")->type_name("")->required();
  set->add_flag("--dry-run", options->dry_run, "Let the broker check it, but change nothing");

  CLI::App* const remove =
      add_verb(*quota, "remove", remove_description, options, quota_remove, action);
  remove->add_option("QUOTA", options->words, "Limits; default: all")->type_name("");
  remove->add_flag("--dry-run", options->dry_run, "Let the broker check it, but change nothing");
}

}  // namespace polylog::cli
