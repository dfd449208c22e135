#include <boost/asio/awaitable.hpp>

#include "broker/groups/coordinator.h"
#include "protocol/kafka/offset_fetch_request.h"
#include "protocol/kafka/offset_fetch_response.h"
#include "server/kafka/group_calls.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::OffsetFetchRequest;
using protocol::kafka::OffsetFetchResponse;

namespace {

using broker::groups::FetchedOffset;
using broker::groups::FetchOffsetsRequest;
using broker::groups::FetchOffsetsResult;
using broker::groups::GroupError;

constexpr std::int16_t group_error_from = 2;
constexpr std::int16_t several_groups_from = 8;
constexpr std::int16_t topics_by_id_from = 10;

FetchOffsetsRequest fetch_of(OffsetFetchRequest request) {
  FetchOffsetsRequest fetch;
  fetch.group = std::move(request.group_id);
  if (!request.topics) return fetch;
  fetch.topics.emplace();
  for (auto& topic : *request.topics) {
    fetch.topics->push_back({std::move(topic.name), Uuid(), std::move(topic.partition_indexes)});
  }
  return fetch;
}

FetchOffsetsRequest fetch_of(OffsetFetchRequest::OffsetFetchRequestGroup asked, bool by_id) {
  FetchOffsetsRequest fetch;
  fetch.group = std::move(asked.group_id);
  fetch.member_id = std::move(asked.member_id);
  fetch.member_epoch = asked.member_epoch;
  fetch.by_id = by_id;
  if (!asked.topics) return fetch;
  fetch.topics.emplace();
  for (auto& topic : *asked.topics) {
    fetch.topics->push_back(
        {std::move(topic.name), topic.topic_id, std::move(topic.partition_indexes)});
  }
  return fetch;
}

// One partition of either form of the answer. Nothing committed is no error.
template <typename Partition>
void fill(Context& context, const FetchedOffset& fetched, Partition& out) {
  out.partition_index = fetched.partition;
  out.committed_offset = -1;
  out.metadata = "";
  out.error_code = context.wire(error_code(fetched.error));
  if (!fetched.committed) return;
  out.committed_offset = fetched.committed->offset;
  out.committed_leader_epoch = fetched.committed->leader_epoch;
  out.metadata = fetched.committed->metadata;
}

OffsetFetchResponse one_group(Context& context, const FetchOffsetsResult& result) {
  OffsetFetchResponse response;
  response.error_code = context.wire(error_code(result.error));
  for (const auto& topic : result.topics) {
    auto& out = response.topics.emplace_back();
    out.name = topic.name;
    for (const FetchedOffset& fetched : topic.partitions) {
      fill(context, fetched, out.partitions.emplace_back());
    }
  }
  return response;
}

// Version 1 has no error of the group's: every partition asked for gets it.
void spread_error(const std::optional<std::vector<broker::groups::FetchOffsetsTopic>>& asked,
                  FetchOffsetsResult& result) {
  if (result.error == GroupError::none || !asked) return;
  result.topics.clear();
  for (const auto& topic : *asked) {
    auto& out = result.topics.emplace_back();
    out.name = topic.name;
    for (const std::int32_t partition : topic.partitions) {
      out.partitions.push_back({partition, result.error, std::nullopt});
    }
  }
}

void put_group(Context& context, const FetchOffsetsResult& result, bool by_id,
               OffsetFetchResponse::OffsetFetchResponseGroup& out) {
  out.error_code = context.wire(error_code(result.error));
  for (const auto& topic : result.topics) {
    auto& its = out.topics.emplace_back();
    if (by_id) {
      its.topic_id = topic.id;
    } else {
      its.name = topic.name;
    }
    for (const FetchedOffset& fetched : topic.partitions) {
      fill(context, fetched, its.partitions.emplace_back());
    }
  }
}

}  // namespace

// Offsets of transactions that have not ended are never among those kept here, so that what a
// client that requires stable ones is told is the same.
Async<void> offset_fetch(Context& context, ClientPtr client, Call call, Reply reply) {
  Result<OffsetFetchRequest> request = OffsetFetchRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  if (call.version < several_groups_from) {
    FetchOffsetsRequest fetch = fetch_of(std::move(*request));
    const auto asked = call.version < group_error_from ? fetch.topics : std::nullopt;
    const std::shared_ptr<Reply> held = hold(std::move(reply));
    context.groups.fetch(std::move(fetch), [held, client, asked](FetchOffsetsResult result) {
      spread_error(asked, result);
      held->send(one_group(*client->context, result));
    });
    co_return;
  }
  const bool by_id = call.version >= topics_by_id_from;
  const std::size_t groups = request->groups.size();
  const auto gathering = std::make_shared<Gathering<OffsetFetchResponse>>(std::move(reply), groups);
  for (const auto& asked : request->groups) {
    gathering->response.groups.emplace_back().group_id = asked.group_id;
  }
  for (std::size_t i = 0; i < groups; ++i) {
    const auto put = [client, by_id, i](OffsetFetchResponse& response, FetchOffsetsResult result) {
      put_group(*client->context, result, by_id, response.groups[i]);
    };
    context.groups.fetch(fetch_of(std::move(request->groups[i]), by_id),
                         gathering->part<FetchOffsetsResult>(put));
  }
}

}  // namespace polylog::server::kafka
