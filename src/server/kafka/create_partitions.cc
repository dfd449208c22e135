#include <boost/asio/awaitable.hpp>
#include <map>

#include "protocol/kafka/create_partitions_request.h"
#include "protocol/kafka/create_partitions_response.h"
#include "server/kafka/handlers.h"
#include "server/kafka/mutation_quota.h"
#include "server/kafka/replicas.h"

namespace polylog::server::kafka {

using protocol::kafka::CreatePartitionsRequest;
using protocol::kafka::CreatePartitionsResponse;

namespace {

using Asked = CreatePartitionsRequest::CreatePartitionsTopic;
using Answer = CreatePartitionsResponse::CreatePartitionsTopicResult;

void refuse(Context& context, Answer& answer, ErrorCode code, std::string message) {
  answer.error_code = context.wire(code);
  answer.error_message = std::move(message);
}

// The new partitions' brokers, where they are named: one list for each. A count that is no
// increase is the broker's to refuse.
bool assignments_fit(Context& context, const Asked& asked, const broker::Topic& topic,
                     Answer& answer) {
  if (!asked.assignments) return true;
  const auto now = static_cast<std::int32_t>(topic.partitions.size());
  if (asked.count <= now) return true;
  const std::int32_t additional = asked.count - now;
  if (asked.assignments->size() != static_cast<std::size_t>(additional)) {
    refuse(context, answer, ErrorCode::invalid_replica_assignment,
           "Attempted to add " + std::to_string(additional) +
               " additional partition(s), but only " + std::to_string(asked.assignments->size()) +
               " assignment(s) were specified.");
    return false;
  }
  for (const auto& assignment : *asked.assignments) {
    std::string wrong =
        wrong_with_replicas(assignment.broker_ids, context.broker.settings().node_id);
    if (wrong.empty()) continue;
    refuse(context, answer, ErrorCode::invalid_replica_assignment, std::move(wrong));
    return false;
  }
  return true;
}

Async<void> grow(Context& context, MutationQuota& quota, const Asked& asked, bool validate_only,
                 Answer& answer) {
  const std::shared_ptr<broker::Topic> topic = context.broker.find(asked.name);
  if (!topic) {
    refuse(context, answer, ErrorCode::unknown_topic_or_partition, "there is no such topic");
    co_return;
  }
  // Where a group's offsets are follows from the number of partitions.
  if (is_internal_topic(asked.name)) {
    refuse(context, answer, ErrorCode::invalid_topic_exception,
           "the number of partitions of an internal topic cannot be changed");
    co_return;
  }
  if (!assignments_fit(context, asked, *topic, answer)) co_return;
  const auto now = static_cast<std::int32_t>(topic->partitions.size());
  if (asked.count > now && !quota.take(asked.count - now)) {
    refuse(context, answer, ErrorCode::throttling_quota_exceeded, MutationQuota::message);
    co_return;
  }
  std::string name = asked.name;
  const broker::Broker::TopicOutcome outcome =
      co_await context.broker.grow_topic(std::move(name), asked.count, validate_only);
  if (outcome.error != broker::Broker::TopicError::none) {
    refuse(context, answer, error_code(outcome.error), outcome.message);
  } else if (!validate_only) {
    log_info("kafka: topic " + asked.name + " has " + std::to_string(asked.count) +
             " partitions now");
  }
}

}  // namespace

Async<void> create_partitions(Context& context, ClientPtr, Call call, Reply reply) {
  const Result<CreatePartitionsRequest> request =
      CreatePartitionsRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  std::map<std::string, int> times_named;
  for (const Asked& asked : request->topics) ++times_named[asked.name];

  const std::int64_t last_start_ns = context.last_start_ns(request->timeout_ms);
  constexpr std::int16_t throttled_from = 3;
  MutationQuota quota(context, reply, call.version >= throttled_from);
  CreatePartitionsResponse response;
  for (const Asked& asked : request->topics) {
    int& times = times_named[asked.name];
    if (times == 0) continue;  // answered already
    Answer& answer = response.results.emplace_back();
    answer.name = asked.name;
    if (times > 1) {
      refuse(context, answer, ErrorCode::invalid_request, "Duplicate topic name.");
      times = 0;
    } else if (context.passed(last_start_ns)) {
      refuse(context, answer, ErrorCode::request_timed_out, "the request's time was up before");
    } else {
      co_await grow(context, quota, asked, request->validate_only, answer);
    }
  }
  reply.send(response);
}

}  // namespace polylog::server::kafka
