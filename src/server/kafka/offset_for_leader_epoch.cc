#include <boost/asio/awaitable.hpp>

#include "protocol/kafka/offset_for_leader_epoch_request.h"
#include "protocol/kafka/offset_for_leader_epoch_response.h"
#include "server/kafka/epoch_check.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::OffsetForLeaderEpochRequest;
using protocol::kafka::OffsetForLeaderEpochResponse;

namespace {

OffsetForLeaderEpochResponse::EpochEndOffset answer(
    Context& context, const std::string& topic,
    const OffsetForLeaderEpochRequest::OffsetForLeaderPartition& asked) {
  OffsetForLeaderEpochResponse::EpochEndOffset out;
  out.partition = asked.partition;
  const std::shared_ptr<broker::Partition> partition = context.broker.find(topic, asked.partition);
  const ErrorCode error = partition ? check_epoch(*partition, asked.current_leader_epoch)
                                    : ErrorCode::unknown_topic_or_partition;
  out.error_code = context.wire(error);
  if (error != ErrorCode::none) return out;
  const EpochOffset end = end_of_epoch(*partition, LeaderEpoch(asked.leader_epoch));
  out.leader_epoch = end.epoch.value();
  out.end_offset = end.end.value();
  return out;
}

}  // namespace

Async<void> offset_for_leader_epoch(Context& context, ClientPtr, Call call, Reply reply) {
  const Result<OffsetForLeaderEpochRequest> request =
      OffsetForLeaderEpochRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  OffsetForLeaderEpochResponse response;
  for (const OffsetForLeaderEpochRequest::OffsetForLeaderTopic& topic : request->topics) {
    OffsetForLeaderEpochResponse::OffsetForLeaderTopicResult& out = response.topics.emplace_back();
    out.topic = topic.topic;
    for (const auto& partition : topic.partitions) {
      out.partitions.push_back(answer(context, topic.topic, partition));
    }
  }
  reply.send(response);
}

}  // namespace polylog::server::kafka
