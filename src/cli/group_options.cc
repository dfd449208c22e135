#include <CLI/CLI.hpp>
#include <memory>

#include "cli/client_options.h"
#include "cli/group.h"
#include "cli/subcommands.h"

namespace polylog::cli {
namespace {

using Options = std::shared_ptr<GroupOptions>;

constexpr const char* description =
    "List, describe, reset, delete groups of consumers.\n\n"
    "  polylog group list\n"
    "  polylog group describe billing\n"
    "  polylog group reset billing --topic orders --to-earliest --execute";

constexpr const char* list_description =
    "List the groups by name.\n\n"
    "  polylog group list\n"
    "  polylog group list --state Stable\n"
    "  polylog group list --json | jq -r '.groups[].name'";

constexpr const char* describe_description =
    "Show offsets with lag in records and in time, and members.\n\n"
    "  polylog group describe billing\n"
    "  polylog group describe billing shipping\n"
    "  polylog group describe billing --json | jq '[.groups[].offsets[].lag] | add'";

constexpr const char* reset_description =
    "Show where a group's offsets would go; with --execute, move them.\n"
    "The group must have no active members. The offsets before are printed as lines for\n"
    "--from-file, which brings them back.\n\n"
    "  polylog group reset billing --topic orders --to-earliest\n"
    "  polylog group reset billing --topic orders:0,2 --shift-by -100 --execute > undo.csv\n"
    "  polylog group reset billing --all-topics --by-duration PT1H30M --execute";

constexpr const char* delete_description =
    "Delete groups without members, with their offsets. This cannot be undone.\n\n"
    "  polylog group delete billing\n"
    "  polylog group delete billing shipping\n"
    "  polylog group delete billing -b broker.example:9092";

CLI::App* add_verb(CLI::App& group, const char* verb, const char* text, const Options& options,
                   int (*run)(const GroupOptions&), Action& action) {
  CLI::App* const app = group.add_subcommand(verb, text);
  app->footer(exit_codes_help);
  add_client_options(*app, options->client);
  app->add_flag("--json", options->json, "Print one JSON document");
  app->callback([=, &action] { action = [=] { return run(*options); }; });
  return app;
}

void add_names(CLI::App& app, const Options& options) {
  app.add_option("GROUP", options->names, "Names of groups")->type_name("")->required();
}

void add_targets(CLI::App& app, const Options& options) {
  CLI::Option_group* const target = app.add_option_group("Where to");
  target->add_flag("--to-earliest", options->to_earliest, "The first record");
  target->add_flag("--to-latest", options->to_latest, "The end");
  target->add_flag("--to-current", options->to_current, "Where the group is; else the end");
  target->add_option("--to-offset", options->to_offset, "This offset")->type_name("N");
  target->add_option("--shift-by", options->shift_by, "So many records on, or back with a minus")
      ->type_name("N");
  target
      ->add_option("--to-datetime", options->to_datetime,
                   "The first record since 2026-01-31T12:00:00")
      ->type_name("TIME");
  target->add_option("--by-duration", options->by_duration, "So long ago, as in PT1H30M or P7D")
      ->type_name("DURATION");
  target
      ->add_option("--from-file", options->from_file,
                   "Offsets in lines TOPIC,PARTITION,OFFSET; -: stdin")
      ->type_name("FILE");
  target->require_option(1);
}

}  // namespace

void add_group(CLI::App& app, Action& action) {
  CLI::App* const group = app.add_subcommand("group", description);
  group->footer(exit_codes_help);
  group->require_subcommand(1);
  const Options options = std::make_shared<GroupOptions>();

  CLI::App* const list = add_verb(*group, "list", list_description, options, group_list, action);
  list->add_option("--state", options->states, "Only groups in this state; may be repeated")
      ->type_name("STATE")
      ->allow_extra_args(false);

  CLI::App* const describe =
      add_verb(*group, "describe", describe_description, options, group_describe, action);
  add_names(*describe, options);

  CLI::App* const reset =
      add_verb(*group, "reset", reset_description, options, group_reset, action);
  add_names(*reset, options);
  reset->add_option("-t,--topic", options->topics, "A topic, or TOPIC:0,1; may be repeated")
      ->type_name("TOPIC")
      ->allow_extra_args(false);
  reset->add_flag("--all-topics", options->all_topics, "All that the group has offsets of");
  add_targets(*reset, options);
  reset->add_flag("--execute", options->execute, "Move the offsets");

  CLI::App* const remove =
      add_verb(*group, "delete", delete_description, options, group_delete, action);
  add_names(*remove, options);
}

}  // namespace polylog::cli
