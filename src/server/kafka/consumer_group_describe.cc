#include <boost/asio/awaitable.hpp>

#include "broker/groups/consumer_types.h"
#include "broker/groups/coordinator.h"
#include "protocol/kafka/consumer_group_describe_request.h"
#include "protocol/kafka/consumer_group_describe_response.h"
#include "server/kafka/group_calls.h"
#include "server/kafka/handlers.h"
#include "server/kafka/operations.h"

namespace polylog::server::kafka {

using protocol::kafka::ConsumerGroupDescribeRequest;
using protocol::kafka::ConsumerGroupDescribeResponse;

namespace {

using broker::groups::ConsumerDescribed;
using broker::groups::ConsumerDescribedMember;
using broker::groups::ConsumerDescribedTopic;
using Response = ConsumerGroupDescribeResponse;

Response::Assignment assignment_of(std::vector<ConsumerDescribedTopic> topics) {
  Response::Assignment assignment;
  for (ConsumerDescribedTopic& topic : topics) {
    auto& out = assignment.topic_partitions.emplace_back();
    out.topic_id = topic.id;
    out.topic_name = std::move(topic.name);
    out.partitions = std::move(topic.partitions);
  }
  return assignment;
}

Response::Member member_of(ConsumerDescribedMember member) {
  Response::Member out;
  out.member_id = std::move(member.id);
  out.instance_id = std::move(member.instance_id);
  out.rack_id = std::move(member.rack_id);
  out.member_epoch = member.epoch;
  out.client_id = std::move(member.client_id);
  out.client_host = std::move(member.client_host);
  out.subscribed_topic_names = std::move(member.topics);
  out.subscribed_topic_regex = std::move(member.expression);
  out.assignment = assignment_of(std::move(member.assignment));
  out.target_assignment = assignment_of(std::move(member.target));
  out.member_type = member.classic ? 0 : 1;
  return out;
}

void put(Context& context, ConsumerDescribed group, Response::DescribedGroup& out) {
  out.error_code = context.wire(error_code(group.error));
  if (!group.message.empty()) out.error_message = std::move(group.message);
  out.group_state = std::move(group.state);
  out.group_epoch = group.epoch;
  out.assignment_epoch = group.assignment_epoch;
  out.assignor_name = std::move(group.assignor);
  for (ConsumerDescribedMember& member : group.members) {
    out.members.push_back(member_of(std::move(member)));
  }
}

}  // namespace

Async<void> consumer_group_describe(Context& context, ClientPtr client, Call call, Reply reply) {
  const Result<ConsumerGroupDescribeRequest> request =
      ConsumerGroupDescribeRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  const auto gathering =
      std::make_shared<Gathering<Response>>(std::move(reply), request->group_ids.size());
  for (const std::string& group : request->group_ids) {
    auto& out = gathering->response.groups.emplace_back();
    out.group_id = group;
    if (request->include_authorized_operations) out.authorized_operations = group_operations;
  }
  for (std::size_t i = 0; i < request->group_ids.size(); ++i) {
    const auto fill = [client, i](Response& response, ConsumerDescribed group) {
      put(*client->context, std::move(group), response.groups[i]);
    };
    context.groups.consumer_describe(request->group_ids[i],
                                     gathering->part<ConsumerDescribed>(fill));
  }
}

}  // namespace polylog::server::kafka
