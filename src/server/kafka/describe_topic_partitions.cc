#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <set>

#include "protocol/kafka/describe_topic_partitions_request.h"
#include "protocol/kafka/describe_topic_partitions_response.h"
#include "server/kafka/handlers.h"
#include "server/kafka/operations.h"

namespace polylog::server::kafka {

using protocol::kafka::DescribeTopicPartitionsRequest;
using protocol::kafka::DescribeTopicPartitionsResponse;

namespace {

using Described = DescribeTopicPartitionsResponse::DescribeTopicPartitionsResponseTopic;

constexpr std::int32_t partitions_max = 2000;  // max.request.partition.size.limit

// The names that are asked for, from the cursor's on.
std::set<std::string> names_in(Context& context, const DescribeTopicPartitionsRequest& request) {
  std::set<std::string> names;
  if (request.topics.empty()) {
    for (const std::shared_ptr<broker::Topic>& topic : context.broker.topics()) {
      names.insert(topic->name);
    }
  }
  for (const auto& topic : request.topics) names.insert(topic.name);
  if (request.cursor) names.erase(names.begin(), names.lower_bound(request.cursor->topic_name));
  return names;
}

// A cursor names one of the topics that are asked for.
bool usable(const DescribeTopicPartitionsRequest& request) {
  if (!request.cursor) return true;
  if (request.cursor->partition_index < 0) return false;
  return request.topics.empty() ||
         std::any_of(request.topics.begin(), request.topics.end(),
                     [&](const auto& topic) { return topic.name == request.cursor->topic_name; });
}

void put_partitions(Context& context, const broker::Topic& topic, std::size_t from, std::size_t to,
                    Described& out) {
  const std::int32_t node = context.broker.settings().node_id;
  for (std::size_t index = from; index < to; ++index) {
    auto& entry = out.partitions.emplace_back();
    entry.partition_index = static_cast<std::int32_t>(index);
    entry.leader_id = node;
    entry.leader_epoch = topic.partitions[index]->epoch().value();
    entry.replica_nodes.push_back(node);
    entry.isr_nodes.push_back(node);
    // Kafka with the feature off: no replicas in these sets, rather than no sets.
    entry.eligible_leader_replicas.emplace();
    entry.last_known_elr.emplace();
  }
}

// Adds topics until `room` partitions are there; what is left is where the cursor points.
void describe(Context& context, const DescribeTopicPartitionsRequest& request, std::size_t room,
              DescribeTopicPartitionsResponse& response) {
  const auto stop_at = [&response](const std::string& name, std::size_t index) {
    DescribeTopicPartitionsResponse::Cursor cursor;
    cursor.topic_name = name;
    cursor.partition_index = static_cast<std::int32_t>(index);
    response.next_cursor = std::move(cursor);
  };
  for (const std::string& name : names_in(context, request)) {
    if (room == 0) return stop_at(name, 0);
    const std::shared_ptr<broker::Topic> topic = context.broker.find(name);
    Described& out = response.topics.emplace_back();
    out.name = name;
    out.is_internal = is_internal_topic(name);
    out.topic_authorized_operations = topic_operations;
    if (!topic) {
      out.error_code =
          context.wire(broker::check_topic_name(name) ? ErrorCode::unknown_topic_or_partition
                                                      : ErrorCode::invalid_topic_exception);
      continue;
    }
    out.topic_id = topic->id;
    const bool begun = request.cursor && request.cursor->topic_name == name;
    const std::size_t all = topic->partitions.size();
    const std::size_t from =
        begun ? std::min(static_cast<std::size_t>(request.cursor->partition_index), all) : 0;
    const std::size_t to = from + std::min(room, all - from);
    put_partitions(context, *topic, from, to, out);
    if (to < all) return stop_at(name, to);
    room -= to - from;
  }
}

}  // namespace

Async<void> describe_topic_partitions(Context& context, ClientPtr, Call call, Reply reply) {
  const Result<DescribeTopicPartitionsRequest> request =
      DescribeTopicPartitionsRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  DescribeTopicPartitionsResponse response;
  if (usable(*request)) {
    const std::int32_t room = std::clamp(request->response_partition_limit, 1, partitions_max);
    describe(context, *request, static_cast<std::size_t>(room), response);
  } else {
    for (const auto& topic : request->topics) {
      Described& refused = response.topics.emplace_back();
      refused.name = topic.name;
      refused.error_code = context.wire(ErrorCode::invalid_request);
    }
  }
  reply.send(response);
}

}  // namespace polylog::server::kafka
