#include <boost/asio/awaitable.hpp>
#include <functional>
#include <set>

#include "protocol/kafka/list_offsets_request.h"
#include "protocol/kafka/list_offsets_response.h"
#include "server/kafka/epoch_check.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::ListOffsetsRequest;
using protocol::kafka::ListOffsetsResponse;

namespace {

using Asked = ListOffsetsRequest::ListOffsetsPartition;
using Answer = ListOffsetsResponse::ListOffsetsPartitionResponse;

// Special timestamps (Kafka wire protocol, "ListOffsets"), each from some version on.
enum : std::int64_t {
  latest = -1,
  earliest = -2,
  of_max_timestamp = -3,
  earliest_local = -4,
  latest_tiered = -5,
  earliest_pending_upload = -6,
};

bool version_knows(std::int16_t version, std::int64_t timestamp) {
  if (timestamp >= earliest) return true;
  switch (timestamp) {
    case of_max_timestamp: return version >= 7;
    case earliest_local: return version >= 8;
    case latest_tiered: return version >= 9;
    case earliest_pending_upload: return version >= 11;
  }
  return false;
}

// A lookup that has to read the log.
struct Lookup {
  std::shared_ptr<storage::PartitionLog> log;
  std::int64_t timestamp;
  Offset visible_end;
  std::size_t topic, partition;  // whose answer it is
  Result<std::optional<storage::TimedOffset>> found;
};

void run(Lookup& lookup) {
  lookup.found = lookup.timestamp == of_max_timestamp
                     ? lookup.log->offset_of_max_timestamp()
                     : lookup.log->offset_for_time(Timestamp(lookup.timestamp));
}

// Answers from what is known without reading; true when a lookup has to follow.
bool answer_now(Context& context, broker::Partition& partition, const Asked& asked,
                Offset visible_end, std::int16_t version, Answer& answer) {
  ErrorCode error = check_epoch(partition, asked.current_leader_epoch);
  if (!version_knows(version, asked.timestamp)) error = ErrorCode::unsupported_version;
  answer.error_code = context.wire(error);
  if (error != ErrorCode::none) return false;
  switch (asked.timestamp) {
    case latest:
      answer.offset = visible_end.value();
      answer.leader_epoch = partition.epoch().value();
      return false;
    case earliest:
    case earliest_local:
      answer.offset = partition.log_start().value();
      answer.leader_epoch = partition.log().first_epoch().value();
      return false;
    case latest_tiered:
    case earliest_pending_upload: return false;  // nothing is tiered: offset -1
  }
  return true;
}

// Epochs came with version 4; older answers have no room for one.
void leave_out_epochs(ListOffsetsResponse& response) {
  for (auto& topic : response.topics) {
    for (Answer& answer : topic.partitions) answer.leader_epoch = -1;
  }
}

void fill(Context& context, const Lookup& lookup, Answer& answer) {
  if (!lookup.found) {
    answer.error_code = context.wire(error_code(lookup.found.error().code));
    return;
  }
  // What readers may not see yet does not count as found.
  const std::optional<storage::TimedOffset>& hit = *lookup.found;
  if (!hit || hit->offset >= lookup.visible_end) return;
  answer.offset = hit->offset.value();
  answer.timestamp = hit->timestamp.value();
  answer.leader_epoch = hit->epoch.value();
}

std::set<std::pair<std::string, std::int32_t>> named_twice(const ListOffsetsRequest& request) {
  std::set<std::pair<std::string, std::int32_t>> once, twice;
  for (const ListOffsetsRequest::ListOffsetsTopic& topic : request.topics) {
    for (const Asked& asked : topic.partitions) {
      const std::pair<std::string, std::int32_t> key(topic.name, asked.partition_index);
      if (!once.insert(key).second) twice.insert(key);
    }
  }
  return twice;
}

// Fills what needs no reading; returns the lookups for the rest.
std::vector<Lookup> answer_all(Context& context, const ListOffsetsRequest& request,
                               std::int16_t version, ListOffsetsResponse& response) {
  const auto twice = named_twice(request);
  const broker::Isolation isolation = request.isolation_level == 1
                                          ? broker::Isolation::read_committed
                                          : broker::Isolation::read_uncommitted;
  std::vector<Lookup> lookups;
  for (const ListOffsetsRequest::ListOffsetsTopic& topic : request.topics) {
    ListOffsetsResponse::ListOffsetsTopicResponse& out = response.topics.emplace_back();
    out.name = topic.name;
    for (const Asked& asked : topic.partitions) {
      Answer& answer = out.partitions.emplace_back();
      answer.partition_index = asked.partition_index;
      if (twice.contains({topic.name, asked.partition_index})) {
        answer.error_code = context.wire(ErrorCode::invalid_request);
        continue;
      }
      const std::shared_ptr<broker::Partition> partition =
          context.broker.find(topic.name, asked.partition_index);
      if (!partition) {
        answer.error_code = context.wire(ErrorCode::unknown_topic_or_partition);
        continue;
      }
      const Offset visible_end = partition->visible_end(isolation);
      if (answer_now(context, *partition, asked, visible_end, version, answer)) {
        lookups.push_back({partition->shared_log(),
                           asked.timestamp,
                           visible_end,
                           response.topics.size() - 1,
                           out.partitions.size() - 1,
                           {}});
      }
    }
  }
  return lookups;
}

}  // namespace

Async<void> list_offsets(Context& context, ClientPtr, Call call, Reply reply) {
  const Result<ListOffsetsRequest> request = ListOffsetsRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  ListOffsetsResponse response;
  std::vector<Lookup> lookups = answer_all(context, *request, call.version, response);
  if (!lookups.empty()) {
    std::function<void()> work = [&lookups] {
      for (Lookup& lookup : lookups) run(lookup);
    };
    co_await context.broker.pool().run(std::move(work));
  }
  for (const Lookup& lookup : lookups) {
    fill(context, lookup, response.topics[lookup.topic].partitions[lookup.partition]);
  }
  if (call.version < 4) leave_out_epochs(response);
  reply.send(response);
}

}  // namespace polylog::server::kafka
