#include <boost/asio/awaitable.hpp>
#include <utility>
#include <vector>

#include "protocol/kafka/incremental_alter_configs_request.h"
#include "protocol/kafka/incremental_alter_configs_response.h"
#include "server/kafka/config_changes.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::IncrementalAlterConfigsRequest;
using protocol::kafka::IncrementalAlterConfigsResponse;

namespace {

using Asked = IncrementalAlterConfigsRequest::AlterConfigsResource;

ConfigAlteration alteration_of(const Asked& asked) {
  ConfigAlteration alteration;
  alteration.resource_type = asked.resource_type;
  alteration.resource_name = asked.resource_name;
  for (const auto& config : asked.configs) {
    ConfigOperation& operation = alteration.operations.emplace_back();
    operation.name = config.name;
    operation.value = config.value;
    operation.kind = static_cast<ConfigOperation::Kind>(config.config_operation);
  }
  return alteration;
}

}  // namespace

Async<void> incremental_alter_configs(Context& context, ClientPtr, Call call, Reply reply) {
  const Result<IncrementalAlterConfigsRequest> request =
      IncrementalAlterConfigsRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  std::vector<ConfigAlteration> alterations;
  for (const Asked& asked : request->resources) alterations.push_back(alteration_of(asked));
  const bool validate_only = request->validate_only;
  std::vector<AlterationOutcome> outcomes =
      co_await alter_configs_of(context, std::move(alterations), validate_only);
  IncrementalAlterConfigsResponse response;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    auto& answer = response.responses.emplace_back();
    answer.resource_type = request->resources[i].resource_type;
    answer.resource_name = request->resources[i].resource_name;
    answer.error_code = context.wire(outcomes[i].code);
    answer.error_message = std::move(outcomes[i].message);
  }
  reply.send(response);
}

}  // namespace polylog::server::kafka
