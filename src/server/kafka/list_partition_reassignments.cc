#include <boost/asio/awaitable.hpp>

#include "protocol/kafka/list_partition_reassignments_request.h"
#include "protocol/kafka/list_partition_reassignments_response.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::ListPartitionReassignmentsRequest;
using protocol::kafka::ListPartitionReassignmentsResponse;

// None is ever under way: Kafka lists only those that are, whatever was asked for.
Async<void> list_partition_reassignments(Context&, ClientPtr, Call call, Reply reply) {
  const Result<ListPartitionReassignmentsRequest> request =
      ListPartitionReassignmentsRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  ListPartitionReassignmentsResponse response;
  response.error_message = std::nullopt;
  reply.send(response);
}

}  // namespace polylog::server::kafka
