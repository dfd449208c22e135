#include <boost/asio/awaitable.hpp>

#include "broker/groups/coordinator.h"
#include "protocol/kafka/leave_group_request.h"
#include "protocol/kafka/leave_group_response.h"
#include "server/kafka/group_calls.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::LeaveGroupRequest;
using protocol::kafka::LeaveGroupResponse;

namespace {

using broker::groups::GroupError;
using broker::groups::LeaveResult;
using broker::groups::LeavingMember;

constexpr std::int16_t several_from = 3;

// Before several could leave at once, the only member's error was the request's.
LeaveGroupResponse response_of(Context& context, const std::vector<LeavingMember>& leaving,
                               const LeaveResult& result, std::int16_t version) {
  LeaveGroupResponse response;
  GroupError error = result.error;
  if (version < several_from) {
    if (error == GroupError::none && !result.members.empty()) error = result.members.front();
  } else {
    for (std::size_t i = 0; i < result.members.size(); ++i) {
      auto& out = response.members.emplace_back();
      out.member_id = leaving[i].id;
      out.group_instance_id = leaving[i].instance_id;
      out.error_code = context.wire(error_code(result.members[i]));
    }
  }
  response.error_code = context.wire(error_code(error));
  return response;
}

}  // namespace

Async<void> leave_group(Context& context, ClientPtr client, Call call, Reply reply) {
  Result<LeaveGroupRequest> request = LeaveGroupRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  broker::groups::LeaveRequest leave;
  leave.group = std::move(request->group_id);
  if (call.version < several_from) {
    leave.members.push_back({std::move(request->member_id), std::nullopt});
  }
  for (auto& member : request->members) {
    leave.members.push_back({std::move(member.member_id), std::move(member.group_instance_id)});
  }
  const std::vector<LeavingMember> leaving = leave.members;
  const std::int16_t version = call.version;
  const std::shared_ptr<Reply> held = hold(std::move(reply));
  context.groups.leave(std::move(leave), [held, client, leaving, version](LeaveResult result) {
    held->send(response_of(*client->context, leaving, result, version));
  });
}

}  // namespace polylog::server::kafka
