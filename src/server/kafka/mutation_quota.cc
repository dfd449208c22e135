#include "server/kafka/mutation_quota.h"

namespace polylog::server::kafka {

using broker::quotas::Kind;

MutationQuota::MutationQuota(Context& context, Reply& reply, bool strict)
    : context_(context), reply_(reply), strict_(strict) {}

bool MutationQuota::take(std::int64_t partitions) {
  if (!reply_.limited()) return true;
  broker::quotas::Quotas& quotas = context_.broker.quotas();
  if (!quotas.limited(Kind::mutation)) return true;
  const broker::quotas::Quotas::Mutation taken =
      quotas.mutate(reply_.who(), static_cast<double>(partitions), strict_,
                    context_.broker.steady_ms());
  reply_.silence(Kind::mutation, taken.wait_ms);
  return taken.allowed;
}

}  // namespace polylog::server::kafka
