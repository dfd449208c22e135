#include <boost/asio/awaitable.hpp>

#include "broker/groups/coordinator.h"
#include "protocol/kafka/sync_group_request.h"
#include "protocol/kafka/sync_group_response.h"
#include "server/kafka/group_calls.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::SyncGroupRequest;
using protocol::kafka::SyncGroupResponse;

// Parked until the group's leader has sent the assignments.
Async<void> sync_group(Context& context, ClientPtr client, Call call, Reply reply) {
  Result<SyncGroupRequest> request = SyncGroupRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  broker::groups::SyncRequest sync;
  sync.group = std::move(request->group_id);
  sync.member_id = std::move(request->member_id);
  sync.instance_id = std::move(request->group_instance_id);
  sync.generation = request->generation_id;
  sync.protocol_type = std::move(request->protocol_type);
  sync.protocol = std::move(request->protocol_name);
  for (auto& assigned : request->assignments) {
    sync.assignments.emplace_back(std::move(assigned.member_id),
                                  to_vector(assigned.assignment.view()));
  }
  sync.caller = caller_of(client, call);
  const std::shared_ptr<Reply> held = hold(std::move(reply));
  context.groups.sync(std::move(sync), [held, client](broker::groups::SyncResult result) {
    SyncGroupResponse response;
    response.error_code = client->context->wire(error_code(result.error));
    response.protocol_type = std::move(result.protocol_type);
    response.protocol_name = std::move(result.protocol);
    response.assignment = slice_of(std::move(result.assignment));
    held->send(response);
  });
}

}  // namespace polylog::server::kafka
