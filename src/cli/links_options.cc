#include <CLI/CLI.hpp>
#include <memory>

#include "cli/links.h"
#include "cli/subcommands.h"

namespace polylog::cli {
namespace {

constexpr const char* description =
    "Make links by the names of Kafka's command-line tools.\n"
    "Called by such a name, this program takes that tool's flags and prints what it prints.\n\n"
    "  polylog links ~/bin\n"
    "  polylog links /usr/local/bin\n"
    "  polylog links ./tools && ./tools/kafka-topics.sh --bootstrap-server localhost:9092 --list";

}  // namespace

void add_links(CLI::App& app, Action& action) {
  CLI::App* const links = app.add_subcommand("links", description);
  links->footer(exit_codes_help);
  const auto options = std::make_shared<LinksOptions>();
  links->add_option("DIR", options->directory, "Where; made if it is not there")
      ->type_name("")
      ->required();
  links->callback([=, &action] { action = [=] { return make_links(*options); }; });
}

}  // namespace polylog::cli
