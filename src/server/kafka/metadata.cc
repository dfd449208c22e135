#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <set>

#include "protocol/kafka/metadata_request.h"
#include "protocol/kafka/metadata_response.h"
#include "server/kafka/handlers.h"
#include "server/kafka/operations.h"

namespace polylog::server::kafka {

using protocol::kafka::MetadataRequest;
using protocol::kafka::MetadataResponse;

namespace {

constexpr std::int16_t null_means_all_from = 1;
constexpr std::int16_t has_ids_from = 10;
constexpr std::int16_t asks_by_id_from = 12;

MetadataResponse::MetadataResponseTopic describe(Context& context, const broker::Topic& topic) {
  const std::int32_t node = context.broker.settings().node_id;
  MetadataResponse::MetadataResponseTopic out;
  out.name = topic.name;
  out.topic_id = topic.id;
  out.is_internal = is_internal_topic(topic.name);
  out.partitions.reserve(topic.partitions.size());
  for (const std::shared_ptr<broker::Partition>& partition : topic.partitions) {
    MetadataResponse::MetadataResponsePartition& entry = out.partitions.emplace_back();
    entry.partition_index = partition->id().partition;
    entry.leader_id = node;
    entry.leader_epoch = partition->epoch().value();
    entry.replica_nodes.push_back(node);
    entry.isr_nodes.push_back(node);
  }
  return out;
}

Async<void> create_automatically(ClientPtr client, std::string name) {
  Context& context = *client->context;
  broker::NewTopic request;
  request.name = name;
  const broker::Broker::TopicOutcome outcome =
      co_await context.broker.create_topic(std::move(request));
  using TopicError = broker::Broker::TopicError;
  if (outcome.error == TopicError::none) {
    log_info("kafka: created topic " + name + ", asked for by " + client->peer->address());
  } else if (outcome.error != TopicError::exists) {
    log_warn(context.storage_trouble,
             "kafka: cannot create topic " + name + ": " + outcome.message);
  }
}

// What a client is told about a name nobody knows. A topic that is about to be made is unknown
// still, as in Kafka: clients ask again.
ErrorCode about_unknown(const ClientPtr& client, const std::string& name, bool may_create) {
  Context& context = *client->context;
  if (!broker::check_topic_name(name)) return ErrorCode::invalid_topic_exception;
  const broker::Settings& settings = context.broker.settings();
  if (is_internal_topic(name)) return ErrorCode::unknown_topic_or_partition;
  if (!may_create || !settings.auto_create_topics) return ErrorCode::unknown_topic_or_partition;
  if (settings.default_replication_factor > 1) return ErrorCode::invalid_replication_factor;
  boost::asio::co_spawn(context.broker.reactor().context(), create_automatically(client, name),
                        boost::asio::detached);
  return ErrorCode::unknown_topic_or_partition;
}

MetadataResponse::MetadataResponseTopic by_id(Context& context, const Uuid& id) {
  if (const std::shared_ptr<broker::Topic> topic = context.broker.find(id)) {
    return describe(context, *topic);
  }
  MetadataResponse::MetadataResponseTopic out;
  out.name = std::nullopt;
  out.topic_id = id;
  out.error_code = context.wire(ErrorCode::unknown_topic_id);
  return out;
}

MetadataResponse::MetadataResponseTopic by_name(const ClientPtr& client, const std::string& name,
                                                bool may_create) {
  Context& context = *client->context;
  if (const std::shared_ptr<broker::Topic> topic = context.broker.find(name)) {
    return describe(context, *topic);
  }
  MetadataResponse::MetadataResponseTopic out;
  out.name = name;
  out.error_code = context.wire(about_unknown(client, name, may_create));
  out.is_internal = is_internal_topic(name);
  return out;
}

void answer_topics(const ClientPtr& client, const MetadataRequest& request, std::int16_t version,
                   MetadataResponse& response) {
  Context& context = *client->context;
  const bool all = !request.topics || (version < null_means_all_from && request.topics->empty());
  if (all) {
    for (const std::shared_ptr<broker::Topic>& topic : context.broker.topics()) {
      response.topics.push_back(describe(context, *topic));
    }
    return;
  }
  std::set<std::string> names;
  std::set<Uuid> ids;
  for (const MetadataRequest::MetadataRequestTopic& topic : *request.topics) {
    const bool asks_by_id = version >= has_ids_from && (!topic.name || !topic.topic_id.is_zero());
    if (asks_by_id && version < asks_by_id_from) {
      MetadataResponse::MetadataResponseTopic& refused = response.topics.emplace_back();
      refused.name = topic.name.value_or("");
      refused.topic_id = topic.topic_id;
      refused.error_code = context.wire(ErrorCode::invalid_request);
    } else if (asks_by_id) {
      if (ids.insert(topic.topic_id).second) {
        response.topics.push_back(by_id(context, topic.topic_id));
      }
    } else if (names.insert(*topic.name).second) {
      response.topics.push_back(by_name(client, *topic.name, request.allow_auto_topic_creation));
    }
  }
}

}  // namespace

Async<void> metadata(Context& context, ClientPtr client, Call call, Reply reply) {
  const Result<MetadataRequest> request = MetadataRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  MetadataResponse response;
  MetadataResponse::MetadataResponseBroker& node = response.brokers.emplace_back();
  node.node_id = context.broker.settings().node_id;
  node.host = context.advertised_host(*client->peer);
  node.port = context.advertised_port(*client->peer);
  response.cluster_id = context.broker.cluster_id().to_string();
  response.controller_id = node.node_id;
  answer_topics(client, *request, call.version, response);
  if (request->include_topic_authorized_operations) {
    for (MetadataResponse::MetadataResponseTopic& topic : response.topics) {
      if (topic.error_code == 0) topic.topic_authorized_operations = topic_operations;
    }
  }
  if (request->include_cluster_authorized_operations) {
    response.cluster_authorized_operations = cluster_operations;
  }
  reply.send(response);
}

}  // namespace polylog::server::kafka
