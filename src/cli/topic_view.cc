#include "cli/topic_view.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "protocol/kafka/describe_configs_request.h"
#include "protocol/kafka/describe_configs_response.h"
#include "protocol/kafka/list_offsets_request.h"
#include "protocol/kafka/list_offsets_response.h"
#include "protocol/kafka/metadata_request.h"
#include "protocol/kafka/metadata_response.h"

namespace polylog::cli {
namespace {

using protocol::kafka::DescribeConfigsRequest;
using protocol::kafka::DescribeConfigsResponse;
using protocol::kafka::ErrorCode;
using protocol::kafka::ListOffsetsRequest;
using protocol::kafka::ListOffsetsResponse;
using protocol::kafka::MetadataRequest;
using protocol::kafka::MetadataResponse;

constexpr std::int8_t topic_resource = 2;
constexpr std::chrono::milliseconds creation_pause{100};
constexpr int creation_tries = 50;

TopicView to_view(const MetadataResponse::MetadataResponseTopic& topic) {
  TopicView view;
  view.name = topic.name.value_or("");
  view.id = topic.topic_id;
  view.internal = topic.is_internal;
  for (const auto& partition : topic.partitions) {
    view.partitions.push_back({partition.partition_index, partition.leader_id,
                               partition.leader_epoch, partition.error_code,
                               partition.replica_nodes.size()});
  }
  std::sort(view.partitions.begin(), view.partitions.end(),
            [](const PartitionView& a, const PartitionView& b) { return a.id < b.id; });
  return view;
}

Result<MetadataResponse::MetadataResponseTopic> ask_topic(KafkaClient& client,
                                                          const std::string& name, bool create) {
  MetadataRequest request;
  request.topics->emplace_back().name = name;
  request.allow_auto_topic_creation = create;
  POLYLOG_ASSIGN(answer, client.call<MetadataResponse>(request));
  if (answer.topics.size() != 1) {
    return fail(Errc::corrupt, client.address() + " answered for another topic than " + name);
  }
  return std::move(answer.topics.front());
}

std::string source_name(std::int8_t source) {
  switch (source) {
    case 1: return "topic";
    case 2: return "broker, dynamic";
    case 3: return "all brokers, dynamic";
    case 4: return "broker";
    case 5: return "default";
    default: return "source " + std::to_string(source);
  }
}

}  // namespace

Result<std::vector<TopicView>> list_topics(KafkaClient& client) {
  MetadataRequest request;
  request.topics.reset();
  request.allow_auto_topic_creation = false;
  POLYLOG_ASSIGN(answer, client.call<MetadataResponse>(request));
  std::vector<TopicView> topics;
  for (const auto& topic : answer.topics) topics.push_back(to_view(topic));
  std::sort(topics.begin(), topics.end(),
            [](const TopicView& a, const TopicView& b) { return a.name < b.name; });
  return topics;
}

Result<TopicView> find_topic(KafkaClient& client, const std::string& name, bool create) {
  for (int tries = 0;; ++tries) {
    POLYLOG_ASSIGN(topic, ask_topic(client, name, create));
    const auto error = static_cast<ErrorCode>(topic.error_code);
    if (error == ErrorCode::none) return to_view(topic);
    const bool coming =
        error == ErrorCode::leader_not_available || error == ErrorCode::unknown_topic_or_partition;
    if (create && coming && tries < creation_tries) {
      std::this_thread::sleep_for(creation_pause);
      continue;
    }
    if (error == ErrorCode::unknown_topic_or_partition) {
      return fail(Errc::not_found,
                  "there is no topic '" + name + "'; `polylog topic list` shows those there are");
    }
    return fail(Errc::invalid, "topic '" + name + "': " + wire_error(topic.error_code));
  }
}

Result<PartitionOffsets> list_offsets(KafkaClient& client, const std::string& topic,
                                      const std::vector<std::int32_t>& partitions,
                                      std::int64_t timestamp, IsolationLevel isolation) {
  ListOffsetsRequest request;
  request.replica_id = -1;
  request.isolation_level = static_cast<std::int8_t>(isolation);
  request.timeout_ms = 30000;
  auto& asked = request.topics.emplace_back();
  asked.name = topic;
  for (const std::int32_t partition : partitions) {
    auto& entry = asked.partitions.emplace_back();
    entry.partition_index = partition;
    entry.timestamp = timestamp;
  }
  POLYLOG_ASSIGN(answer, client.call<ListOffsetsResponse>(request));
  PartitionOffsets offsets;
  for (const auto& answered : answer.topics) {
    for (const auto& partition : answered.partitions) {
      if (partition.error_code != 0) {
        return fail(Errc::io, "offsets of " + topic + "-" +
                                  std::to_string(partition.partition_index) + ": " +
                                  wire_error(partition.error_code));
      }
      offsets[partition.partition_index] = partition.offset;
    }
  }
  for (const std::int32_t partition : partitions) {
    if (!offsets.contains(partition)) {
      return fail(Errc::corrupt, client.address() + " gave no offset of " + topic + "-" +
                                     std::to_string(partition));
    }
  }
  return offsets;
}

Result<void> check_led_here(const KafkaClient& client, const TopicView& topic,
                            const std::vector<std::int32_t>& partitions) {
  for (const std::int32_t wanted : partitions) {
    if (wanted < 0 || static_cast<std::size_t>(wanted) >= topic.partitions.size()) {
      return fail(Errc::not_found,
                  "topic '" + topic.name + "' has " + std::to_string(topic.partitions.size()) +
                      " partitions, numbered from 0; there is no " + std::to_string(wanted));
    }
  }
  std::optional<std::int32_t> leader;
  for (const PartitionView& partition : topic.partitions) {
    const bool chosen = partitions.empty() || std::find(partitions.begin(), partitions.end(),
                                                        partition.id) != partitions.end();
    if (!chosen) continue;
    const std::string name = topic.name + "-" + std::to_string(partition.id);
    if (partition.leader < 0) {
      return fail(Errc::unavailable, name + " has no leader: " + wire_error(partition.error_code));
    }
    if (leader && *leader != partition.leader) {
      return fail(Errc::unsupported, "the partitions of '" + topic.name +
                                         "' are led by several brokers: choose those of " +
                                         client.address() + " with -p");
    }
    leader = partition.leader;
  }
  return {};
}

Result<std::vector<ConfigView>> topic_configs(KafkaClient& client, const std::string& topic) {
  DescribeConfigsRequest request;
  auto& asked = request.resources.emplace_back();
  asked.resource_type = topic_resource;
  asked.resource_name = topic;
  asked.configuration_keys.reset();
  request.include_documentation = true;
  POLYLOG_ASSIGN(answer, client.call<DescribeConfigsResponse>(request));
  if (answer.results.size() != 1) {
    return fail(Errc::corrupt, client.address() + " described another topic than " + topic);
  }
  const auto& result = answer.results.front();
  if (result.error_code != 0) {
    return fail(Errc::invalid, "configuration of topic '" + topic +
                                   "': " + wire_error(result.error_code, result.error_message));
  }
  std::vector<ConfigView> configs;
  for (const auto& entry : result.configs) {
    configs.push_back({entry.name, entry.value.value_or(""), source_name(entry.config_source),
                       entry.documentation.value_or("")});
  }
  std::sort(configs.begin(), configs.end(),
            [](const ConfigView& a, const ConfigView& b) { return a.name < b.name; });
  return configs;
}

bool waits_for_compaction(const std::vector<ConfigView>& configs) {
  return std::any_of(configs.begin(), configs.end(), [](const ConfigView& config) {
    return config.name == "cleanup.policy" && config.value.find("compact") != std::string::npos &&
           config.documentation.find("not compacted yet") != std::string::npos;
  });
}

}  // namespace polylog::cli
