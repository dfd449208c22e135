#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "broker/broker.h"
#include "broker/groups/offsets_topic.h"
#include "broker/groups/types.h"

namespace polylog::broker::groups {

struct ConsumerHeartbeat;  // consumer_types.h
struct ConsumerHeartbeatResult;
struct ConsumerDescribed;
class Shard;

// Coordinates consumer groups of both protocols and keeps their committed offsets, in the topic
// __consumer_offsets, which it makes when the first group comes (Kafka log format, "Internal
// topics"). Each partition of that topic is a shard that holds its groups in memory and loads them
// from its log. Every answer waits until all that its shard wrote before it is as safe as acks=all
// (docs/decisions/groups-and-their-log.md). Reactor only.
//
// `done` is called exactly once, before the call returns or later, unless the reactor ends first.
class Coordinator {
 public:
  // Where failures go, one line each.
  using Report = std::function<void(const std::string& line)>;

  // `broker` outlives the coordinator and has been loaded; start() begins to load the groups, on
  // the reactor or before it runs.
  Coordinator(Broker& broker, Report report);
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;
  void start();
  // A clean stop begins: who is parked is told to look elsewhere, and no request is taken. Answers
  // that wait for a write still leave.
  void stop();

  // FindCoordinator: none when groups can be asked for here, or coordinator_not_available. Makes
  // the topic when it is missing.
  void find(std::function<void(GroupError)> done);

  void join(JoinRequest request, JoinDone done);
  void sync(SyncRequest request, SyncDone done);
  void heartbeat(HeartbeatRequest request, std::function<void(GroupError)> done);
  void leave(LeaveRequest request, std::function<void(LeaveResult)> done);
  void commit(CommitRequest request, std::function<void(CommitResult)> done);
  void fetch(FetchOffsetsRequest request, std::function<void(FetchOffsetsResult)> done);
  void delete_offsets(OffsetDeleteRequest request, std::function<void(OffsetDeleteResult)> done);
  void describe(std::string group, std::function<void(DescribedGroup)> done);
  void list(std::function<void(ListResult)> done);
  void delete_group(std::string group, std::function<void(GroupError)> done);

  // KIP-848 (coordinator_consumer.cc).
  void consumer_heartbeat(ConsumerHeartbeat request,
                          std::function<void(ConsumerHeartbeatResult)> done);
  void consumer_describe(std::string group, std::function<void(ConsumerDescribed)> done);

  struct Stats {
    std::uint64_t commits = 0;     // partitions committed
    std::uint64_t rebalances = 0;  // generations begun
    std::uint64_t groups_expired = 0;
    std::uint64_t offsets_expired = 0;
  };
  const Stats& stats() const;
  // Groups in memory in the state of that name, of both protocols.
  std::size_t groups_in_state(std::string_view state) const;
  std::size_t members() const;
  bool loading() const;

  struct Impl;  // coordinator_impl.h

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace polylog::broker::groups
