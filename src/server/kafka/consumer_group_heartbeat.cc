#include <boost/asio/awaitable.hpp>

#include "broker/groups/consumer_types.h"
#include "broker/groups/coordinator.h"
#include "protocol/kafka/consumer_group_heartbeat_request.h"
#include "protocol/kafka/consumer_group_heartbeat_response.h"
#include "server/kafka/group_calls.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::ConsumerGroupHeartbeatRequest;
using protocol::kafka::ConsumerGroupHeartbeatResponse;

namespace {

using broker::groups::ConsumerHeartbeat;
using broker::groups::ConsumerHeartbeatResult;
using broker::groups::GroupError;
using broker::groups::PartitionSet;

constexpr std::int16_t names_itself_from = 1;

ConsumerHeartbeat heartbeat_of(ConsumerGroupHeartbeatRequest request, std::int16_t version) {
  ConsumerHeartbeat beat;
  beat.group = std::move(request.group_id);
  beat.member_id = std::move(request.member_id);
  beat.member_epoch = request.member_epoch;
  beat.instance_id = std::move(request.instance_id);
  beat.rack_id = std::move(request.rack_id);
  beat.rebalance_timeout_ms = request.rebalance_timeout_ms;
  beat.topics = std::move(request.subscribed_topic_names);
  beat.expression = std::move(request.subscribed_topic_regex);
  beat.assignor = std::move(request.server_assignor);
  beat.names_itself = version >= names_itself_from;
  if (!request.topic_partitions) return beat;
  beat.owned.emplace();
  for (const auto& topic : *request.topic_partitions) {
    if (topic.partitions.empty()) continue;
    (*beat.owned)[topic.topic_id].insert(topic.partitions.begin(), topic.partitions.end());
  }
  return beat;
}

ConsumerGroupHeartbeatResponse response_of(Context& context, ConsumerHeartbeatResult result) {
  ConsumerGroupHeartbeatResponse response;
  response.error_code = context.wire(error_code(result.error));
  if (result.error != GroupError::none) {
    if (!result.message.empty()) response.error_message = std::move(result.message);
    return response;
  }
  response.member_id = std::move(result.member_id);
  response.member_epoch = result.member_epoch;
  response.heartbeat_interval_ms = result.heartbeat_interval_ms;
  if (!result.assignment) return response;
  ConsumerGroupHeartbeatResponse::Assignment assignment;
  for (const auto& [topic, partitions] : *result.assignment) {
    auto& out = assignment.topic_partitions.emplace_back();
    out.topic_id = topic;
    out.partitions.assign(partitions.begin(), partitions.end());
  }
  response.assignment = std::move(assignment);
  return response;
}

}  // namespace

Async<void> consumer_group_heartbeat(Context& context, ClientPtr client, Call call, Reply reply) {
  Result<ConsumerGroupHeartbeatRequest> request =
      ConsumerGroupHeartbeatRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  if (!context.broker.settings().groups.consumer_protocol) {
    ConsumerGroupHeartbeatResponse refused;
    refused.error_code = context.wire(ErrorCode::unsupported_version);
    refused.error_message = "group.coordinator.rebalance.protocols does not name consumer";
    reply.send(refused);
    co_return;
  }
  ConsumerHeartbeat beat = heartbeat_of(std::move(*request), call.version);
  beat.client_id = call.client_id.value_or("");
  beat.client_host = client_host(*client);
  const std::shared_ptr<Reply> held = hold(std::move(reply));
  context.groups.consumer_heartbeat(std::move(beat),
                                    [held, client](ConsumerHeartbeatResult result) {
                                      held->send(response_of(*client->context, std::move(result)));
                                    });
}

}  // namespace polylog::server::kafka
