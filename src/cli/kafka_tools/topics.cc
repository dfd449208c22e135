#include <algorithm>
#include <climits>
#include <map>
#include <set>

#include "cli/config_view.h"
#include "cli/kafka_tools/java_errors.h"
#include "cli/kafka_tools/name_filter.h"
#include "cli/kafka_tools/table.h"
#include "cli/text.h"
#include "cli/topic_view.h"
#include "protocol/kafka/create_partitions_request.h"
#include "protocol/kafka/create_partitions_response.h"
#include "protocol/kafka/create_topics_request.h"
#include "protocol/kafka/create_topics_response.h"
#include "protocol/kafka/delete_topics_request.h"
#include "protocol/kafka/delete_topics_response.h"
#include "protocol/kafka/describe_topic_partitions_request.h"
#include "protocol/kafka/describe_topic_partitions_response.h"
#include "protocol/kafka/metadata_request.h"
#include "protocol/kafka/metadata_response.h"

// kafka-topics: what TopicCommand prints (Kafka 4.4, tools).
namespace polylog::cli::kafka_tools {
namespace {

using namespace protocol::kafka;

using Numbers = std::vector<std::int32_t>;

struct Partition {
  std::int32_t id = 0;
  std::int32_t leader = -1;
  Numbers replicas, in_sync;
  std::optional<Numbers> eligible, last_eligible;
};

struct Topic {
  std::string name;
  Uuid id;
  std::vector<Partition> partitions;
};

std::string joined(const Numbers& numbers) {
  std::string out;
  for (const std::int32_t number : numbers) {
    out += (out.empty() ? "" : ",") + std::to_string(number);
  }
  return out;
}

std::string shown(const std::optional<Numbers>& numbers) {
  return numbers ? joined(*numbers) : "N/A";
}

// "0:1,0:1" gives partition 0 and 1 each on brokers 0 and 1.
Result<std::vector<Numbers>> parse_assignment(const std::string& text) {
  std::vector<Numbers> partitions(1);
  std::string number;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] != ',' && text[i] != ':') {
      if (text[i] != ' ') number += text[i];
      continue;
    }
    const auto parsed = parse_integer(number);
    if (!parsed || *parsed < 0 || *parsed > INT_MAX) {
      return fail(Errc::invalid, "For input string: \"" + number + "\"");
    }
    const auto broker = static_cast<std::int32_t>(*parsed);
    Numbers& brokers = partitions.back();
    if (std::find(brokers.begin(), brokers.end(), broker) != brokers.end()) {
      return fail(Errc::invalid, "Partition replica lists may not contain duplicate entries: " +
                                     std::to_string(broker));
    }
    brokers.push_back(broker);
    number.clear();
    if (i < text.size() && text[i] == ',') partitions.emplace_back();
  }
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    if (partitions[i].size() == partitions[0].size()) continue;
    return fail(Errc::invalid, "Partition " + std::to_string(i) +
                                   " has different replication factor: [" + joined(partitions[i]) +
                                   "]");
  }
  return partitions;
}

class TopicCommand {
 public:
  TopicCommand(const Arguments& arguments, KafkaClient& client, std::int64_t request_ms)
      : arguments_(arguments),
        client_(client),
        timeout_ms_(static_cast<std::int32_t>(request_ms)) {}

  Result<void> create() {
    POLYLOG_ASSIGN(topic, arguments_.value("topic"));
    POLYLOG_ASSIGN(partitions, arguments_.number("partitions", INT_MIN, INT_MAX));
    POLYLOG_ASSIGN(replicas, arguments_.number("replication-factor", INT_MIN, INT_MAX));
    CreateTopicsRequest request;
    request.timeout_ms = timeout_ms_;
    auto& asked = request.topics.emplace_back();
    asked.name = topic.value_or("");
    if (asked.name.find_first_of("._") != std::string::npos) {
      print(
          "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore "
          "('_') could collide. To avoid issues it is best to use either, but not both.\n");
    }
    if (replicas && (*replicas > SHRT_MAX || *replicas < 1)) {
      return fail(Errc::invalid, "The replication factor must be between 1 and 32767 inclusive");
    }
    if (partitions && *partitions < 1) {
      return fail(Errc::invalid, "The partitions must be greater than 0");
    }
    asked.num_partitions = static_cast<std::int32_t>(partitions.value_or(-1));
    asked.replication_factor = static_cast<std::int16_t>(replicas.value_or(-1));
    POLYLOG_ASSIGN(assignment, arguments_.value("replica-assignment"));
    if (assignment) {
      POLYLOG_ASSIGN(brokers, parse_assignment(*assignment));
      for (std::size_t i = 0; i < brokers.size(); ++i) {
        auto& entry = asked.assignments.emplace_back();
        entry.partition_index = static_cast<std::int32_t>(i);
        entry.broker_ids = brokers[i];
      }
    }
    for (const std::string& config : arguments_.values("config")) {
      const std::size_t equals = config.find('=');
      if (equals == std::string::npos) {
        return fail(Errc::invalid,
                    "requirement failed: Invalid topic config: all configs to be "
                    "added must be in the format \"key=val\".");
      }
      auto& entry = asked.configs.emplace_back();
      entry.name = config.substr(0, config.find_last_not_of(' ', equals - 1) + 1);
      entry.value =
          config.substr(std::min(config.find_first_not_of(' ', equals + 1), config.size()));
    }
    POLYLOG_ASSIGN(answer, client_.call<CreateTopicsResponse>(request));
    for (const auto& result : answer.topics) {
      const bool there = arguments_.has("if-not-exists") &&
                         result.error_code == to_wire(ErrorCode::topic_already_exists);
      if (there) continue;
      POLYLOG_TRY(check(result.error_code, result.error_message));
      print("Created topic " + result.name + ".\n");
    }
    return {};
  }

  Result<void> list() {
    POLYLOG_ASSIGN(topics, matching());
    if (topics.empty()) print("\n");
    for (const std::string& topic : topics) print(topic + "\n");
    return {};
  }

  Result<void> describe() {
    POLYLOG_ASSIGN(names, described_names());
    POLYLOG_ASSIGN(topics, describe_topics(names));
    POLYLOG_ASSIGN(brokers, list_brokers(client_));
    for (const Topic& topic : topics) {
      POLYLOG_ASSIGN(configs, describe_configs(client_, ConfigResource::topic, topic.name));
      print_topic(topic, configs);
      if (!arguments_.has("topics-with-overrides")) print_partitions(topic, configs, brokers);
    }
    return {};
  }

  Result<void> alter() {
    POLYLOG_ASSIGN(names, existing());
    POLYLOG_ASSIGN(partitions, arguments_.number("partitions", INT_MIN, INT_MAX));
    POLYLOG_ASSIGN(assignment, arguments_.value("replica-assignment"));
    if (!partitions) return fail(Errc::invalid, "Missing required argument \"[partitions]\"");
    CreatePartitionsRequest request;
    request.timeout_ms = timeout_ms_;
    for (const std::string& name : names) {
      auto& asked = request.topics.emplace_back();
      asked.name = name;
      asked.count = static_cast<std::int32_t>(*partitions);
      asked.assignments.reset();
      if (!assignment) continue;
      POLYLOG_ASSIGN(topic, find_topic(client_, name));
      POLYLOG_ASSIGN(brokers, parse_assignment(*assignment));
      asked.assignments.emplace();
      for (std::size_t i = topic.partitions.size(); i < brokers.size(); ++i) {
        asked.assignments->emplace_back().broker_ids = brokers[i];
      }
    }
    if (names.empty()) return {};
    POLYLOG_ASSIGN(answer, client_.call<CreatePartitionsResponse>(request));
    for (const auto& result : answer.results) {
      POLYLOG_TRY(check(result.error_code, result.error_message));
    }
    return {};
  }

  Result<void> remove() {
    POLYLOG_ASSIGN(names, existing());
    if (names.empty()) return {};
    constexpr std::int16_t names_or_ids_from = 6;
    POLYLOG_ASSIGN(version, client_.version(ApiKey::delete_topics));
    DeleteTopicsRequest request;
    request.timeout_ms = timeout_ms_;
    if (version < names_or_ids_from) request.topic_names = names;
    for (const std::string& name : names) {
      if (version >= names_or_ids_from) request.topics.emplace_back().name = name;
    }
    POLYLOG_TRY(client_.send(request, version));
    POLYLOG_ASSIGN(answer, client_.receive<DeleteTopicsResponse>());
    for (const auto& result : answer.responses) {
      POLYLOG_TRY(check(result.error_code, result.error_message));
    }
    return {};
  }

 private:
  static Result<void> check(std::int16_t code, const std::optional<std::string>& message) {
    if (code == 0) return {};
    const WireAnswer answer{code, message};
    return fail(Errc::invalid, java_message(answer));
  }

  // Names that --topic fits, or all.
  Result<std::vector<std::string>> matching() {
    POLYLOG_ASSIGN(pattern, arguments_.value("topic"));
    POLYLOG_ASSIGN(filter, NameFilter::parse(pattern.value_or(".*")));
    POLYLOG_ASSIGN(topics, list_topics(client_));
    std::vector<std::string> names;
    for (const TopicView& topic : topics) {
      if (topic.internal && arguments_.has("exclude-internal")) continue;
      if (!pattern || filter.fits(topic.name)) names.push_back(topic.name);
    }
    return names;
  }

  Result<std::vector<std::string>> existing() {
    POLYLOG_ASSIGN(names, matching());
    POLYLOG_ASSIGN(pattern, arguments_.value("topic"));
    const bool wanted = pattern && !pattern->empty() && !arguments_.has("if-exists");
    if (wanted && names.empty()) {
      return fail(Errc::not_found, "Topic '" + *pattern + "' does not exist as expected");
    }
    return names;
  }

  Result<std::vector<std::string>> described_names() {
    POLYLOG_ASSIGN(id, arguments_.value("topic-id"));
    if (!id) return existing();
    POLYLOG_ASSIGN(topics, list_topics(client_));
    for (const TopicView& topic : topics) {
      if (topic.id.to_string() == *id) return std::vector<std::string>{topic.name};
    }
    if (arguments_.has("if-exists")) return std::vector<std::string>{};
    return fail(Errc::not_found, "TopicId '" + *id + "' does not exist as expected");
  }

  Result<std::vector<Topic>> describe_topics(const std::vector<std::string>& names) {
    if (names.empty()) return std::vector<Topic>{};
    if (client_.version(ApiKey::describe_topic_partitions)) return describe_with_eligible(names);
    MetadataRequest request;
    for (const std::string& name : names) request.topics->emplace_back().name = name;
    request.allow_auto_topic_creation = false;
    POLYLOG_ASSIGN(answer, client_.call<MetadataResponse>(request));
    std::map<std::string, Topic> topics;
    for (const auto& found : answer.topics) {
      POLYLOG_TRY(check(found.error_code, {}));
      Topic& topic = topics[found.name.value_or("")];
      topic.name = found.name.value_or("");
      topic.id = found.topic_id;
      for (const auto& partition : found.partitions) {
        topic.partitions.push_back({partition.partition_index,
                                    partition.leader_id,
                                    partition.replica_nodes,
                                    partition.isr_nodes,
                                    {},
                                    {}});
      }
    }
    return sorted(std::move(topics));
  }

  Result<std::vector<Topic>> describe_with_eligible(const std::vector<std::string>& names) {
    POLYLOG_ASSIGN(limit, arguments_.number("partition-size-limit-per-response", 1, INT_MAX));
    DescribeTopicPartitionsRequest request;
    request.response_partition_limit = static_cast<std::int32_t>(limit.value_or(2000));
    for (const std::string& name : names) request.topics.emplace_back().name = name;
    std::map<std::string, Topic> topics;
    for (bool more = true; more;) {
      POLYLOG_ASSIGN(answer, client_.call<DescribeTopicPartitionsResponse>(request));
      for (const auto& found : answer.topics) {
        POLYLOG_TRY(check(found.error_code, {}));
        Topic& topic = topics[found.name.value_or("")];
        topic.name = found.name.value_or("");
        topic.id = found.topic_id;
        for (const auto& partition : found.partitions) {
          topic.partitions.push_back(
              {partition.partition_index, partition.leader_id, partition.replica_nodes,
               partition.isr_nodes, partition.eligible_leader_replicas, partition.last_known_elr});
        }
      }
      more = answer.next_cursor.has_value();
      if (!more) break;
      DescribeTopicPartitionsRequest::Cursor cursor;
      cursor.topic_name = answer.next_cursor->topic_name;
      cursor.partition_index = answer.next_cursor->partition_index;
      request.cursor = std::move(cursor);
      while (!request.topics.empty() && request.topics.front().name < request.cursor->topic_name) {
        request.topics.erase(request.topics.begin());
      }
    }
    return sorted(std::move(topics));
  }

  static std::vector<Topic> sorted(std::map<std::string, Topic> topics) {
    std::vector<Topic> all;
    for (auto& [name, topic] : topics) {
      std::sort(topic.partitions.begin(), topic.partitions.end(),
                [](const Partition& a, const Partition& b) { return a.id < b.id; });
      all.push_back(std::move(topic));
    }
    return all;
  }

  // Only problems are shown, and no settings.
  bool reports() const {
    return arguments_.has("unavailable-partitions") ||
           arguments_.has("under-replicated-partitions") ||
           arguments_.has("under-min-isr-partitions") || arguments_.has("at-min-isr-partitions");
  }

  void print_topic(const Topic& topic, const std::vector<ConfigSetting>& configs) const {
    std::string settings;
    for (const ConfigSetting& config : configs) {
      if (config.source == source_default) continue;
      settings += (settings.empty() ? "" : ",") + config.name + "=" + config.value.value_or("null");
    }
    if (reports() || (arguments_.has("topics-with-overrides") && settings.empty())) return;
    const std::size_t replicas =
        topic.partitions.empty() ? 0 : topic.partitions.front().replicas.size();
    std::string line = "Topic: " + topic.name;
    if (!topic.id.is_zero()) line += "\tTopicId: " + topic.id.to_string();
    line += "\tPartitionCount: " + std::to_string(topic.partitions.size());
    line += "\tReplicationFactor: " + std::to_string(replicas);
    print(line + "\tConfigs: " + settings + "\n");
  }

  void print_partitions(const Topic& topic, const std::vector<ConfigSetting>& configs,
                        const Numbers& brokers) const {
    std::size_t in_sync_min = 1;
    for (const ConfigSetting& config : configs) {
      if (config.name != "min.insync.replicas") continue;
      in_sync_min = static_cast<std::size_t>(
          std::max<std::int64_t>(parse_integer(config.value.value_or("1")).value_or(1), 0));
    }
    for (const Partition& partition : topic.partitions) {
      if (!wanted(partition, in_sync_min, brokers)) continue;
      print("\tTopic: " + topic.name + "\tPartition: " + std::to_string(partition.id) +
            "\tLeader: " + (partition.leader < 0 ? "none" : std::to_string(partition.leader)) +
            "\tReplicas: " + joined(partition.replicas) + "\tIsr: " + joined(partition.in_sync) +
            "\tElr: " + shown(partition.eligible) +
            "\tLastKnownElr: " + shown(partition.last_eligible) + "\n");
    }
  }

  bool wanted(const Partition& partition, std::size_t in_sync_min, const Numbers& brokers) const {
    if (!reports()) return true;
    const bool live = std::find(brokers.begin(), brokers.end(), partition.leader) != brokers.end();
    const std::size_t in_sync = partition.in_sync.size();
    return (arguments_.has("unavailable-partitions") && !live) ||
           (arguments_.has("under-replicated-partitions") && in_sync < partition.replicas.size()) ||
           (arguments_.has("under-min-isr-partitions") &&
            (partition.leader < 0 || in_sync < in_sync_min)) ||
           (arguments_.has("at-min-isr-partitions") && in_sync == in_sync_min);
  }

  const Arguments& arguments_;
  KafkaClient& client_;
  const std::int32_t timeout_ms_;
};

// What is wrong with the flags together; empty: nothing.
std::string usage_problem(const Arguments& arguments) {
  int actions = 0;
  for (const char* action : {"create", "list", "alter", "describe", "delete"}) {
    actions += arguments.has(action) ? 1 : 0;
  }
  if (actions != 1) {
    return "Command must include exactly one action: --list, --describe, --create, --alter or "
           "--delete";
  }
  const bool described_without =
      arguments.has("describe") && (arguments.has("topic") || arguments.has("topic-id")) == false;
  if (!arguments.has("list") && !arguments.has("describe") && !arguments.has("topic")) {
    return "Missing required argument \"[topic]\"";
  }
  if (arguments.has("alter") && !arguments.has("partitions")) {
    return "Missing required argument \"[partitions]\"";
  }
  if (described_without && arguments.has("if-exists")) {
    return "Only one of --topic or --topic-id must be defined with --if-exists";
  }
  struct Rule {
    const char* flag;
    std::vector<const char*> without;
  };
  const std::vector<Rule> rules = {
      {"config", {"alter", "list", "describe", "delete"}},
      {"delete-config", {"create", "list", "describe", "delete", "alter"}},
      {"partitions", {"describe", "list", "delete"}},
      {"replication-factor", {"alter", "list", "describe", "delete"}},
      {"replica-assignment", {"describe", "list", "delete", "replication-factor"}},
      {"if-exists", {"create", "list"}},
      {"if-not-exists", {"alter", "describe", "delete", "list"}},
      {"exclude-internal", {"create", "alter", "delete"}},
      {"topics-with-overrides", {"create", "alter", "list", "delete"}},
      {"under-replicated-partitions", {"create", "alter", "list", "delete"}},
      {"unavailable-partitions", {"create", "alter", "list", "delete"}},
      {"under-min-isr-partitions", {"create", "alter", "list", "delete"}},
      {"at-min-isr-partitions", {"create", "alter", "list", "delete"}},
      {"topic-id", {"create", "alter", "list", "delete"}},
  };
  for (const Rule& rule : rules) {
    if (!arguments.has(rule.flag)) continue;
    for (const char* other : rule.without) {
      if (!arguments.has(other)) continue;
      return std::string("Option \"[") + rule.flag + "]\" can't be used with option \"[" + other +
             "]\"";
    }
  }
  return {};
}

}  // namespace

std::vector<Flag> topics_flags() {
  using enum Flag::Value;
  return {
      bootstrap_flag(),
      command_config_flag(),
      {"list", none, "List the topics"},
      {"create", none, "Create a topic"},
      {"delete", none, "Delete topics"},
      {"alter", none, "Give topics more partitions"},
      {"describe", none, "Show topics with their partitions and settings"},
      {"topic", required, "The topic; but for --create a regular expression"},
      {"topic-id", required, "The id of the topic to describe"},
      {"config", required, "With --create: one setting, name=value; may be repeated"},
      {"delete-config", required, "No longer there: kafka-configs takes settings back"},
      {"partitions", required, "With --create and --alter: how many"},
      {"replication-factor", required, "With --create: copies of each partition"},
      {"replica-assignment", required, "Brokers of each partition, as in 0:1,0:1"},
      {"if-exists", none, "A topic that is missing is no error"},
      {"if-not-exists", none, "With --create: a topic that exists is no error"},
      {"exclude-internal", none, "Leave out the broker's own topics"},
      {"topics-with-overrides", none, "Describe only topics with settings of their own"},
      {"under-replicated-partitions", none, "Describe only partitions that lack copies"},
      {"unavailable-partitions", none, "Describe only partitions without a live leader"},
      {"under-min-isr-partitions", none, "Describe only partitions below min.insync.replicas"},
      {"at-min-isr-partitions", none, "Describe only partitions just at min.insync.replicas"},
      {"partition-size-limit-per-response", required, "Partitions asked for at a time"},
  };
}

int run_topics(const Tool& tool, const Arguments& arguments) {
  if (!arguments.has("bootstrap-server")) return failed("--bootstrap-server must be specified");
  if (const std::string problem = usage_problem(arguments); !problem.empty()) {
    return wrong_usage(tool, problem);
  }
  ClientOptions options;
  auto client = connect(arguments, options);
  Result<void> done;
  if (!client) {
    done = fail(client.error());
  } else {
    TopicCommand command(arguments, **client, options.request_ms);
    done = arguments.has("create")     ? command.create()
           : arguments.has("list")     ? command.list()
           : arguments.has("describe") ? command.describe()
           : arguments.has("alter")    ? command.alter()
                                       : command.remove();
  }
  if (done) return 0;
  print("Error while executing topic command : " + done.error().context + "\n");
  return 1;
}

}  // namespace polylog::cli::kafka_tools
