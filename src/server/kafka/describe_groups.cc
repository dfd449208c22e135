#include <boost/asio/awaitable.hpp>

#include "broker/groups/coordinator.h"
#include "protocol/kafka/describe_groups_request.h"
#include "protocol/kafka/describe_groups_response.h"
#include "server/kafka/group_calls.h"
#include "server/kafka/handlers.h"
#include "server/kafka/operations.h"

namespace polylog::server::kafka {

using protocol::kafka::DescribeGroupsRequest;
using protocol::kafka::DescribeGroupsResponse;

namespace {

using broker::groups::DescribedGroup;
using broker::groups::GroupError;

constexpr std::int16_t not_found_from = 6;

// Before there was an error for it, a group nobody knows was shown as dead.
void put(Context& context, DescribedGroup group, std::int16_t version,
         DescribeGroupsResponse::DescribedGroup& out) {
  GroupError error = group.error;
  if (error == GroupError::group_id_not_found) {
    group.state = "Dead";
    if (version < not_found_from) {
      error = GroupError::none;
    } else {
      out.error_message = "Group " + out.group_id + " not found.";
    }
  }
  out.error_code = context.wire(error_code(error));
  out.group_state = std::move(group.state);
  out.protocol_type = std::move(group.protocol_type);
  out.protocol_data = std::move(group.protocol);
  for (broker::groups::DescribedMember& member : group.members) {
    auto& its = out.members.emplace_back();
    its.member_id = std::move(member.id);
    its.group_instance_id = std::move(member.instance_id);
    its.client_id = std::move(member.client_id);
    its.client_host = std::move(member.host);
    its.member_metadata = slice_of(std::move(member.metadata));
    its.member_assignment = slice_of(std::move(member.assignment));
  }
}

}  // namespace

Async<void> describe_groups(Context& context, ClientPtr client, Call call, Reply reply) {
  const Result<DescribeGroupsRequest> request =
      DescribeGroupsRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  const std::int16_t version = call.version;
  const auto gathering =
      std::make_shared<Gathering<DescribeGroupsResponse>>(std::move(reply), request->groups.size());
  for (const std::string& group : request->groups) {
    auto& out = gathering->response.groups.emplace_back();
    out.group_id = group;
    if (request->include_authorized_operations) out.authorized_operations = group_operations;
  }
  for (std::size_t i = 0; i < request->groups.size(); ++i) {
    const auto fill = [client, version, i](DescribeGroupsResponse& response, DescribedGroup group) {
      put(*client->context, std::move(group), version, response.groups[i]);
    };
    context.groups.describe(request->groups[i], gathering->part<DescribedGroup>(fill));
  }
}

}  // namespace polylog::server::kafka
