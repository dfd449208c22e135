#include "broker/groups/classic_group.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/ids.h"

// Who is in the group: joining, leaving, what each request is checked for. How generations come
// and go is in classic_rebalance.cc.
namespace polylog::broker::groups {
namespace {

constexpr std::string_view consumer_type = "consumer";
// An id is the client's name and a random part: it must fit where a record has 32,767 bytes.
constexpr std::size_t id_prefix_bytes_max = 1024;

// "name-" and a UUID in its usual form, as Kafka's ids look.
std::string new_member_id(std::string_view name) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string id(name.substr(0, id_prefix_bytes_max));
  id += '-';
  const Uuid uuid = Uuid::random();
  for (std::size_t i = 0; i < uuid.bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) id += '-';
    id += digits[uuid.bytes[i] >> 4];
    id += digits[uuid.bytes[i] & 15];
  }
  return id;
}

void refuse(const JoinDone& done, GroupError error, std::string member_id) {
  JoinResult result;
  result.error = error;
  result.member_id = std::move(member_id);
  done(std::move(result));
}

std::size_t bytes_of(const std::vector<Protocol>& protocols) {
  std::size_t bytes = 0;
  for (const Protocol& protocol : protocols) {
    bytes += protocol.name.size() + protocol.metadata.size();
  }
  return bytes;
}

std::size_t bytes_of(const std::vector<std::pair<std::string, Bytes>>& assignments) {
  std::size_t bytes = 0;
  for (const auto& [member, assignment] : assignments) bytes += assignment.size();
  return bytes;
}

void refuse(const SyncDone& done, GroupError error) {
  SyncResult result;
  result.error = error;
  done(std::move(result));
}

}  // namespace

std::string_view to_string(ClassicGroup::State state) {
  switch (state) {
    case ClassicGroup::State::empty: return "Empty";
    case ClassicGroup::State::preparing_rebalance: return "PreparingRebalance";
    case ClassicGroup::State::completing_rebalance: return "CompletingRebalance";
    case ClassicGroup::State::stable: return "Stable";
    case ClassicGroup::State::dead: return "Dead";
  }
  return "";
}

const Protocol* ClassicMember::find(std::string_view protocol) const {
  const auto it = std::find_if(protocols.begin(), protocols.end(),
                               [&](const Protocol& own) { return own.name == protocol; });
  return it == protocols.end() ? nullptr : &*it;
}

ClassicGroup::ClassicGroup(std::string id, const ClassicLimits& limits, Now now,
                           std::uint64_t* rebalances)
    : id_(std::move(id)), limits_(limits), rebalances_(rebalances), state_since_ms_(now.wall_ms) {}

std::string_view ClassicGroup::state_name() const { return to_string(state_); }

std::vector<const ClassicMember*> ClassicGroup::members() const {
  std::vector<const ClassicMember*> all;
  all.reserve(members_.size());
  for (const auto& member : members_) all.push_back(member.get());
  return all;
}

const ClassicMember* ClassicGroup::find(const std::string& member_id) const {
  const auto it = by_id_.find(member_id);
  return it == by_id_.end() ? nullptr : it->second;
}

ClassicMember* ClassicGroup::member(const std::string& member_id) {
  const auto it = by_id_.find(member_id);
  return it == by_id_.end() ? nullptr : it->second;
}

// ------------------------------------------------------------------------------- who asks

GroupError ClassicGroup::check_member(const std::string& member_id,
                                      const std::optional<std::string>& instance_id) const {
  if (instance_id) {
    const auto known = static_ids_.find(*instance_id);
    if (known == static_ids_.end()) return GroupError::unknown_member_id;
    if (known->second != member_id) return GroupError::fenced_instance_id;
  }
  return by_id_.contains(member_id) ? GroupError::none : GroupError::unknown_member_id;
}

bool ClassicGroup::accepts_one_more(const JoinRequest& request) const {
  if (request.instance_id && static_ids_.contains(*request.instance_id)) return true;
  const auto known = by_id_.find(request.member_id);
  switch (state_) {
    case State::empty:
    case State::dead: return true;
    case State::preparing_rebalance: {
      if (known != by_id_.end() && known->second->join) return true;
      const auto joining = std::count_if(members_.begin(), members_.end(),
                                         [](const auto& member) { return bool{member->join}; });
      return static_cast<std::size_t>(joining) < limits_.members_max;
    }
    case State::completing_rebalance:
    case State::stable: return known != by_id_.end() || members_.size() < limits_.members_max;
  }
  return true;
}

bool ClassicGroup::has_room_for(const JoinRequest& request) const {
  std::size_t bytes = bytes_of(request.protocols);
  for (const auto& its : members_) {
    const bool same = its->id == request.member_id ||
                      (request.instance_id && its->instance_id == request.instance_id);
    if (!same) bytes += bytes_of(its->protocols);
  }
  return bytes <= limits_.bytes_max;
}

// One protocol at least that all members have, of one type.
bool ClassicGroup::supports(const JoinRequest& request) const {
  if (members_.empty()) return !request.protocol_type.empty() && !request.protocols.empty();
  if (request.protocol_type != protocol_type_) return false;
  const std::set<std::string> common = common_protocols();
  return std::any_of(request.protocols.begin(), request.protocols.end(),
                     [&](const Protocol& own) { return common.contains(own.name); });
}

// -------------------------------------------------------------------------------- joining

void ClassicGroup::join(JoinRequest request, JoinDone done, GroupEvent event) {
  if (state_ == State::dead) {
    return refuse(done, GroupError::coordinator_not_available, request.member_id);
  }
  if (!accepts_one_more(request) || !has_room_for(request)) {
    pending_.erase(request.member_id);
    return refuse(done, GroupError::group_max_size_reached, "");
  }
  if (!supports(request)) {
    return refuse(done, GroupError::inconsistent_group_protocol, request.member_id);
  }
  if (request.member_id.empty()) {
    join_new(std::move(request), std::move(done), event);
  } else {
    join_known(std::move(request), std::move(done), event);
  }
}

void ClassicGroup::join_new(JoinRequest request, JoinDone done, GroupEvent event) {
  if (request.instance_id) {
    const auto known = static_ids_.find(*request.instance_id);
    if (known != static_ids_.end()) {
      return replace_static(*member(known->second), std::move(request), std::move(done), event);
    }
    std::string id = new_member_id(*request.instance_id);
    return add_member(std::move(request), std::move(id), std::move(done), event);
  }
  std::string id = new_member_id(request.caller.client_id);
  if (!request.must_know_id) {
    return add_member(std::move(request), std::move(id), std::move(done), event);
  }
  const std::int64_t until_ms = event.now.steady_ms + request.session_timeout_ms;
  pending_[id] = until_ms;
  due(until_ms);
  refuse(done, GroupError::member_id_required, std::move(id));
}

void ClassicGroup::join_known(JoinRequest request, JoinDone done, GroupEvent event) {
  // Ids are given out to dynamic members only.
  if (!request.instance_id && pending_.erase(request.member_id) > 0) {
    std::string id = request.member_id;
    return add_member(std::move(request), std::move(id), std::move(done), event);
  }
  const GroupError error = check_member(request.member_id, request.instance_id);
  if (error != GroupError::none) return refuse(done, error, request.member_id);
  Member& its = *member(request.member_id);
  const bool same = its.protocols == request.protocols;
  const bool leads = its.id == leader_;
  // One that did not get the answer to its join, or a follower without news: the generation is
  // as it was. A leader that joins again asks for new assignments.
  if ((state_ == State::completing_rebalance && same) ||
      (state_ == State::stable && same && !leads)) {
    touch(its, event.now);
    return done(joined(its, leads && state_ == State::completing_rebalance));
  }
  park(its, std::move(request), std::move(done), event);
  rebalance_or_complete(event);
}

void ClassicGroup::add_member(JoinRequest request, std::string member_id, JoinDone done,
                              GroupEvent event) {
  if (members_.empty()) protocol_type_ = request.protocol_type;
  auto added = std::make_unique<Member>();
  Member& its = *added;
  its.id = std::move(member_id);
  its.instance_id = request.instance_id;
  its.is_new = true;
  its.since_ms = event.now.steady_ms;
  if (leader_.empty()) leader_ = its.id;
  by_id_[its.id] = &its;
  if (its.instance_id) static_ids_[*its.instance_id] = its.id;
  members_.push_back(std::move(added));
  if (state_ == State::preparing_rebalance && previous_ == State::empty) newcomer_since_ = true;
  park(its, std::move(request), std::move(done), event);
  rebalance_or_complete(event);
}

void ClassicGroup::park(Member& its, JoinRequest request, JoinDone done, GroupEvent event) {
  const JoinDone before = std::exchange(its.join, std::move(done));
  its.client_id = std::move(request.caller.client_id);
  its.host = std::move(request.caller.host);
  its.join_caller.connected = std::move(request.caller.connected);
  its.session_timeout_ms = request.session_timeout_ms;
  its.rebalance_timeout_ms = request.rebalance_timeout_ms;
  its.protocols = std::move(request.protocols);
  touch(its, event.now);
  // The same member asked before, on another connection perhaps: nobody may be left waiting.
  if (before) refuse(before, GroupError::rebalance_in_progress, its.id);
}

// A static member came back without knowing its id: it takes its old place under a new one.
void ClassicGroup::replace_static(Member& its, JoinRequest request, JoinDone done,
                                  GroupEvent event) {
  const std::string old_id = its.id;
  const std::string old_leader = leader_;
  const std::vector<Protocol> before = its.protocols;
  const bool can_skip = request.can_skip_assignment;
  its.id = new_member_id(*its.instance_id);
  by_id_.erase(old_id);
  by_id_[its.id] = &its;
  static_ids_[*its.instance_id] = its.id;
  if (leader_ == old_id) leader_ = its.id;
  if (its.join) {
    refuse(std::exchange(its.join, nullptr), GroupError::fenced_instance_id, old_id);
  }
  if (its.sync) refuse(std::exchange(its.sync, nullptr), GroupError::fenced_instance_id);
  park(its, std::move(request), std::move(done), event);

  if (state_ != State::stable || select_protocol() != protocol_ || !same_topics(its, before)) {
    if (state_ == State::preparing_rebalance && previous_ == State::empty) newcomer_since_ = true;
    return rebalance_or_complete(event);
  }
  refresh_subscriptions();
  write(event.records);
  const bool leads = its.id == leader_;
  JoinResult result = joined(its, leads && can_skip);
  result.skip_assignment = leads && can_skip;
  // An older client that is told it leads would assign anew: it is shown who led before.
  if (!can_skip) result.leader = old_leader;
  std::exchange(its.join, nullptr)(std::move(result));
}

// User data differs after every restart where assignors put what they own there; topics count.
bool ClassicGroup::same_topics(const Member& its, const std::vector<Protocol>& before) const {
  if (protocol_type_ != consumer_type) return true;
  Member old;
  old.protocols = before;
  const Protocol* const then = old.find(*protocol_);
  const Protocol* const now = its.find(*protocol_);
  if (then == nullptr || now == nullptr) return false;
  auto topics_then = format::kafka::subscribed_topics(then->metadata);
  auto topics_now = format::kafka::subscribed_topics(now->metadata);
  if (!topics_then || !topics_now) return then->metadata == now->metadata;
  std::sort(topics_then->begin(), topics_then->end());
  std::sort(topics_now->begin(), topics_now->end());
  return topics_then == topics_now;
}

JoinResult ClassicGroup::joined(const Member& its, bool with_members) const {
  JoinResult result;
  result.generation = generation_;
  result.protocol_type = protocol_type_;
  result.protocol = protocol_;
  result.leader = leader_;
  result.member_id = its.id;
  if (!with_members) return result;
  result.members.reserve(members_.size());
  for (const auto& other : members_) {
    const Protocol* const own = other->find(protocol_.value_or(""));
    result.members.push_back({other->id, other->instance_id, own ? own->metadata : Bytes()});
  }
  return result;
}

// -------------------------------------------------------------------------- other requests

void ClassicGroup::sync(SyncRequest request, SyncDone done, GroupEvent event) {
  if (state_ == State::dead) return refuse(done, GroupError::coordinator_not_available);
  const GroupError error = check_member(request.member_id, request.instance_id);
  if (error != GroupError::none) return refuse(done, error);
  if (request.generation != generation_) return refuse(done, GroupError::illegal_generation);
  if ((request.protocol_type && request.protocol_type != protocol_type_) ||
      (request.protocol && request.protocol != protocol_)) {
    return refuse(done, GroupError::inconsistent_group_protocol);
  }
  Member& its = *member(request.member_id);
  if (state_ == State::preparing_rebalance) {
    return refuse(done, GroupError::rebalance_in_progress);
  }
  if (bytes_of(request.assignments) > limits_.bytes_max) {
    return refuse(done, GroupError::group_max_size_reached);
  }
  touch(its, event.now);
  its.sync_pending = false;
  if (state_ == State::stable) return done(synced(its));
  const SyncDone before = std::exchange(its.sync, std::move(done));
  its.sync_caller.connected = std::move(request.caller.connected);
  if (before) refuse(before, GroupError::rebalance_in_progress);
  if (its.id == leader_) complete_sync(request, event);
}

GroupError ClassicGroup::heartbeat(const HeartbeatRequest& request, GroupEvent event) {
  if (state_ == State::dead) return GroupError::coordinator_not_available;
  const GroupError error = check_member(request.member_id, request.instance_id);
  if (error != GroupError::none) return error;
  if (request.generation != generation_) return GroupError::illegal_generation;
  touch(*member(request.member_id), event.now);
  return state_ == State::preparing_rebalance ? GroupError::rebalance_in_progress
                                              : GroupError::none;
}

LeaveResult ClassicGroup::leave(const LeaveRequest& request, GroupEvent event) {
  LeaveResult result;
  if (state_ == State::dead) {
    result.error = GroupError::coordinator_not_available;
    return result;
  }
  bool removed = false;
  for (const LeavingMember& leaving : request.members) {
    std::string id = leaving.id;
    // An administrator names a static member by its instance alone.
    if (id.empty() && leaving.instance_id && static_ids_.contains(*leaving.instance_id)) {
      id = static_ids_.at(*leaving.instance_id);
    }
    GroupError error = GroupError::none;
    if (pending_.erase(id) == 0) {
      error = check_member(id, leaving.instance_id);
      if (error == GroupError::none) {
        remove(id);
        removed = true;
      }
    }
    result.members.push_back(error);
  }
  if (removed) {
    after_removal(event);
  } else {
    complete_if_all_joined(event);
  }
  return result;
}

void ClassicGroup::remove(const std::string& member_id) {
  const auto it = std::find_if(members_.begin(), members_.end(),
                               [&](const auto& its) { return its->id == member_id; });
  if (it == members_.end()) return;
  const std::unique_ptr<Member> gone = std::move(*it);
  members_.erase(it);
  by_id_.erase(gone->id);
  if (gone->instance_id) static_ids_.erase(*gone->instance_id);
  if (leader_ == gone->id) leader_ = members_.empty() ? "" : members_.front()->id;
  if (gone->join) refuse(gone->join, GroupError::unknown_member_id, gone->id);
  if (gone->sync) refuse(gone->sync, GroupError::unknown_member_id);
}

void ClassicGroup::after_removal(GroupEvent event) {
  if (state_ == State::stable || state_ == State::completing_rebalance) {
    prepare_rebalance(event);
  } else {
    complete_if_all_joined(event);
  }
}

// --------------------------------------------------------------------- committed offsets

GroupError ClassicGroup::check_commit(const CommitRequest& request, GroupEvent event) {
  if (state_ == State::dead) return GroupError::coordinator_not_available;
  const bool alone = request.generation < 0 && request.member_id.empty() && !request.instance_id;
  if (request.generation < 0 && state_ == State::empty) return GroupError::none;
  if (alone) return GroupError::unknown_member_id;
  const GroupError error = check_member(request.member_id, request.instance_id);
  if (error != GroupError::none) return error;
  if (request.generation != generation_) return GroupError::illegal_generation;
  if (state_ == State::completing_rebalance) return GroupError::rebalance_in_progress;
  touch(*member(request.member_id), event.now);
  return GroupError::none;
}

GroupError ClassicGroup::check_fetch(const FetchOffsetsRequest&) const {
  return state_ == State::dead ? GroupError::group_id_not_found : GroupError::none;
}

GroupError ClassicGroup::check_offset_delete() const {
  if (state_ == State::dead) return GroupError::group_id_not_found;
  if (state_ == State::empty || protocol_type_ == consumer_type) return GroupError::none;
  return GroupError::non_empty_group;
}

GroupError ClassicGroup::check_delete() const {
  if (state_ == State::dead) return GroupError::group_id_not_found;
  return state_ == State::empty ? GroupError::none : GroupError::non_empty_group;
}

bool ClassicGroup::subscribed(std::string_view topic) const {
  if (members_.empty()) return false;
  return !subscriptions_ || subscriptions_->contains(std::string(topic));
}

OffsetExpiry ClassicGroup::expiry() const {
  OffsetExpiry expiry;
  if (!protocol_type_) {
    expiry.rule = OffsetExpiry::Rule::by_commit;
  } else if (state_ == State::empty) {
    expiry.rule =
        state_since_ms_ >= 0 ? OffsetExpiry::Rule::by_emptiness : OffsetExpiry::Rule::by_commit;
    expiry.empty_since_ms = state_since_ms_;
  } else if (state_ == State::stable && subscriptions_) {
    expiry.rule = OffsetExpiry::Rule::by_commit;
  }
  return expiry;
}

DescribedGroup ClassicGroup::describe() const {
  DescribedGroup group;
  group.state = to_string(state_);
  group.protocol_type = protocol_type_.value_or("");
  const bool stable = state_ == State::stable;
  if (stable) group.protocol = protocol_.value_or("");
  for (const auto& its : members_) {
    DescribedMember out{its->id, its->instance_id, its->client_id, its->host, {}, {}};
    if (stable) {
      const Protocol* const own = its->find(group.protocol);
      if (own != nullptr) out.metadata = own->metadata;
      out.assignment = its->assignment;
    }
    group.members.push_back(std::move(out));
  }
  return group;
}

void ClassicGroup::give_up(GroupError error) {
  state_ = State::dead;
  for (const auto& its : members_) {
    if (its->join) refuse(std::exchange(its->join, nullptr), error, its->id);
    if (its->sync) refuse(std::exchange(its->sync, nullptr), error);
  }
}

// ------------------------------------------------------------------------------ the record

std::unique_ptr<ClassicGroup> ClassicGroup::load(std::string id, const ClassicLimits& limits,
                                                 const format::kafka::GroupMetadata& metadata,
                                                 Now now, std::uint64_t* rebalances) {
  auto group = std::make_unique<ClassicGroup>(std::move(id), limits, now, rebalances);
  if (!metadata.protocol_type.empty()) group->protocol_type_ = metadata.protocol_type;
  group->generation_ = metadata.generation;
  group->state_since_ms_ = metadata.state_since.value();
  if (metadata.members.empty()) return group;

  group->protocol_ = metadata.protocol.value_or("");
  for (const format::kafka::GroupMember& stored : metadata.members) {
    if (stored.id.empty() || group->by_id_.contains(stored.id)) continue;
    auto its = std::make_unique<Member>();
    its->id = stored.id;
    its->instance_id = stored.instance_id;
    its->client_id = stored.client_id;
    its->host = stored.host;
    its->session_timeout_ms = stored.session_timeout_ms;
    its->rebalance_timeout_ms =
        stored.rebalance_timeout_ms < 0 ? stored.session_timeout_ms : stored.rebalance_timeout_ms;
    its->protocols.push_back({*group->protocol_, stored.subscription});
    its->assignment = stored.assignment;
    its->since_ms = now.steady_ms;
    group->by_id_[its->id] = its.get();
    if (its->instance_id) group->static_ids_[*its->instance_id] = its->id;
    group->members_.push_back(std::move(its));
  }
  if (group->members_.empty()) return group;
  for (const auto& its : group->members_) group->touch(*its, now);
  group->state_ = State::stable;
  group->assigned_ = true;
  group->leader_ = metadata.leader.value_or("");
  if (!group->by_id_.contains(group->leader_)) group->leader_ = group->members_.front()->id;
  group->refresh_subscriptions();
  return group;
}

format::kafka::GroupMetadata ClassicGroup::metadata() const {
  format::kafka::GroupMetadata out;
  out.protocol_type = protocol_type_.value_or("");
  out.generation = generation_;
  out.state_since = Timestamp(state_since_ms_);
  if (!assigned_) return out;
  out.protocol = protocol_;
  for (const auto& its : members_) {
    if (its->is_new) continue;
    if (its->id == leader_) out.leader = leader_;
    const Protocol* const own = its->find(protocol_.value_or(""));
    format::kafka::GroupMember& stored = out.members.emplace_back();
    stored.id = its->id;
    stored.instance_id = its->instance_id;
    stored.client_id = its->client_id;
    stored.host = its->host;
    stored.rebalance_timeout_ms = its->rebalance_timeout_ms;
    stored.session_timeout_ms = its->session_timeout_ms;
    if (own != nullptr) stored.subscription = own->metadata;
    stored.assignment = its->assignment;
  }
  if (out.members.empty()) out.protocol.reset();
  return out;
}

void ClassicGroup::write(GroupRecords& out) const {
  auto key = format::kafka::encode_group_metadata_key(id_);
  auto value = format::kafka::encode_group_metadata(metadata());
  // All texts come from requests and records, which can hold no longer ones.
  POLYLOG_ASSERT(key && value);
  out.push_back({std::move(*key), std::move(*value)});
}

void ClassicGroup::snapshot(GroupRecords& out, Now) const { write(out); }

void ClassicGroup::tombstones(GroupRecords& out) const {
  auto key = format::kafka::encode_group_metadata_key(id_);
  POLYLOG_ASSERT(key);
  out.push_back({std::move(*key), std::nullopt});
}

}  // namespace polylog::broker::groups
