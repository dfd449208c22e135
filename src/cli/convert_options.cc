#include <CLI/CLI.hpp>
#include <memory>

#include "cli/convert.h"
#include "cli/subcommands.h"

namespace polylog::cli {
namespace {

constexpr const char* description =
    "Turn a stopped data directory into a new one in another layout.\n\n"
    "  polylog convert data data-rocketmq --layout rocketmq\n"
    "  polylog convert /var/lib/kafka/data data --layout kafka\n"
    "  polylog convert ~/store data --layout kafka --exclude '%RETRY%billing'\n"
    "  polylog convert robustmq/data data --layout segment --topic cq1h2k3l4m5n6p7q8r9s=orders\n"
    "  polylog convert data data-rocketmq --layout rocketmq --verify-only\n\n"
    "SRC is a data directory of polylog, a log directory of Kafka, a store of RocketMQ or segment\n"
    "files of RobustMQ; nobody may run on it, and nothing in it is changed. Offsets, timestamps,\n"
    "committed group offsets, topic ids and settings are kept. At the end every record is\n"
    "compared with its source; until then `polylog serve` refuses DST. Run again after an\n"
    "interruption, it goes on where it was.";

constexpr const char* footer =
    "Exit codes: 0 converted and compared, 1 failed or stopped, 2 wrong usage.\n"
    "docs/guide/convert.md says what each layout can hold.";

}  // namespace

void add_convert(CLI::App& app, const Engines& engines, Action& action) {
  CLI::App* const convert_app = app.add_subcommand("convert", description);
  convert_app->footer(footer);
  const auto options = std::make_shared<ConvertOptions>();
  convert_app->add_option("SRC", options->source, "The stopped directory")
      ->type_name("")
      ->required();
  convert_app->add_option("DST", options->target, "The new data directory")
      ->type_name("")
      ->required();
  convert_app->add_option("--layout", options->layout, "kafka, rocketmq or segment")
      ->type_name("LAYOUT")
      ->required()
      ->check(CLI::IsMember({"kafka", "rocketmq", "segment"}).description(""));
  convert_app->add_option("--exclude", options->exclude, "A topic to leave out; may be repeated")
      ->type_name("TOPIC")
      ->allow_extra_args(false);
  convert_app
      ->add_option("--topic", options->topics,
                   "The name for a topic of RobustMQ's, whose files have ids; may be repeated")
      ->type_name("ID=NAME")
      ->allow_extra_args(false);
  convert_app
      ->add_option("--kafka-metadata", options->kafka_metadata,
                   "Kafka's metadata.log.dir, where it is not SRC")
      ->type_name("DIR");
  convert_app
      ->add_option("--config", options->config, "The settings that `serve` will have, a TOML file")
      ->type_name("FILE");
  convert_app->add_option("--set", options->set, "One setting; wins over the file; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  convert_app->add_flag("--verify-only", options->verify_only,
                        "Compare an earlier result with its source; write nothing");
  convert_app->add_flag("--quiet", options->quiet, "Say nothing unless it fails");
  convert_app->callback([options, &engines, &action] {
    action = [=, &engines] { return convert(*options, engines); };
  });
}

}  // namespace polylog::cli
