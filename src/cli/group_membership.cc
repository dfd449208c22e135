#include "cli/group_membership.h"

#include <algorithm>
#include <set>
#include <thread>

#include "cli/interrupt.h"
#include "cli/topic_view.h"
#include "protocol/kafka/heartbeat_request.h"
#include "protocol/kafka/heartbeat_response.h"
#include "protocol/kafka/join_group_request.h"
#include "protocol/kafka/join_group_response.h"
#include "protocol/kafka/leave_group_request.h"
#include "protocol/kafka/leave_group_response.h"
#include "protocol/kafka/offset_commit_request.h"
#include "protocol/kafka/offset_commit_response.h"
#include "protocol/kafka/sync_group_request.h"
#include "protocol/kafka/sync_group_response.h"

namespace polylog::cli {
namespace {

using namespace protocol::kafka;

constexpr std::int16_t names_topics_up_to = 9;  // OffsetCommit; later by id
constexpr std::int16_t leaves_members_from = 3;
constexpr std::chrono::milliseconds retry_pause{100};
constexpr int tries_max = 300;
const std::string protocol_type = "consumer";
const std::string protocol_name = "range";

Error refused(const std::string& group, std::int16_t code) {
  return {Errc::invalid, "group '" + group + "': " + wire_error(code)};
}

bool not_here(ErrorCode error) {
  return error == ErrorCode::not_coordinator || error == ErrorCode::coordinator_not_available ||
         error == ErrorCode::coordinator_load_in_progress;
}

// What the leader gives each member.
Result<std::map<std::string, std::vector<TopicPartition>>> assign(KafkaClient& client,
                                                                  const JoinGroupResponse& joined) {
  std::vector<Subscriber> subscribers;
  std::set<std::string> topics;
  for (const auto& member : joined.members) {
    POLYLOG_ASSIGN(wanted, decode_subscription(member.metadata.view()));
    topics.insert(wanted.begin(), wanted.end());
    subscribers.push_back({member.member_id, member.group_instance_id, std::move(wanted)});
  }
  std::map<std::string, std::int32_t> partitions;
  for (const std::string& topic : topics) {
    const auto found = find_topic(client, topic);
    if (!found && found.error().code != Errc::not_found && found.error().code != Errc::invalid) {
      return fail(found.error());
    }
    if (found) partitions[topic] = static_cast<std::int32_t>(found->partitions.size());
  }
  return assign_ranges(std::move(subscribers), partitions);
}

}  // namespace

std::map<std::string, std::vector<TopicPartition>> assign_ranges(
    std::vector<Subscriber> subscribers, const std::map<std::string, std::int32_t>& partitions) {
  std::sort(subscribers.begin(), subscribers.end(), [](const Subscriber& a, const Subscriber& b) {
    if (a.instance_id.has_value() != b.instance_id.has_value()) return a.instance_id.has_value();
    return a.instance_id ? *a.instance_id < *b.instance_id : a.member_id < b.member_id;
  });
  std::map<std::string, std::vector<TopicPartition>> assigned;
  for (const Subscriber& subscriber : subscribers) assigned[subscriber.member_id];
  for (const auto& [topic, count] : partitions) {
    std::vector<const Subscriber*> readers;
    for (const Subscriber& subscriber : subscribers) {
      const auto& topics = subscriber.topics;
      if (std::find(topics.begin(), topics.end(), topic) != topics.end()) {
        readers.push_back(&subscriber);
      }
    }
    if (readers.empty()) continue;
    const auto parts = static_cast<std::int32_t>(readers.size());
    std::int32_t next = 0;
    for (std::int32_t i = 0; i < parts; ++i) {
      const std::int32_t end = next + count / parts + (i < count % parts ? 1 : 0);
      std::vector<TopicPartition>& mine = assigned[readers[static_cast<std::size_t>(i)]->member_id];
      for (; next < end; ++next) mine.push_back({topic, next});
    }
  }
  return assigned;
}

Result<void> GroupMembership::connect() {
  if (coordinator_) return {};
  ClientOptions options = options_;
  Groups groups(options_, *client_);
  POLYLOG_ASSIGN(address, groups.coordinator_address(group_));
  options.broker = address;
  options.request_ms = rebalance_ms + options_.request_ms;  // a join waits for the slowest member
  POLYLOG_ASSIGN(connected, KafkaClient::connect(options));
  coordinator_ = std::move(connected);
  return {};
}

Result<std::vector<TopicPartition>> GroupMembership::join() {
  std::vector<TopicPartition> assigned;
  for (int tries = 0; tries < tries_max; ++tries) {
    if (interrupted()) return fail(Errc::unavailable, "interrupted");
    const Result<bool> joined = try_join(assigned);
    if (!joined) {
      coordinator_.reset();
      return fail(joined.error());
    }
    if (*joined) return assigned;
    std::this_thread::sleep_for(retry_pause);
  }
  return fail(Errc::timed_out, "group '" + group_ + "' does not come to rest");
}

Result<bool> GroupMembership::try_join(std::vector<TopicPartition>& assigned) {
  POLYLOG_TRY(connect());
  POLYLOG_ASSIGN(topics, topics_());
  JoinGroupRequest join;
  join.group_id = group_;
  join.session_timeout_ms = session_ms;
  join.rebalance_timeout_ms = rebalance_ms;
  join.member_id = member_id_;
  join.protocol_type = protocol_type;
  auto& offered = join.protocols.emplace_back();
  offered.name = protocol_name;
  offered.metadata = Slice::of(encode_subscription(topics));
  POLYLOG_ASSIGN(joined, coordinator_->call<JoinGroupResponse>(join));
  const auto error = static_cast<ErrorCode>(joined.error_code);
  if (not_here(error)) {
    coordinator_.reset();
    return false;
  }
  if (error == ErrorCode::member_id_required) member_id_ = joined.member_id;
  if (error == ErrorCode::unknown_member_id) member_id_.clear();
  if (error == ErrorCode::member_id_required || error == ErrorCode::unknown_member_id ||
      error == ErrorCode::rebalance_in_progress) {
    return false;
  }
  if (joined.error_code != 0) return fail(refused(group_, joined.error_code));
  member_id_ = joined.member_id;
  generation_ = joined.generation_id;
  SyncGroupRequest sync;
  sync.group_id = group_;
  sync.generation_id = generation_;
  sync.member_id = member_id_;
  sync.protocol_type = protocol_type;
  sync.protocol_name = protocol_name;
  if (joined.leader == member_id_ && !joined.skip_assignment) {
    POLYLOG_ASSIGN(shares, assign(*client_, joined));
    for (const auto& [member, partitions] : shares) {
      auto& entry = sync.assignments.emplace_back();
      entry.member_id = member;
      entry.assignment = Slice::of(encode_assignment(partitions));
    }
  }
  POLYLOG_ASSIGN(synced, coordinator_->call<SyncGroupResponse>(sync));
  const auto sync_error = static_cast<ErrorCode>(synced.error_code);
  if (not_here(sync_error)) coordinator_.reset();
  if (sync_error == ErrorCode::unknown_member_id) member_id_.clear();
  const bool again = not_here(sync_error) || sync_error == ErrorCode::rebalance_in_progress ||
                     sync_error == ErrorCode::unknown_member_id ||
                     sync_error == ErrorCode::illegal_generation;
  if (again) return false;
  if (synced.error_code != 0) return fail(refused(group_, synced.error_code));
  beat_ = Clock::now();
  assigned.clear();
  if (synced.assignment.empty()) return true;
  POLYLOG_ASSIGN(mine, decode_assignment(synced.assignment.view()));
  assigned = std::move(mine);
  return true;
}

Result<bool> GroupMembership::keep() {
  if (Clock::now() < beat_ + heartbeat_pause) return false;
  POLYLOG_TRY(connect());
  HeartbeatRequest request;
  request.group_id = group_;
  request.generation_id = generation_;
  request.member_id = member_id_;
  const Result<HeartbeatResponse> answer = coordinator_->call<HeartbeatResponse>(request);
  if (!answer) {
    coordinator_.reset();
    return fail(answer.error());
  }
  beat_ = Clock::now();
  const auto error = static_cast<ErrorCode>(answer->error_code);
  if (error == ErrorCode::none) return false;
  if (not_here(error)) {
    coordinator_.reset();
    return false;
  }
  if (error == ErrorCode::unknown_member_id) member_id_.clear();
  const bool again = error == ErrorCode::rebalance_in_progress ||
                     error == ErrorCode::illegal_generation ||
                     error == ErrorCode::unknown_member_id;
  if (again) return true;
  return fail(refused(group_, answer->error_code));
}

Result<void> GroupMembership::commit(const CommittedOffsets& offsets) {
  if (offsets.empty()) return {};
  POLYLOG_TRY(connect());
  OffsetCommitRequest request;
  request.group_id = group_;
  request.generation_id_or_member_epoch = generation_;
  request.member_id = member_id_;
  for (const auto& [where, offset] : offsets) {
    if (request.topics.empty() || request.topics.back().name != where.topic) {
      request.topics.emplace_back().name = where.topic;
    }
    auto& partition = request.topics.back().partitions.emplace_back();
    partition.partition_index = where.partition;
    partition.committed_offset = offset.offset;
    partition.committed_leader_epoch = offset.leader_epoch;
    partition.committed_metadata = offset.metadata;
  }
  auto answer = coordinator_->call<OffsetCommitResponse>(request, names_topics_up_to);
  if (!answer) {
    coordinator_.reset();
    return fail(answer.error());
  }
  for (const auto& topic : answer->topics) {
    for (const auto& partition : topic.partitions) {
      if (partition.error_code == 0) continue;
      if (not_here(static_cast<ErrorCode>(partition.error_code))) coordinator_.reset();
      return fail(Errc::io, "offsets were not committed: " + wire_error(partition.error_code));
    }
  }
  return {};
}

Result<CommittedOffsets> GroupMembership::committed(const std::vector<TopicPartition>& partitions) {
  Groups groups(options_, *client_);
  POLYLOG_ASSIGN(all, groups.committed(group_));
  CommittedOffsets mine;
  for (const TopicPartition& where : partitions) {
    if (const auto at = all.find(where); at != all.end()) mine.insert(*at);
  }
  return mine;
}

void GroupMembership::leave() {
  if (member_id_.empty() || !coordinator_) return;
  ClientOptions options = options_;
  options.broker = coordinator_->address();
  auto connected = KafkaClient::connect(options);
  if (!connected) return;  // the session ends by itself then
  LeaveGroupRequest request;
  request.group_id = group_;
  const auto version = (*connected)->version(ApiKey::leave_group);
  if (!version) return;
  if (*version < leaves_members_from) {
    request.member_id = member_id_;
  } else {
    request.members.emplace_back().member_id = member_id_;
  }
  if ((*connected)->send(request, *version)) (void)(*connected)->receive<LeaveGroupResponse>();
  member_id_.clear();
}

}  // namespace polylog::cli
