#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <cctype>
#include <string_view>

#include "broker/groups/coordinator.h"
#include "protocol/kafka/list_groups_request.h"
#include "protocol/kafka/list_groups_response.h"
#include "server/kafka/group_calls.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::ListGroupsRequest;
using protocol::kafka::ListGroupsResponse;

namespace {

using broker::groups::GroupKind;
using broker::groups::ListResult;

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

// An empty filter lets everything through.
bool passes(const std::vector<std::string>& filter, std::string_view word) {
  return filter.empty() || std::any_of(filter.begin(), filter.end(),
                                       [&](const auto& wanted) { return same_word(wanted, word); });
}

std::string_view name_of(GroupKind kind) {
  return kind == GroupKind::classic ? "classic" : "consumer";
}

}  // namespace

Async<void> list_groups(Context& context, ClientPtr client, Call call, Reply reply) {
  const Result<ListGroupsRequest> request = ListGroupsRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  const auto asked = std::make_shared<const ListGroupsRequest>(*request);
  const std::shared_ptr<Reply> held = hold(std::move(reply));
  context.groups.list([held, client, asked](ListResult result) {
    ListGroupsResponse response;
    response.error_code = client->context->wire(error_code(result.error));
    for (broker::groups::ListedGroup& group : result.groups) {
      if (!passes(asked->states_filter, group.state)) continue;
      if (!passes(asked->types_filter, name_of(group.kind))) continue;
      auto& out = response.groups.emplace_back();
      out.group_id = std::move(group.id);
      out.protocol_type = std::move(group.protocol_type);
      out.group_state = std::move(group.state);
      out.group_type = name_of(group.kind);
    }
    held->send(response);
  });
}

}  // namespace polylog::server::kafka
