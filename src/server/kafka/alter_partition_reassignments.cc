#include <boost/asio/awaitable.hpp>

#include "protocol/kafka/alter_partition_reassignments_request.h"
#include "protocol/kafka/alter_partition_reassignments_response.h"
#include "server/kafka/handlers.h"
#include "server/kafka/replicas.h"

namespace polylog::server::kafka {

using protocol::kafka::AlterPartitionReassignmentsRequest;
using protocol::kafka::AlterPartitionReassignmentsResponse;

namespace {

using Answer = AlterPartitionReassignmentsResponse::ReassignablePartitionResponse;

void refuse(Context& context, Answer& answer, ErrorCode code, std::string message) {
  answer.error_code = context.wire(code);
  answer.error_message = std::move(message);
}

}  // namespace

// A partition is where it is: assigning it to this node changes nothing and succeeds, as in Kafka
// with the replicas a partition has already; there is nowhere else for it to go.
Async<void> alter_partition_reassignments(Context& context, ClientPtr, Call call, Reply reply) {
  const Result<AlterPartitionReassignmentsRequest> request =
      AlterPartitionReassignmentsRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  AlterPartitionReassignmentsResponse response;
  response.error_message = std::nullopt;
  response.allow_replication_factor_change = request->allow_replication_factor_change;
  for (const auto& asked : request->topics) {
    auto& topic = response.responses.emplace_back();
    topic.name = asked.name;
    for (const auto& partition : asked.partitions) {
      Answer& answer = topic.partitions.emplace_back();
      answer.partition_index = partition.partition_index;
      answer.error_message = std::nullopt;
      if (!context.broker.find(asked.name, partition.partition_index)) {
        refuse(context, answer, ErrorCode::unknown_topic_or_partition,
               "Unable to find partition " + asked.name + ":" +
                   std::to_string(partition.partition_index) + ".");
      } else if (!partition.replicas) {
        refuse(context, answer, ErrorCode::no_reassignment_in_progress,
               "No partition reassignment is in progress.");
      } else if (std::string wrong =
                     wrong_with_replicas(*partition.replicas, context.broker.settings().node_id);
                 !wrong.empty()) {
        refuse(context, answer, ErrorCode::invalid_replica_assignment, std::move(wrong));
      }
    }
  }
  reply.send(response);
}

}  // namespace polylog::server::kafka
