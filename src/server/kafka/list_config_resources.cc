#include <algorithm>
#include <boost/asio/awaitable.hpp>

#include "protocol/kafka/list_config_resources_request.h"
#include "protocol/kafka/list_config_resources_response.h"
#include "server/kafka/config_codes.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::ListConfigResourcesRequest;
using protocol::kafka::ListConfigResourcesResponse;

namespace {

constexpr std::int8_t all_resources[] = {topic_resource, broker_resource, logger_resource,
                                         client_metrics_resource, group_resource};

std::vector<std::string> names_of(const Context& context, std::int8_t type) {
  std::vector<std::string> names;
  if (type == topic_resource) {
    for (const auto& topic : context.broker.topics()) names.push_back(topic->name);
  } else if (type == broker_resource || type == logger_resource) {
    names.push_back(std::to_string(context.broker.settings().node_id));
  } else if (type == group_resource) {
    names = context.broker.configured_groups();
  }
  return names;  // clients are asked for no metrics
}

}  // namespace

Async<void> list_config_resources(Context& context, ClientPtr, Call call, Reply reply) {
  const Result<ListConfigResourcesRequest> request =
      ListConfigResourcesRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  // Version 0 was a list of client metrics alone.
  std::vector<std::int8_t> types = request->resource_types;
  if (call.version == 0) types = {client_metrics_resource};
  if (types.empty()) types.assign(std::begin(all_resources), std::end(all_resources));
  ListConfigResourcesResponse response;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const std::int8_t type = types[i];
    if (std::find(std::begin(all_resources), std::end(all_resources), type) ==
        std::end(all_resources)) {
      response.config_resources.clear();
      response.error_code = context.wire(ErrorCode::unsupported_version);
      break;
    }
    if (std::find(types.begin(), types.begin() + static_cast<std::ptrdiff_t>(i), type) !=
        types.begin() + static_cast<std::ptrdiff_t>(i)) {
      continue;  // named twice
    }
    for (std::string& name : names_of(context, type)) {
      auto& out = response.config_resources.emplace_back();
      out.resource_name = std::move(name);
      out.resource_type = type;
    }
  }
  reply.send(response);
}

}  // namespace polylog::server::kafka
