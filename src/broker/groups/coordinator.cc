#include "broker/groups/coordinator.h"

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <utility>

#include "broker/groups/coordinator_impl.h"

// The coordinator's own life: the topic, the shards, the timers. What is asked of groups is in
// coordinator_members.cc and coordinator_offsets.cc.
namespace polylog::broker::groups {
namespace {

constexpr std::int64_t ns_per_ms = 1'000'000;

TopicImage image_of(const Topic& topic) {
  return {topic.name, topic.id, static_cast<std::int32_t>(topic.partitions.size())};
}

std::optional<TopicImage> image_of(const std::shared_ptr<Topic>& topic) {
  if (!topic) return std::nullopt;
  return image_of(*topic);
}

}  // namespace

std::optional<TopicImage> BrokerTopics::find(const std::string& name) const {
  return image_of(broker_.find(name));
}

std::optional<TopicImage> BrokerTopics::find(const Uuid& id) const {
  return image_of(broker_.find(id));
}

void BrokerTopics::each(const std::function<void(const TopicImage&)>& visit) const {
  for (const std::shared_ptr<Topic>& topic : broker_.topics()) visit(image_of(*topic));
}

// ------------------------------------------------------------------------------------ Impl

Coordinator::Impl::Impl(Broker& broker_in, Report report_in)
    : broker(broker_in),
      report(std::move(report_in)),
      settings(broker_in.settings().groups),
      topics(broker_in),
      consumer_limits(consumer_limits_of(settings)) {
  classic_limits.initial_rebalance_delay_ms = settings.initial_rebalance_delay_ms;
  classic_limits.members_max = static_cast<std::size_t>(settings.members_max);
  classic_limits.bytes_max = record_bytes_max(settings) / 2;
}

Coordinator::Impl::~Impl() = default;

Now Coordinator::Impl::now() const {
  return {broker.clock().steady_ns() / ns_per_ms, broker.clock().now().value()};
}

// A clock that was put forward must not cost anybody their offsets.
std::int64_t Coordinator::Impl::cautious_wall_ms() const {
  const Now at = now();
  return std::min(at.wall_ms, started_wall_ms + at.steady_ms - started_steady_ms);
}

GroupError Coordinator::Impl::route(const std::string& group, Shard*& shard) const {
  if (shards.empty() || stopping) return GroupError::not_coordinator;
  const auto index = partition_of_group(group, static_cast<std::int32_t>(shards.size()));
  shard = shards[static_cast<std::size_t>(index)].get();
  return shard->ready();
}

GroupEntry& Coordinator::Impl::make_classic(Shard& shard, const std::string& group) {
  if (GroupEntry* const entry = shard.find(group); entry != nullptr) return *entry;
  return shard.add(group,
                   std::make_unique<ClassicGroup>(group, classic_limits, now(), &stats.rebalances));
}

std::unique_ptr<ClassicGroup> Coordinator::Impl::load_classic(
    const std::string& group, const format::kafka::GroupMetadata& metadata) {
  return ClassicGroup::load(group, classic_limits, metadata, now(), &stats.rebalances);
}

// ------------------------------------------------------------------------------- the topic

void Coordinator::Impl::attach() {
  const std::shared_ptr<Topic> topic = broker.find(offsets_topic);
  if (!topic || !shards.empty()) return;
  if (topic->config.layout != storage::Layout::kafka) {
    report("__consumer_offsets is not in the kafka layout: groups are not served");
    return;
  }
  std::int32_t index = 0;
  for (const std::shared_ptr<Partition>& partition : topic->partitions) {
    shards.push_back(std::make_shared<Shard>(*this, index++, partition));
  }
  for (const std::shared_ptr<Shard>& shard : shards) shard->load();
}

void Coordinator::Impl::detach(GroupError error) {
  const auto gone = std::exchange(shards, {});
  for (const std::shared_ptr<Shard>& shard : gone) shard->close(error);
}

void Coordinator::Impl::on_topic(const Topic& topic, Broker::TopicEvent happened) {
  using TopicEvent = Broker::TopicEvent;
  if (topic.name == offsets_topic) {
    // Partitions added later hold no group: which one a group is in must not change while it is
    // at work.
    if (happened == TopicEvent::created) attach();
    if (happened == TopicEvent::deleted) detach(GroupError::not_coordinator);
    return;
  }
  const auto all = shards;
  for (const std::shared_ptr<Shard>& shard : all) {
    if (happened == TopicEvent::deleted) shard->drop_topic(topic.name);
    if (shard->ready() != GroupError::none) continue;
    for (auto& [group, entry] : shard->groups()) {
      entry.group->on_topics_changed(event(*shard));
    }
    shard->finish();
  }
}

Async<void> Coordinator::Impl::make_topic(std::shared_ptr<Impl> self) {
  NewTopic topic;
  topic.name = offsets_topic;
  topic.partitions = self->settings.offsets_partitions;
  topic.replication_factor = 1;
  topic.configs["cleanup.policy"] = "compact";
  topic.configs["compression.type"] = "producer";
  topic.configs["segment.bytes"] = std::to_string(self->settings.offsets_segment_bytes);
  if (self->broker.settings().default_layout != "kafka") topic.configs["polylog.layout"] = "kafka";
  const Broker::TopicOutcome made = co_await self->broker.create_topic(std::move(topic));
  const bool there =
      made.error == Broker::TopicError::none || made.error == Broker::TopicError::exists;
  if (!there) self->report("__consumer_offsets cannot be made: " + made.message);
  self->attach();
  self->topic_made(self->shards.empty() ? GroupError::coordinator_not_available : GroupError::none);
}

void Coordinator::Impl::topic_made(GroupError error) {
  making_topic = false;
  const auto waiting = std::exchange(waiting_for_topic, {});
  for (const auto& done : waiting) done(error);
}

// ------------------------------------------------------------------------------------ time

void Coordinator::Impl::schedule(Shard& shard, const std::string& group, GroupEntry& entry) {
  const std::int64_t next = entry.group->next_deadline_ms().value_or(INT64_MAX);
  // A later one is found out when the earlier one is due.
  if (next >= entry.deadline_ms) return;
  unschedule(shard, group, entry);
  entry.deadline_ms = next;
  deadlines.set({next, shard.index(), group});
  arm();
}

void Coordinator::Impl::unschedule(const Shard& shard, const std::string& group,
                                   GroupEntry& entry) {
  if (entry.deadline_ms == INT64_MAX) return;
  deadlines.remove({entry.deadline_ms, shard.index(), group});
  entry.deadline_ms = INT64_MAX;
}

void Coordinator::Impl::arm() {
  const std::optional<std::int64_t> first = deadlines.first_ms();
  if (!first || *first >= armed_ms) return;
  armed_ms = *first;
  // One more than what is left: milliseconds are cut off at both ends.
  const std::int64_t wait_ms = std::max<std::int64_t>(*first - now().steady_ms, 0) + 1;
  broker.reactor().after(wait_ms, [weak = weak_from_this(), due = *first] {
    const std::shared_ptr<Impl> self = weak.lock();
    if (!self || self->armed_ms != due) return;  // an earlier timer came in between
    self->armed_ms = INT64_MAX;
    self->fire();
  });
}

void Coordinator::Impl::fire() {
  const std::int64_t now_ms = now().steady_ms;
  while (std::optional<Deadlines::Due> due = deadlines.take(now_ms)) {
    const std::shared_ptr<Shard> shard =
        shards.empty() ? nullptr : shards[static_cast<std::size_t>(due->shard)];
    GroupEntry* const entry = shard ? shard->find(due->group) : nullptr;
    if (entry == nullptr) continue;
    entry->deadline_ms = INT64_MAX;
    entry->group->on_time(event(*shard));
    settle_protocol(*shard, due->group, *entry);
    shard->finish(due->group);
  }
  arm();
}

void Coordinator::Impl::expire() {
  const std::int64_t wall_ms = cautious_wall_ms();
  const auto all = shards;
  for (const std::shared_ptr<Shard>& shard : all) {
    if (shard->ready() != GroupError::none) continue;
    std::vector<std::string> gone;
    for (auto& [group, entry] : shard->groups()) {
      const Group& its = *entry.group;
      stats.offsets_expired += entry.offsets.expire(
          its.expiry(), settings.retention_ms, wall_ms,
          [&its](std::string_view topic) { return its.subscribed(topic); }, shard->records());
      if (!its.empty() || !entry.offsets.empty()) continue;
      its.tombstones(shard->records());
      gone.push_back(group);
    }
    for (const std::string& group : gone) shard->erase(group);
    stats.groups_expired += gone.size();
    shard->finish();
  }
}

// ----------------------------------------------------------------------------- Coordinator

Coordinator::Coordinator(Broker& broker, Report report)
    : impl_(std::make_shared<Impl>(broker, std::move(report))) {}

Coordinator::~Coordinator() = default;

void Coordinator::start() {
  const Now now = impl_->now();
  impl_->started_wall_ms = now.wall_ms;
  impl_->started_steady_ms = now.steady_ms;
  impl_->broker.observe_topics(
      [weak = std::weak_ptr<Impl>(impl_)](const Topic& topic, Broker::TopicEvent happened) {
        if (const std::shared_ptr<Impl> impl = weak.lock()) impl->on_topic(topic, happened);
      });
  impl_->broker.reactor().every(impl_->settings.retention_check_interval_ms,
                                [weak = std::weak_ptr<Impl>(impl_)] {
                                  if (const auto impl = weak.lock()) impl->expire();
                                });
  impl_->attach();
}

void Coordinator::stop() {
  impl_->stopping = true;
  const auto all = impl_->shards;
  for (const std::shared_ptr<Shard>& shard : all) {
    if (shard->ready() != GroupError::none) continue;
    for (auto& [group, entry] : shard->groups()) {
      entry.group->give_up(GroupError::not_coordinator);
    }
    shard->finish();
  }
}

void Coordinator::find(std::function<void(GroupError)> done) {
  if (impl_->stopping) return done(GroupError::coordinator_not_available);
  if (!impl_->shards.empty()) return done(GroupError::none);
  impl_->waiting_for_topic.push_back(std::move(done));
  if (std::exchange(impl_->making_topic, true)) return;
  boost::asio::co_spawn(impl_->broker.reactor().context(), Impl::make_topic(impl_),
                        boost::asio::detached);
}

const Coordinator::Stats& Coordinator::stats() const { return impl_->stats; }

std::size_t Coordinator::groups_in_state(std::string_view state) const {
  std::size_t count = 0;
  for (const std::shared_ptr<Shard>& shard : impl_->shards) {
    for (const auto& [group, entry] : shard->groups()) {
      if (entry.group->state_name() == state) ++count;
    }
  }
  return count;
}

std::size_t Coordinator::members() const {
  std::size_t count = 0;
  for (const std::shared_ptr<Shard>& shard : impl_->shards) {
    for (const auto& [group, entry] : shard->groups()) count += entry.group->members_count();
  }
  return count;
}

bool Coordinator::loading() const {
  const auto& shards = impl_->shards;
  return std::any_of(shards.begin(), shards.end(), [](const auto& shard) {
    return shard->ready() == GroupError::load_in_progress;
  });
}

}  // namespace polylog::broker::groups
