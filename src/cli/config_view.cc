#include "cli/config_view.h"

#include <algorithm>

#include "protocol/kafka/describe_configs_request.h"
#include "protocol/kafka/describe_configs_response.h"
#include "protocol/kafka/incremental_alter_configs_request.h"
#include "protocol/kafka/incremental_alter_configs_response.h"
#include "protocol/kafka/list_config_resources_request.h"
#include "protocol/kafka/list_config_resources_response.h"
#include "protocol/kafka/metadata_request.h"
#include "protocol/kafka/metadata_response.h"

namespace polylog::cli {

using protocol::kafka::DescribeConfigsRequest;
using protocol::kafka::DescribeConfigsResponse;
using protocol::kafka::ErrorCode;
using protocol::kafka::IncrementalAlterConfigsRequest;
using protocol::kafka::IncrementalAlterConfigsResponse;
using protocol::kafka::ListConfigResourcesRequest;
using protocol::kafka::ListConfigResourcesResponse;
using protocol::kafka::MetadataRequest;
using protocol::kafka::MetadataResponse;

std::string source_constant(std::int8_t source) {
  switch (source) {
    case 1: return "DYNAMIC_TOPIC_CONFIG";
    case 2: return "DYNAMIC_BROKER_CONFIG";
    case 3: return "DYNAMIC_DEFAULT_BROKER_CONFIG";
    case 4: return "STATIC_BROKER_CONFIG";
    case 5: return "DEFAULT_CONFIG";
    case 6: return "DYNAMIC_BROKER_LOGGER_CONFIG";
    case 7: return "CLIENT_METRICS_CONFIG";
    case 8: return "DYNAMIC_GROUP_CONFIG";
    default: return "UNKNOWN";
  }
}

std::string source_words(std::int8_t source) {
  switch (source) {
    case 1: return "topic";
    case 2: return "broker, dynamic";
    case 3: return "all brokers, dynamic";
    case 4: return "broker";
    case 5: return "default";
    case 8: return "group";
    default: return "source " + std::to_string(source);
  }
}

Result<std::vector<ConfigSetting>> describe_configs(KafkaClient& client, ConfigResource resource,
                                                    const std::string& name) {
  DescribeConfigsRequest request;
  auto& asked = request.resources.emplace_back();
  asked.resource_type = static_cast<std::int8_t>(resource);
  asked.resource_name = name;
  asked.configuration_keys.reset();
  request.include_synonyms = true;
  POLYLOG_ASSIGN(answer, client.call<DescribeConfigsResponse>(request));
  if (answer.results.size() != 1) {
    return fail(Errc::corrupt, client.address() + " described something else than '" + name + "'");
  }
  const auto& result = answer.results.front();
  if (result.error_code != 0) {
    const auto error = static_cast<ErrorCode>(result.error_code);
    const bool missing = error == ErrorCode::unknown_topic_or_partition;
    return fail(missing ? Errc::not_found : Errc::invalid,
                wire_error(result.error_code, result.error_message));
  }
  std::vector<ConfigSetting> settings;
  for (const auto& entry : result.configs) {
    ConfigSetting& setting = settings.emplace_back();
    setting.name = entry.name;
    setting.value = entry.value;
    setting.source = entry.config_source;
    setting.sensitive = entry.is_sensitive;
    setting.read_only = entry.read_only;
    for (const auto& synonym : entry.synonyms) {
      setting.synonyms.push_back({synonym.name, synonym.value, synonym.source});
    }
  }
  return settings;
}

Result<WireAnswer> alter_configs(KafkaClient& client, ConfigResource resource,
                                 const std::string& name, const std::vector<ConfigChange>& changes,
                                 bool dry_run) {
  IncrementalAlterConfigsRequest request;
  request.validate_only = dry_run;
  auto& asked = request.resources.emplace_back();
  asked.resource_type = static_cast<std::int8_t>(resource);
  asked.resource_name = name;
  for (const ConfigChange& change : changes) {
    auto& entry = asked.configs.emplace_back();
    entry.name = change.name;
    entry.config_operation = static_cast<std::int8_t>(change.operation);
    entry.value = change.value;
    if (change.operation == ConfigChange::Operation::erase) entry.value.reset();
  }
  POLYLOG_ASSIGN(answer, client.call<IncrementalAlterConfigsResponse>(request));
  if (answer.responses.size() != 1) {
    return fail(Errc::corrupt, client.address() + " altered something else than '" + name + "'");
  }
  return WireAnswer{answer.responses.front().error_code, answer.responses.front().error_message};
}

Result<std::vector<std::string>> list_config_resources(KafkaClient& client,
                                                       ConfigResource resource) {
  // Version 0 lists client metrics alone.
  constexpr std::int16_t types_from = 1;
  POLYLOG_ASSIGN(version, client.version(protocol::kafka::ApiKey::list_config_resources));
  if (version < types_from && resource != ConfigResource::client_metrics) {
    return fail(Errc::unsupported, client.address() + " cannot list what has settings");
  }
  ListConfigResourcesRequest request;
  if (version >= types_from) request.resource_types = {static_cast<std::int8_t>(resource)};
  POLYLOG_ASSIGN(answer, client.call<ListConfigResourcesResponse>(request));
  if (answer.error_code != 0) return fail(Errc::invalid, wire_error(answer.error_code));
  std::vector<std::string> names;
  for (const auto& found : answer.config_resources) {
    if (version < types_from || found.resource_type == static_cast<std::int8_t>(resource)) {
      names.push_back(found.resource_name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::vector<std::int32_t>> list_brokers(KafkaClient& client) {
  MetadataRequest request;
  request.topics.emplace();
  request.allow_auto_topic_creation = false;
  // Version 0 knows no empty list, which means all there.
  POLYLOG_ASSIGN(answer, client.call<MetadataResponse>(request));
  std::vector<std::int32_t> brokers;
  for (const auto& broker : answer.brokers) brokers.push_back(broker.node_id);
  std::sort(brokers.begin(), brokers.end());
  return brokers;
}

}  // namespace polylog::cli
