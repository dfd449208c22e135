#include "broker/groups/consumer_group.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace polylog::broker::groups {
namespace {

constexpr std::size_t text_bytes_max = format::kafka::group_text_bytes_max;

Refusal refusal(GroupError error, std::string message) { return {error, std::move(message)}; }

ConsumerHeartbeatResult refused(Refusal why) {
  ConsumerHeartbeatResult result;
  result.error = why.error;
  result.message = std::move(why.message);
  return result;
}

bool too_long(const std::string& text) { return text.size() > text_bytes_max; }

Refusal check_join(const ConsumerHeartbeat& request) {
  if (request.rebalance_timeout_ms == -1) {
    return refusal(GroupError::invalid_request, "who joins says its rebalance timeout");
  }
  if (!request.owned || !request.owned->empty()) {
    return refusal(GroupError::invalid_request, "who joins has no partitions");
  }
  if (!request.topics && !request.expression) {
    return refusal(GroupError::invalid_request,
                   "who joins names topics or a regular expression, even if none");
  }
  return {};
}

// An epoch that the member can have: its own, or the one before it when the answer with the new
// one may have been lost on the way.
Refusal check_epoch(const ConsumerMember& member, const ConsumerHeartbeat& request) {
  if (request.member_epoch == 0 || request.member_epoch == member.epoch) return {};
  const bool answer_lost = request.member_epoch < member.epoch &&
                           request.member_epoch == member.previous_epoch && request.owned &&
                           covers(member.assigned, *request.owned);
  if (answer_lost) return {};
  return refusal(GroupError::fenced_member_epoch,
                 "member " + member.id + " is at epoch " + std::to_string(member.epoch) +
                     ", not at " + std::to_string(request.member_epoch) +
                     ": it must give up its partitions and join again");
}

bool same_assignment(const ConsumerMember& a, const ConsumerMember& b) {
  return a.epoch == b.epoch && a.previous_epoch == b.previous_epoch && a.state == b.state &&
         a.assigned == b.assigned && a.revoking == b.revoking;
}

}  // namespace

Refusal check(const ConsumerHeartbeat& request, const ConsumerLimits& limits) {
  if (request.group.empty() || too_long(request.group)) {
    return refusal(GroupError::invalid_request, "a group id has 1 to 32767 bytes");
  }
  const bool may_lack_id = !request.names_itself && request.member_epoch == 0;
  if (too_long(request.member_id) || (request.member_id.empty() && !may_lack_id)) {
    return refusal(GroupError::invalid_request, "a member id has 1 to 32767 bytes");
  }
  if (request.instance_id && request.instance_id->empty()) {
    return refusal(GroupError::invalid_request, "an instance id is not empty");
  }
  if (request.rack_id && request.rack_id->empty()) {
    return refusal(GroupError::invalid_request, "a rack id is not empty");
  }
  if (request.member_epoch < leave_static_epoch) {
    return refusal(GroupError::invalid_request, "there is no such member epoch");
  }
  if (request.member_epoch == leave_static_epoch && !request.instance_id) {
    return refusal(GroupError::invalid_request, "only who has an instance id leaves for a while");
  }
  if (request.member_epoch == 0) {
    if (Refusal why = check_join(request)) return why;
  }
  std::size_t bytes = 0;
  for (const std::string& topic : request.topics.value_or(std::vector<std::string>())) {
    bytes += topic.size();
  }
  if (bytes > limits.subscription_bytes_max) {
    return refusal(GroupError::invalid_request, "it subscribes to too many topics");
  }
  if (request.expression && too_long(*request.expression)) {
    return refusal(GroupError::invalid_regular_expression, "longer than 32767 bytes");
  }
  const auto& known = limits.assignors;
  if (request.assignor && std::find(known.begin(), known.end(), *request.assignor) == known.end()) {
    return refusal(GroupError::unsupported_assignor, "there is no assignor " + *request.assignor);
  }
  return {};
}

ConsumerGroup::ConsumerGroup(std::string id, const ConsumerLimits& limits,
                             std::uint64_t* rebalances)
    : id_(std::move(id)), limits_(limits), rebalances_(rebalances) {}

// ---- who asks

const ConsumerMember* ConsumerGroup::find(const std::string& member_id) const {
  const auto found = members_.find(member_id);
  return found == members_.end() ? nullptr : &found->second;
}

const ConsumerMember* ConsumerGroup::find_static(const std::string& instance_id) const {
  const auto found = static_ids_.find(instance_id);
  return found == static_ids_.end() ? nullptr : find(found->second);
}

// A member that must be there; "" as its id stands for whoever has the instance id.
const ConsumerMember* ConsumerGroup::who(const std::string& member_id,
                                         const std::optional<std::string>& instance_id,
                                         Refusal& why) const {
  if (!instance_id) {
    const ConsumerMember* member = find(member_id);
    if (member == nullptr) {
      why = refusal(GroupError::unknown_member_id, "there is no member " + member_id);
    }
    return member;
  }
  const ConsumerMember* member = find_static(*instance_id);
  if (member == nullptr) {
    why = refusal(GroupError::unknown_member_id, "there is no instance " + *instance_id);
  } else if (!member_id.empty() && member->id != member_id) {
    why = refusal(GroupError::fenced_instance_id,
                  "instance " + *instance_id + " is member " + member->id);
    return nullptr;
  }
  return member;
}

bool ConsumerGroup::full_for(const std::string& member_id) const {
  return members_.size() >= limits_.members_max && find(member_id) == nullptr;
}

// The same member under a new id: it goes on with the partitions of the old one.
void ConsumerGroup::draft_replacement(const ConsumerMember& old, const std::string& member_id,
                                      Draft& draft) const {
  draft.replaces = old.id;
  draft.before = old;
  draft.before->id = member_id;
  draft.before->epoch = 0;
  draft.before->previous_epoch = 0;
  draft.before->revoke_by_ms.reset();
  draft.before->join_by_ms.reset();
  draft.before->sync_by_ms.reset();
}

Refusal ConsumerGroup::draft_of(const ConsumerHeartbeat& request, const std::string& member_id,
                                Draft& draft) const {
  const bool joins = request.member_epoch == 0;
  const ConsumerMember* in_place =
      request.instance_id ? find_static(*request.instance_id) : nullptr;
  if (joins && in_place != nullptr && in_place->id != member_id) {
    if (!in_place->classic && in_place->epoch != leave_static_epoch) {
      return refusal(GroupError::unreleased_instance_id,
                     "instance " + *request.instance_id + " is still member " + in_place->id);
    }
    draft_replacement(*in_place, member_id, draft);
  } else if (joins) {
    if (const ConsumerMember* member = find(member_id)) draft.before = *member;
  } else {
    Refusal why;
    const ConsumerMember* member = who(member_id, request.instance_id, why);
    if (member == nullptr) return why;
    why = check_epoch(*member, request);
    if (why) return why;
    draft.before = *member;
  }
  // A static member that comes back under the id it had.
  if (draft.before && draft.before->epoch == leave_static_epoch) {
    draft.before->epoch = 0;
    draft.before->previous_epoch = 0;
  }

  ConsumerMember& after = draft.after;
  if (draft.before) after = *draft.before;
  after.id = member_id;
  if (request.instance_id) after.instance_id = request.instance_id;
  if (request.rack_id) after.rack_id = request.rack_id;
  if (request.rebalance_timeout_ms != -1) {
    after.rebalance_timeout_ms = std::max(request.rebalance_timeout_ms, 0);
  }
  if (request.assignor) after.assignor = request.assignor;
  if (request.topics) after.topics = {request.topics->begin(), request.topics->end()};
  if (request.expression) after.expression = *request.expression;
  after.client_id = request.client_id;
  after.client_host = request.client_host;
  after.classic.reset();
  after.join_by_ms.reset();
  after.sync_by_ms.reset();
  // One that is in force already is not looked at again.
  if (request.expression && !after.expression.empty() && !patterns_.contains(after.expression)) {
    const Result<TopicPattern> pattern = TopicPattern::compile(after.expression);
    if (!pattern) {
      return refusal(GroupError::invalid_regular_expression,
                     "regular expression " + after.expression + ": " + pattern.error().context);
    }
  }
  const bool lost = draft.before && draft.before->state == MemberState::unknown &&
                    (!request.owned || !request.owned->empty());
  if (lost) {
    return refusal(GroupError::fenced_member_epoch,
                   "member " + member_id + " is in a state this broker does not know");
  }
  return {};
}

// ---- heartbeats

// Nothing has changed since the last one: the usual case, without copies.
bool ConsumerGroup::goes_on(const ConsumerHeartbeat& request, const ConsumerMember& member) const {
  return request.member_epoch > 0 && request.member_epoch == member.epoch && !topics_stale_ &&
         member.stable_at(assignment_epoch_) && assignment_epoch_ == epoch_ && !member.classic &&
         request.instance_id == member.instance_id && !request.rack_id && !request.topics &&
         request.rebalance_timeout_ms == -1 && !request.expression && !request.assignor &&
         request.client_id == member.client_id && request.client_host == member.client_host;
}

ConsumerHeartbeatResult ConsumerGroup::consumer_heartbeat(const ConsumerHeartbeat& request,
                                                          GroupEvent event) {
  if (request.member_epoch < 0) return leave(request, event);
  ConsumerHeartbeatResult result;
  result.heartbeat_interval_ms =
      timing_.heartbeat_interval_ms.value_or(limits_.heartbeat_interval_ms);
  const auto known = members_.find(request.member_id);
  const bool refresh_due = !resolved_.empty() &&
                           event.now.steady_ms - looked_at_ms_ >= limits_.regex_refresh_interval_ms;
  if (known != members_.end() && !refresh_due && goes_on(request, known->second)) {
    touch(known->second, event.now);
    result.member_id = request.member_id;
    result.member_epoch = known->second.epoch;
    return result;
  }

  if (full_for(request.member_id)) {
    return refused({GroupError::group_max_size_reached, "the group has as many members as it may"});
  }
  const std::string member_id =
      request.member_id.empty() ? Uuid::random().to_string() : request.member_id;
  Draft draft;
  if (Refusal why = draft_of(request, member_id, draft)) return refused(std::move(why));

  const OwnedPartitions before = draft.before ? draft.before->assigned : OwnedPartitions{};
  const std::int32_t epoch_before = draft.before ? draft.before->epoch : 0;
  ConsumerMember& member = update(std::move(draft), request.owned, event);
  touch(member, event.now);
  result.member_id = member_id;
  result.member_epoch = member.epoch;
  const bool says_all =
      request.rebalance_timeout_ms != -1 && request.owned && (request.topics || request.expression);
  const bool behind = request.member_epoch != epoch_before;
  if (request.member_epoch == 0 || says_all || behind || member.assigned != before) {
    result.assignment = without_epochs(member.assigned);
  }
  return result;
}

ConsumerMember& ConsumerGroup::update(Draft draft, const std::optional<PartitionSet>& owned,
                                      GroupEvent event) {
  const bool is_new = !draft.before;
  if (is_new) draft.before.emplace();
  if (!draft.replaces.empty()) {
    const ConsumerMember& old = members_.at(draft.replaces);
    disown(old);
    write_removal(old.id, event.records);
    auto target = target_.extract(old.id);
    members_.erase(draft.replaces);
    write_metadata(*draft.before, event.records);
    if (!target.empty()) {
      target.key() = draft.before->id;
      target_.insert(std::move(target));
      write_target(draft.before->id, event.records);
    }
    write_assignment(*draft.before, event.records);
  }
  const ConsumerMember before = std::move(*draft.before);
  const std::string id = draft.after.id;
  if (const auto known = members_.find(id); known != members_.end()) {
    disown(known->second);
    if (known->second.instance_id) static_ids_.erase(*known->second.instance_id);
  }
  ConsumerMember& member = members_.insert_or_assign(id, std::move(draft.after)).first->second;
  own(member);
  if (member.instance_id) static_ids_[*member.instance_id] = id;

  if (is_new || metadata_value(member) != metadata_value(before)) {
    write_metadata(member, event.records);
  }
  const bool subscription_changed =
      member.topics != before.topics || member.expression != before.expression;
  if (member.expression != before.expression) drop_unused_expressions(event);
  const bool resolved = resolve_expressions(event);
  refresh_epoch(is_new || subscription_changed || resolved, event);
  refresh_target(event);
  reconcile_member(member, subscription_changed, owned, event);
  // It was a classic member so far, whose time is that of its join.
  const bool revokes = !member.classic && member.state == MemberState::unrevoked_partitions;
  if (revokes && !member.revoke_by_ms) expect_revocation(member, event);
  return member;
}

// ---- leaving

ConsumerHeartbeatResult ConsumerGroup::leave(const ConsumerHeartbeat& request, GroupEvent event) {
  Refusal why;
  const ConsumerMember* member = who(request.member_id, request.instance_id, why);
  if (member == nullptr) return refused(std::move(why));
  ConsumerHeartbeatResult result;
  result.member_id = request.member_id;
  result.member_epoch = request.member_epoch;
  if (request.member_epoch == leave_static_epoch) {
    leave_for_a_while(members_.at(member->id), event);
  } else {
    fence({member->id}, event);
  }
  return result;
}

// Its partitions stay its own until its session ends. They count as given at epoch 0 to whoever
// comes in its place.
void ConsumerGroup::leave_for_a_while(ConsumerMember& member, GroupEvent event) {
  disown(member);
  member.epoch = leave_static_epoch;
  member.revoking.clear();
  for (auto& [topic, partitions] : member.assigned) {
    for (auto& [partition, epoch] : partitions) epoch = 0;
  }
  member.revoke_by_ms.reset();
  own(member);
  write_assignment(member, event.records);
}

void ConsumerGroup::fence(const std::vector<std::string>& members, GroupEvent event) {
  if (members.empty()) return;
  bool had_expression = false;
  for (const std::string& id : members) {
    const auto found = members_.find(id);
    POLYLOG_ASSERT(found != members_.end());
    const ConsumerMember& member = found->second;
    had_expression |= !member.expression.empty();
    disown(member);
    if (member.instance_id) {
      const auto in_place = static_ids_.find(*member.instance_id);
      if (in_place != static_ids_.end() && in_place->second == id) static_ids_.erase(in_place);
    }
    write_removal(id, event.records);
    target_.erase(id);
    members_.erase(found);
  }
  if (had_expression) drop_unused_expressions(event);
  refresh_epoch(true, event);
}

void ConsumerGroup::on_time(GroupEvent event) {
  std::vector<std::string> expired;
  earliest_ms_.reset();
  for (const auto& [id, member] : members_) {
    const std::optional<std::int64_t> deadline = member.next_deadline_ms();
    if (*deadline <= event.now.steady_ms) {
      expired.push_back(id);
    } else {
      due(*deadline);
    }
  }
  fence(expired, event);
}

void ConsumerGroup::on_topics_changed(GroupEvent event) {
  topics_stale_ = true;
  // A look that was taken in this very millisecond did not see the change.
  looked_at_ms_ = std::min(looked_at_ms_, event.now.steady_ms - 1);
}

// ---- epochs

// What the subscription of a group is computed from.
void ConsumerGroup::drop_unused_expressions(GroupEvent event) {
  std::set<std::string> used;
  for (const auto& [id, member] : members_) {
    if (!member.expression.empty()) used.insert(member.expression);
  }
  std::erase_if(patterns_, [&used](const auto& entry) { return !used.contains(entry.first); });
  for (auto resolved = resolved_.begin(); resolved != resolved_.end();) {
    if (used.contains(resolved->first)) {
      ++resolved;
      continue;
    }
    write_tombstone(format::kafka::ConsumerGroupRecord::regular_expression, resolved->first,
                    event.records);
    resolved = resolved_.erase(resolved);
  }
}

// Looks at all topics when somebody brought a new expression, topics have come or gone, or the
// last look is too long ago. True: an expression stands for other topics now.
bool ConsumerGroup::resolve_expressions(GroupEvent event) {
  std::set<std::string> used;
  bool unresolved = false;
  for (const auto& [id, member] : members_) {
    if (member.expression.empty() || !used.insert(member.expression).second) continue;
    unresolved |= !resolved_.contains(member.expression);
  }
  if (used.empty()) return false;
  const std::int64_t since_ms = event.now.steady_ms - looked_at_ms_;
  const bool refresh = since_ms >= limits_.regex_refresh_interval_ms;
  const bool stale = topics_stale_ && since_ms >= limits_.regex_pause_ms;
  if (!unresolved && !stale && !refresh) return false;

  looked_at_ms_ = event.now.steady_ms;
  std::map<std::string, std::set<std::string>> found;
  for (const std::string& expression : used) {
    if (!patterns_.contains(expression)) {
      // One that another version of the library accepted may not compile: it matches nothing.
      Result<TopicPattern> pattern = TopicPattern::compile(expression);
      if (pattern) patterns_.emplace(expression, std::move(*pattern));
    }
    found.try_emplace(expression);
  }
  event.topics.each([this, &found](const TopicImage& topic) {
    for (const auto& [expression, pattern] : patterns_) {
      if (pattern.matches(topic.name)) found[expression].insert(topic.name);
    }
  });
  bool changed = false;
  for (auto& [expression, topics] : found) {
    const auto [entry, added] = resolved_.try_emplace(expression);
    const bool differs = entry->second.topics != topics;
    changed |= differs;
    if (!added && !differs && !refresh) continue;
    entry->second = {std::move(topics), event.now.wall_ms};
    write_expression(expression, event.records);
  }
  return changed;
}

void ConsumerGroup::refresh_epoch(bool raise, GroupEvent event) {
  if (!raise && !topics_stale_) return;
  const std::int64_t hash = metadata_hash(event.topics);
  // A look at the topics that had to wait is made up for by a later heartbeat.
  const bool waits = topics_stale_ && !resolved_.empty() && looked_at_ms_ != event.now.steady_ms;
  topics_stale_ = waits;
  if (!raise && hash == hash_) return;
  ++epoch_;
  epoch_since_ms_ = event.now.wall_ms;
  hash_ = hash;
  if (rebalances_ != nullptr) ++*rebalances_;
  write_epoch(event.records);
  if (!old_metadata_record_) return;
  write_tombstone(format::kafka::ConsumerGroupRecord::partition_metadata, "", event.records);
  old_metadata_record_ = false;
}

void ConsumerGroup::refresh_target(GroupEvent event) {
  if (assignment_epoch_ >= epoch_) return;
  const std::int64_t since_ms = event.now.wall_ms - assigned_at_ms_;
  // A clock that was set back does not stop assignments.
  const bool too_soon = since_ms >= 0 && since_ms < limits_.assignment_interval_ms;
  if (assigned_at_ms_ != 0 && too_soon) return;
  const TargetAssignment target = find_assignor(preferred_assignor())(assignor_input(event.topics));
  for (const auto& [id, partitions] : target) {
    const auto [entry, added] = target_.try_emplace(id);
    if (!added && entry->second == partitions) continue;
    entry->second = partitions;
    write_target(id, event.records);
  }
  assignment_epoch_ = epoch_;
  assigned_at_ms_ = event.now.wall_ms;
  write_target_epoch(event.records);
}

AssignorInput ConsumerGroup::assignor_input(const TopicView& topics) const {
  AssignorInput input;
  std::map<std::string, std::optional<TopicImage>> images;
  const auto subscribe = [&](AssignorMember& member, const std::string& name) {
    auto [image, added] = images.try_emplace(name);
    if (added) image->second = topics.find(name);
    if (!image->second) return;
    member.topics.insert(image->second->id);
    input.partitions[image->second->id] = image->second->partitions;
  };
  for (const auto& [id, member] : members_) {
    AssignorMember& entry = input.members[id];
    entry.instance_id = member.instance_id;
    for (const std::string& name : member.topics) subscribe(entry, name);
    if (const auto resolved = resolved_.find(member.expression); resolved != resolved_.end()) {
      for (const std::string& name : resolved->second.topics) subscribe(entry, name);
    }
    if (const auto current = target_.find(id); current != target_.end()) {
      entry.current = current->second;
    }
  }
  return input;
}

// The one most members ask for.
std::string_view ConsumerGroup::preferred_assignor() const {
  std::map<std::string_view, std::size_t> votes;
  for (const auto& [id, member] : members_) {
    if (member.assignor && find_assignor(*member.assignor) != nullptr) ++votes[*member.assignor];
  }
  const auto most = std::max_element(
      votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != votes.end()) return most->first;
  return limits_.assignors.empty() ? assignor_uniform : std::string_view(limits_.assignors.front());
}

// ---- reconciliation

void ConsumerGroup::reconcile_member(ConsumerMember& member, bool subscription_changed,
                                     const std::optional<PartitionSet>& owned, GroupEvent event) {
  if (!subscription_changed && member.stable_at(assignment_epoch_)) return;
  static const PartitionSet no_target;
  const auto target = target_.find(member.id);
  const std::set<Uuid> subscribed = subscribed_ids(member, event.topics);
  ConsumerMember next = member;
  const ReconcileInput input{
      .target_epoch = assignment_epoch_,
      .target = target == target_.end() ? no_target : target->second,
      .subscribed = subscribed,
      .subscription_changed = subscription_changed,
      .owned = owned,
      .taken =
          [this, &member](const Uuid& topic, std::int32_t partition) {
            return taken_by_another(member.id, topic, partition);
          },
  };
  const bool known_state = reconcile(next, input);
  POLYLOG_ASSERT(known_state);  // draft_of() turned the others away
  if (same_assignment(next, member)) return;
  disown(member);
  member = std::move(next);
  own(member);
  write_assignment(member, event.records);
  if (member.classic) return;
  if (member.state == MemberState::unrevoked_partitions) {
    expect_revocation(member, event);
  } else {
    member.revoke_by_ms.reset();
  }
}

void ConsumerGroup::expect_revocation(ConsumerMember& member, GroupEvent event) {
  member.revoke_by_ms = event.now.steady_ms + member.rebalance_timeout_ms;
  due(*member.revoke_by_ms);
}

bool ConsumerGroup::taken_by_another(const std::string& member_id, const Uuid& topic,
                                     std::int32_t partition) const {
  const auto owners = owners_.find(topic);
  if (owners == owners_.end()) return false;
  const auto owner = owners->second.find(partition);
  return owner != owners->second.end() && owner->second != member_id;
}

void ConsumerGroup::own(const ConsumerMember& member) {
  for (const OwnedPartitions* owned : {&member.assigned, &member.revoking}) {
    for (const auto& [topic, partitions] : *owned) {
      auto& owners = owners_[topic];
      for (const auto& [partition, epoch] : partitions) owners[partition] = member.id;
    }
  }
}

void ConsumerGroup::disown(const ConsumerMember& member) {
  for (const OwnedPartitions* owned : {&member.assigned, &member.revoking}) {
    for (const auto& [topic, partitions] : *owned) {
      const auto owners = owners_.find(topic);
      if (owners == owners_.end()) continue;
      for (const auto& [partition, epoch] : partitions) {
        const auto owner = owners->second.find(partition);
        if (owner != owners->second.end() && owner->second == member.id) {
          owners->second.erase(owner);
        }
      }
      if (owners->second.empty()) owners_.erase(owners);
    }
  }
}

// ---- subscriptions

std::set<std::string> ConsumerGroup::subscribed_names() const {
  std::set<std::string> names;
  for (const auto& [id, member] : members_)
    names.insert(member.topics.begin(), member.topics.end());
  for (const auto& [expression, resolved] : resolved_) {
    names.insert(resolved.topics.begin(), resolved.topics.end());
  }
  return names;
}

std::set<Uuid> ConsumerGroup::subscribed_ids(const ConsumerMember& member,
                                             const TopicView& topics) const {
  std::set<Uuid> ids;
  const auto add = [&](const std::set<std::string>& names) {
    for (const std::string& name : names) {
      if (const std::optional<TopicImage> topic = topics.find(name)) ids.insert(topic->id);
    }
  };
  add(member.topics);
  const auto resolved = resolved_.find(member.expression);
  if (resolved != resolved_.end()) add(resolved->second.topics);
  return ids;
}

// Tells topics that changed from those that did not: FNV-1a over ids and partition counts. Kafka
// computes another hash; where one reads the other's, an epoch begins.
std::int64_t ConsumerGroup::metadata_hash(const TopicView& topics) const {
  constexpr std::uint64_t basis = 0xcbf29ce484222325;
  constexpr std::uint64_t prime = 0x100000001b3;
  std::uint64_t hash = basis;
  const auto mix = [&hash](std::uint8_t byte) { hash = (hash ^ byte) * prime; };
  bool any = false;
  for (const std::string& name : subscribed_names()) {
    const std::optional<TopicImage> topic = topics.find(name);
    if (!topic) continue;
    any = true;
    for (const std::uint8_t byte : topic->id.bytes) mix(byte);
    const auto partitions = static_cast<std::uint32_t>(topic->partitions);
    for (int shift = 0; shift < 32; shift += 8) mix(static_cast<std::uint8_t>(partitions >> shift));
  }
  return any ? static_cast<std::int64_t>(hash) : 0;
}

bool ConsumerGroup::subscribed(std::string_view topic) const {
  const std::string name(topic);
  const auto by_name = [&name](const auto& entry) { return entry.second.topics.contains(name); };
  return std::any_of(members_.begin(), members_.end(), by_name) ||
         std::any_of(resolved_.begin(), resolved_.end(), by_name);
}

// ---- time

void ConsumerGroup::due(std::int64_t deadline_ms) {
  earliest_ms_ = earliest_ms_ ? std::min(*earliest_ms_, deadline_ms) : deadline_ms;
}

void ConsumerGroup::touch(ConsumerMember& member, Now now) {
  const std::int32_t timeout_ms =
      member.classic ? member.classic->session_timeout_ms
                     : timing_.session_timeout_ms.value_or(limits_.session_timeout_ms);
  member.session_ends_ms = now.steady_ms + timeout_ms;
  due(member.session_ends_ms);
}

}  // namespace polylog::broker::groups
