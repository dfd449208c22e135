#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "broker/groups/error.h"
#include "broker/groups/group_record.h"
#include "broker/groups/topic_view.h"
#include "broker/groups/types.h"

namespace polylog::broker::groups {

// What the state machine of a group is given with every event. What it appends to `records` is
// written to the shard's log as one batch, and no answer given meanwhile leaves before that is
// safe. The references live until the call returns.
struct GroupEvent {
  Now now;
  const TopicView& topics;
  GroupRecords& records;
};

// When the committed offsets of a group may go (docs: the guide, "Groups").
struct OffsetExpiry {
  enum class Rule {
    never,         // members are at work and nobody knows on what
    by_commit,     // each one `retention` after it was committed
    by_emptiness,  // `retention` after `empty_since_ms`, or its commit when that was later
  };
  Rule rule = Rule::never;
  std::int64_t empty_since_ms = -1;  // wall time
};

// A group of either protocol, as its shard sees it: a state machine without I/O, timers or
// threads of its own. Stored answers (JoinDone, SyncDone) are called at most once, during some
// later event. Reactor only.
class Group {
 public:
  virtual ~Group() = default;

  virtual GroupKind kind() const = 0;
  virtual std::string_view state_name() const = 0;  // as Kafka spells it
  virtual std::string protocol_type() const = 0;    // "" while nobody has said
  virtual bool empty() const = 0;                   // no member, pending or not
  virtual std::size_t members_count() const { return 0; }

  // Classic requests. A KIP-848 group serves its classic members with them. The group exists and
  // its id is right; everything else is checked here. `done` may be called before these return.
  virtual void join(JoinRequest request, JoinDone done, GroupEvent event) = 0;
  virtual void sync(SyncRequest request, SyncDone done, GroupEvent event) = 0;
  virtual GroupError heartbeat(const HeartbeatRequest& request, GroupEvent event) = 0;
  virtual LeaveResult leave(const LeaveRequest& request, GroupEvent event) = 0;

  // May offsets be committed, fetched, deleted by this request; may the group be deleted?
  virtual GroupError check_commit(const CommitRequest& request, GroupEvent event) = 0;
  // Of a commit that was accepted: partitions may have another answer each.
  virtual GroupError check_commit_partition(const CommitRequest&, const Uuid&, std::int32_t) const {
    return GroupError::none;
  }
  virtual GroupError check_fetch(const FetchOffsetsRequest& request) const = 0;
  virtual GroupError check_offset_delete() const = 0;
  virtual GroupError check_delete() const = 0;
  // Members are at work on the topic, as far as their subscriptions can be read.
  virtual bool subscribed(std::string_view topic) const = 0;
  virtual OffsetExpiry expiry() const = 0;

  virtual DescribedGroup describe() const = 0;  // DescribeGroups

  // Steady ms at which on_time() is due; may be too early, never too late.
  virtual std::optional<std::int64_t> next_deadline_ms() const = 0;
  virtual void on_time(GroupEvent event) = 0;
  virtual void on_topics_changed(GroupEvent) {}  // created, grown or deleted

  // Everything that must be written for the group to be the same after a load; and the tombstones
  // that make a load forget it. Its committed offsets are the shard's.
  virtual void snapshot(GroupRecords& out, Now now) const = 0;
  virtual void tombstones(GroupRecords& out) const = 0;
  // Answers whoever is parked; the group goes away.
  virtual void give_up(GroupError error) = 0;
};

}  // namespace polylog::broker::groups
