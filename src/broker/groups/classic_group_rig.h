#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "broker/groups/classic_group.h"
#include "bytes/writer.h"

// For tests: a classic group, a clock moved by hand, and members that remember what they were told.
namespace polylog::broker::groups {

class NoTopics final : public TopicView {
 public:
  std::optional<TopicImage> find(const std::string&) const override { return std::nullopt; }
  std::optional<TopicImage> find(const Uuid&) const override { return std::nullopt; }
  void each(const std::function<void(const TopicImage&)>&) const override {}
};

// Kafka's ConsumerProtocolSubscription, version 0.
inline Bytes subscription(const std::vector<std::string>& topics) {
  ByteWriter out;
  out.i16(0);
  out.i32(static_cast<std::int32_t>(topics.size()));
  for (const std::string& topic : topics) {
    out.i16(static_cast<std::int16_t>(topic.size()));
    out.text(topic);
  }
  out.i32(-1);
  return out.take_bytes();
}

// The answer to one request, once it is there.
template <typename R>
using Answer = std::shared_ptr<std::optional<R>>;

class ClassicRig {
 public:
  explicit ClassicRig(std::int64_t initial_delay_ms = 0) {
    limits.initial_rebalance_delay_ms = initial_delay_ms;
    group = std::make_unique<ClassicGroup>("g", limits, now, &rebalances);
  }

  GroupEvent event() { return {now, topics, records}; }
  // Time passes; the group looks at its timers as often as it asked for.
  void pass(std::int64_t ms) {
    const Now end{now.steady_ms + ms, now.wall_ms + ms};
    for (int guard = 0; guard < 10'000; ++guard) {
      const auto due = group->next_deadline_ms();
      if (!due || *due > end.steady_ms) break;
      const std::int64_t step = std::max<std::int64_t>(*due - now.steady_ms, 0);
      now.steady_ms += step;
      now.wall_ms += step;
      group->on_time(event());
      ASSERT_LT(guard, 9'999) << "a deadline that never passes";
    }
    now = end;
  }

  JoinRequest join_request(std::string member_id = "") const {
    JoinRequest request;
    request.group = "g";
    request.member_id = std::move(member_id);
    request.caller.client_id = "app";
    request.caller.host = "/127.0.0.1";
    request.session_timeout_ms = 10'000;
    request.rebalance_timeout_ms = 60'000;
    request.protocol_type = "consumer";
    request.protocols = {{"range", subscription({"t"})}};
    return request;
  }
  Answer<JoinResult> join(JoinRequest request) {
    auto answer = std::make_shared<std::optional<JoinResult>>();
    group->join(
        std::move(request),
        [answer](JoinResult result) {
          EXPECT_FALSE(*answer) << "answered twice";
          *answer = std::move(result);
        },
        event());
    return answer;
  }
  Answer<JoinResult> join(std::string member_id = "") {
    return join(join_request(std::move(member_id)));
  }
  // "assigned to ID" to each of them.
  Answer<SyncResult> sync(const std::string& member_id, std::int32_t generation,
                          const std::vector<std::string>& assigned = {}) {
    SyncRequest request;
    request.group = "g";
    request.member_id = member_id;
    request.generation = generation;
    for (const std::string& id : assigned) {
      request.assignments.emplace_back(id, to_vector(as_bytes("assigned to " + id)));
    }
    auto answer = std::make_shared<std::optional<SyncResult>>();
    group->sync(
        std::move(request),
        [answer](SyncResult result) {
          EXPECT_FALSE(*answer) << "answered twice";
          *answer = std::move(result);
        },
        event());
    return answer;
  }
  GroupError beat(const std::string& member_id, std::int32_t generation) {
    return group->heartbeat({"g", member_id, std::nullopt, generation}, event());
  }
  GroupError leave(const std::string& member_id) {
    const LeaveResult result = group->leave({"g", {{member_id, std::nullopt}}}, event());
    return result.error != GroupError::none ? result.error : result.members.at(0);
  }
  GroupError commit(const std::string& member_id, std::int32_t generation) {
    CommitRequest request;
    request.group = "g";
    request.member_id = member_id;
    request.generation = generation;
    return group->check_commit(request, event());
  }

  // `count` members of a Stable group: their ids, the leader's first.
  std::vector<std::string> stable(int count) {
    std::vector<Answer<JoinResult>> joins;
    for (int i = 0; i < count; ++i) joins.push_back(join());
    pass(1);
    return settle(joins);
  }
  // Syncs those whose joins were answered.
  std::vector<std::string> settle(const std::vector<Answer<JoinResult>>& joins) {
    std::vector<std::string> ids, follow;
    std::string leader;
    for (const auto& answer : joins) {
      EXPECT_TRUE(*answer) << "still parked";
      if (!*answer) return ids;
      EXPECT_EQ((*answer)->error, GroupError::none);
      leader = (*answer)->leader;
      if ((*answer)->member_id != leader) follow.push_back((*answer)->member_id);
    }
    ids.push_back(leader);
    ids.insert(ids.end(), follow.begin(), follow.end());
    for (const std::string& id : follow) sync(id, group->generation());
    EXPECT_EQ((*sync(leader, group->generation(), ids))->error, GroupError::none);
    EXPECT_EQ(group->state(), ClassicGroup::State::stable);
    return ids;
  }

  Now now{1'000, 1'700'000'000'000};
  NoTopics topics;
  GroupRecords records;
  ClassicLimits limits;
  std::uint64_t rebalances = 0;
  std::unique_ptr<ClassicGroup> group;
};

}  // namespace polylog::broker::groups
