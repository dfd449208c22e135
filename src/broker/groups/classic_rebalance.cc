#include <algorithm>
#include <map>
#include <utility>

#include "broker/groups/classic_group.h"

// How a classic group comes to its next generation: the phases of a rebalance and the timers that
// end them.
namespace polylog::broker::groups {
namespace {

// A client may ask for a rebalance timeout of nothing.
constexpr std::int64_t again_ms_min = 1000;

}  // namespace

void ClassicGroup::enter(State state, Now now) {
  previous_ = state_;
  state_ = state;
  state_since_ms_ = now.wall_ms;
}

void ClassicGroup::touch(Member& its, Now now) {
  its.expires_ms = now.steady_ms + its.session_timeout_ms;
  if (its.is_new) {
    its.expires_ms = std::min(its.expires_ms, its.since_ms + limits_.new_member_join_ms);
  }
  due(its.expires_ms);
}

void ClassicGroup::due(std::int64_t deadline_ms) {
  earliest_ms_ = std::min(earliest_ms_.value_or(deadline_ms), deadline_ms);
}

// ------------------------------------------------------------------------------ the phases

void ClassicGroup::rebalance_or_complete(GroupEvent event) {
  if (state_ == State::preparing_rebalance) {
    complete_if_all_joined(event);
  } else {
    prepare_rebalance(event);
  }
}

void ClassicGroup::prepare_rebalance(GroupEvent event) {
  for (const auto& its : members_) {
    its->sync_pending = false;
    if (!its->sync) continue;
    touch(*its, event.now);
    SyncResult again;
    again.error = GroupError::rebalance_in_progress;
    std::exchange(its->sync, nullptr)(std::move(again));
  }
  sync_deadline_ms_.reset();
  const bool first = state_ == State::empty;
  enter(State::preparing_rebalance, event.now);
  if (!first && all_joined()) return complete_join(event);

  // A group that begins waits for more members before anybody gets partitions.
  std::int64_t wait_ms = rebalance_timeout_ms();
  initial_remaining_ms_.reset();
  newcomer_since_ = false;
  if (first) {
    initial_step_ms_ = limits_.initial_rebalance_delay_ms;
    initial_remaining_ms_ = std::max<std::int64_t>(wait_ms - initial_step_ms_, 0);
    wait_ms = initial_step_ms_;
  }
  join_deadline_ms_ = event.now.steady_ms + wait_ms;
  due(*join_deadline_ms_);
}

bool ClassicGroup::all_joined() const {
  return pending_.empty() && std::all_of(members_.begin(), members_.end(),
                                         [](const auto& its) { return bool{its->join}; });
}

void ClassicGroup::complete_if_all_joined(GroupEvent event) {
  if (state_ == State::preparing_rebalance && previous_ != State::empty && all_joined()) {
    complete_join(event);
  }
}

// The join phase's time is up.
void ClassicGroup::end_of_join_phase(GroupEvent event) {
  join_deadline_ms_.reset();
  if (!initial_remaining_ms_ || *initial_remaining_ms_ == 0 || !newcomer_since_) {
    return complete_join(event);
  }
  newcomer_since_ = false;
  const std::int64_t step_ms = std::min(limits_.initial_rebalance_delay_ms, *initial_remaining_ms_);
  initial_remaining_ms_ = std::max<std::int64_t>(*initial_remaining_ms_ - initial_step_ms_, 0);
  initial_step_ms_ = step_ms;
  join_deadline_ms_ = event.now.steady_ms + step_ms;
  due(*join_deadline_ms_);
}

void ClassicGroup::complete_join(GroupEvent event) {
  join_deadline_ms_.reset();
  initial_remaining_ms_.reset();
  std::vector<std::string> absent;
  for (const auto& its : members_) {
    if (!its->join && !its->instance_id) absent.push_back(its->id);
  }
  for (const std::string& id : absent) remove(id);
  // Static members alone are left and none of them is here: their sessions decide.
  if (!members_.empty() && !elect_joined_leader()) {
    join_deadline_ms_ = event.now.steady_ms + std::max(rebalance_timeout_ms(), again_ms_min);
    due(*join_deadline_ms_);
    return;
  }
  begin_generation(event);
}

bool ClassicGroup::elect_joined_leader() {
  const Member* const leads = member(leader_);
  if (leads != nullptr && leads->join) return true;
  for (const auto& its : members_) {
    if (!its->join) continue;
    leader_ = its->id;
    return true;
  }
  return false;
}

void ClassicGroup::begin_generation(GroupEvent event) {
  generation_ = generation_ == INT32_MAX ? 1 : generation_ + 1;
  assigned_ = false;
  if (rebalances_ != nullptr) ++*rebalances_;
  if (members_.empty()) {
    protocol_.reset();
    subscriptions_.reset();
    enter(State::empty, event.now);
    write(event.records);
    return;
  }
  protocol_ = select_protocol();
  refresh_subscriptions();
  enter(State::completing_rebalance, event.now);
  sync_deadline_ms_ = event.now.steady_ms + rebalance_timeout_ms();
  due(*sync_deadline_ms_);
  for (const auto& its : members_) {
    its->assignment.clear();
    if (!its->join) continue;
    its->is_new = false;
    its->sync_pending = true;
    touch(*its, event.now);
    std::exchange(its->join, nullptr)(joined(*its, its->id == leader_));
  }
}

std::int64_t ClassicGroup::rebalance_timeout_ms() const {
  std::int64_t longest = 0;
  for (const auto& its : members_) {
    longest = std::max<std::int64_t>(longest, its->rebalance_timeout_ms);
  }
  return longest;
}

std::set<std::string> ClassicGroup::common_protocols() const {
  std::map<std::string, std::size_t> supporters;
  for (const auto& its : members_) {
    std::set<std::string_view> own;
    for (const Protocol& protocol : its->protocols) {
      if (own.insert(protocol.name).second) ++supporters[protocol.name];
    }
  }
  std::set<std::string> common;
  for (const auto& [name, count] : supporters) {
    if (count == members_.size()) common.insert(name);
  }
  return common;
}

// Each member votes for the first of its protocols that all have; most votes win, then what the
// leader likes better.
std::string ClassicGroup::select_protocol() const {
  const std::set<std::string> common = common_protocols();
  std::map<std::string, std::size_t> votes;
  for (const auto& its : members_) {
    for (const Protocol& protocol : its->protocols) {
      if (!common.contains(protocol.name)) continue;
      ++votes[protocol.name];
      break;
    }
  }
  const Member& leads = *by_id_.at(leader_);
  std::string best = leads.protocols.empty() ? "" : leads.protocols.front().name;
  std::size_t most = 0;
  for (const Protocol& protocol : leads.protocols) {
    const auto it = votes.find(protocol.name);
    if (it == votes.end() || it->second <= most) continue;
    best = protocol.name;
    most = it->second;
  }
  return best;
}

void ClassicGroup::refresh_subscriptions() {
  subscriptions_.reset();
  if (protocol_type_ != "consumer") return;
  std::set<std::string> topics;
  for (const auto& its : members_) {
    const Protocol* const own = its->find(protocol_.value_or(""));
    if (own == nullptr) return;
    auto read = format::kafka::subscribed_topics(own->metadata);
    if (!read) return;
    topics.insert(std::make_move_iterator(read->begin()), std::make_move_iterator(read->end()));
  }
  subscriptions_ = std::move(topics);
}

void ClassicGroup::complete_sync(const SyncRequest& request, GroupEvent event) {
  for (const auto& [id, assignment] : request.assignments) {
    if (Member* const its = member(id); its != nullptr) its->assignment = assignment;
  }
  assigned_ = true;
  enter(State::stable, event.now);
  write(event.records);
  for (const auto& its : members_) {
    if (!its->sync) continue;
    touch(*its, event.now);
    std::exchange(its->sync, nullptr)(synced(*its));
  }
}

SyncResult ClassicGroup::synced(const Member& its) const {
  SyncResult result;
  result.protocol_type = protocol_type_;
  result.protocol = protocol_;
  result.assignment = its.assignment;
  return result;
}

// --------------------------------------------------------------------------------- timers

std::optional<std::int64_t> ClassicGroup::next_deadline_ms() const { return earliest_ms_; }

// Who has been silent too long. A parked request keeps its member, as long as somebody waits for
// the answer; but a new member, which has no id yet to come back with, only for so long.
std::vector<std::string> ClassicGroup::expired_members(Now now) {
  std::vector<std::string> expired;
  for (const auto& its : members_) {
    if (its->expires_ms > now.steady_ms) continue;
    const Caller& waiting = its->join ? its->join_caller : its->sync_caller;
    const std::int64_t until_ms = its->since_ms + limits_.new_member_join_ms;
    const bool stays = its->parked() && !waiting.gone() &&
                       !(its->is_new && its->join && until_ms <= now.steady_ms);
    if (!stays) {
      expired.push_back(its->id);
      continue;
    }
    touch(*its, now);
  }
  return expired;
}

std::vector<std::string> ClassicGroup::unsynced_members() const {
  std::vector<std::string> unsynced;
  for (const auto& its : members_) {
    if (its->sync_pending) unsynced.push_back(its->id);
  }
  return unsynced;
}

void ClassicGroup::on_time(GroupEvent event) {
  if (state_ == State::dead) return;
  const std::int64_t now_ms = event.now.steady_ms;
  std::erase_if(pending_, [&](const auto& entry) { return entry.second <= now_ms; });
  const std::vector<std::string> expired = expired_members(event.now);
  for (const std::string& id : expired) remove(id);
  if (expired.empty()) {
    complete_if_all_joined(event);
  } else {
    after_removal(event);
  }
  if (join_deadline_ms_ && *join_deadline_ms_ <= now_ms) end_of_join_phase(event);
  if (sync_deadline_ms_ && *sync_deadline_ms_ <= now_ms) {
    sync_deadline_ms_.reset();
    const std::vector<std::string> unsynced = unsynced_members();
    for (const std::string& id : unsynced) remove(id);
    if (!unsynced.empty()) after_removal(event);
  }
  look_ahead();
}

void ClassicGroup::look_ahead() {
  earliest_ms_.reset();
  for (const auto& [id, until_ms] : pending_) due(until_ms);
  for (const auto& its : members_) due(its->expires_ms);
  if (join_deadline_ms_) due(*join_deadline_ms_);
  if (sync_deadline_ms_) due(*sync_deadline_ms_);
}

}  // namespace polylog::broker::groups
