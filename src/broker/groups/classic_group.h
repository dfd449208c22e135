#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "broker/groups/group.h"
#include "format/kafka/group_records.h"

namespace polylog::broker::groups {

struct ClassicLimits {
  std::int64_t initial_rebalance_delay_ms = 3000;
  std::size_t members_max = SIZE_MAX;
  // Of the metadata that all members bring, and of the assignments of a generation: both have to
  // fit into one record.
  std::size_t bytes_max = SIZE_MAX;
  // How long a new member's first join may be parked: it has no id yet to be missed by.
  std::int64_t new_member_join_ms = 300'000;
};

struct ClassicMember {
  std::string id;
  std::optional<std::string> instance_id;
  std::string client_id;
  std::string host;
  std::int32_t session_timeout_ms = 0;
  std::int32_t rebalance_timeout_ms = 0;
  std::vector<Protocol> protocols;
  Bytes assignment;

  // The parked request of each kind, and who waits for it.
  JoinDone join;
  SyncDone sync;
  Caller join_caller, sync_caller;
  bool is_new = false;          // its first join is not answered yet
  bool sync_pending = false;    // it was told the generation and has not synced yet
  std::int64_t since_ms = 0;    // steady: when it came
  std::int64_t expires_ms = 0;  // steady: when to see whether it is still there
  bool parked() const { return join || sync; }

  const Protocol* find(std::string_view protocol) const;
};

// A group whose members assign the partitions among themselves (Kafka wire protocol, "Classic
// consumer groups"). See group.h for how it is driven. Memory only: the shard writes and loads.
class ClassicGroup final : public Group {
 public:
  enum class State { empty, preparing_rebalance, completing_rebalance, stable, dead };
  // Counts generations over all groups that share it; may be null.
  ClassicGroup(std::string id, const ClassicLimits& limits, Now now,
               std::uint64_t* rebalances = nullptr);

  // As the record says: Stable with its members, whose sessions begin `now`, or Empty.
  static std::unique_ptr<ClassicGroup> load(std::string id, const ClassicLimits& limits,
                                            const format::kafka::GroupMetadata& metadata, Now now,
                                            std::uint64_t* rebalances = nullptr);
  // What snapshot() writes: the group as it was last assigned, or Empty while a generation that
  // members know of has no assignment yet.
  format::kafka::GroupMetadata metadata() const;

  GroupKind kind() const override { return GroupKind::classic; }
  std::string_view state_name() const override;
  std::string protocol_type() const override { return protocol_type_.value_or(""); }
  bool empty() const override { return members_.empty() && pending_.empty(); }

  std::size_t members_count() const override { return members_.size(); }

  void join(JoinRequest request, JoinDone done, GroupEvent event) override;
  void sync(SyncRequest request, SyncDone done, GroupEvent event) override;
  GroupError heartbeat(const HeartbeatRequest& request, GroupEvent event) override;
  LeaveResult leave(const LeaveRequest& request, GroupEvent event) override;
  GroupError check_commit(const CommitRequest& request, GroupEvent event) override;
  GroupError check_fetch(const FetchOffsetsRequest& request) const override;
  GroupError check_offset_delete() const override;
  GroupError check_delete() const override;
  bool subscribed(std::string_view topic) const override;
  OffsetExpiry expiry() const override;
  DescribedGroup describe() const override;
  std::optional<std::int64_t> next_deadline_ms() const override;
  void on_time(GroupEvent event) override;
  void snapshot(GroupRecords& out, Now now) const override;
  void tombstones(GroupRecords& out) const override;
  void give_up(GroupError error) override;

  // Everybody is to join anew: the group was one of the other protocol so far.
  void rebalance(GroupEvent event) { prepare_rebalance(event); }

  const std::string& id() const { return id_; }
  State state() const { return state_; }
  std::int32_t generation() const { return generation_; }
  const std::optional<std::string>& protocol() const { return protocol_; }
  const std::string& leader() const { return leader_; }  // "" without members
  std::vector<const ClassicMember*> members() const;     // in the order they came
  const ClassicMember* find(const std::string& member_id) const;
  std::size_t pending_members() const { return pending_.size(); }
  // Topics of all members' subscriptions; nothing when one can't be read, or the protocol type is
  // not "consumer".
  const std::optional<std::set<std::string>>& subscribed_topics() const { return subscriptions_; }

 private:
  using Member = ClassicMember;

  // ---- who asks
  GroupError check_member(const std::string& member_id,
                          const std::optional<std::string>& instance_id) const;
  bool accepts_one_more(const JoinRequest& request) const;
  bool has_room_for(const JoinRequest& request) const;
  bool supports(const JoinRequest& request) const;
  Member* member(const std::string& member_id);

  // ---- joining
  void join_new(JoinRequest request, JoinDone done, GroupEvent event);
  void join_known(JoinRequest request, JoinDone done, GroupEvent event);
  void add_member(JoinRequest request, std::string member_id, JoinDone done, GroupEvent event);
  void replace_static(Member& member, JoinRequest request, JoinDone done, GroupEvent event);
  void park(Member& member, JoinRequest request, JoinDone done, GroupEvent event);
  JoinResult joined(const Member& member, bool with_members) const;
  bool same_topics(const Member& member, const std::vector<Protocol>& before) const;

  // ---- rebalancing
  void rebalance_or_complete(GroupEvent event);
  void prepare_rebalance(GroupEvent event);
  void complete_if_all_joined(GroupEvent event);
  void end_of_join_phase(GroupEvent event);
  void complete_join(GroupEvent event);
  void begin_generation(GroupEvent event);
  bool elect_joined_leader();
  bool all_joined() const;
  std::int64_t rebalance_timeout_ms() const;
  std::string select_protocol() const;
  std::set<std::string> common_protocols() const;
  void complete_sync(const SyncRequest& request, GroupEvent event);
  SyncResult synced(const Member& member) const;

  // ---- leaving
  void remove(const std::string& member_id);
  void after_removal(GroupEvent event);
  std::vector<std::string> expired_members(Now now);
  std::vector<std::string> unsynced_members() const;

  void enter(State state, Now now);
  void touch(Member& member, Now now);  // its session begins anew
  void due(std::int64_t deadline_ms);
  void look_ahead();
  void write(GroupRecords& out) const;
  void refresh_subscriptions();

  const std::string id_;
  const ClassicLimits& limits_;
  std::uint64_t* rebalances_;
  State state_ = State::empty;
  State previous_ = State::empty;
  std::int64_t state_since_ms_ = -1;  // wall
  std::int32_t generation_ = 0;
  std::optional<std::string> protocol_type_;
  std::optional<std::string> protocol_;
  std::string leader_;
  std::vector<std::unique_ptr<Member>> members_;  // in the order they came
  std::unordered_map<std::string, Member*> by_id_;
  std::map<std::string, std::string> static_ids_;          // instance id -> member id
  std::unordered_map<std::string, std::int64_t> pending_;  // ids given out -> steady expiry
  std::optional<std::set<std::string>> subscriptions_;     // of the current generation
  bool assigned_ = false;                                  // assignments are those of generation_

  // Steady ms; of the phase that is running.
  std::optional<std::int64_t> join_deadline_ms_;
  std::optional<std::int64_t> sync_deadline_ms_;
  // The initial delay of an Empty group's first rebalance: what may still be added to it.
  std::optional<std::int64_t> initial_remaining_ms_;
  std::int64_t initial_step_ms_ = 0;
  bool newcomer_since_ = false;
  // Not later than any deadline above; heartbeats only move deadlines back, so that they need not
  // look at all members.
  std::optional<std::int64_t> earliest_ms_;
};

std::string_view to_string(ClassicGroup::State state);

}  // namespace polylog::broker::groups
