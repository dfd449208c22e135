#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "broker/groups/consumer_member.h"
#include "broker/groups/consumer_types.h"
#include "broker/groups/group.h"
#include "broker/groups/topic_pattern.h"
#include "format/kafka/consumer_protocol.h"
#include "format/kafka/group_records.h"

namespace polylog::broker::groups {

class ClassicGroup;

struct ConsumerLimits {
  std::int32_t session_timeout_ms = 45'000;
  std::int32_t heartbeat_interval_ms = 5'000;
  std::size_t members_max = SIZE_MAX;
  std::size_t subscription_bytes_max = SIZE_MAX;  // of one member: it has to fit into a record
  std::int64_t assignment_interval_ms = 1'000;    // between two target assignments; 0: none
  std::int64_t regex_refresh_interval_ms = 600'000;
  std::int64_t regex_pause_ms = 1'000;  // between two looks at all topics
  // What members may ask for; the first is for those who do not. REQUIRES: find_assignor() knows
  // every one.
  std::vector<std::string> assignors{std::string(assignor_uniform), std::string(assignor_range)};
  bool upgrade = true;          // a classic group becomes a KIP-848 group when such a member joins
  bool downgrade = true;        // and the other way round when the last such member leaves
  bool classic_members = true;  // classic members may join a KIP-848 group: either of the above
};

// Why a request was turned down; with none it was not.
struct Refusal {
  GroupError error = GroupError::none;
  std::string message;
  explicit operator bool() const { return error != GroupError::none; }
};

// What is wrong with a heartbeat whatever the group is like.
Refusal check(const ConsumerHeartbeat& request, const ConsumerLimits& limits);

// A group whose assignments the broker makes (Kafka wire protocol, "KIP-848 consumer groups"). See
// group.h for how it is driven. Classic members are served as well: their JoinGroup and SyncGroup
// are one step of their reconciliation.
class ConsumerGroup final : public Group {
 public:
  enum class State { empty, assigning, reconciling, stable };

  // Counts group epochs over all groups that share it; may be null.
  ConsumerGroup(std::string id, const ConsumerLimits& limits, std::uint64_t* rebalances = nullptr);
  // A classic group goes on as one of these: the same members with what they have, all of them
  // classic; written to event.records. group_id_not_found with the reason: it can't.
  static Refusal check_upgrade(const ClassicGroup& classic, const ConsumerLimits& limits);
  static std::unique_ptr<ConsumerGroup> from_classic(const ClassicGroup& classic,
                                                     const ConsumerLimits& limits,
                                                     std::uint64_t* rebalances, GroupEvent event);

  // What the group has of its own instead of the limits'; from the next heartbeat on.
  struct Timing {
    std::optional<std::int32_t> session_timeout_ms;
    std::optional<std::int32_t> heartbeat_interval_ms;
  };
  void set_timing(const Timing& timing) { timing_ = timing; }

  // Answers to be given once what was appended to event.records is safe. The request has passed
  // check().
  ConsumerHeartbeatResult consumer_heartbeat(const ConsumerHeartbeat& request, GroupEvent event);
  ConsumerDescribed consumer_describe(const TopicView& topics) const;

  // One record at load, then loaded() once. The key is one of this group; `written_ms` is the
  // record's timestamp.
  Result<void> replay(const format::kafka::ConsumerGroupKey& key,
                      const std::optional<ByteView>& value, std::int64_t written_ms = -1);
  void loaded(Now now);

  // All members that are left are classic: the group can go back to their protocol. metadata is
  // what a ClassicGroup is loaded from.
  bool only_classic() const;
  format::kafka::GroupMetadata classic_metadata(const TopicView& topics, Now now) const;

  GroupKind kind() const override { return GroupKind::consumer; }
  std::string_view state_name() const override;
  std::string protocol_type() const override { return "consumer"; }
  bool empty() const override { return members_.empty(); }
  std::size_t members_count() const override { return members_.size(); }
  void join(JoinRequest request, JoinDone done, GroupEvent event) override;
  void sync(SyncRequest request, SyncDone done, GroupEvent event) override;
  GroupError heartbeat(const HeartbeatRequest& request, GroupEvent event) override;
  LeaveResult leave(const LeaveRequest& request, GroupEvent event) override;
  GroupError check_commit(const CommitRequest& request, GroupEvent event) override;
  GroupError check_commit_partition(const CommitRequest& request, const Uuid& topic,
                                    std::int32_t partition) const override;
  GroupError check_fetch(const FetchOffsetsRequest& request) const override;
  GroupError check_offset_delete() const override { return GroupError::none; }
  GroupError check_delete() const override;
  bool subscribed(std::string_view topic) const override;
  OffsetExpiry expiry() const override;
  DescribedGroup describe() const override;
  std::optional<std::int64_t> next_deadline_ms() const override { return earliest_ms_; }
  void on_time(GroupEvent event) override;
  void on_topics_changed(GroupEvent event) override;
  void snapshot(GroupRecords& out, Now now) const override;
  void tombstones(GroupRecords& out) const override;
  void give_up(GroupError) override {}  // nothing is ever parked here

  State state() const;
  const std::string& id() const { return id_; }
  std::int32_t epoch() const { return epoch_; }
  std::int32_t assignment_epoch() const { return assignment_epoch_; }
  const std::map<std::string, ConsumerMember>& members() const { return members_; }
  const std::map<std::string, PartitionSet>& target() const { return target_; }

 private:
  struct Resolved {
    std::set<std::string> topics;
    std::int64_t timestamp_ms = 0;  // wall
  };
  // A member before and after a request; nothing is changed until update().
  struct Draft {
    std::optional<ConsumerMember> before;  // nothing: new. A replaced one with its new id
    ConsumerMember after;
    std::string replaces;  // id of the static member whose place it takes
  };

  // ---- who asks
  const ConsumerMember* find(const std::string& member_id) const;
  const ConsumerMember* find_static(const std::string& instance_id) const;
  const ConsumerMember* who(const std::string& member_id,
                            const std::optional<std::string>& instance_id, Refusal& why) const;
  bool full_for(const std::string& member_id) const;
  Refusal draft_of(const ConsumerHeartbeat& request, const std::string& member_id,
                   Draft& draft) const;
  Refusal draft_of(const JoinRequest& request, const std::string& member_id,
                   const format::kafka::ConsumerSubscription& subscription, Draft& draft) const;
  void draft_replacement(const ConsumerMember& old, const std::string& member_id,
                         Draft& draft) const;
  bool goes_on(const ConsumerHeartbeat& request, const ConsumerMember& member) const;
  bool supports(const JoinRequest& request) const;

  // ---- what changes
  ConsumerMember& update(Draft draft, const std::optional<PartitionSet>& owned, GroupEvent event);
  ConsumerHeartbeatResult leave(const ConsumerHeartbeat& request, GroupEvent event);
  void leave_for_a_while(ConsumerMember& member, GroupEvent event);
  void fence(const std::vector<std::string>& members, GroupEvent event);
  void drop_unused_expressions(GroupEvent event);
  bool resolve_expressions(GroupEvent event);
  void refresh_epoch(bool raise, GroupEvent event);
  void refresh_target(GroupEvent event);
  AssignorInput assignor_input(const TopicView& topics) const;
  std::string_view preferred_assignor() const;
  void reconcile_member(ConsumerMember& member, bool subscription_changed,
                        const std::optional<PartitionSet>& owned, GroupEvent event);
  void expect_revocation(ConsumerMember& member, GroupEvent event);
  bool taken_by_another(const std::string& member_id, const Uuid& topic,
                        std::int32_t partition) const;
  bool waits_for_others(const ConsumerMember& member) const;

  // ---- classic members
  GroupError check_classic(const ConsumerMember& member, std::int32_t generation) const;
  void expect_join(ConsumerMember& member, GroupEvent event);
  Bytes classic_assignment(const ConsumerMember& member, const TopicView& topics) const;

  // ---- derived from members_
  void own(const ConsumerMember& member);
  void disown(const ConsumerMember& member);
  std::set<std::string> subscribed_names() const;
  std::set<Uuid> subscribed_ids(const ConsumerMember& member, const TopicView& topics) const;
  std::int64_t metadata_hash(const TopicView& topics) const;
  void due(std::int64_t deadline_ms);
  void touch(ConsumerMember& member, Now now);

  // ---- records
  format::kafka::ConsumerGroupKey key(format::kafka::ConsumerGroupRecord record,
                                      std::string subject = "") const;
  void write_epoch(GroupRecords& out) const;
  void write_target_epoch(GroupRecords& out) const;
  void write_metadata(const ConsumerMember& member, GroupRecords& out) const;
  void write_target(const std::string& member_id, GroupRecords& out) const;
  void write_assignment(const ConsumerMember& member, GroupRecords& out) const;
  void write_expression(const std::string& expression, GroupRecords& out) const;
  void write_tombstone(format::kafka::ConsumerGroupRecord record, std::string subject,
                       GroupRecords& out) const;
  void write_removal(const std::string& member_id, GroupRecords& out) const;
  Result<void> replay_member(const std::string& member_id, const std::optional<ByteView>& value);
  Result<void> replay_assignment(const std::string& member_id,
                                 const std::optional<ByteView>& value);
  Result<void> replay_target(const std::string& member_id, const std::optional<ByteView>& value);
  Result<void> replay_expression(const std::string& expression,
                                 const std::optional<ByteView>& value);

  const std::string id_;
  const ConsumerLimits& limits_;
  std::uint64_t* rebalances_;
  Timing timing_;
  std::int32_t epoch_ = 0;
  std::int64_t hash_ = 0;  // of the topics the epoch stands for
  std::int32_t assignment_epoch_ = -1;
  std::int64_t assigned_at_ms_ = 0;  // wall; 0: unknown
  // Wall: when the group got its epoch. A group becomes empty with an epoch of its own, whose
  // record says by its timestamp when that was. -1: unknown.
  std::int64_t epoch_since_ms_ = -1;
  std::map<std::string, ConsumerMember> members_;
  std::map<std::string, PartitionSet> target_;  // by member id
  std::map<std::string, Resolved> resolved_;    // by expression
  bool old_metadata_record_ = false;            // key 4 was read: it is deleted at the next change

  std::map<std::string, std::string> static_ids_;  // instance id -> member id
  std::map<Uuid, std::map<std::int32_t, std::string>> owners_;
  std::map<std::string, TopicPattern> patterns_;  // compiled when needed
  bool topics_stale_ = true;                      // they may have changed since the last look
  std::int64_t looked_at_ms_ = INT64_MIN / 2;     // steady, of the last look at all topics
  std::optional<std::int64_t> earliest_ms_;       // not later than any deadline of a member
};

}  // namespace polylog::broker::groups
