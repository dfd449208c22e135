#include <boost/asio/awaitable.hpp>

#include "protocol/kafka/delete_records_request.h"
#include "protocol/kafka/delete_records_response.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::DeleteRecordsRequest;
using protocol::kafka::DeleteRecordsResponse;

namespace {

constexpr std::int64_t up_to_high_watermark = -1;

// Whether the records of the partition may be deleted up to `offset` at all.
ErrorCode check(const broker::Partition* partition, std::int64_t offset) {
  if (partition == nullptr) return ErrorCode::unknown_topic_or_partition;
  if (is_internal_topic(partition->id().topic)) return ErrorCode::invalid_topic_exception;
  if (!partition->config().delete_policy) return ErrorCode::policy_violation;
  const std::int64_t end = partition->high_watermark().value();
  if (offset < up_to_high_watermark || offset > end) return ErrorCode::offset_out_of_range;
  return ErrorCode::none;
}

}  // namespace

Async<void> delete_records(Context& context, ClientPtr, Call call, Reply reply) {
  const Result<DeleteRecordsRequest> request =
      DeleteRecordsRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  DeleteRecordsResponse response;
  for (const DeleteRecordsRequest::DeleteRecordsTopic& topic : request->topics) {
    DeleteRecordsResponse::DeleteRecordsTopicResult& out = response.topics.emplace_back();
    out.name = topic.name;
    for (const auto& asked : topic.partitions) {
      DeleteRecordsResponse::DeleteRecordsPartitionResult& answer = out.partitions.emplace_back();
      answer.partition_index = asked.partition_index;
      answer.low_watermark = -1;
      std::shared_ptr<broker::Partition> partition =
          context.broker.find(topic.name, asked.partition_index);
      const ErrorCode refusal = check(partition.get(), asked.offset);
      answer.error_code = context.wire(refusal);
      if (refusal != ErrorCode::none) continue;
      const bool all = asked.offset == up_to_high_watermark;
      const Offset before = all ? partition->high_watermark() : Offset(asked.offset);
      const Result<Offset> start =
          co_await context.broker.delete_records(std::move(partition), before);
      if (start) {
        answer.low_watermark = start->value();
      } else {
        answer.error_code = context.wire(error_code(start.error().code));
      }
    }
  }
  reply.send(response);
}

}  // namespace polylog::server::kafka
