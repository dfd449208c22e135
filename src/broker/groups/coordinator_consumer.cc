#include <charconv>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "broker/groups/coordinator_impl.h"

// KIP-848: what members of such groups ask, and groups that change their protocol.
namespace polylog::broker::groups {
namespace {

template <typename R>
void refuse(const std::function<void(R)>& done, GroupError error, std::string message = "") {
  R result{};
  result.error = error;
  result.message = std::move(message);
  done(std::move(result));
}

std::optional<std::int32_t> own_ms(const Broker& broker, const std::string& group,
                                   const std::string& key) {
  const std::optional<std::string> text = broker.group_config(group, key);
  if (!text) return std::nullopt;
  std::int32_t ms = 0;
  const auto read = std::from_chars(text->data(), text->data() + text->size(), ms);
  if (read.ec != std::errc() || ms <= 0) return std::nullopt;
  return ms;
}

}  // namespace

// A record has to fit into a segment, with room for what is around it.
std::size_t record_bytes_max(const GroupSettings& settings) {
  return static_cast<std::size_t>(settings.offsets_segment_bytes) / 5 * 4;
}

ConsumerLimits consumer_limits_of(const GroupSettings& settings) {
  ConsumerLimits limits;
  limits.subscription_bytes_max = record_bytes_max(settings);
  limits.session_timeout_ms = static_cast<std::int32_t>(settings.consumer_session_timeout_ms);
  limits.heartbeat_interval_ms = static_cast<std::int32_t>(settings.consumer_heartbeat_interval_ms);
  limits.members_max = static_cast<std::size_t>(settings.consumer_members_max);
  limits.assignment_interval_ms = settings.consumer_assignment_interval_ms;
  limits.regex_refresh_interval_ms = settings.consumer_regex_refresh_interval_ms;
  const GroupMigration migration = settings.consumer_migration;
  limits.upgrade =
      migration == GroupMigration::upgrade || migration == GroupMigration::bidirectional;
  limits.downgrade =
      migration == GroupMigration::downgrade || migration == GroupMigration::bidirectional;
  limits.classic_members = limits.upgrade || limits.downgrade;
  limits.assignors = settings.consumer_assignors;
  return limits;
}

// A KIP-848 group whose last members of that protocol left goes on as a classic one.
void Coordinator::Impl::settle_protocol(Shard& shard, const std::string& group, GroupEntry& entry) {
  if (entry.group->kind() != GroupKind::consumer || !consumer_limits.downgrade) return;
  const auto& consumer = static_cast<const ConsumerGroup&>(*entry.group);
  if (!consumer.only_classic()) return;
  consumer.tombstones(shard.records());
  auto classic = load_classic(group, consumer.classic_metadata(topics, now()));
  classic->snapshot(shard.records(), now());
  classic->rebalance(event(shard));
  entry.group = std::move(classic);
}

// A KIP-848 group without members is in nobody's way.
void Coordinator::Impl::make_way_for_classic(Shard& shard, const std::string& group) {
  GroupEntry* const entry = shard.find(group);
  if (entry == nullptr || entry->group->kind() != GroupKind::consumer || !entry->group->empty()) {
    return;
  }
  // Its offsets go on counting from when it became empty, should nobody get in.
  format::kafka::GroupMetadata metadata;
  metadata.protocol_type = entry->group->protocol_type();
  metadata.state_since = Timestamp(entry->group->expiry().empty_since_ms);
  entry->group->tombstones(shard.records());
  entry->group = load_classic(group, metadata);
  entry->group->snapshot(shard.records(), now());
}

// A classic group goes on as a KIP-848 one when the member that asks for it gets in. Whether it
// does is tried on a copy: one that is turned down must not disturb those at work.
Refusal Coordinator::Impl::upgrade(Shard& shard, GroupEntry& entry,
                                   const ConsumerHeartbeat& request,
                                   ConsumerHeartbeatResult& result) {
  auto& classic = static_cast<ClassicGroup&>(*entry.group);
  if (Refusal no = ConsumerGroup::check_upgrade(classic, consumer_limits)) return no;
  GroupRecords records;
  const GroupEvent trial{now(), topics, records};
  auto upgraded = ConsumerGroup::from_classic(classic, consumer_limits, &stats.rebalances, trial);
  set_timing(*upgraded);
  result = upgraded->consumer_heartbeat(request, trial);
  if (result.error != GroupError::none) return {result.error, result.message};
  GroupRecords& out = shard.records();
  classic.tombstones(out);
  out.insert(out.end(), std::make_move_iterator(records.begin()),
             std::make_move_iterator(records.end()));
  classic.give_up(GroupError::rebalance_in_progress);
  entry.group = std::move(upgraded);
  return {};
}

void Coordinator::Impl::set_timing(ConsumerGroup& group) const {
  group.set_timing({own_ms(broker, group.id(), "consumer.session.timeout.ms"),
                    own_ms(broker, group.id(), "consumer.heartbeat.interval.ms")});
}

void Coordinator::consumer_heartbeat(ConsumerHeartbeat request,
                                     std::function<void(ConsumerHeartbeatResult)> done) {
  if (const Refusal wrong = check(request, impl_->consumer_limits)) {
    return refuse(done, wrong.error, wrong.message);
  }
  Shard* shard = nullptr;
  if (const GroupError error = impl_->route(request.group, shard); error != GroupError::none) {
    return refuse(done, error);
  }
  GroupEntry* entry = shard->find(request.group);
  const bool joins = request.member_epoch == 0;
  const bool is_new = entry == nullptr;
  if (is_new) {
    if (!joins) return refuse(done, GroupError::group_id_not_found, "there is no such group");
    entry = &shard->add(request.group,
                        std::make_unique<ConsumerGroup>(request.group, impl_->consumer_limits,
                                                        &impl_->stats.rebalances));
  }
  if (entry->group->kind() == GroupKind::classic) {
    if (!joins) {
      return refuse(done, GroupError::group_id_not_found, "the group is a classic one");
    }
    ConsumerHeartbeatResult result;
    if (const Refusal no = impl_->upgrade(*shard, *entry, request, result)) {
      return refuse(done, no.error, no.message);
    }
    shard->kept(std::move(done))(std::move(result));
    return shard->finish(request.group);
  }
  auto& group = static_cast<ConsumerGroup&>(*entry->group);
  impl_->set_timing(group);
  shard->kept(std::move(done))(group.consumer_heartbeat(request, impl_->event(*shard)));
  if (is_new && group.empty()) {
    shard->erase(request.group);  // who would have made it was turned down
  } else {
    impl_->settle_protocol(*shard, request.group, *entry);
  }
  shard->finish(request.group);
}

void Coordinator::consumer_describe(std::string group,
                                    std::function<void(ConsumerDescribed)> done) {
  Shard* shard = nullptr;
  if (const GroupError error = impl_->route(group, shard); error != GroupError::none) {
    return refuse(done, error);
  }
  const GroupEntry* const entry = shard->find(group);
  if (entry == nullptr || entry->group->kind() != GroupKind::consumer) {
    return refuse(done, GroupError::group_id_not_found, "Group " + group + " not found.");
  }
  const auto& consumer = static_cast<const ConsumerGroup&>(*entry->group);
  shard->kept(std::move(done))(consumer.consumer_describe(impl_->topics));
  shard->finish(group);
}

}  // namespace polylog::broker::groups
