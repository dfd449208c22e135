#include "cli/group_view.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "bytes/reader.h"
#include "bytes/writer.h"
#include "protocol/kafka/consumer_group_describe_request.h"
#include "protocol/kafka/consumer_group_describe_response.h"
#include "protocol/kafka/delete_groups_request.h"
#include "protocol/kafka/delete_groups_response.h"
#include "protocol/kafka/describe_groups_request.h"
#include "protocol/kafka/describe_groups_response.h"
#include "protocol/kafka/find_coordinator_request.h"
#include "protocol/kafka/find_coordinator_response.h"
#include "protocol/kafka/list_groups_request.h"
#include "protocol/kafka/list_groups_response.h"
#include "protocol/kafka/offset_commit_request.h"
#include "protocol/kafka/offset_commit_response.h"
#include "protocol/kafka/offset_delete_request.h"
#include "protocol/kafka/offset_delete_response.h"
#include "protocol/kafka/offset_fetch_request.h"
#include "protocol/kafka/offset_fetch_response.h"

namespace polylog::cli {
namespace {

using namespace protocol::kafka;

constexpr std::int8_t group_key = 0;
constexpr std::int16_t coordinator_keys_from = 4;
constexpr std::int16_t fetch_groups_from = 8;
constexpr std::int16_t names_topics_up_to = 9;  // OffsetCommit and OffsetFetch; later by id
constexpr std::int16_t state_filter_from = 4;
constexpr std::int16_t type_filter_from = 5;
constexpr std::chrono::milliseconds coordinator_pause{100};
constexpr int coordinator_tries = 150;

bool comes_later(std::int16_t code) {
  const auto error = static_cast<ErrorCode>(code);
  return error == ErrorCode::coordinator_load_in_progress ||
         error == ErrorCode::coordinator_not_available || error == ErrorCode::not_coordinator;
}

Error group_error(const std::string& group, std::int16_t code,
                  const std::optional<std::string>& message = {}) {
  const bool missing = static_cast<ErrorCode>(code) == ErrorCode::group_id_not_found;
  if (missing) return {Errc::not_found, "there is no group '" + group + "'"};
  return {Errc::invalid, "group '" + group + "': " + wire_error(code, message)};
}

bool serves(const KafkaClient& client, ApiKey key) { return client.version(key).has_value(); }

// The protocol's own arrays and texts of members: lengths of 4 and 2 bytes.
std::string text(ByteReader& in) {
  const std::int16_t size = in.i16();
  if (size < 0) {
    in.fail();
    return {};
  }
  return std::string(in.text(static_cast<std::size_t>(size)));
}

void put(ByteWriter& out, const std::string& text) {
  out.i16(static_cast<std::int16_t>(text.size()));
  out.text(text);
}

// Consecutive partitions by topic.
template <typename Request>
void add_partition(Request& request, const TopicPartition& where) {
  if (request.topics.empty() || request.topics.back().name != where.topic) {
    request.topics.emplace_back().name = where.topic;
  }
  request.topics.back().partitions.emplace_back().partition_index = where.partition;
}

template <typename Topics>
void take_committed(const Topics& topics, CommittedOffsets& offsets) {
  for (const auto& topic : topics) {
    for (const auto& partition : topic.partitions) {
      if (partition.committed_offset < 0) continue;
      offsets[{topic.name, partition.partition_index}] = {partition.committed_offset,
                                                          partition.committed_leader_epoch,
                                                          partition.metadata.value_or("")};
    }
  }
}

template <typename Assignment>
std::vector<TopicPartition> partitions_of(const Assignment& assignment) {
  std::vector<TopicPartition> partitions;
  for (const auto& topic : assignment.topic_partitions) {
    for (const std::int32_t partition : topic.partitions) {
      partitions.push_back({topic.topic_name, partition});
    }
  }
  std::sort(partitions.begin(), partitions.end());
  return partitions;
}

}  // namespace

Result<std::vector<GroupListing>> Groups::list(const std::vector<std::string>& states,
                                               const std::vector<std::string>& types) {
  POLYLOG_ASSIGN(version, client_.version(ApiKey::list_groups));
  ListGroupsRequest request;
  if ((!states.empty() && version < state_filter_from) ||
      (!types.empty() && version < type_filter_from)) {
    return fail(Errc::unsupported, client_.address() + " cannot list groups by state or type");
  }
  request.states_filter = states;
  request.types_filter = types;
  ListGroupsResponse answer;
  for (int tries = 0;; ++tries) {
    POLYLOG_ASSIGN(next, client_.call<ListGroupsResponse>(request));
    answer = std::move(next);
    if (!comes_later(answer.error_code) || tries == coordinator_tries) break;
    std::this_thread::sleep_for(coordinator_pause);
  }
  if (answer.error_code != 0) {
    return fail(Errc::invalid, "groups cannot be listed: " + wire_error(answer.error_code));
  }
  std::vector<GroupListing> groups;
  for (const auto& group : answer.groups) {
    groups.push_back({group.group_id, group.protocol_type, group.group_state, group.group_type});
    // "classic" and "consumer" on the wire; as words of their own they begin with a capital.
    std::string& type = groups.back().type;
    if (!type.empty() && type[0] >= 'a' && type[0] <= 'z') {
      type[0] = static_cast<char>(type[0] - 'a' + 'A');
    }
  }
  std::sort(groups.begin(), groups.end(),
            [](const GroupListing& a, const GroupListing& b) { return a.id < b.id; });
  return groups;
}

Result<KafkaClient*> Groups::coordinator(const std::string& group) {
  POLYLOG_ASSIGN(found, find(group));
  return found.client;
}

Result<std::string> Groups::coordinator_address(const std::string& group) {
  POLYLOG_ASSIGN(found, find(group));
  return found.address;
}

Result<Groups::Coordinator> Groups::find(const std::string& group) {
  if (const auto known = coordinators_.find(group); known != coordinators_.end()) {
    return known->second;
  }
  FindCoordinatorRequest request;
  request.key_type = group_key;
  POLYLOG_ASSIGN(version, client_.version(ApiKey::find_coordinator));
  if (version >= coordinator_keys_from) {
    request.coordinator_keys = {group};
  } else {
    request.key = group;
  }
  Coordinator found;
  for (int tries = 0;; ++tries) {
    POLYLOG_TRY(client_.send(request, version));
    POLYLOG_ASSIGN(answer, client_.receive<FindCoordinatorResponse>());
    std::int16_t code = answer.error_code;
    std::optional<std::string> message = answer.error_message;
    if (version < coordinator_keys_from) {
      found = {answer.node_id, answer.host + ":" + std::to_string(answer.port)};
    } else if (answer.coordinators.size() == 1) {
      const auto& only = answer.coordinators.front();
      code = only.error_code;
      message = only.error_message;
      found = {only.node_id, only.host + ":" + std::to_string(only.port)};
    } else {
      return fail(Errc::corrupt, client_.address() + " named no coordinator of '" + group + "'");
    }
    if (code == 0) break;
    if (!comes_later(code) || tries == coordinator_tries) {
      return fail(group_error(group, code, message));
    }
    std::this_thread::sleep_for(coordinator_pause);
  }
  found.client = &client_;
  if (found.address != client_.address()) {
    std::unique_ptr<KafkaClient>& other = others_[found.address];
    if (!other) {
      ClientOptions options = options_;
      options.broker = found.address;
      POLYLOG_ASSIGN(connected, KafkaClient::connect(options));
      other = std::move(connected);
    }
    found.client = other.get();
  }
  coordinators_[group] = found;
  return found;
}

// The consumer protocol's answer says when the group is a classic one.
Result<GroupDescription> Groups::describe(const std::string& group) {
  for (int tries = 0;; ++tries) {
    POLYLOG_ASSIGN(at, find(group));
    Result<GroupDescription> described = fail(Errc::not_found, "");
    if (serves(*at.client, ApiKey::consumer_group_describe)) {
      described = describe_consumer(group, at);
    }
    if (!described && described.error().code == Errc::not_found) {
      described = describe_classic(group, at);
    }
    const bool later = !described && described.error().code == Errc::would_block;
    if (!later) return described;
    if (tries == coordinator_tries) return fail(Errc::timed_out, described.error().context);
    coordinators_.erase(group);
    std::this_thread::sleep_for(coordinator_pause);
  }
}

Result<GroupDescription> Groups::describe_consumer(const std::string& group,
                                                   const Coordinator& at) {
  ConsumerGroupDescribeRequest request;
  request.group_ids = {group};
  POLYLOG_ASSIGN(answer, at.client->call<ConsumerGroupDescribeResponse>(request));
  if (answer.groups.size() != 1) {
    return fail(Errc::corrupt, at.address + " described another group than '" + group + "'");
  }
  const auto& found = answer.groups.front();
  const auto error = static_cast<ErrorCode>(found.error_code);
  if (comes_later(found.error_code)) {
    return fail(Errc::would_block, group_error(group, found.error_code).context);
  }
  if (error == ErrorCode::unsupported_version) return fail(Errc::not_found, "");
  if (found.error_code != 0) {
    return fail(group_error(group, found.error_code, found.error_message));
  }
  GroupDescription description;
  description.id = group;
  description.state = found.group_state;
  description.type = "Consumer";
  description.assignor = found.assignor_name;
  description.group_epoch = found.group_epoch;
  description.target_epoch = found.assignment_epoch;
  description.coordinator_id = at.id;
  description.coordinator = at.address;
  for (const auto& member : found.members) {
    description.members.push_back({member.member_id, member.instance_id, member.client_id,
                                   member.client_host, partitions_of(member.assignment),
                                   partitions_of(member.target_assignment), member.member_epoch});
  }
  return description;
}

Result<GroupDescription> Groups::describe_classic(const std::string& group, const Coordinator& at) {
  DescribeGroupsRequest request;
  request.groups = {group};
  POLYLOG_ASSIGN(answer, at.client->call<DescribeGroupsResponse>(request));
  if (answer.groups.size() != 1) {
    return fail(Errc::corrupt, at.address + " described another group than '" + group + "'");
  }
  const auto& found = answer.groups.front();
  if (comes_later(found.error_code)) {
    return fail(Errc::would_block, group_error(group, found.error_code).context);
  }
  if (found.error_code != 0) {
    return fail(group_error(group, found.error_code, found.error_message));
  }
  // Before version 6 a group that does not exist is described as a dead one.
  if (found.group_state == "Dead") {
    return fail(group_error(group, to_wire(ErrorCode::group_id_not_found)));
  }
  GroupDescription description;
  description.id = group;
  description.state = found.group_state;
  description.type = "Classic";
  description.assignor = found.protocol_data;
  description.coordinator_id = at.id;
  description.coordinator = at.address;
  for (const auto& member : found.members) {
    GroupMember view;
    view.id = member.member_id;
    view.instance_id = member.group_instance_id;
    view.client_id = member.client_id;
    view.host = member.client_host;
    const bool consumer = found.protocol_type == "consumer" && !member.member_assignment.empty();
    if (consumer) {
      POLYLOG_ASSIGN(assigned, decode_assignment(member.member_assignment.view()));
      view.assigned = std::move(assigned);
    }
    description.members.push_back(std::move(view));
  }
  return description;
}

Result<CommittedOffsets> Groups::committed(const std::string& group) {
  for (int tries = 0;; ++tries) {
    POLYLOG_ASSIGN(client, coordinator(group));
    POLYLOG_ASSIGN(version, client->version(ApiKey::offset_fetch, names_topics_up_to));
    OffsetFetchRequest request;
    if (version >= fetch_groups_from) {
      auto& asked = request.groups.emplace_back();
      asked.group_id = group;
      asked.topics.reset();
    } else {
      request.group_id = group;
      request.topics.reset();
    }
    POLYLOG_TRY(client->send(request, version));
    POLYLOG_ASSIGN(answer, client->receive<OffsetFetchResponse>());
    CommittedOffsets offsets;
    std::int16_t code = answer.error_code;
    if (version < fetch_groups_from) {
      take_committed(answer.topics, offsets);
    } else if (answer.groups.size() == 1) {
      code = answer.groups.front().error_code;
      take_committed(answer.groups.front().topics, offsets);
    } else {
      return fail(Errc::corrupt, client->address() + " gave no offsets of '" + group + "'");
    }
    if (code == 0) return offsets;
    if (static_cast<ErrorCode>(code) == ErrorCode::group_id_not_found) return CommittedOffsets{};
    if (!comes_later(code) || tries == coordinator_tries) return fail(group_error(group, code));
    forget(group);
    std::this_thread::sleep_for(coordinator_pause);
  }
}

Result<PartitionErrors> Groups::commit(const std::string& group, const CommittedOffsets& offsets) {
  POLYLOG_ASSIGN(client, coordinator(group));
  OffsetCommitRequest request;
  request.group_id = group;
  for (const auto& [where, committed] : offsets) {
    add_partition(request, where);
    auto& partition = request.topics.back().partitions.back();
    partition.committed_offset = committed.offset;
    partition.committed_leader_epoch = committed.leader_epoch;
    partition.committed_metadata = committed.metadata;
  }
  POLYLOG_ASSIGN(answer, client->call<OffsetCommitResponse>(request, names_topics_up_to));
  PartitionErrors errors;
  for (const auto& topic : answer.topics) {
    for (const auto& partition : topic.partitions) {
      if (partition.error_code == 0) continue;
      errors[{topic.name, partition.partition_index}] = partition.error_code;
    }
  }
  return errors;
}

Result<std::int16_t> Groups::remove(const std::string& group) {
  POLYLOG_ASSIGN(client, coordinator(group));
  DeleteGroupsRequest request;
  request.groups_names = {group};
  POLYLOG_ASSIGN(answer, client->call<DeleteGroupsResponse>(request));
  if (answer.results.size() != 1) {
    return fail(Errc::corrupt, client->address() + " deleted another group than '" + group + "'");
  }
  return answer.results.front().error_code;
}

Result<Groups::Removed> Groups::remove_offsets(const std::string& group,
                                               const std::vector<TopicPartition>& partitions) {
  POLYLOG_ASSIGN(client, coordinator(group));
  OffsetDeleteRequest request;
  request.group_id = group;
  for (const TopicPartition& where : partitions) add_partition(request, where);
  POLYLOG_ASSIGN(answer, client->call<OffsetDeleteResponse>(request));
  Removed removed;
  removed.error_code = answer.error_code;
  for (const auto& topic : answer.topics) {
    for (const auto& partition : topic.partitions) {
      removed.partitions[{topic.name, partition.partition_index}] = partition.error_code;
    }
  }
  return removed;
}

// Kafka wire protocol, "Classic groups": ConsumerProtocolAssignment and -Subscription.
Result<std::vector<TopicPartition>> decode_assignment(ByteView bytes) {
  constexpr std::size_t topic_bytes_min = 6;
  ByteReader in(bytes);
  in.i16();  // later versions only add what comes behind
  std::vector<TopicPartition> partitions;
  for (std::size_t topics = in.count(in.i32(), topic_bytes_min); topics > 0; --topics) {
    const std::string topic = text(in);
    for (std::size_t count = in.count(in.i32(), sizeof(std::int32_t)); count > 0; --count) {
      partitions.push_back({topic, in.i32()});
    }
  }
  if (!in.ok()) return fail(Errc::corrupt, "an assignment that does not decode");
  std::sort(partitions.begin(), partitions.end());
  return partitions;
}

std::vector<std::uint8_t> encode_assignment(const std::vector<TopicPartition>& partitions) {
  std::map<std::string, std::vector<std::int32_t>> topics;
  for (const TopicPartition& where : partitions) topics[where.topic].push_back(where.partition);
  ByteWriter out;
  out.i16(0);
  out.i32(static_cast<std::int32_t>(topics.size()));
  for (const auto& [topic, numbers] : topics) {
    put(out, topic);
    out.i32(static_cast<std::int32_t>(numbers.size()));
    for (const std::int32_t number : numbers) out.i32(number);
  }
  out.i32(-1);  // no user data
  return out.take_bytes();
}

Result<std::vector<std::string>> decode_subscription(ByteView bytes) {
  ByteReader in(bytes);
  in.i16();
  std::vector<std::string> topics;
  for (std::size_t count = in.count(in.i32(), sizeof(std::int16_t)); count > 0; --count) {
    topics.push_back(text(in));
  }
  if (!in.ok()) return fail(Errc::corrupt, "a subscription that does not decode");
  return topics;
}

std::vector<std::uint8_t> encode_subscription(const std::vector<std::string>& topics) {
  ByteWriter out;
  out.i16(0);
  out.i32(static_cast<std::int32_t>(topics.size()));
  for (const std::string& topic : topics) put(out, topic);
  out.i32(-1);  // no user data
  return out.take_bytes();
}

}  // namespace polylog::cli
