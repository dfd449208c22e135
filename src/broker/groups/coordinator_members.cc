#include <utility>

#include "broker/groups/coordinator_impl.h"

// What members ask of their group, and what others ask about groups.
namespace polylog::broker::groups {
namespace {

template <typename R>
void refuse(const std::function<void(R)>& done, GroupError error) {
  R result{};
  result.error = error;
  done(std::move(result));
}

void refuse(const JoinDone& done, GroupError error, std::string member_id) {
  JoinResult result;
  result.error = error;
  result.member_id = std::move(member_id);
  done(std::move(result));
}

}  // namespace

void Coordinator::join(JoinRequest request, JoinDone done) {
  if (request.group.empty()) {
    return refuse(done, GroupError::invalid_group_id, std::move(request.member_id));
  }
  if (request.session_timeout_ms < impl_->settings.session_timeout_min_ms ||
      request.session_timeout_ms > impl_->settings.session_timeout_max_ms) {
    return refuse(done, GroupError::invalid_session_timeout, std::move(request.member_id));
  }
  Shard* shard = nullptr;
  if (const GroupError error = impl_->route(request.group, shard); error != GroupError::none) {
    return refuse(done, error, std::move(request.member_id));
  }
  const bool known = shard->find(request.group) != nullptr;
  if (!known && !request.member_id.empty()) {
    return refuse(done, GroupError::unknown_member_id, std::move(request.member_id));
  }
  const std::string group = request.group;
  impl_->make_way_for_classic(*shard, group);
  GroupEntry& entry = impl_->make_classic(*shard, group);
  entry.group->join(std::move(request), shard->kept(std::move(done)), impl_->event(*shard));
  if (!known && entry.group->empty()) {
    shard->erase(group);  // a request that was refused makes no group
  } else {
    impl_->settle_protocol(*shard, group, entry);
  }
  shard->finish(group);
}

void Coordinator::sync(SyncRequest request, SyncDone done) {
  if (request.group.empty()) return refuse(done, GroupError::invalid_group_id);
  Shard* shard = nullptr;
  if (const GroupError error = impl_->route(request.group, shard); error != GroupError::none) {
    return refuse(done, error);
  }
  GroupEntry* const entry = shard->find(request.group);
  if (entry == nullptr) return refuse(done, GroupError::unknown_member_id);
  const std::string group = request.group;
  entry->group->sync(std::move(request), shard->kept(std::move(done)), impl_->event(*shard));
  impl_->settle_protocol(*shard, group, *entry);
  shard->finish(group);
}

void Coordinator::heartbeat(HeartbeatRequest request, std::function<void(GroupError)> done) {
  if (request.group.empty()) return done(GroupError::invalid_group_id);
  Shard* shard = nullptr;
  if (const GroupError error = impl_->route(request.group, shard); error != GroupError::none) {
    return done(error);
  }
  GroupEntry* const entry = shard->find(request.group);
  if (entry == nullptr) return done(GroupError::unknown_member_id);
  shard->kept(std::move(done))(entry->group->heartbeat(request, impl_->event(*shard)));
  impl_->settle_protocol(*shard, request.group, *entry);
  shard->finish(request.group);
}

void Coordinator::leave(LeaveRequest request, std::function<void(LeaveResult)> done) {
  if (request.group.empty()) return refuse(done, GroupError::invalid_group_id);
  Shard* shard = nullptr;
  if (const GroupError error = impl_->route(request.group, shard); error != GroupError::none) {
    return refuse(done, error);
  }
  GroupEntry* const entry = shard->find(request.group);
  if (entry == nullptr) {
    LeaveResult unknown;
    unknown.members.assign(request.members.size(), GroupError::unknown_member_id);
    return done(std::move(unknown));
  }
  shard->kept(std::move(done))(entry->group->leave(request, impl_->event(*shard)));
  impl_->settle_protocol(*shard, request.group, *entry);
  shard->finish(request.group);
}

void Coordinator::describe(std::string group, std::function<void(DescribedGroup)> done) {
  if (group.empty()) return refuse(done, GroupError::invalid_group_id);
  Shard* shard = nullptr;
  if (const GroupError error = impl_->route(group, shard); error != GroupError::none) {
    return refuse(done, error);
  }
  GroupEntry* const entry = shard->find(group);
  DescribedGroup described;
  if (entry != nullptr) {
    described = entry->group->describe();
  } else {
    described.error = GroupError::group_id_not_found;
  }
  shard->kept(std::move(done))(std::move(described));
  shard->finish(group);
}

void Coordinator::list(std::function<void(ListResult)> done) {
  ListResult result;
  for (const std::shared_ptr<Shard>& shard : impl_->shards) {
    if (shard->ready() != GroupError::none) {
      result.error = GroupError::load_in_progress;
      continue;
    }
    for (const auto& [id, entry] : shard->groups()) {
      const Group& group = *entry.group;
      result.groups.push_back(
          {id, group.protocol_type(), std::string(group.state_name()), group.kind()});
    }
  }
  done(std::move(result));
}

void Coordinator::delete_group(std::string group, std::function<void(GroupError)> done) {
  if (group.empty()) return done(GroupError::invalid_group_id);
  Shard* shard = nullptr;
  if (const GroupError error = impl_->route(group, shard); error != GroupError::none) {
    return done(error);
  }
  GroupEntry* const entry = shard->find(group);
  if (entry == nullptr) return done(GroupError::group_id_not_found);
  const GroupError error = entry->group->check_delete();
  shard->kept(std::move(done))(error);
  if (error == GroupError::none) {
    entry->offsets.erase_all(shard->records());
    entry->group->tombstones(shard->records());
    entry->group->give_up(GroupError::unknown_member_id);
    shard->erase(group);
  }
  shard->finish(group);
}

}  // namespace polylog::broker::groups
