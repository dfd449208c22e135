#include <boost/asio/awaitable.hpp>

#include "broker/quotas/rules.h"
#include "protocol/kafka/describe_client_quotas_request.h"
#include "protocol/kafka/describe_client_quotas_response.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::DescribeClientQuotasRequest;
using protocol::kafka::DescribeClientQuotasResponse;

namespace {

namespace quotas = broker::quotas;
using Match = quotas::Condition::Match;

Result<std::vector<quotas::Condition>> conditions_of(const DescribeClientQuotasRequest& request) {
  std::vector<quotas::Condition> conditions;
  for (const auto& component : request.components) {
    const bool exact = component.match_type == static_cast<std::int8_t>(Match::exact);
    if (component.match_type < 0 || component.match_type > static_cast<std::int8_t>(Match::any)) {
      return fail(Errc::invalid,
                  "Unknown match type " + std::to_string(component.match_type));
    }
    if (exact != component.match.has_value()) {
      return fail(Errc::invalid, exact ? "Request specified MATCH_TYPE_EXACT, but set match "
                                         "string to null."
                                       : "Request specified a match type without a name, but "
                                         "also specified a match string.");
    }
    quotas::Condition& condition = conditions.emplace_back();
    condition.type = component.entity_type;
    condition.match = static_cast<Match>(component.match_type);
    condition.name = component.match.value_or("");
    if (exact && condition.type == "ip") {
      const std::string ip = quotas::canonical_ip(condition.name);
      if (!ip.empty()) condition.name = ip;
    }
  }
  POLYLOG_TRY(quotas::check_conditions(conditions));
  return conditions;
}

}  // namespace

Async<void> describe_client_quotas(Context& context, ClientPtr, Call call, Reply reply) {
  const Result<DescribeClientQuotasRequest> request =
      DescribeClientQuotasRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  DescribeClientQuotasResponse response;
  const auto conditions = conditions_of(*request);
  if (!conditions) {
    response.error_code = context.wire(error_code(conditions.error().code));
    response.error_message = conditions.error().context;
    response.entries = std::nullopt;
    reply.send(response);
    co_return;
  }
  response.entries.emplace();
  for (const auto& [entity, values] : context.broker.quotas().limits()) {
    if (!quotas::matches(entity, *conditions, request->strict)) continue;
    auto& entry = response.entries->emplace_back();
    for (const quotas::EntityPart& part : quotas::parts_of(entity)) {
      auto& out = entry.entity.emplace_back();
      out.entity_type = part.type;
      out.entity_name = part.name;
    }
    for (const auto& [key, value] : values) {
      auto& out = entry.values.emplace_back();
      out.key = key;
      out.value = value;
    }
  }
  reply.send(response);
}

}  // namespace polylog::server::kafka
