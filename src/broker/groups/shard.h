#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "broker/groups/coordinator.h"
#include "broker/groups/group.h"
#include "broker/groups/offsets.h"
#include "broker/partition.h"

namespace polylog::broker::groups {

class Replay;

// One group id: its state machine, never null outside load, and what is committed under it.
struct GroupEntry {
  std::unique_ptr<Group> group;
  GroupOffsets offsets;
  std::int64_t deadline_ms = INT64_MAX;  // as the coordinator's Deadlines have it
};

// One partition of __consumer_offsets and the groups that live in it. Owned by the coordinator,
// which outlives every call; coroutines at work hold it too. Reactor only.
class Shard : public std::enable_shared_from_this<Shard> {
 public:
  using Groups = std::map<std::string, GroupEntry, std::less<>>;

  Shard(Coordinator::Impl& owner, std::int32_t index, std::shared_ptr<Partition> partition);
  ~Shard();

  std::int32_t index() const { return index_; }
  // none, or why requests can't be served: load_in_progress, not_coordinator.
  GroupError ready() const;

  // Reads the log from its start; ready afterwards. A log that can't be read is tried again later.
  void load();
  // The partition goes: everybody is told `error`, nothing is written any more.
  void close(GroupError error);

  GroupEntry* find(const std::string& group);  // nullptr: unknown
  GroupEntry& add(const std::string& group, std::unique_ptr<Group> machine);
  void erase(const std::string& group);
  Groups& groups() { return groups_; }
  const Groups& groups() const { return groups_; }

  // Everything that happens to groups is an event: what it appends to records() is written by
  // finish(), as one batch unless it is large, and the answers it gives go through kept()
  // callbacks, which hold them back until all that the shard has written is safe. When a write
  // fails the shard drops its groups, answers not_coordinator and loads anew from its log.
  GroupRecords& records() { return records_; }
  template <typename R>
  std::function<void(R)> kept(std::function<void(R)> done) {
    return [this, done = std::move(done)](R result) {
      answer([done, result = std::move(result)](GroupError error) mutable {
        if (error != GroupError::none) result = failed<R>(error);
        done(std::move(result));
      });
    };
  }
  void answer(std::function<void(GroupError)> give);
  // Ends the event. REQUIRES: the caller keeps no pointer into groups().
  void finish(const std::string& group);  // only this one was touched
  void finish();                          // any

  // The topic was deleted: its offsets go. Part of an event.
  void drop_topic(const std::string& topic);

 private:
  enum class State { loading, ready, closed };
  struct Written {
    Partition::Appended first, last;
  };
  struct Waiting {
    std::optional<Partition::Appended> written;  // nothing: safe when what is before it is
    std::function<void(GroupError)> give;
  };

  template <typename R>
  static R failed(GroupError error) {
    if constexpr (std::is_same_v<R, GroupError>) {
      return error;
    } else {
      R result{};
      result.error = error;
      return result;
    }
  }

  static Async<void> run_load(std::shared_ptr<Shard> self, std::uint64_t life);
  static Async<void> run_answers(std::shared_ptr<Shard> self, std::uint64_t life);
  static Async<void> run_shorten(std::shared_ptr<Shard> self, Written state, std::uint64_t life);
  void load_later(const Error& cause);
  void loaded(Replay& replay);
  void drop_stale_topics();
  Result<Written> append(std::span<const GroupRecord> records);
  Result<Partition::Appended> append_batch(std::span<const GroupRecord> records);
  void write_out();
  void hand_out();
  void write_failed(const Error& error);
  void drop(GroupError error);
  void shorten_if_long();
  void report(const std::string& line) const;

  Coordinator::Impl& owner_;
  const std::int32_t index_;
  const std::shared_ptr<Partition> partition_;
  State state_ = State::loading;
  std::uint64_t life_ = 0;  // rises with every drop(): coroutines of an earlier one end
  Groups groups_;
  GroupRecords records_;
  std::vector<std::function<void(GroupError)>> event_answers_;
  std::deque<Waiting> waiting_;
  bool answering_ = false;
  bool shortening_ = false;
  std::set<std::string> deleted_while_loading_;
  std::uint64_t log_bytes_ = 0;    // what a load would have to read, roughly
  std::uint64_t state_bytes_ = 0;  // of the last snapshot
  std::string trouble_;            // why the last load failed; it is told once
};

}  // namespace polylog::broker::groups
