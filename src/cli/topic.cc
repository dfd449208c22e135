#include "cli/topic.h"

#include <map>

#include "cli/command.h"
#include "cli/json.h"
#include "cli/text.h"
#include "cli/topic_view.h"
#include "protocol/kafka/create_topics_request.h"
#include "protocol/kafka/create_topics_response.h"
#include "protocol/kafka/delete_topics_request.h"
#include "protocol/kafka/delete_topics_response.h"
#include "protocol/kafka/incremental_alter_configs_request.h"
#include "protocol/kafka/incremental_alter_configs_response.h"

namespace polylog::cli {
namespace {

using protocol::kafka::CreateTopicsRequest;
using protocol::kafka::CreateTopicsResponse;
using protocol::kafka::DeleteTopicsRequest;
using protocol::kafka::DeleteTopicsResponse;
using protocol::kafka::ErrorCode;
using protocol::kafka::IncrementalAlterConfigsRequest;
using protocol::kafka::IncrementalAlterConfigsResponse;

constexpr std::int8_t topic_resource = 2;
constexpr std::int8_t operation_set = 0;
constexpr std::int8_t operation_erase = 1;

struct KeyValue {
  std::string key;
  std::string value;
};

Result<std::vector<KeyValue>> parse_configs(const std::vector<std::string>& pairs) {
  std::vector<KeyValue> configs;
  for (const std::string& pair : pairs) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      return fail(Errc::invalid, "--config takes key=value, not '" + pair + "'");
    }
    configs.push_back({pair.substr(0, equals), pair.substr(equals + 1)});
  }
  return configs;
}

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void print_json(JsonWriter& json) { print(json.take() + "\n"); }

bool exists_already(const CreateTopicsResponse::CreatableTopicResult& result) {
  return result.error_code == protocol::kafka::to_wire(ErrorCode::topic_already_exists);
}

void json_topic(JsonWriter& json, const TopicView& topic) {
  json.field("name", topic.name).field("id", topic.id.to_string());
  json.field("internal", topic.internal);
}

std::string plural(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// What `describe` knows of one topic.
struct Description {
  TopicView topic;
  PartitionOffsets start, end;
  std::vector<ConfigView> configs;
};

Result<Description> describe(KafkaClient& client, const std::string& name) {
  Description all;
  POLYLOG_ASSIGN(topic, find_topic(client, name));
  all.topic = std::move(topic);
  std::vector<std::int32_t> partitions;
  for (const PartitionView& partition : all.topic.partitions) partitions.push_back(partition.id);
  POLYLOG_ASSIGN(start, list_offsets(client, name, partitions, earliest_offset));
  POLYLOG_ASSIGN(end, list_offsets(client, name, partitions, latest_offset));
  POLYLOG_ASSIGN(configs, topic_configs(client, name));
  all.start = std::move(start);
  all.end = std::move(end);
  all.configs = std::move(configs);
  return all;
}

void json_description(JsonWriter& json, const Description& all) {
  json.begin_object();
  json_topic(json, all.topic);
  json.field("not_compacted_yet", waits_for_compaction(all.configs));
  json.key("partitions").begin_array();
  for (const PartitionView& partition : all.topic.partitions) {
    json.begin_object().field("partition", partition.id).field("leader", partition.leader);
    json.field("leader_epoch", partition.leader_epoch).field("replicas", partition.replicas);
    json.field("start_offset", all.start.at(partition.id));
    json.field("end_offset", all.end.at(partition.id)).end_object();
  }
  json.end_array().key("configs").begin_array();
  for (const ConfigView& config : all.configs) {
    json.begin_object().field("name", config.name).field("value", config.value);
    json.field("source", config.source).end_object();
  }
  json.end_array().end_object();
}

void print_description(const Description& all, bool all_configs) {
  std::vector<std::vector<std::string>> head = {
      {"topic", all.topic.name},
      {"id", all.topic.id.to_string()},
      {"partitions", std::to_string(all.topic.partitions.size())}};
  if (waits_for_compaction(all.configs)) {
    head.push_back({"compaction", "asked for, but not compacted yet: every record is kept"});
  }
  std::vector<std::vector<std::string>> rows = {
      {"PARTITION", "LEADER", "EPOCH", "START", "END", "OFFSETS"}};
  for (const PartitionView& partition : all.topic.partitions) {
    const std::int64_t start = all.start.at(partition.id), end = all.end.at(partition.id);
    rows.push_back({std::to_string(partition.id), std::to_string(partition.leader),
                    std::to_string(partition.leader_epoch), std::to_string(start),
                    std::to_string(end), std::to_string(end - start)});
  }
  std::vector<std::vector<std::string>> settings = {{"SETTING", "VALUE", "SOURCE"}};
  std::size_t hidden = 0;
  for (const ConfigView& config : all.configs) {
    const bool shown = all_configs || config.source != "default";
    if (shown) settings.push_back({config.name, config.value, config.source});
    hidden += shown ? 0 : 1;
  }
  print(format_table(head) + "\n" + format_table(rows) + "\n");
  if (settings.size() > 1) print(format_table(settings));
  if (hidden > 0) {
    print(plural(hidden, settings.size() > 1 ? "more setting" : "setting") +
          " at the default; --all shows them\n");
  }
}

// Connects, runs, reports. `run` returns the exit code.
template <typename F>
int with_client(const TopicOptions& options, F&& run) {
  auto client = KafkaClient::connect(options.client);
  if (!client) return complain(client.error().context);
  const Result<int> code = run(**client);
  if (!code) return complain(code.error().context);
  return finished(stdout, *code);
}

}  // namespace

int topic_create(const TopicOptions& options) {
  const auto configs = parse_configs(options.configs);
  if (!configs) return complain(configs.error().context, exit_usage);
  CreateTopicsRequest request;
  request.timeout_ms = static_cast<std::int32_t>(options.client.request_ms);
  request.validate_only = options.dry_run;
  for (const std::string& name : options.names) {
    auto& topic = request.topics.emplace_back();
    topic.name = name;
    topic.num_partitions = options.partitions;
    topic.replication_factor = options.replication_factor;
    for (const KeyValue& config : *configs) {
      auto& entry = topic.configs.emplace_back();
      entry.name = config.key;
      entry.value = config.value;
    }
  }
  return with_client(options, [&](KafkaClient& client) -> Result<int> {
    POLYLOG_ASSIGN(answer, client.call<CreateTopicsResponse>(request));
    int code = exit_done;
    JsonWriter json;
    json.begin_object().key("topics").begin_array();
    for (const auto& result : answer.topics) {
      const bool there = options.if_not_exists && exists_already(result);
      if (result.error_code != 0 && !there) {
        code = complain("topic '" + result.name + "' was not created: " +
                        wire_error(result.error_code, result.error_message));
        continue;
      }
      json.begin_object().field("name", result.name).field("created", !there && !options.dry_run);
      json.field("id", result.topic_id.to_string());
      json.field("partitions", result.num_partitions).end_object();
      if (options.json) continue;
      const std::string verb = options.dry_run ? "would create " : "created ";
      const auto count = static_cast<std::size_t>(std::max(result.num_partitions, 0));
      print(there ? result.name + " exists already\n"
                  : verb + result.name + " with " + plural(count, "partition") + "\n");
    }
    json.end_array().end_object();
    if (options.json) print_json(json);
    return code;
  });
}

int topic_list(const TopicOptions& options) {
  return with_client(options, [&](KafkaClient& client) -> Result<int> {
    POLYLOG_ASSIGN(topics, list_topics(client));
    JsonWriter json;
    json.begin_object().key("topics").begin_array();
    std::vector<std::vector<std::string>> rows = {{"NAME", "PARTITIONS", "REPLICAS"}};
    for (const TopicView& topic : topics) {
      if (topic.internal && !options.internal) continue;
      const std::size_t replicas = topic.partitions.empty() ? 0 : topic.partitions.front().replicas;
      json.begin_object();
      json_topic(json, topic);
      json.field("partitions", topic.partitions.size()).field("replicas", replicas).end_object();
      rows.push_back(
          {topic.name, std::to_string(topic.partitions.size()), std::to_string(replicas)});
    }
    json.end_array().end_object();
    if (options.json) {
      print_json(json);
    } else if (rows.size() > 1) {
      print(format_table(rows));
    }
    return exit_done;
  });
}

int topic_describe(const TopicOptions& options) {
  return with_client(options, [&](KafkaClient& client) -> Result<int> {
    int code = exit_done;
    JsonWriter json;
    json.begin_object().key("topics").begin_array();
    bool first = true;
    for (const std::string& name : options.names) {
      const Result<Description> all = describe(client, name);
      if (!all) {
        if (all.error().code != Errc::not_found && all.error().code != Errc::invalid) {
          return fail(all.error());
        }
        code = complain(all.error().context);
        continue;
      }
      json_description(json, *all);
      if (options.json) continue;
      if (!first) print("\n");
      first = false;
      print_description(*all, options.all_configs);
    }
    json.end_array().end_object();
    if (options.json) print_json(json);
    return code;
  });
}

int topic_alter(const TopicOptions& options) {
  const auto configs = parse_configs(options.configs);
  if (!configs) return complain(configs.error().context, exit_usage);
  if (configs->empty() && options.unset.empty()) {
    return complain("nothing to alter: give --config key=value or --unset key", exit_usage);
  }
  IncrementalAlterConfigsRequest request;
  request.validate_only = options.dry_run;
  for (const std::string& name : options.names) {
    auto& topic = request.resources.emplace_back();
    topic.resource_type = topic_resource;
    topic.resource_name = name;
    for (const KeyValue& config : *configs) {
      auto& entry = topic.configs.emplace_back();
      entry.name = config.key;
      entry.config_operation = operation_set;
      entry.value = config.value;
    }
    for (const std::string& key : options.unset) {
      auto& entry = topic.configs.emplace_back();
      entry.name = key;
      entry.config_operation = operation_erase;
      entry.value.reset();
    }
  }
  return with_client(options, [&](KafkaClient& client) -> Result<int> {
    POLYLOG_ASSIGN(answer, client.call<IncrementalAlterConfigsResponse>(request));
    int code = exit_done;
    JsonWriter json;
    json.begin_object().key("topics").begin_array();
    for (const auto& result : answer.responses) {
      if (result.error_code != 0) {
        code = complain("topic '" + result.resource_name + "' was not altered: " +
                        wire_error(result.error_code, result.error_message));
        continue;
      }
      json.begin_object().field("name", result.resource_name);
      json.field("altered", !options.dry_run).end_object();
      if (!options.json) {
        print((options.dry_run ? "would alter " : "altered ") + result.resource_name + "\n");
      }
    }
    json.end_array().end_object();
    if (options.json) print_json(json);
    return code;
  });
}

int topic_delete(const TopicOptions& options) {
  return with_client(options, [&](KafkaClient& client) -> Result<int> {
    DeleteTopicsRequest request;
    request.timeout_ms = static_cast<std::int32_t>(options.client.request_ms);
    POLYLOG_ASSIGN(version, client.version(protocol::kafka::ApiKey::delete_topics));
    constexpr std::int16_t names_or_ids_from = 6;
    if (version < names_or_ids_from) request.topic_names = options.names;
    for (const std::string& name : options.names) {
      if (version >= names_or_ids_from) request.topics.emplace_back().name = name;
    }
    POLYLOG_TRY(client.send(request, version));
    POLYLOG_ASSIGN(answer, client.receive<DeleteTopicsResponse>());
    int code = exit_done;
    JsonWriter json;
    json.begin_object().key("topics").begin_array();
    for (const auto& result : answer.responses) {
      const std::string name = result.name.value_or("");
      if (result.error_code != 0) {
        code = complain("topic '" + name + "' was not deleted: " +
                        wire_error(result.error_code, result.error_message));
        continue;
      }
      json.begin_object().field("name", name).field("id", result.topic_id.to_string());
      json.field("deleted", true).end_object();
      if (!options.json) print("deleted " + name + "\n");
    }
    json.end_array().end_object();
    if (options.json) print_json(json);
    return code;
  });
}

}  // namespace polylog::cli
