#include "cli/kafka_tools/tool.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "cli/command.h"
#include "cli/kafka_tools/table.h"

namespace polylog::cli::kafka_tools {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

std::string trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r\f";
  const std::size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(blank) - first + 1));
}

const std::array<Tool, 8>& table() {
  static const std::array<Tool, 8> all = {{
      {"kafka-configs", "Show and change settings of topics, brokers, groups, and quotas.",
       configs_flags, run_configs, false},
      {"kafka-console-consumer", "Read records of topics and print them.", console_consumer_flags,
       run_console_consumer, true},
      {"kafka-console-producer", "Read lines from standard input and write them to a topic.",
       console_producer_flags, run_console_producer, true},
      {"kafka-consumer-groups", "List, describe and delete groups, and move their offsets.",
       consumer_groups_flags, run_consumer_groups, false},
      {"kafka-delete-records", "Delete records of partitions up to given offsets.",
       delete_records_flags, run_delete_records, false},
      {"kafka-dump-log", "Show what is in files of a Kafka log directory.", dump_log_flags,
       run_dump_log, false},
      {"kafka-get-offsets", "Show offsets of partitions.", get_offsets_flags, run_get_offsets,
       false, "Error occurred: "},
      {"kafka-topics", "Create, list, describe, alter and delete topics.", topics_flags, run_topics,
       false},
  }};
  return all;
}

std::string help(const Tool& tool) {
  return std::string(tool.about) + "\n\n" + flags_help(tool.flags());
}

}  // namespace

std::span<const Tool> tools() { return table(); }

const Tool* find_tool(std::string_view program) {
  if (const std::size_t slash = program.rfind('/'); slash != std::string_view::npos) {
    program.remove_prefix(slash + 1);
  }
  if (program.ends_with(".sh")) program.remove_suffix(3);
  const auto at = std::find_if(table().begin(), table().end(),
                               [&](const Tool& tool) { return tool.name == program; });
  return at == table().end() ? nullptr : at;
}

int run_tool(const Tool& tool, const std::vector<std::string>& words) {
  std::vector<Flag> flags = tool.flags();
  if (std::find(words.begin(), words.end(), "--help") != words.end()) {
    print(help(tool));
    return finished(stdout);
  }
  if (std::find(words.begin(), words.end(), "--version") != words.end()) {
    print(std::string("polylog ") + POLYLOG_VERSION + "\n");
    return finished(stdout);
  }
  const auto arguments = Arguments::parse(flags, words);
  if (!arguments) {
    const std::string& what = arguments.error().context;
    if (tool.helps_when_wrong) return wrong_usage(tool, what);
    return failed(std::string(tool.refusal) + what);
  }
  return finished(stdout, tool.run(tool, *arguments));
}

Flag bootstrap_flag() {
  return {"bootstrap-server", Flag::Value::required,
          "The broker: HOST:PORT, or several with commas"};
}

Flag command_config_flag() {
  return {"command-config", Flag::Value::required, "A file of client settings"};
}

int wrong_usage(const Tool& tool, const std::string& what) {
  return failed(what + "\n" + flags_help(tool.flags()));
}

int failed(const std::string& what) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s%s", what.c_str(), what.ends_with('\n') ? "" : "\n");
  return exit_failed;
}

Result<Pairs> parse_pairs(const std::vector<std::string>& pairs) {
  Pairs parsed;
  for (const std::string& pair : pairs) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      return fail(Errc::invalid, "Invalid command line properties: '" + pair + "'");
    }
    parsed.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
  }
  return parsed;
}

// Escapes and lines that go on in the next one are of no use in what the tools read.
Result<Pairs> read_properties(const std::string& path) {
  std::ifstream in(path);
  if (!in) return fail(Errc::io, path + " (No such file or directory)");
  Pairs settings;
  std::string line;
  while (std::getline(in, line)) {
    const std::string text = trimmed(line);
    if (text.empty() || text[0] == '#' || text[0] == '!') continue;
    const std::size_t end = text.find_first_of("=:");
    if (text.ends_with('\\')) {
      return fail(Errc::unsupported, path + ": lines that end with a backslash are not taken");
    }
    const std::string value = end == std::string::npos ? "" : trimmed(text.substr(end + 1));
    settings.emplace_back(trimmed(text.substr(0, end)), value);
  }
  if (in.bad()) return fail(Errc::io, path + " cannot be read");
  return settings;
}

Result<void> check_security(const Pairs& settings) {
  for (const auto& [key, value] : settings) {
    const bool plain = key == "security.protocol" && value == "PLAINTEXT";
    const bool wanted =
        key == "security.protocol" || key.starts_with("sasl.") || key.starts_with("ssl.");
    if (!wanted || plain) continue;
    return fail(Errc::unsupported, "The setting " + key +
                                       " is not supported: polylog's tools connect without TLS "
                                       "and without a login");
  }
  return {};
}

Result<std::unique_ptr<KafkaClient>> connect(const Arguments& arguments, ClientOptions& options) {
  for (const std::string& path : arguments.values("command-config")) {
    POLYLOG_ASSIGN(settings, read_properties(path));
    POLYLOG_TRY(check_security(settings));
  }
  POLYLOG_ASSIGN(servers, arguments.value("bootstrap-server"));
  std::istringstream addresses(servers.value_or(""));
  Error last{Errc::invalid, "Missing required argument \"[bootstrap-server]\""};
  for (std::string address; std::getline(addresses, address, ',');) {
    options.broker = trimmed(address);
    auto client = KafkaClient::connect(options);
    if (client) return client;
    last = client.error();
  }
  return fail(last);
}

std::string pad(std::string_view text, std::size_t width) {
  std::string out(text);
  if (out.size() < width) out.append(width - out.size(), ' ');
  return out;
}

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

}  // namespace polylog::cli::kafka_tools
