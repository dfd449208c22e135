#include <boost/asio/awaitable.hpp>

#include "broker/groups/coordinator.h"
#include "protocol/kafka/delete_groups_request.h"
#include "protocol/kafka/delete_groups_response.h"
#include "server/kafka/group_calls.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::DeleteGroupsRequest;
using protocol::kafka::DeleteGroupsResponse;

Async<void> delete_groups(Context& context, ClientPtr client, Call call, Reply reply) {
  using broker::groups::GroupError;
  const Result<DeleteGroupsRequest> request = DeleteGroupsRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  const std::vector<std::string>& names = request->groups_names;
  const auto gathering =
      std::make_shared<Gathering<DeleteGroupsResponse>>(std::move(reply), names.size());
  for (const std::string& name : names) {
    gathering->response.results.emplace_back().group_id = name;
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto fill = [client, i](DeleteGroupsResponse& response, GroupError error) {
      response.results[i].error_code = client->context->wire(error_code(error));
    };
    context.groups.delete_group(names[i], gathering->part<GroupError>(fill));
  }
}

}  // namespace polylog::server::kafka
