#include "cli/client_quotas.h"

#include <algorithm>

#include "protocol/kafka/alter_client_quotas_request.h"
#include "protocol/kafka/alter_client_quotas_response.h"
#include "protocol/kafka/describe_client_quotas_request.h"
#include "protocol/kafka/describe_client_quotas_response.h"

namespace polylog::cli {

using protocol::kafka::AlterClientQuotasRequest;
using protocol::kafka::AlterClientQuotasResponse;
using protocol::kafka::DescribeClientQuotasRequest;
using protocol::kafka::DescribeClientQuotasResponse;

Result<std::vector<QuotaView>> list_quotas(KafkaClient& client,
                                           const std::vector<QuotaFilter>& filters, bool strict) {
  DescribeClientQuotasRequest request;
  request.strict = strict;
  for (const QuotaFilter& filter : filters) {
    auto& component = request.components.emplace_back();
    component.entity_type = filter.entity_type;
    component.match_type = static_cast<std::int8_t>(filter.match);
    component.match.reset();
    if (filter.match == QuotaFilter::Match::exact) component.match = filter.name;
  }
  POLYLOG_ASSIGN(answer, client.call<DescribeClientQuotasResponse>(request));
  if (answer.error_code != 0) {
    return fail(Errc::invalid, wire_error(answer.error_code, answer.error_message));
  }
  std::vector<QuotaView> quotas;
  if (!answer.entries) return quotas;
  for (const auto& entry : *answer.entries) {
    QuotaView& quota = quotas.emplace_back();
    for (const auto& part : entry.entity) quota.entity[part.entity_type] = part.entity_name;
    for (const auto& value : entry.values) quota.limits[value.key] = value.value;
  }
  std::sort(quotas.begin(), quotas.end(),
            [](const QuotaView& a, const QuotaView& b) { return a.entity < b.entity; });
  return quotas;
}

Result<WireAnswer> alter_quotas(KafkaClient& client, const QuotaEntity& entity,
                                const std::vector<QuotaChange>& changes, bool dry_run) {
  AlterClientQuotasRequest request;
  request.validate_only = dry_run;
  auto& entry = request.entries.emplace_back();
  for (const auto& [type, name] : entity) {
    auto& part = entry.entity.emplace_back();
    part.entity_type = type;
    part.entity_name = name;
  }
  for (const QuotaChange& change : changes) {
    auto& operation = entry.ops.emplace_back();
    operation.key = change.key;
    operation.value = change.limit.value_or(0);
    operation.remove = !change.limit;
  }
  POLYLOG_ASSIGN(answer, client.call<AlterClientQuotasResponse>(request));
  for (const auto& result : answer.entries) {
    if (result.error_code == 0) continue;
    return WireAnswer{result.error_code, result.error_message};
  }
  return WireAnswer{};
}

}  // namespace polylog::cli
