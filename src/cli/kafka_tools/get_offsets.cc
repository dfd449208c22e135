#include <climits>
#include <map>

#include "cli/kafka_tools/java_errors.h"
#include "cli/kafka_tools/name_filter.h"
#include "cli/kafka_tools/table.h"
#include "cli/text.h"
#include "cli/topic_view.h"
#include "protocol/kafka/list_offsets_request.h"
#include "protocol/kafka/list_offsets_response.h"

// kafka-get-offsets: what GetOffsetShell prints (Kafka 4.4, tools).
namespace polylog::cli::kafka_tools {
namespace {

using protocol::kafka::ListOffsetsRequest;
using protocol::kafka::ListOffsetsResponse;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// Which partitions: a pattern for the topic, and a half-open range of numbers.
struct Choice {
  NameFilter topic;
  std::int64_t first = 0, last = INT64_MAX;
};

// "topic", "topic:1", "topic:1-3", "topic:1-", "topic:-3", ":1".
Result<Choice> parse_choice(const std::string& text) {
  const auto wrong = [&] { return fail(Errc::invalid, "Invalid rule specification: " + text); };
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  POLYLOG_ASSIGN(filter, NameFilter::parse(name.empty() ? ".*" : name));
  Choice choice;
  choice.topic = filter;
  if (colon == std::string::npos) return choice;
  const std::string range = text.substr(colon + 1);
  const std::size_t dash = range.find('-');
  const std::string low = range.substr(0, dash);
  if (!low.empty()) {
    const auto number = parse_integer(low);
    if (!number) return wrong();
    choice.first = *number;
    if (dash == std::string::npos) choice.last = *number + 1;
  }
  if (dash != std::string::npos && dash + 1 < range.size()) {
    const auto number = parse_integer(range.substr(dash + 1));
    if (!number) return wrong();
    choice.last = *number;
  }
  return choice;
}

Result<std::vector<Choice>> parse_choices(const Arguments& arguments) {
  POLYLOG_ASSIGN(topic, arguments.value("topic"));
  POLYLOG_ASSIGN(partitions, arguments.value("partitions"));
  POLYLOG_ASSIGN(both, arguments.value("topic-partitions"));
  if (both && (topic || partitions)) {
    return fail(Errc::invalid, "--topic-partitions cannot be used with --topic or --partitions");
  }
  std::vector<Choice> choices;
  if (both) {
    for (const std::string& text : split(*both)) {
      POLYLOG_ASSIGN(choice, parse_choice(text));
      choices.push_back(choice);
    }
    return choices;
  }
  Choice choice;
  POLYLOG_ASSIGN(filter, NameFilter::parse(topic.value_or(".*")));
  choice.topic = filter;
  if (!partitions || partitions->empty()) {
    choices.push_back(choice);
    return choices;
  }
  for (const std::string& text : split(*partitions)) {
    const auto number = parse_integer(text);
    if (!number) {
      return fail(Errc::invalid,
                  "--partitions expects a comma separated list of numeric partition "
                  "ids, but received: " +
                      *partitions);
    }
    choice.first = *number;
    choice.last = *number + 1;
    choices.push_back(choice);
  }
  return choices;
}

Result<std::int64_t> parse_time(const Arguments& arguments) {
  static const std::map<std::string, std::int64_t> names = {
      {"latest", -1},         {"earliest", -2},      {"max-timestamp", -3},
      {"earliest-local", -4}, {"latest-tiered", -5}, {"earliest-pending-upload", -6}};
  POLYLOG_ASSIGN(given, arguments.value("time"));
  const std::string text = given.value_or("latest");
  if (const auto name = names.find(text); name != names.end()) return name->second;
  const auto number = parse_integer(text);
  if (!number || *number < -6) {
    return fail(Errc::invalid,
                "Malformed time argument " + text +
                    ". Please use -1 or latest / -2 or earliest / -3 or max-timestamp / -4 or "
                    "earliest-local / -5 or latest-tiered / -6 or earliest-pending-upload, or a "
                    "specified long format timestamp");
  }
  return *number;
}

Result<ListOffsetsRequest> choose(KafkaClient& client, const std::vector<Choice>& choices,
                                  std::int64_t time, bool internal) {
  ListOffsetsRequest request;
  request.replica_id = -1;
  request.timeout_ms = 30000;
  POLYLOG_ASSIGN(topics, list_topics(client));
  for (const TopicView& topic : topics) {
    if (topic.internal && !internal) continue;
    for (const PartitionView& partition : topic.partitions) {
      bool chosen = false;
      for (const Choice& choice : choices) {
        chosen = chosen || (partition.id >= choice.first && partition.id < choice.last &&
                            choice.topic.fits(topic.name));
      }
      if (!chosen) continue;
      if (request.topics.empty() || request.topics.back().name != topic.name) {
        request.topics.emplace_back().name = topic.name;
      }
      auto& asked = request.topics.back().partitions.emplace_back();
      asked.partition_index = partition.id;
      asked.timestamp = time;
    }
  }
  if (request.topics.empty()) {
    return fail(Errc::not_found, "Could not match any topic-partitions with the specified filters");
  }
  return request;
}

Result<void> get_offsets(const Arguments& arguments) {
  POLYLOG_ASSIGN(choices, parse_choices(arguments));
  POLYLOG_ASSIGN(time, parse_time(arguments));
  ClientOptions options;
  POLYLOG_ASSIGN(client, connect(arguments, options));
  POLYLOG_ASSIGN(request,
                 choose(*client, choices, time, !arguments.has("exclude-internal-topics")));
  POLYLOG_ASSIGN(answer, client->call<ListOffsetsResponse>(request));
  std::map<TopicPartition, ListOffsetsResponse::ListOffsetsPartitionResponse> found;
  for (const auto& topic : answer.topics) {
    for (const auto& partition : topic.partitions) {
      found[{topic.name, partition.partition_index}] = partition;
    }
  }
  for (const auto& [where, partition] : found) {
    if (partition.error_code != 0) {
      const WireAnswer error{partition.error_code, {}};
      failed("Skip getting offsets for topic-partition " + where.topic + "-" +
             std::to_string(where.partition) + " due to error: " + java_message(error));
    } else if (partition.offset >= 0) {
      print(where.topic + ":" + std::to_string(where.partition) + ":" +
            std::to_string(partition.offset) + "\n");
    }
  }
  return {};
}

}  // namespace

std::vector<Flag> get_offsets_flags() {
  using enum Flag::Value;
  return {
      bootstrap_flag(),
      command_config_flag(),
      {"topic", required, "A regular expression for topics; default: all"},
      {"partitions", required, "Numbers of partitions, separated by commas; default: all"},
      {"topic-partitions", required, "Topics with ranges, as in orders:0-2,payments:1,audit"},
      {"time", required, "earliest, latest (default), max-timestamp, or a time in ms since 1970"},
      {"exclude-internal-topics", none, "Leave out the broker's own topics"},
  };
}

int run_get_offsets(const Tool&, const Arguments& arguments) {
  const Result<void> done = get_offsets(arguments);
  return done ? 0 : failed("Error occurred: " + done.error().context);
}

}  // namespace polylog::cli::kafka_tools
