#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <map>
#include <set>

#include "protocol/kafka/create_topics_request.h"
#include "protocol/kafka/create_topics_response.h"
#include "server/kafka/config_codes.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::CreateTopicsRequest;
using protocol::kafka::CreateTopicsResponse;

namespace {

using Asked = CreateTopicsRequest::CreatableTopic;
using Answer = CreateTopicsResponse::CreatableTopicResult;

void refuse(Context& context, Answer& answer, ErrorCode code, std::string message) {
  answer.error_code = context.wire(code);
  answer.error_message = std::move(message);
}

// A manual assignment names each partition from 0 on, each on this node alone.
bool assignment_fits(const Asked& asked, std::int32_t node_id) {
  std::set<std::int32_t> partitions;
  for (const auto& assignment : asked.assignments) {
    const bool here = assignment.broker_ids.size() == 1 && assignment.broker_ids[0] == node_id;
    if (!here || !partitions.insert(assignment.partition_index).second) return false;
  }
  return *partitions.begin() == 0 &&
         *partitions.rbegin() == static_cast<std::int32_t>(partitions.size()) - 1;
}

// What the request means, or the refusal already in `answer`.
std::optional<broker::NewTopic> understand(Context& context, const Asked& asked, Answer& answer) {
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
  if (!assignment_fits(asked, context.broker.settings().node_id)) {
    refuse(context, answer, ErrorCode::invalid_replica_assignment,
           "partitions are numbered from 0 and can only be assigned to broker " +
               std::to_string(context.broker.settings().node_id));
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

Async<void> create(Context& context, const Asked& asked, bool validate_only, Answer& answer) {
  std::optional<broker::NewTopic> topic = understand(context, asked, answer);
  if (!topic) co_return;
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

  CreateTopicsResponse response;
  for (const Asked& asked : request->topics) {
    int& times = times_named[asked.name];
    if (times == 0) continue;  // answered already
    Answer& answer = response.topics.emplace_back();
    answer.name = asked.name;
    if (times > 1) {
      refuse(context, answer, ErrorCode::invalid_request, "the topic is named more than once");
      times = 0;
    } else {
      co_await create(context, asked, request->validate_only, answer);
    }
  }
  reply.send(response);
}

}  // namespace polylog::server::kafka
