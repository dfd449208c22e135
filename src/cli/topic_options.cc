#include <CLI/CLI.hpp>
#include <memory>

#include "cli/client_options.h"
#include "cli/subcommands.h"
#include "cli/topic.h"

namespace polylog::cli {
namespace {

using Options = std::shared_ptr<TopicOptions>;

constexpr const char* description =
    "Create, list, describe, alter, delete topics of a broker.\n\n"
    "  polylog topic create orders --partitions 6 --config retention.ms=86400000\n"
    "  polylog topic describe orders\n"
    "  polylog topic list --json | jq -r '.topics[].name'";

constexpr const char* create_description =
    "Create topics.\n\n"
    "  polylog topic create orders\n"
    "  polylog topic create orders payments --partitions 6\n"
    "  polylog topic create audit --config retention.ms=-1 --config segment.bytes=268435456";

constexpr const char* list_description =
    "List the topics by name.\n\n"
    "  polylog topic list\n"
    "  polylog topic list --json | jq -r '.topics[].name'\n"
    "  polylog topic list -b broker.example:9092";

constexpr const char* describe_description =
    "Show partitions with offsets, and settings.\n\n"
    "  polylog topic describe orders\n"
    "  polylog topic describe orders --all\n"
    "  polylog topic describe orders --json | jq '.topics[0].partitions[].end_offset'";

constexpr const char* alter_description =
    "Change settings of topics. What is not named stays.\n\n"
    "  polylog topic alter orders --config retention.ms=3600000\n"
    "  polylog topic alter orders --unset retention.ms\n"
    "  polylog topic alter orders payments --config max.message.bytes=2097152 --dry-run";

constexpr const char* delete_description =
    "Delete topics with all their records. This cannot be undone.\n\n"
    "  polylog topic delete orders\n"
    "  polylog topic delete orders payments\n"
    "  polylog topic delete orders -b broker.example:9092";

// One verb; `run` does it.
CLI::App* add_verb(CLI::App& topic, const char* verb, const char* text, const Options& options,
                   int (*run)(const TopicOptions&), Action& action) {
  CLI::App* const app = topic.add_subcommand(verb, text);
  app->footer(exit_codes_help);
  add_client_options(*app, options->client);
  app->add_flag("--json", options->json, "Print one JSON document");
  app->callback([=, &action] { action = [=] { return run(*options); }; });
  return app;
}

void add_names(CLI::App& app, const Options& options) {
  app.add_option("TOPIC", options->names, "Names of topics")->type_name("")->required();
}

void add_configs(CLI::App& app, const Options& options) {
  app.add_option("-c,--config", options->configs, "One setting; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_flag("--dry-run", options->dry_run, "Let the broker check it, but change nothing");
}

}  // namespace

void add_topic(CLI::App& app, Action& action) {
  CLI::App* const topic = app.add_subcommand("topic", description);
  topic->footer(exit_codes_help);
  topic->require_subcommand(1);
  const Options options = std::make_shared<TopicOptions>();

  CLI::App* const create =
      add_verb(*topic, "create", create_description, options, topic_create, action);
  add_names(*create, options);
  create->add_option("-p,--partitions", options->partitions, "How many; default: the broker's")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000).description(""));
  create
      ->add_option("-r,--replication-factor", options->replication_factor,
                   "Copies of each partition; default: the broker's")
      ->type_name("N");
  add_configs(*create, options);
  create->add_flag("--if-not-exists", options->if_not_exists, "A topic that exists is no error");

  CLI::App* const list = add_verb(*topic, "list", list_description, options, topic_list, action);
  list->add_flag("--internal", options->internal, "Show the broker's own topics as well");

  CLI::App* const describe =
      add_verb(*topic, "describe", describe_description, options, topic_describe, action);
  add_names(*describe, options);
  describe->add_flag("--all", options->all_configs, "Show settings at their defaults as well");

  CLI::App* const alter =
      add_verb(*topic, "alter", alter_description, options, topic_alter, action);
  add_names(*alter, options);
  add_configs(*alter, options);
  alter->add_option("--unset", options->unset, "Back to the broker's default; may be repeated")
      ->type_name("KEY")
      ->allow_extra_args(false);

  CLI::App* const remove =
      add_verb(*topic, "delete", delete_description, options, topic_delete, action);
  add_names(*remove, options);
}

}  // namespace polylog::cli
