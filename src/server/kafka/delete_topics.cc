#include <boost/asio/awaitable.hpp>
#include <map>

#include "protocol/kafka/delete_topics_request.h"
#include "protocol/kafka/delete_topics_response.h"
#include "server/kafka/handlers.h"
#include "server/kafka/mutation_quota.h"

namespace polylog::server::kafka {

using protocol::kafka::DeleteTopicsRequest;
using protocol::kafka::DeleteTopicsResponse;

namespace {

using Asked = DeleteTopicsRequest::DeleteTopicState;
using Answer = DeleteTopicsResponse::DeletableTopicResult;

constexpr std::int16_t names_or_ids_from = 6;

std::vector<Asked> asked_in(const DeleteTopicsRequest& request, std::int16_t version) {
  if (version >= names_or_ids_from) return request.topics;
  std::vector<Asked> asked;
  for (const std::string& name : request.topic_names) asked.emplace_back().name = name;
  return asked;
}

void refuse(Context& context, Answer& answer, ErrorCode code, std::string message) {
  answer.error_code = context.wire(code);
  answer.error_message = std::move(message);
}

// Puts the topic that is meant into `answer`, or why there is none to delete.
void resolve(Context& context, const Asked& asked, Answer& answer) {
  answer.name = asked.name;
  answer.topic_id = asked.topic_id;
  if (asked.name.has_value() == !asked.topic_id.is_zero()) {
    refuse(context, answer, ErrorCode::invalid_request,
           "a topic is named by name or by id, not by both or neither");
    return;
  }
  const std::shared_ptr<broker::Topic> topic =
      asked.name ? context.broker.find(*asked.name) : context.broker.find(asked.topic_id);
  if (!topic) {
    refuse(context, answer,
           asked.name ? ErrorCode::unknown_topic_or_partition : ErrorCode::unknown_topic_id,
           "there is no such topic");
    return;
  }
  answer.name = topic->name;
  answer.topic_id = topic->id;
  if (is_internal_topic(topic->name)) {
    refuse(context, answer, ErrorCode::invalid_topic_exception,
           "an internal topic cannot be deleted");
  }
}

Async<void> remove(Context& context, MutationQuota& quota, Answer& answer) {
  const std::string name = *answer.name;
  const std::shared_ptr<broker::Topic> topic = context.broker.find(name);
  if (!topic || topic->id != answer.topic_id) {  // deleted by somebody else, and made again
    refuse(context, answer, ErrorCode::unknown_topic_or_partition, "there is no such topic");
    co_return;
  }
  if (!quota.take(static_cast<std::int64_t>(topic->partitions.size()))) {
    refuse(context, answer, ErrorCode::throttling_quota_exceeded, MutationQuota::message);
    co_return;
  }
  std::string doomed = name;
  const broker::Broker::TopicOutcome outcome =
      co_await context.broker.delete_topic(std::move(doomed));
  if (outcome.error == broker::Broker::TopicError::none) {
    log_info("kafka: deleted topic " + name);
  } else {
    refuse(context, answer, error_code(outcome.error), outcome.message);
  }
}

}  // namespace

Async<void> delete_topics(Context& context, ClientPtr, Call call, Reply reply) {
  const Result<DeleteTopicsRequest> request = DeleteTopicsRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  // A topic that is asked for twice, be it once by name and once by id, is refused as Kafka does:
  // the second time it might be another one.
  DeleteTopicsResponse found;
  std::map<std::pair<std::optional<std::string>, Uuid>, int> times;
  for (const Asked& asked : asked_in(*request, call.version)) {
    Answer& answer = found.responses.emplace_back();
    resolve(context, asked, answer);
    ++times[{answer.name, answer.topic_id}];
  }
  const std::int64_t last_start_ns = context.last_start_ns(request->timeout_ms);
  constexpr std::int16_t throttled_from = 5;
  MutationQuota quota(context, reply, call.version >= throttled_from);
  DeleteTopicsResponse response;
  for (const Answer& one : found.responses) {
    int& count = times[{one.name, one.topic_id}];
    if (count == 0) continue;  // answered already
    Answer& answer = response.responses.emplace_back(one);
    if (count > 1) {
      refuse(context, answer, ErrorCode::invalid_request, "the topic is named more than once");
      count = 0;
    } else if (answer.error_code == 0 && context.passed(last_start_ns)) {
      refuse(context, answer, ErrorCode::request_timed_out, "the request's time was up before");
    } else if (answer.error_code == 0) {
      co_await remove(context, quota, answer);
    }
  }
  reply.send(response);
}

}  // namespace polylog::server::kafka
