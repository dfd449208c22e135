#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "broker/groups/classic_group_rig.h"

// Members that join, sync, beat, leave, crash and come back at random. Whatever they do: a
// rebalance makes one generation; whoever synced has exactly what the leader of that generation
// gave it; and nobody waits for ever.
namespace polylog::broker::groups {
namespace {

constexpr std::int64_t tick_ms = 500;
constexpr std::int64_t session_ms = 10'000;
constexpr std::int64_t rebalance_ms = 20'000;
// A rebalance that many others' crashes prolong ends all the same: each costs a session at most.
constexpr std::int64_t wait_ms_max = 20 * rebalance_ms;

struct SimulatedMember {
  std::string id;
  std::optional<std::string> instance;
  bool alive = true;
  int crashes = 0;
  std::int32_t generation = -1;
  bool leads = false;
  std::vector<std::string> others;  // what the leader was told
  Answer<JoinResult> joining;
  Answer<SyncResult> syncing;
  std::int64_t waiting_since_ms = 0;
  bool stable = false;
  Bytes assignment;
};

class Simulation {
 public:
  explicit Simulation(std::uint32_t seed) : random_(seed), rig_(1000) {
    for (int i = 0; i < 6; ++i) {
      auto& member = members_.emplace_back(std::make_shared<SimulatedMember>());
      if (i >= 4) member->instance = "i" + std::to_string(i);
    }
  }

  void run(int ticks, bool trouble) {
    for (int tick = 0; tick < ticks && !testing::Test::HasFailure(); ++tick) {
      rig_.pass(tick_ms);
      for (const auto& member : members_) step(*member, member, trouble);
      check();
    }
  }

  void check_settled() {
    const std::int32_t generation = rig_.group->generation();
    EXPECT_EQ(rig_.group->state(), ClassicGroup::State::stable);
    EXPECT_EQ(rig_.group->members().size(), members_.size());
    for (const auto& member : members_) {
      EXPECT_TRUE(member->stable) << member->id;
      EXPECT_EQ(member->generation, generation) << member->id;
    }
  }

 private:
  bool one_in(int n) { return random_() % static_cast<std::uint32_t>(n) == 0; }

  void step(SimulatedMember& its, const std::shared_ptr<SimulatedMember>& shared, bool trouble) {
    if (!its.alive) {
      if (!trouble || one_in(20)) its.alive = true;
      return;
    }
    if (trouble && one_in(60)) return crash(its);
    if (trouble && its.stable && one_in(60)) return leave(its);
    if (its.joining) return wait_for_join(its);
    if (its.syncing) return wait_for_sync(its);
    if (trouble && one_in(6)) return;  // slow
    if (!its.stable) return its.generation >= 0 ? send_sync(its) : send_join(its, shared);
    beat(its);
  }

  // What it waited for answers nobody; a static member forgets its id, as a new process does.
  void crash(SimulatedMember& its) {
    its.alive = false;
    ++its.crashes;
    forget(its);
    its.id.clear();
  }
  void forget(SimulatedMember& its) {
    its.joining = nullptr;
    its.syncing = nullptr;
    its.stable = false;
    its.generation = -1;
  }
  void leave(SimulatedMember& its) {
    rig_.group->leave({"g", {{its.id, its.instance}}}, rig_.event());
    its.id.clear();
    forget(its);
  }

  void send_join(SimulatedMember& its, const std::shared_ptr<SimulatedMember>& shared) {
    JoinRequest request = rig_.join_request(its.id);
    request.instance_id = its.instance;
    request.session_timeout_ms = session_ms;
    request.rebalance_timeout_ms = rebalance_ms;
    request.must_know_id = !its.instance && one_in(2);
    request.can_skip_assignment = one_in(2);
    request.caller.connected = [shared, then = its.crashes] { return shared->crashes == then; };
    its.waiting_since_ms = rig_.now.steady_ms;
    its.joining = rig_.join(std::move(request));
    wait_for_join(its);
  }

  void wait_for_join(SimulatedMember& its) {
    if (!*its.joining) {
      EXPECT_LE(rig_.now.steady_ms - its.waiting_since_ms, wait_ms_max) << "waits for ever";
      return;
    }
    const JoinResult result = **its.joining;
    its.joining = nullptr;
    if (result.error == GroupError::member_id_required) {
      its.id = result.member_id;
      return;
    }
    if (result.error != GroupError::none) {
      if (result.error != GroupError::rebalance_in_progress) its.id.clear();
      return;
    }
    its.id = result.member_id;
    its.generation = result.generation;
    its.leads = result.leader == result.member_id && !result.skip_assignment;
    its.others.clear();
    for (const JoinedMember& other : result.members) its.others.push_back(other.id);
  }

  void send_sync(SimulatedMember& its) {
    SyncRequest request;
    request.member_id = its.id;
    request.instance_id = its.instance;
    request.generation = its.generation;
    const bool assigns = its.leads && rig_.group->leader() == its.id &&
                         rig_.group->generation() == its.generation &&
                         rig_.group->state() == ClassicGroup::State::completing_rebalance;
    for (const std::string& other : its.others) {
      if (!its.leads) break;
      const std::string what = other + "@" + std::to_string(its.generation);
      request.assignments.emplace_back(other, to_vector(as_bytes(what)));
      if (assigns) given_[{its.generation, other}] = what;
    }
    auto answer = std::make_shared<std::optional<SyncResult>>();
    its.syncing = answer;
    its.waiting_since_ms = rig_.now.steady_ms;
    rig_.group->sync(
        std::move(request), [answer](SyncResult result) { *answer = result; }, rig_.event());
    wait_for_sync(its);
  }

  void wait_for_sync(SimulatedMember& its) {
    if (!*its.syncing) {
      EXPECT_LE(rig_.now.steady_ms - its.waiting_since_ms, wait_ms_max) << "waits for ever";
      return;
    }
    const SyncResult result = **its.syncing;
    its.syncing = nullptr;
    if (result.error != GroupError::none) return lose_generation(its, result.error);
    its.stable = true;
    its.assignment = result.assignment;
    // A static member that came back has what was given to it under its id of then.
    if (its.instance) return;
    const auto given = given_.find({its.generation, its.id});
    const std::string wanted = given == given_.end() ? "" : given->second;
    EXPECT_EQ(as_text(its.assignment), wanted) << "not what the leader gave it";
  }

  void beat(SimulatedMember& its) {
    const GroupError error =
        rig_.group->heartbeat({"g", its.id, its.instance, its.generation}, rig_.event());
    if (error != GroupError::none) lose_generation(its, error);
  }

  void lose_generation(SimulatedMember& its, GroupError error) {
    its.stable = false;
    its.generation = -1;
    if (error == GroupError::unknown_member_id || error == GroupError::fenced_instance_id) {
      its.id.clear();
    }
  }

  void check() {
    // One generation for each rebalance, and never one back.
    EXPECT_EQ(static_cast<std::uint64_t>(rig_.group->generation()), rig_.rebalances);
    EXPECT_GE(rig_.group->generation(), last_generation_);
    last_generation_ = rig_.group->generation();
    // Whoever the group has as Stable and synced in this generation is one of its members.
    if (rig_.group->state() == ClassicGroup::State::stable) {
      EXPECT_NE(rig_.group->find(rig_.group->leader()), nullptr);
    }
    // What is written reads, and is what the group is.
    for (const GroupRecord& record : rig_.records) {
      EXPECT_TRUE(format::kafka::decode_group_metadata(*record.value));
    }
    rig_.records.clear();
  }

  std::mt19937 random_;
  ClassicRig rig_;
  std::vector<std::shared_ptr<SimulatedMember>> members_;
  std::map<std::pair<std::int32_t, std::string>, std::string> given_;
  std::int32_t last_generation_ = 0;
};

TEST(ClassicGroupProperty, whatever_members_do_they_end_with_what_the_leader_gave_them) {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Simulation simulation(seed);
    simulation.run(600, true);
    simulation.run(200, false);  // 100 seconds without trouble
    simulation.check_settled();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace polylog::broker::groups
