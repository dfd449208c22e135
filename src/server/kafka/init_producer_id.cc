#include <boost/asio/awaitable.hpp>

#include "protocol/kafka/init_producer_id_request.h"
#include "protocol/kafka/init_producer_id_response.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::InitProducerIdRequest;
using protocol::kafka::InitProducerIdResponse;

Async<void> init_producer_id(Context& context, ClientPtr client, Call call, Reply reply) {
  const Result<InitProducerIdRequest> request =
      InitProducerIdRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  InitProducerIdResponse response;
  response.producer_epoch = -1;
  if (request->transactional_id) {
    // Final for the Java client, and true. Clients that look for a transaction coordinator first
    // are told the same by FindCoordinator.
    log_warn(context.refused_transactions,
             "kafka: refused transactional producer " + *request->transactional_id + " of " +
                 client->peer->address() + ": transactions are not served yet");
    response.error_code = context.wire(ErrorCode::unsupported_version);
    reply.send(response);
    co_return;
  }
  const Result<ProducerId> id = co_await context.broker.next_producer_id();
  if (id) {
    response.producer_id = id->value();
    response.producer_epoch = 0;
  } else {
    log_warn(context.storage_trouble,
             "kafka: cannot give out a producer id: " + id.error().to_string());
    // What Kafka answers when it cannot reserve ids: clients ask again. KAFKA_STORAGE_ERROR they
    // know for partitions only.
    response.error_code = context.wire(ErrorCode::coordinator_load_in_progress);
  }
  reply.send(response);
}

}  // namespace polylog::server::kafka
