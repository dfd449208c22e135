#include <CLI/CLI.hpp>
#include <memory>

#include "cli/dump.h"
#include "cli/subcommands.h"

namespace polylog::cli {
namespace {

constexpr const char* description =
    "Show what files of Kafka, RocketMQ or RobustMQ hold.\n\n"
    "  polylog dump data/kafka/orders-0/00000000000000000000.log\n"
    "  polylog dump data/kafka/orders-0 --records --json | jq 'select(.type==\"record\")'\n"
    "  polylog dump --deep data/kafka/*-[0-9]\n"
    "  polylog dump --deep data/rocketmq/consumequeue/orders/0 data/rocketmq/commitlog\n"
    "  polylog dump data/segment/orders-0\n\n"
    "Knows Kafka's .log, .index, .timeindex, .txnindex and .snapshot files, the checkpoints,\n"
    "partition.metadata, meta.properties and .kafka_cleanshutdown; RocketMQ's commit log, consume\n"
    "queues and their extensions, key indexes, checkpoint, abort, and topics, subscriptionGroup,\n"
    "consumerOffset and delayOffset .json; RobustMQ's .msg files; and polylog's own\n"
    "kafka.sidecar, rocketmq.sidecar, segment.sidecar and polylog.journal: by their names, and\n"
    "files named by a position also by where they lie. Of a directory each such file in it is\n"
    "shown. Nothing is written.";

constexpr const char* footer =
    "A broker that writes to the files meanwhile may make the end of a log look torn.\n"
    "Exit codes: 0 all is well, 1 damage was found or a file cannot be read, 2 wrong usage or\n"
    "a file of no known name.";

}  // namespace

void add_dump(CLI::App& app, Action& action) {
  CLI::App* const dump_app = app.add_subcommand("dump", description);
  dump_app->footer(footer);
  const auto options = std::make_shared<DumpOptions>();
  dump_app->add_option("PATH", options->paths, "Files and directories")->type_name("")->required();
  dump_app->add_flag("--json", options->json, "One JSON object a line");
  dump_app->add_flag("--records", options->records,
                     "Show each record of each batch; body and properties of messages");
  dump_app->add_flag("--deep", options->deep,
                     "Check each record, and follow indexes into the log beside them");
  dump_app->callback([=, &action] { action = [=] { return dump(*options); }; });
}

}  // namespace polylog::cli
