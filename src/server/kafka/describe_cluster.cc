#include <boost/asio/awaitable.hpp>

#include "protocol/kafka/describe_cluster_request.h"
#include "protocol/kafka/describe_cluster_response.h"
#include "server/kafka/handlers.h"
#include "server/kafka/operations.h"

namespace polylog::server::kafka {

using protocol::kafka::DescribeClusterRequest;
using protocol::kafka::DescribeClusterResponse;

namespace {

constexpr std::int8_t endpoint_brokers = 1;
constexpr std::int8_t endpoint_controllers = 2;

}  // namespace

Async<void> describe_cluster(Context& context, ClientPtr client, Call call, Reply reply) {
  const Result<DescribeClusterRequest> request =
      DescribeClusterRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  DescribeClusterResponse response;
  response.cluster_id = context.broker.cluster_id().to_string();
  response.endpoint_type = request->endpoint_type;
  if (request->endpoint_type != endpoint_brokers) {
    const bool known = request->endpoint_type == endpoint_controllers;
    response.error_code = context.wire(known ? ErrorCode::mismatched_endpoint_type
                                             : ErrorCode::unsupported_endpoint_type);
    response.error_message = "this endpoint describes brokers only";
    reply.send(response);
    co_return;
  }
  DescribeClusterResponse::DescribeClusterBroker& node = response.brokers.emplace_back();
  node.broker_id = context.broker.settings().node_id;
  node.host = context.advertised_host(*client->peer);
  node.port = context.advertised_port(*client->peer);
  response.controller_id = node.broker_id;
  if (request->include_cluster_authorized_operations) {
    response.cluster_authorized_operations = cluster_operations;
  }
  reply.send(response);
}

}  // namespace polylog::server::kafka
