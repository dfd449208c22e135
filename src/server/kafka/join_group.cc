#include <boost/asio/awaitable.hpp>

#include "broker/groups/coordinator.h"
#include "protocol/kafka/join_group_request.h"
#include "protocol/kafka/join_group_response.h"
#include "server/kafka/group_calls.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::JoinGroupRequest;
using protocol::kafka::JoinGroupResponse;

namespace {

constexpr std::int16_t member_id_first_from = 4;
constexpr std::int16_t nullable_protocol_from = 7;
constexpr std::int16_t skip_assignment_from = 9;

JoinGroupResponse response_of(Context& context, broker::groups::JoinResult result,
                              std::int16_t version) {
  JoinGroupResponse response;
  response.error_code = context.wire(error_code(result.error));
  response.generation_id = result.generation;
  response.protocol_type = std::move(result.protocol_type);
  response.protocol_name = std::move(result.protocol);
  if (version < nullable_protocol_from && !response.protocol_name) response.protocol_name = "";
  response.leader = std::move(result.leader);
  response.skip_assignment = result.skip_assignment;
  response.member_id = std::move(result.member_id);
  for (broker::groups::JoinedMember& member : result.members) {
    auto& out = response.members.emplace_back();
    out.member_id = std::move(member.id);
    out.group_instance_id = std::move(member.instance_id);
    out.metadata = slice_of(std::move(member.metadata));
  }
  return response;
}

}  // namespace

// Parked until the group's other members have joined too. The connection goes on meanwhile, so
// that its end is seen.
Async<void> join_group(Context& context, ClientPtr client, Call call, Reply reply) {
  Result<JoinGroupRequest> request = JoinGroupRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  broker::groups::JoinRequest join;
  join.group = std::move(request->group_id);
  join.member_id = std::move(request->member_id);
  join.instance_id = std::move(request->group_instance_id);
  join.caller = caller_of(client, call);
  join.session_timeout_ms = request->session_timeout_ms;
  // Version 0 has none of its own.
  join.rebalance_timeout_ms = request->rebalance_timeout_ms < 0 ? request->session_timeout_ms
                                                                : request->rebalance_timeout_ms;
  join.protocol_type = std::move(request->protocol_type);
  for (auto& protocol : request->protocols) {
    join.protocols.push_back({std::move(protocol.name), to_vector(protocol.metadata.view())});
  }
  join.must_know_id = call.version >= member_id_first_from && !join.instance_id;
  join.can_skip_assignment = call.version >= skip_assignment_from;
  const std::int16_t version = call.version;
  const std::shared_ptr<Reply> held = hold(std::move(reply));
  context.groups.join(std::move(join), [held, client, version](broker::groups::JoinResult result) {
    held->send(response_of(*client->context, std::move(result), version));
  });
}

}  // namespace polylog::server::kafka
