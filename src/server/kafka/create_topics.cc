#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <map>
#include <set>

#include "protocol/kafka/create_topics_request.h"
#include "protocol/kafka/create_topics_response.h"
#include "server/kafka/config_codes.h"
#include "server/kafka/handlers.h"
#include "server/kafka/mutation_quota.h"
#include "server/kafka/replicas.h"

namespace polylog::server::kafka {

using protocol::kafka::CreateTopicsRequest;
using protocol::kafka::CreateTopicsResponse;

namespace {

using Asked = CreateTopicsRequest::CreatableTopic;
using Answer = CreateTopicsResponse::CreatableTopicResult;

constexpr const char* metadata_log = "__cluster_metadata";  // Kafka's own, never a topic

void refuse(Context& context, Answer& answer, ErrorCode code, std::string message) {
  answer.error_code = context.wire(code);
  answer.error_message = std::move(message);
}

// A manual assignment names each partition from 0 on, each on this node alone; "" when it does.
std::string wrong_with_assignments(const Asked& asked, std::int32_t node_id) {
  std::set<std::int32_t> partitions;
  for (const auto& assignment : asked.assignments) {
    if (!partitions.insert(assignment.partition_index).second) {
      return "Found multiple manual partition assignments for partition " +
             std::to_string(assignment.partition_index);
    }
    std::string wrong = wrong_with_replicas(assignment.broker_ids, node_id);
    if (!wrong.empty()) return wrong;
  }
  const bool consecutive =
      *partitions.begin() == 0 &&
      *partitions.rbegin() == static_cast<std::int32_t>(partitions.size()) - 1;
  return consecutive ? "" : "partitions should be a consecutive 0-based integer sequence";
}

// What the request means, or the refusal already in `answer`.
std::optional<broker::NewTopic> understand(Context& context, const Asked& asked, Answer& answer) {
  if (is_internal_topic(asked.name) || asked.name == metadata_log) {
    refuse(context, answer, ErrorCode::invalid_request,
           "Creation of internal topic " + asked.name + " is prohibited.");
    return std::nullopt;
  }
  broker::NewTopic topic;
  topic.name = asked.name;
  topic.partitions = asked.num_partitions;
  topic.replication_factor = asked.replication_factor;
  for (const auto& config : asked.configs) {
    if (!config.value) {
      refuse(context, answer, ErrorCode::invalid_config, config.name + " has no value");
      return std::nullopt;
    }
    topic.configs[config.name] = *config.value;
  }
  if (asked.assignments.empty()) return topic;

  if (asked.num_partitions != -1 || asked.replication_factor != -1) {
    refuse(context, answer, ErrorCode::invalid_request,
           "a manual assignment excludes partition count and replication factor");
    return std::nullopt;
  }
  std::string wrong = wrong_with_assignments(asked, context.broker.settings().node_id);
  if (!wrong.empty()) {
    refuse(context, answer, ErrorCode::invalid_replica_assignment, std::move(wrong));
    return std::nullopt;
  }
  topic.partitions = static_cast<std::int32_t>(asked.assignments.size());
  topic.replication_factor = 1;
  return topic;
}

void describe(Context& context, const broker::NewTopic& asked, const broker::Topic* made,
              Answer& answer) {
  const broker::Settings& settings = context.broker.settings();
  answer.num_partitions = asked.partitions == -1 ? settings.num_partitions : asked.partitions;
  answer.replication_factor = 1;
  if (made != nullptr) {
    answer.topic_id = made->id;
    answer.num_partitions = static_cast<std::int32_t>(made->partitions.size());
  }
  answer.configs.emplace();
  for (const broker::ConfigEntry& entry :
       broker::describe_topic_config(asked.configs, settings.values())) {
    CreateTopicsResponse::CreatableTopicConfigs& out = answer.configs->emplace_back();
    out.name = entry.key->name;
    out.value = entry.value;
    out.config_source = config_source(entry.source);
  }
}

Async<void> create(Context& context, MutationQuota& quota, const Asked& asked,
                   bool validate_only, Answer& answer) {
  std::optional<broker::NewTopic> topic = understand(context, asked, answer);
  if (!topic) co_return;
  const std::int32_t partitions =
      topic->partitions == -1 ? context.broker.settings().num_partitions : topic->partitions;
  if (!context.broker.find(asked.name) && !quota.take(partitions)) {
    refuse(context, answer, ErrorCode::throttling_quota_exceeded, MutationQuota::message);
    co_return;
  }
  topic->validate_only = validate_only;
  broker::NewTopic request = *topic;
  const broker::Broker::TopicOutcome outcome =
      co_await context.broker.create_topic(std::move(request));
  if (outcome.error != broker::Broker::TopicError::none) {
    refuse(context, answer, error_code(outcome.error), outcome.message);
    co_return;
  }
  if (!validate_only) log_info("kafka: created topic " + asked.name);
  describe(context, *topic, outcome.topic.get(), answer);
}

}  // namespace

Async<void> create_topics(Context& context, ClientPtr, Call call, Reply reply) {
  const Result<CreateTopicsRequest> request = CreateTopicsRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  std::map<std::string, int> times_named;
  for (const Asked& asked : request->topics) ++times_named[asked.name];

  const std::int64_t last_start_ns = context.last_start_ns(request->timeout_ms);
  constexpr std::int16_t throttled_from = 6;
  MutationQuota quota(context, reply, call.version >= throttled_from);
  CreateTopicsResponse response;
  for (const Asked& asked : request->topics) {
    int& times = times_named[asked.name];
    if (times == 0) continue;  // answered already
    Answer& answer = response.topics.emplace_back();
    answer.name = asked.name;
    if (times > 1) {
      refuse(context, answer, ErrorCode::invalid_request, "Duplicate topic name.");
      times = 0;
    } else if (context.passed(last_start_ns)) {
      refuse(context, answer, ErrorCode::request_timed_out, "the request's time was up before");
    } else {
      co_await create(context, quota, asked, request->validate_only, answer);
    }
  }
  reply.send(response);
}

}  // namespace polylog::server::kafka
