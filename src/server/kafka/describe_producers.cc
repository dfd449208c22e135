#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <functional>

#include "protocol/kafka/describe_producers_request.h"
#include "protocol/kafka/describe_producers_response.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::DescribeProducersRequest;
using protocol::kafka::DescribeProducersResponse;

namespace {

using Answer = DescribeProducersResponse::PartitionResponse;

// A partition whose producers are to be read, and whose answer they are for.
struct Lookup {
  std::shared_ptr<storage::PartitionLog> log;
  std::size_t topic, partition;
  storage::PartitionLog::Producers found;
};

std::vector<Lookup> answer_all(Context& context, const DescribeProducersRequest& request,
                               DescribeProducersResponse& response) {
  std::vector<Lookup> lookups;
  for (const auto& asked : request.topics) {
    auto& topic = response.topics.emplace_back();
    topic.name = asked.name;
    const Result<void> named = broker::check_topic_name(asked.name);
    for (const std::int32_t index : asked.partition_indexes) {
      Answer& answer = topic.partitions.emplace_back();
      answer.partition_index = index;
      if (const auto partition = context.broker.find(asked.name, index)) {
        lookups.push_back(
            {partition->shared_log(), response.topics.size() - 1, topic.partitions.size() - 1, {}});
        continue;
      }
      answer.error_code = context.wire(named ? ErrorCode::unknown_topic_or_partition
                                             : ErrorCode::invalid_topic_exception);
      if (!named) answer.error_message = named.error().context;
    }
  }
  return lookups;
}

void put(const Lookup& lookup, Answer& answer) {
  for (const auto& [id, entry] : lookup.found) {
    auto& producer = answer.active_producers.emplace_back();
    producer.producer_id = id.value();
    producer.producer_epoch = entry.epoch;
    producer.last_sequence = entry.batches.empty() ? -1 : entry.batches.back().last_sequence;
    producer.last_timestamp = entry.last_timestamp.value();
    producer.coordinator_epoch = entry.coordinator_epoch;
    if (entry.transaction_first) {
      producer.current_txn_start_offset = entry.transaction_first->value();
    }
  }
  std::sort(answer.active_producers.begin(), answer.active_producers.end(),
            [](const auto& a, const auto& b) { return a.producer_id < b.producer_id; });
}

}  // namespace

Async<void> describe_producers(Context& context, ClientPtr, Call call, Reply reply) {
  const Result<DescribeProducersRequest> request =
      DescribeProducersRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  DescribeProducersResponse response;
  std::vector<Lookup> lookups = answer_all(context, *request, response);
  if (!lookups.empty()) {
    std::function<void()> work = [&lookups] {
      for (Lookup& lookup : lookups) lookup.found = lookup.log->producers();
    };
    co_await context.broker.pool().run(std::move(work));
  }
  for (const Lookup& lookup : lookups) {
    put(lookup, response.topics[lookup.topic].partitions[lookup.partition]);
  }
  reply.send(response);
}

}  // namespace polylog::server::kafka
