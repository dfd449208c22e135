#include <boost/asio/awaitable.hpp>
#include <map>
#include <set>
#include <utility>

#include "broker/quotas/rules.h"
#include "protocol/kafka/alter_client_quotas_request.h"
#include "protocol/kafka/alter_client_quotas_response.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::AlterClientQuotasRequest;
using protocol::kafka::AlterClientQuotasResponse;

namespace {

namespace quotas = broker::quotas;
using Asked = AlterClientQuotasRequest::EntryData;

Result<meta::QuotaEntity> entity_of(const Asked& asked) {
  std::vector<quotas::EntityPart> parts;
  for (const auto& part : asked.entity) parts.push_back({part.entity_type, part.entity_name});
  return quotas::make_entity(parts);
}

// What one entry asks for, checked.
Result<std::vector<meta::QuotaChange>> changes_of(const Asked& asked) {
  POLYLOG_ASSIGN(entity, entity_of(asked));
  std::vector<meta::QuotaChange> changes;
  std::set<std::string> keys;
  for (const auto& operation : asked.ops) {
    if (!keys.insert(operation.key).second) {
      return fail(Errc::invalid, "Duplicate quota key " + operation.key +
                                     " not updating quota for this entity");
    }
    meta::QuotaChange& change = changes.emplace_back();
    change.entity = entity;
    change.key = operation.key;
    if (operation.remove) continue;
    POLYLOG_TRY(quotas::check_key(entity, operation.key));
    POLYLOG_TRY(quotas::check_limit(operation.key, operation.value));
    change.value = operation.value;
  }
  return changes;
}

}  // namespace

// The entries that are good are changed together, whatever the others are.
Async<void> alter_client_quotas(Context& context, ClientPtr, Call call, Reply reply) {
  const Result<AlterClientQuotasRequest> request =
      AlterClientQuotasRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  std::map<meta::QuotaEntity, int> times_named;
  for (const Asked& asked : request->entries) {
    if (const auto entity = entity_of(asked)) ++times_named[*entity];
  }
  AlterClientQuotasResponse response;
  std::vector<meta::QuotaChange> changes;
  for (const Asked& asked : request->entries) {
    auto& answer = response.entries.emplace_back();
    for (const auto& part : asked.entity) {
      auto& out = answer.entity.emplace_back();
      out.entity_type = part.entity_type;
      out.entity_name = part.entity_name;
    }
    Result<std::vector<meta::QuotaChange>> wanted = changes_of(asked);
    if (wanted && !wanted->empty() && times_named[wanted->front().entity] > 1) {
      wanted = fail(Errc::invalid, "Ignoring duplicate entity");
    }
    if (!wanted) {
      answer.error_code = context.wire(ErrorCode::invalid_request);
      answer.error_message = wanted.error().context;
      continue;
    }
    changes.insert(changes.end(), wanted->begin(), wanted->end());
  }
  if (!request->validate_only && !changes.empty()) {
    const std::size_t count = changes.size();
    const Result<void> done = co_await context.broker.change_quotas(std::move(changes));
    if (done) {
      log_info("kafka: changed " + std::to_string(count) + " client quota(s)");
    } else {
      for (auto& answer : response.entries) {
        if (answer.error_code != 0) continue;
        answer.error_code = context.wire(error_code(done.error().code));
        answer.error_message = done.error().to_string();
      }
    }
  }
  reply.send(response);
}

}  // namespace polylog::server::kafka
