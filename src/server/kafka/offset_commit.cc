#include <boost/asio/awaitable.hpp>

#include "broker/groups/coordinator.h"
#include "protocol/kafka/offset_commit_request.h"
#include "protocol/kafka/offset_commit_response.h"
#include "server/kafka/group_calls.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::OffsetCommitRequest;
using protocol::kafka::OffsetCommitResponse;

namespace {

using broker::groups::CommitRequest;
using broker::groups::CommitResult;

constexpr std::int16_t epochs_from = 9;
constexpr std::int16_t topics_by_id_from = 10;

CommitRequest commit_of(OffsetCommitRequest request, std::int16_t version) {
  CommitRequest commit;
  commit.group = std::move(request.group_id);
  commit.member_id = std::move(request.member_id);
  commit.instance_id = std::move(request.group_instance_id);
  commit.generation = request.generation_id_or_member_epoch;
  commit.retention_ms = request.retention_time_ms;
  commit.by_id = version >= topics_by_id_from;
  commit.knows_epochs = version >= epochs_from;
  for (auto& topic : request.topics) {
    auto& out = commit.topics.emplace_back();
    out.name = std::move(topic.name);
    out.id = topic.topic_id;
    for (auto& partition : topic.partitions) {
      out.partitions.push_back({partition.partition_index, partition.committed_offset,
                                partition.committed_leader_epoch,
                                std::move(partition.committed_metadata).value_or("")});
    }
  }
  return commit;
}

// The topics as they were asked for, each partition without an error.
OffsetCommitResponse response_to(const CommitRequest& commit) {
  OffsetCommitResponse response;
  for (const auto& topic : commit.topics) {
    auto& out = response.topics.emplace_back();
    if (commit.by_id) {
      out.topic_id = topic.id;
    } else {
      out.name = topic.name;
    }
    for (const auto& partition : topic.partitions) {
      out.partitions.emplace_back().partition_index = partition.partition;
    }
  }
  return response;
}

void put_errors(Context& context, const CommitResult& result, OffsetCommitResponse& response) {
  for (std::size_t t = 0; t < response.topics.size(); ++t) {
    auto& partitions = response.topics[t].partitions;
    for (std::size_t p = 0; p < partitions.size(); ++p) {
      partitions[p].error_code = context.wire(error_code(result.topics[t][p]));
    }
  }
}

}  // namespace

Async<void> offset_commit(Context& context, ClientPtr client, Call call, Reply reply) {
  Result<OffsetCommitRequest> request = OffsetCommitRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  CommitRequest commit = commit_of(std::move(*request), call.version);
  const auto response = std::make_shared<OffsetCommitResponse>(response_to(commit));
  const std::shared_ptr<Reply> held = hold(std::move(reply));
  context.groups.commit(std::move(commit), [held, client, response](CommitResult result) {
    put_errors(*client->context, result, *response);
    held->send(*response);
  });
}

}  // namespace polylog::server::kafka
