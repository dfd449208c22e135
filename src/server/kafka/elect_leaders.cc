#include <boost/asio/awaitable.hpp>

#include "protocol/kafka/elect_leaders_request.h"
#include "protocol/kafka/elect_leaders_response.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::ElectLeadersRequest;
using protocol::kafka::ElectLeadersResponse;

namespace {

constexpr std::int8_t preferred = 0;
constexpr std::int8_t unclean = 1;

}  // namespace

// Every partition has its only replica for a leader: no election is ever needed.
Async<void> elect_leaders(Context& context, ClientPtr, Call call, Reply reply) {
  const Result<ElectLeadersRequest> request = ElectLeadersRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  ElectLeadersResponse response;
  if (request->election_type != preferred && request->election_type != unclean) {
    response.error_code = context.wire(ErrorCode::invalid_request);
    reply.send(response);
    co_return;
  }
  if (!request->topic_partitions) {
    // Asked about all, Kafka leaves out the partitions that need none.
    for (const std::shared_ptr<broker::Topic>& topic : context.broker.topics()) {
      response.replica_election_results.emplace_back().topic = topic->name;
    }
    reply.send(response);
    co_return;
  }
  for (const auto& asked : *request->topic_partitions) {
    auto& topic = response.replica_election_results.emplace_back();
    topic.topic = asked.topic;
    for (const std::int32_t index : asked.partitions) {
      auto& result = topic.partition_result.emplace_back();
      result.partition_id = index;
      if (context.broker.find(asked.topic, index)) {
        result.error_code = context.wire(ErrorCode::election_not_needed);
        result.error_message = "Leader election not needed for topic partition.";
      } else {
        result.error_code = context.wire(ErrorCode::unknown_topic_or_partition);
        result.error_message = "No such partition as " + asked.topic + "-" + std::to_string(index);
      }
    }
  }
  reply.send(response);
}

}  // namespace polylog::server::kafka
