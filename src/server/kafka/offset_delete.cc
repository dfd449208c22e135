#include <boost/asio/awaitable.hpp>

#include "broker/groups/coordinator.h"
#include "protocol/kafka/offset_delete_request.h"
#include "protocol/kafka/offset_delete_response.h"
#include "server/kafka/group_calls.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::OffsetDeleteRequest;
using protocol::kafka::OffsetDeleteResponse;

namespace {

using broker::groups::OffsetDeleteResult;
using Topics = std::vector<OffsetDeleteRequest::OffsetDeleteRequestTopic>;

OffsetDeleteResponse response_of(Context& context, const Topics& asked,
                                 const OffsetDeleteResult& result) {
  OffsetDeleteResponse response;
  response.error_code = context.wire(error_code(result.error));
  for (std::size_t t = 0; t < result.topics.size(); ++t) {
    auto& topic = response.topics.emplace_back();
    topic.name = asked[t].name;
    for (std::size_t p = 0; p < result.topics[t].size(); ++p) {
      auto& partition = topic.partitions.emplace_back();
      partition.partition_index = asked[t].partitions[p].partition_index;
      partition.error_code = context.wire(error_code(result.topics[t][p]));
    }
  }
  return response;
}

}  // namespace

Async<void> offset_delete(Context& context, ClientPtr client, Call call, Reply reply) {
  const Result<OffsetDeleteRequest> request = OffsetDeleteRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  broker::groups::OffsetDeleteRequest wanted;
  wanted.group = request->group_id;
  for (const auto& topic : request->topics) {
    auto& out = wanted.topics.emplace_back();
    out.name = topic.name;
    for (const auto& partition : topic.partitions) {
      out.partitions.push_back(partition.partition_index);
    }
  }
  const auto asked = std::make_shared<const Topics>(request->topics);
  const std::shared_ptr<Reply> held = hold(std::move(reply));
  context.groups.delete_offsets(std::move(wanted),
                                [held, client, asked](OffsetDeleteResult result) {
                                  held->send(response_of(*client->context, *asked, result));
                                });
}

}  // namespace polylog::server::kafka
