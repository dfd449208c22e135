#include <boost/asio/awaitable.hpp>

#include "broker/groups/coordinator.h"
#include "protocol/kafka/heartbeat_request.h"
#include "protocol/kafka/heartbeat_response.h"
#include "server/kafka/group_calls.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::HeartbeatRequest;
using protocol::kafka::HeartbeatResponse;

Async<void> heartbeat(Context& context, ClientPtr client, Call call, Reply reply) {
  Result<HeartbeatRequest> request = HeartbeatRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  broker::groups::HeartbeatRequest beat;
  beat.group = std::move(request->group_id);
  beat.member_id = std::move(request->member_id);
  beat.instance_id = std::move(request->group_instance_id);
  beat.generation = request->generation_id;
  const std::shared_ptr<Reply> held = hold(std::move(reply));
  context.groups.heartbeat(std::move(beat), [held, client](broker::groups::GroupError error) {
    HeartbeatResponse response;
    response.error_code = client->context->wire(error_code(error));
    held->send(response);
  });
}

}  // namespace polylog::server::kafka
