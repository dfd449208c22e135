#pragma once

#include <cstdint>

#include "server/kafka/context.h"
#include "server/kafka/reply.h"

namespace polylog::server::kafka {

// What one request makes or deletes, against its client's controller_mutation_rate (Kafka wire
// protocol, "Quotas"). `reply` is the request's and outlives this.
class MutationQuota {
 public:
  // `strict`: the request's version knows THROTTLING_QUOTA_EXCEEDED; older ones are carried out
  // and paid for afterwards.
  MutationQuota(Context& context, Reply& reply, bool strict);

  // Before so many partitions are made or deleted. False: the client is over its rate, and this
  // part of the request is refused with THROTTLING_QUOTA_EXCEEDED.
  bool take(std::int64_t partitions);

  static constexpr const char* message = "The throttling quota has been exceeded.";

 private:
  Context& context_;
  Reply& reply_;
  bool strict_;
};

}  // namespace polylog::server::kafka
