#include <boost/asio/awaitable.hpp>

#include "protocol/kafka/find_coordinator_request.h"
#include "protocol/kafka/find_coordinator_response.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::FindCoordinatorRequest;
using protocol::kafka::FindCoordinatorResponse;

namespace {

constexpr std::int16_t batched_from = 4;
constexpr const char* why = "consumer groups and transactions are not served yet";

}  // namespace

// Nobody coordinates groups or transactions here yet, and the answer says so in a way that no
// client retries. It is served all the same: librdkafka up to 2.x takes a broker that does not
// list it for one from before lz4, and silently stops compressing.
Async<void> find_coordinator(Context& context, ClientPtr, Call call, Reply reply) {
  const Result<FindCoordinatorRequest> request =
      FindCoordinatorRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  FindCoordinatorResponse response;
  const std::int16_t code = context.wire(ErrorCode::unsupported_version);
  if (call.version < batched_from) {
    response.error_code = code;
    response.error_message = why;
    response.node_id = -1;
    response.port = -1;
    reply.send(response);
    co_return;
  }
  for (const std::string& key : request->coordinator_keys) {
    FindCoordinatorResponse::Coordinator& answer = response.coordinators.emplace_back();
    answer.key = key;
    answer.node_id = -1;
    answer.port = -1;
    answer.error_code = code;
    answer.error_message = why;
  }
  reply.send(response);
}

}  // namespace polylog::server::kafka
