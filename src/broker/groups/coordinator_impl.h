#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "broker/broker.h"
#include "broker/groups/classic_group.h"
#include "broker/groups/consumer_group.h"
#include "broker/groups/coordinator.h"
#include "broker/groups/deadlines.h"
#include "broker/groups/shard.h"

// What the coordinator's own source files share. Nobody else includes this.
namespace polylog::broker::groups {

// The broker's topics.
class BrokerTopics final : public TopicView {
 public:
  explicit BrokerTopics(const Broker& broker) : broker_(broker) {}
  std::optional<TopicImage> find(const std::string& name) const override;
  std::optional<TopicImage> find(const Uuid& id) const override;
  void each(const std::function<void(const TopicImage&)>& visit) const override;

 private:
  const Broker& broker_;
};

struct Coordinator::Impl : std::enable_shared_from_this<Coordinator::Impl> {
  Impl(Broker& broker_in, Report report_in);
  ~Impl();

  // ---- requests
  // none, and `shard` is the one that serves the group; or not_coordinator, load_in_progress.
  GroupError route(const std::string& group, Shard*& shard) const;
  // The classic group of that id, made when it is missing.
  GroupEntry& make_classic(Shard& shard, const std::string& group);
  std::unique_ptr<ClassicGroup> load_classic(const std::string& group,
                                             const format::kafka::GroupMetadata& metadata);
  // Answers kept back until what was written before them is safe: between here and
  // shard.finish() everything a group does is one event.
  GroupEvent event(Shard& shard) const { return {now(), topics, shard.records()}; }
  Now now() const;
  // Wall time that no jump of the clock has put forward since the start: what expiry counts in.
  std::int64_t cautious_wall_ms() const;

  // Commits what `result` has no error for yet.
  void commit_to(Shard& shard, GroupEntry& entry, const CommitRequest& request,
                 CommitResult& result);

  // ---- the topic
  void attach();  // makes shards for the partitions there are
  void detach(GroupError error);
  void on_topic(const Topic& topic, Broker::TopicEvent happened);
  static Async<void> make_topic(std::shared_ptr<Impl> self);
  void topic_made(GroupError error);

  // ---- time
  void schedule(Shard& shard, const std::string& group, GroupEntry& entry);
  void unschedule(const Shard& shard, const std::string& group, GroupEntry& entry);
  void arm();
  void fire();
  void expire();

  // ---- coordinator_consumer.cc: called after an event changed a group, before finish(): a
  // KIP-848 group may have to become a classic one.
  void settle_protocol(Shard& shard, const std::string& group, GroupEntry& entry);
  // Called before a classic member joins.
  void make_way_for_classic(Shard& shard, const std::string& group);
  Refusal upgrade(Shard& shard, GroupEntry& entry, const ConsumerHeartbeat& request,
                  ConsumerHeartbeatResult& result);
  // What the group's own settings ask for.
  void set_timing(ConsumerGroup& group) const;

  Broker& broker;
  const Report report;
  const GroupSettings settings;
  const BrokerTopics topics;
  ClassicLimits classic_limits;
  ConsumerLimits consumer_limits;
  Stats stats;
  std::vector<std::shared_ptr<Shard>> shards;  // by partition; empty: the topic is not there
  Deadlines deadlines;
  std::int64_t armed_ms = INT64_MAX;  // steady: the earliest timer that will fire
  bool making_topic = false;
  bool stopping = false;
  std::vector<std::function<void(GroupError)>> waiting_for_topic;
  std::int64_t started_wall_ms = 0;
  std::int64_t started_steady_ms = 0;
};

// The limits that the settings ask for (coordinator_consumer.cc).
std::size_t record_bytes_max(const GroupSettings& settings);
ConsumerLimits consumer_limits_of(const GroupSettings& settings);

}  // namespace polylog::broker::groups
