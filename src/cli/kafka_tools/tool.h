#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/kafka_client.h"
#include "cli/kafka_tools/arguments.h"

// Kafka's command-line tools by their own names: called as one of them (a link to the binary), or
// with its name as the subcommand, polylog takes that tool's flags and prints what it prints (Kafka
// 4.4, bin/). What went wrong ends them with 1, as it ends the originals.
namespace polylog::cli::kafka_tools {

struct Tool {
  std::string_view name;   // without .sh
  std::string_view about;  // the first line of its help
  std::vector<Flag> (*flags)();
  int (*run)(const Tool& tool, const Arguments& arguments);
  // How an unknown flag is refused: with the whole help, or with these words before it.
  bool helps_when_wrong = false;
  std::string_view refusal = {};
};

std::span<const Tool> tools();

// The tool that a program of this path is, or null: the last part of the path, with or without .sh.
const Tool* find_tool(std::string_view program);

// Parses, answers --help and --version, runs. Returns the exit code.
int run_tool(const Tool& tool, const std::vector<std::string>& words);

// --- what the tools share ---

Flag bootstrap_flag();
Flag command_config_flag();

// `what` and the tool's flags, to stderr. Returns 1.
int wrong_usage(const Tool& tool, const std::string& what);
// `what` to stderr. Returns 1.
int failed(const std::string& what);

// Reads "key=value" settings; values keep what stands behind the first '='. invalid: no '='.
Result<std::vector<std::pair<std::string, std::string>>> parse_pairs(
    const std::vector<std::string>& pairs);
// The same from a file of Java properties. Errors: it cannot be read, or has a line that is none.
Result<std::vector<std::pair<std::string, std::string>>> read_properties(const std::string& path);

// unsupported: settings that want TLS or a login, which these tools have not.
Result<void> check_security(const std::vector<std::pair<std::string, std::string>>& settings);

// Reads --command-config (and `more_configs`) and refuses what cannot be done; then connects to the
// first of --bootstrap-server that answers. `options` gets the address.
Result<std::unique_ptr<KafkaClient>> connect(const Arguments& arguments, ClientOptions& options);

// Left-justified, as Java's %-15s.
std::string pad(std::string_view text, std::size_t width);
void print(std::string_view text);

}  // namespace polylog::cli::kafka_tools
