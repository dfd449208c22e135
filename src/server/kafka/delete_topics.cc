#include <boost/asio/awaitable.hpp>
#include <set>

#include "protocol/kafka/delete_topics_request.h"
#include "protocol/kafka/delete_topics_response.h"
#include "server/kafka/handlers.h"

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

Async<void> remove(Context& context, const Asked& asked, Answer& answer) {
  if (asked.name.has_value() == !asked.topic_id.is_zero()) {
    answer.error_code = context.wire(ErrorCode::invalid_request);
    answer.error_message = "a topic is named by name or by id, not by both or neither";
    co_return;
  }
  const std::shared_ptr<broker::Topic> topic =
      asked.name ? context.broker.find(*asked.name) : context.broker.find(asked.topic_id);
  if (!topic) {
    answer.error_code = context.wire(asked.name ? ErrorCode::unknown_topic_or_partition
                                                : ErrorCode::unknown_topic_id);
    answer.error_message = "there is no such topic";
    co_return;
  }
  answer.name = topic->name;
  answer.topic_id = topic->id;
  std::string name = topic->name;
  const broker::Broker::TopicOutcome outcome =
      co_await context.broker.delete_topic(std::move(name));
  answer.error_code = context.wire(error_code(outcome.error));
  if (outcome.error == broker::Broker::TopicError::none) {
    log_info("kafka: deleted topic " + topic->name);
  } else {
    answer.error_message = outcome.message;
  }
}

}  // namespace

Async<void> delete_topics(Context& context, ClientPtr, Call call, Reply reply) {
  const Result<DeleteTopicsRequest> request = DeleteTopicsRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  const std::vector<Asked> all = asked_in(*request, call.version);
  std::set<std::pair<std::optional<std::string>, Uuid>> seen;
  DeleteTopicsResponse response;
  for (const Asked& asked : all) {
    if (!seen.emplace(asked.name, asked.topic_id).second) continue;
    Answer& answer = response.responses.emplace_back();
    answer.name = asked.name;
    answer.topic_id = asked.topic_id;
    co_await remove(context, asked, answer);
  }
  reply.send(response);
}

}  // namespace polylog::server::kafka
