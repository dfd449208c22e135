#include <boost/asio/awaitable.hpp>
#include <map>
#include <utility>

#include "protocol/kafka/alter_configs_request.h"
#include "protocol/kafka/alter_configs_response.h"
#include "server/kafka/config_changes.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::AlterConfigsRequest;
using protocol::kafka::AlterConfigsResponse;

namespace {

using Asked = AlterConfigsRequest::AlterConfigsResource;

ConfigAlteration alteration_of(const Asked& asked) {
  ConfigAlteration alteration;
  alteration.resource_type = asked.resource_type;
  alteration.resource_name = asked.resource_name;
  alteration.replaces = true;
  for (const auto& config : asked.configs) {
    ConfigOperation& operation = alteration.operations.emplace_back();
    operation.name = config.name;
    operation.value = config.value;
  }
  return alteration;
}

}  // namespace

Async<void> alter_configs(Context& context, ClientPtr, Call call, Reply reply) {
  const Result<AlterConfigsRequest> request = AlterConfigsRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  std::map<std::pair<std::int8_t, std::string>, int> times_named;
  for (const Asked& asked : request->resources) {
    ++times_named[{asked.resource_type, asked.resource_name}];
  }
  AlterConfigsResponse response;
  for (const Asked& asked : request->resources) {
    AlterationOutcome outcome;
    if (times_named[{asked.resource_type, asked.resource_name}] > 1) {
      outcome.code = ErrorCode::invalid_request;
      outcome.message = "Each resource must appear at most once.";
    } else {
      ConfigAlteration alteration = alteration_of(asked);
      AlterationOutcome done =
          co_await alter_configs_of(context, std::move(alteration), request->validate_only);
      outcome = std::move(done);
    }
    auto& answer = response.responses.emplace_back();
    answer.resource_type = asked.resource_type;
    answer.resource_name = asked.resource_name;
    answer.error_code = context.wire(outcome.code);
    answer.error_message = std::move(outcome.message);
  }
  reply.send(response);
}

}  // namespace polylog::server::kafka
