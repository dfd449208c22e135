#include <CLI/CLI.hpp>
#include <memory>

#include "cli/client_options.h"
#include "cli/consume.h"
#include "cli/produce.h"
#include "cli/subcommands.h"

namespace polylog::cli {
namespace {

constexpr const char* produce_description =
    "Write the lines of stdin as records.\n\n"
    "  echo hello | polylog produce -t greetings\n"
    "  journalctl -f | polylog produce -t logs -z zstd\n"
    "  printf 'k1:one\\nk2:two\\n' | polylog produce -t pairs -K : --idempotent\n\n"
    "A record with a key goes to the partition that Java's clients choose for the key; the\n"
    "others take turns. A missing topic is created if the broker allows it.";

constexpr const char* consume_description =
    "Print the records of a topic.\n\n"
    "  polylog consume -t greetings -e\n"
    "  polylog consume -t orders -p 2 -o -10 -f '%o %T %k: %s\\n'\n"
    "  polylog consume -t orders -o @1700000000000 -c 100 --json\n\n"
    "Without options: the values, one a line, from the beginning, and then what comes.";

constexpr const char* consume_footer =
    "Tokens of -f: %t topic, %p partition, %o offset, %T timestamp in ms, %k key, %s value,\n"
    "  %h headers, %K and %S length of key and value, %%, \\n \\r \\t \\\\ \\0 \\xHH.\n"
    "Exit codes: 0 done or stopped by SIGINT, 1 failed, 2 wrong usage.";

}  // namespace

void add_produce(CLI::App& app, Action& action) {
  CLI::App* const produce_app = app.add_subcommand("produce", produce_description);
  produce_app->footer(exit_codes_help);
  const auto options = std::make_shared<ProduceOptions>();
  produce_app->add_option("-t,--topic", options->topic, "Where to write")
      ->type_name("NAME")
      ->required();
  add_client_options(*produce_app, options->client);
  produce_app->add_option("-p,--partition", options->partition, "Write to this partition only")
      ->type_name("N")
      ->check(CLI::Range(0, 1000000).description(""));
  produce_app
      ->add_option("-K,--key-delimiter", options->key_delimiter,
                   "What separates key and value in a line")
      ->type_name("TEXT");
  produce_app->add_flag("-Z,--null", options->empty_is_null, "An empty value is null");
  produce_app->add_option("-z,--codec", options->codec, "none, gzip, snappy, lz4 or zstd")
      ->type_name("NAME")
      ->capture_default_str();
  produce_app->add_option("--acks", options->acks, "all: on the disk; 1: received; 0: sent")
      ->type_name("N")
      ->check(CLI::IsMember({"all", "1", "0"}).description(""))
      ->capture_default_str();
  produce_app->add_flag("--idempotent", options->idempotent,
                        "Resend over broken connections, nothing twice");
  produce_app->add_option("--batch-bytes", options->batch_bytes, "Size of batches of short lines")
      ->type_name("N")
      ->check(CLI::Range(1, 100000000).description(""))
      ->capture_default_str();
  produce_app->add_flag("--json", options->json, "Print what was written as one JSON document");
  produce_app->callback([=, &action] { action = [=] { return produce(*options); }; });
}

void add_consume(CLI::App& app, Action& action) {
  CLI::App* const consume_app = app.add_subcommand("consume", consume_description);
  consume_app->footer(consume_footer);
  const auto options = std::make_shared<ConsumeOptions>();
  consume_app->add_option("-t,--topic", options->topic, "What to read")
      ->type_name("NAME")
      ->required();
  add_client_options(*consume_app, options->client);
  consume_app
      ->add_option("-p,--partition", options->partitions,
                   "Read this partition only; may be repeated")
      ->type_name("N")
      ->allow_extra_args(false)
      ->check(CLI::Range(0, 1000000).description(""));
  consume_app
      ->add_option("-o,--offset", options->offset,
                   "beginning, end, OFFSET, -N (the last N), @MS (a time)")
      ->type_name("PLACE")
      ->capture_default_str();
  consume_app->add_option("-c,--count", options->count, "Stop after so many records")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{0}, INT64_MAX).description(""));
  consume_app->add_flag("-e,--exit-at-end", options->exit_at_end,
                        "Stop where the partitions end now");
  CLI::Option* const format =
      consume_app->add_option("-f,--format", options->format, "How to print a record")
          ->type_name("TEXT")
          ->capture_default_str();
  consume_app->add_flag("--json", options->json, "One JSON object a line")->excludes(format);
  consume_app
      ->add_option("--isolation", options->isolation,
                   "or read_committed: hide aborted transactions")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"read_uncommitted", "read_committed"}).description(""))
      ->capture_default_str();
  consume_app->callback([=, &action] { action = [=] { return consume(*options); }; });
}

}  // namespace polylog::cli
