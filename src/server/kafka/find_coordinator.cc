#include <boost/asio/awaitable.hpp>

#include "broker/groups/coordinator.h"
#include "protocol/kafka/find_coordinator_request.h"
#include "protocol/kafka/find_coordinator_response.h"
#include "server/kafka/group_calls.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::FindCoordinatorRequest;
using protocol::kafka::FindCoordinatorResponse;

namespace {

using broker::groups::GroupError;

constexpr std::int16_t batched_from = 4;
constexpr std::int8_t group_key = 0;
constexpr std::int8_t transaction_key = 1;

// The same answer for every key: this node, or why none.
struct Found {
  ErrorCode error = ErrorCode::none;
  std::string message;
  std::int32_t node_id = -1;
  std::string host;
  std::int32_t port = -1;
};

Found found_here(const Context& context, const Peer& peer) {
  Found found;
  found.node_id = context.broker.settings().node_id;
  found.host = context.advertised_host(peer);
  found.port = context.advertised_port(peer);
  return found;
}

Found not_found(ErrorCode error, std::string message) {
  Found found;
  found.error = error;
  found.message = std::move(message);
  return found;
}

FindCoordinatorResponse response_of(Context& context, const FindCoordinatorRequest& request,
                                    const Found& found, std::int16_t version) {
  FindCoordinatorResponse response;
  const std::int16_t code = context.wire(found.error);
  if (version < batched_from) {
    response.error_code = code;
    response.error_message = found.message;
    response.node_id = found.node_id;
    response.host = found.host;
    response.port = found.port;
    return response;
  }
  for (const std::string& key : request.coordinator_keys) {
    auto& answer = response.coordinators.emplace_back();
    answer.key = key;
    answer.node_id = found.node_id;
    answer.host = found.host;
    answer.port = found.port;
    answer.error_code = code;
    answer.error_message = found.message;
  }
  return response;
}

}  // namespace

// Groups are coordinated here. Nobody coordinates transactions yet, and the answer says so in a way
// that no client retries.
Async<void> find_coordinator(Context& context, ClientPtr client, Call call, Reply reply) {
  const Result<FindCoordinatorRequest> request =
      FindCoordinatorRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  if (request->key_type == transaction_key) {
    const Found none = not_found(ErrorCode::unsupported_version, "transactions are not served yet");
    reply.send(response_of(context, *request, none, call.version));
    co_return;
  }
  if (request->key_type != group_key) {
    const Found none = not_found(ErrorCode::invalid_request, "only groups have coordinators here");
    reply.send(response_of(context, *request, none, call.version));
    co_return;
  }
  const auto asked = std::make_shared<const FindCoordinatorRequest>(*request);
  const std::int16_t version = call.version;
  const std::shared_ptr<Reply> held = hold(std::move(reply));
  context.groups.find([held, client, asked, version](GroupError error) {
    Context& its = *client->context;
    Found found = found_here(its, *client->peer);
    if (error != GroupError::none) {
      found = not_found(error_code(error), "the topic of group offsets is not there");
    }
    held->send(response_of(its, *asked, found, version));
  });
}

}  // namespace polylog::server::kafka
