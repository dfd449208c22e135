#include <boost/asio/awaitable.hpp>
#include <set>

#include "protocol/kafka/describe_log_dirs_request.h"
#include "protocol/kafka/describe_log_dirs_response.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::DescribeLogDirsRequest;
using protocol::kafka::DescribeLogDirsResponse;

namespace {

using Answer = DescribeLogDirsResponse::DescribeLogDirsResult;

// Those asked for that exist: Kafka leaves the others out.
std::vector<std::shared_ptr<broker::Partition>> asked_in(Context& context,
                                                         const DescribeLogDirsRequest& request) {
  std::vector<std::shared_ptr<broker::Partition>> partitions;
  if (!request.topics) {
    for (const std::shared_ptr<broker::Topic>& topic : context.broker.topics()) {
      partitions.insert(partitions.end(), topic->partitions.begin(), topic->partitions.end());
    }
    return partitions;
  }
  std::set<TopicPartition> seen;
  for (const auto& topic : *request.topics) {
    for (const std::int32_t index : topic.partitions) {
      auto partition = context.broker.find(topic.topic, index);
      if (partition && seen.insert({topic.topic, index}).second) {
        partitions.push_back(std::move(partition));
      }
    }
  }
  return partitions;
}

// There is one directory to each layout; what a topic in the shared log takes up is its share.
void put(const broker::Broker::StoreUsage& usage, Answer& answer) {
  answer.log_dir = usage.directory;
  answer.total_bytes = static_cast<std::int64_t>(usage.volume_bytes);
  answer.usable_bytes = static_cast<std::int64_t>(usage.free_bytes);
  for (const auto& [id, bytes] : usage.partitions) {
    if (answer.topics.empty() || answer.topics.back().name != id.topic) {
      answer.topics.emplace_back().name = id.topic;
    }
    auto& partition = answer.topics.back().partitions.emplace_back();
    partition.partition_index = id.partition;
    partition.partition_size = static_cast<std::int64_t>(bytes);
  }
}

}  // namespace

Async<void> describe_log_dirs(Context& context, ClientPtr, Call call, Reply reply) {
  const Result<DescribeLogDirsRequest> request =
      DescribeLogDirsRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  std::vector<std::shared_ptr<broker::Partition>> partitions = asked_in(context, *request);
  const std::vector<broker::Broker::StoreUsage> used =
      co_await context.broker.usage(std::move(partitions));
  DescribeLogDirsResponse response;
  for (const broker::Broker::StoreUsage& usage : used) {
    Answer& answer = response.results.emplace_back();
    if (usage.volume) {
      put(usage, answer);
    } else {
      answer.log_dir = usage.directory;
      answer.error_code = context.wire(ErrorCode::kafka_storage_error);
      log_warn(context.storage_trouble, "kafka: cannot look at the volume of " + usage.directory +
                                            ": " + usage.volume.error().to_string());
    }
  }
  reply.send(response);
}

}  // namespace polylog::server::kafka
