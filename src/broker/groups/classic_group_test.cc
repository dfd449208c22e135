#include "broker/groups/classic_group.h"

#include <gtest/gtest.h>

#include "broker/groups/classic_group_rig.h"

namespace polylog::broker::groups {
namespace {

using State = ClassicGroup::State;
using enum GroupError;

std::string assignment_of(const Answer<SyncResult>& answer) {
  return *answer ? std::string(as_text((*answer)->assignment)) : "(parked)";
}

// -------------------------------------------------------- the table, cell by cell (section 12)

// What a request finds: a group in one of the four states, and one of its members.
struct Scene {
  ClassicRig rig;
  std::string leader, follower;
  std::int32_t generation = 0;
  std::vector<Answer<JoinResult>> joins;  // of PreparingRebalance and CompletingRebalance
};

void arrange(Scene& scene, State state) {
  ClassicRig& rig = scene.rig;
  if (state == State::empty) {
    const auto ids = rig.stable(1);
    ASSERT_EQ(rig.leave(ids[0]), none);
    scene.leader = scene.follower = ids[0];
  } else {
    const auto ids = rig.stable(2);
    scene.leader = ids[0];
    scene.follower = ids[1];
  }
  if (state == State::preparing_rebalance) scene.joins.push_back(rig.join());
  if (state == State::completing_rebalance) {
    scene.joins.push_back(rig.join(scene.leader));
    scene.joins.push_back(rig.join(scene.follower));
  }
  scene.generation = rig.group->generation();
  ASSERT_EQ(rig.group->state(), state);
}

struct Cell {
  State from;
  GroupError error;  // of the answer, when there is one at once
  bool parked;
  State to;
};

TEST(ClassicTable, join_of_a_new_member) {
  for (const Cell& cell :
       {Cell{State::empty, none, true, State::preparing_rebalance},
        Cell{State::preparing_rebalance, none, true, State::preparing_rebalance},
        Cell{State::completing_rebalance, none, true, State::preparing_rebalance},
        Cell{State::stable, none, true, State::preparing_rebalance}}) {
    Scene scene;
    arrange(scene, cell.from);
    const auto answer = scene.rig.join();
    EXPECT_EQ(!*answer, cell.parked) << to_string(cell.from);
    EXPECT_EQ(scene.rig.group->state(), cell.to) << to_string(cell.from);
  }
}

TEST(ClassicTable, join_of_a_known_follower_with_the_same_metadata) {
  for (const Cell& cell :
       {Cell{State::empty, unknown_member_id, false, State::empty},
        Cell{State::preparing_rebalance, none, true, State::preparing_rebalance},
        Cell{State::completing_rebalance, none, false, State::completing_rebalance},
        Cell{State::stable, none, false, State::stable}}) {
    Scene scene;
    arrange(scene, cell.from);
    const auto answer = scene.rig.join(scene.follower);
    EXPECT_EQ(!*answer, cell.parked) << to_string(cell.from);
    if (*answer) {
      EXPECT_EQ((*answer)->error, cell.error) << to_string(cell.from);
      if (cell.error == none) {
        EXPECT_EQ((*answer)->generation, scene.generation);
      }
    }
    EXPECT_EQ(scene.rig.group->state(), cell.to) << to_string(cell.from);
  }
}

TEST(ClassicTable, join_of_the_leader_with_the_same_metadata) {
  for (const Cell& cell :
       {Cell{State::completing_rebalance, none, false, State::completing_rebalance},
        Cell{State::stable, none, true, State::preparing_rebalance}}) {
    Scene scene;
    arrange(scene, cell.from);
    const auto answer = scene.rig.join(scene.leader);
    EXPECT_EQ(!*answer, cell.parked) << to_string(cell.from);
    if (*answer) {
      EXPECT_EQ((*answer)->members.size(), 2U) << "the leader assigns";
    }
    EXPECT_EQ(scene.rig.group->state(), cell.to) << to_string(cell.from);
  }
}

TEST(ClassicTable, join_of_a_member_with_new_metadata) {
  for (const State from : {State::completing_rebalance, State::stable}) {
    Scene scene;
    arrange(scene, from);
    JoinRequest request = scene.rig.join_request(scene.follower);
    request.protocols = {{"range", subscription({"t", "u"})}};
    EXPECT_FALSE(*scene.rig.join(request));
    EXPECT_EQ(scene.rig.group->state(), State::preparing_rebalance) << to_string(from);
  }
}

TEST(ClassicTable, sync) {
  for (const Cell& cell :
       {Cell{State::empty, unknown_member_id, false, State::empty},
        Cell{State::preparing_rebalance, rebalance_in_progress, false, State::preparing_rebalance},
        Cell{State::completing_rebalance, none, true, State::completing_rebalance},
        Cell{State::stable, none, false, State::stable}}) {
    Scene scene;
    arrange(scene, cell.from);
    const auto answer = scene.rig.sync(scene.follower, scene.generation);
    EXPECT_EQ(!*answer, cell.parked) << to_string(cell.from);
    if (*answer) {
      EXPECT_EQ((*answer)->error, cell.error) << to_string(cell.from);
    }
    EXPECT_EQ(scene.rig.group->state(), cell.to);
    if (cell.from == State::stable) {
      EXPECT_EQ(assignment_of(answer), "assigned to " + scene.follower);
    }
  }
}

TEST(ClassicTable, sync_of_the_leader_completes_the_rebalance) {
  Scene scene;
  arrange(scene, State::completing_rebalance);
  const auto waiting = scene.rig.sync(scene.follower, scene.generation);
  EXPECT_FALSE(*waiting);
  const auto leads = scene.rig.sync(scene.leader, scene.generation, {scene.leader, scene.follower});
  EXPECT_EQ(assignment_of(leads), "assigned to " + scene.leader);
  EXPECT_EQ(assignment_of(waiting), "assigned to " + scene.follower);
  EXPECT_EQ(scene.rig.group->state(), State::stable);
}

TEST(ClassicTable, heartbeat) {
  for (const auto& [from, error] :
       {std::pair{State::empty, unknown_member_id},
        std::pair{State::preparing_rebalance, rebalance_in_progress},
        std::pair{State::completing_rebalance, none}, std::pair{State::stable, none}}) {
    Scene scene;
    arrange(scene, from);
    EXPECT_EQ(scene.rig.beat(scene.follower, scene.generation), error) << to_string(from);
  }
}

TEST(ClassicTable, offset_commit_by_a_member) {
  for (const auto& [from, error] :
       {std::pair{State::empty, unknown_member_id}, std::pair{State::preparing_rebalance, none},
        std::pair{State::completing_rebalance, rebalance_in_progress},
        std::pair{State::stable, none}}) {
    Scene scene;
    arrange(scene, from);
    EXPECT_EQ(scene.rig.commit(scene.follower, scene.generation), error) << to_string(from);
  }
}

TEST(ClassicTable, offset_commit_without_a_member) {
  for (const auto& [from, error] :
       {std::pair{State::empty, none}, std::pair{State::preparing_rebalance, unknown_member_id},
        std::pair{State::completing_rebalance, unknown_member_id},
        std::pair{State::stable, unknown_member_id}}) {
    Scene scene;
    arrange(scene, from);
    EXPECT_EQ(scene.rig.commit("", -1), error) << to_string(from);
  }
}

TEST(ClassicTable, leave) {
  for (const auto& [from, error, to] :
       {std::tuple{State::empty, unknown_member_id, State::empty},
        std::tuple{State::preparing_rebalance, none, State::preparing_rebalance},
        std::tuple{State::completing_rebalance, none, State::preparing_rebalance},
        std::tuple{State::stable, none, State::preparing_rebalance}}) {
    Scene scene;
    arrange(scene, from);
    EXPECT_EQ(scene.rig.leave(scene.follower), error) << to_string(from);
    EXPECT_EQ(scene.rig.group->state(), to) << to_string(from);
    EXPECT_TRUE(from == State::empty || scene.rig.group->find(scene.follower) == nullptr);
  }
}

TEST(ClassicTable, what_is_checked_first) {
  Scene scene;
  arrange(scene, State::stable);
  ClassicRig& rig = scene.rig;
  EXPECT_EQ(rig.beat("nobody", scene.generation + 1), unknown_member_id);
  EXPECT_EQ(rig.beat(scene.follower, scene.generation + 1), illegal_generation);
  EXPECT_EQ((*rig.sync(scene.follower, scene.generation - 1))->error, illegal_generation);
  EXPECT_EQ(rig.commit(scene.follower, scene.generation - 1), illegal_generation);

  SyncRequest other;
  other.member_id = scene.follower;
  other.generation = scene.generation;
  other.protocol = "roundrobin";
  GroupError error = none;
  rig.group->sync(other, [&](SyncResult result) { error = result.error; }, rig.event());
  EXPECT_EQ(error, inconsistent_group_protocol);

  rig.group->give_up(not_coordinator);
  EXPECT_EQ(rig.beat(scene.follower, scene.generation), coordinator_not_available);
  EXPECT_EQ((*rig.join())->error, coordinator_not_available);
  EXPECT_EQ((*rig.sync(scene.follower, scene.generation))->error, coordinator_not_available);
  EXPECT_EQ(rig.leave(scene.follower), coordinator_not_available);
  EXPECT_EQ(rig.commit(scene.follower, scene.generation), coordinator_not_available);
}

// --------------------------------------------------------------------------------- joining

TEST(ClassicGroup, a_new_dynamic_member_learns_its_id_first) {
  ClassicRig rig;
  JoinRequest request = rig.join_request();
  request.must_know_id = true;
  const auto sent_away = rig.join(request);
  ASSERT_TRUE(*sent_away);
  EXPECT_EQ((*sent_away)->error, member_id_required);
  const std::string id = (*sent_away)->member_id;
  EXPECT_TRUE(id.starts_with("app-")) << id;
  EXPECT_EQ(rig.group->pending_members(), 1U);
  EXPECT_FALSE(rig.group->empty());
  request.member_id = id;
  const auto joined = rig.join(request);
  EXPECT_EQ(rig.group->pending_members(), 0U);
  rig.pass(1);
  ASSERT_TRUE(*joined);
  EXPECT_EQ((*joined)->member_id, id);
  EXPECT_EQ((*joined)->generation, 1);
}

TEST(ClassicGroup, an_id_nobody_comes_back_with_expires) {
  ClassicRig rig;
  JoinRequest request = rig.join_request();
  request.must_know_id = true;
  const std::string id = (*rig.join(request))->member_id;
  rig.pass(10'001);
  EXPECT_EQ(rig.group->pending_members(), 0U);
  request.member_id = id;
  EXPECT_EQ((*rig.join(request))->error, unknown_member_id);
}

TEST(ClassicGroup, a_rebalance_waits_for_members_that_only_know_their_id) {
  ClassicRig rig;
  const auto ids = rig.stable(1);
  JoinRequest request = rig.join_request();
  request.must_know_id = true;
  const std::string pending = (*rig.join(request))->member_id;
  const auto leader = rig.join(ids[0]);
  EXPECT_FALSE(*leader) << "the pending member may still come";
  request.member_id = pending;
  const auto newcomer = rig.join(request);
  ASSERT_TRUE(*leader && *newcomer);
  EXPECT_EQ((*leader)->generation, 2);
  EXPECT_EQ((*leader)->members.size(), 2U);
  EXPECT_TRUE((*newcomer)->members.empty());
}

TEST(ClassicGroup, members_must_share_type_and_a_protocol) {
  ClassicRig rig;
  rig.stable(1);
  JoinRequest request = rig.join_request();
  request.protocols = {{"sticky", {}}};
  EXPECT_EQ((*rig.join(request))->error, inconsistent_group_protocol);
  request = rig.join_request();
  request.protocol_type = "connect";
  EXPECT_EQ((*rig.join(request))->error, inconsistent_group_protocol);
  request.protocols.clear();
  EXPECT_EQ((*ClassicRig().join(request))->error, inconsistent_group_protocol);
}

TEST(ClassicGroup, the_protocol_most_members_like_best_of_those_all_have_is_taken) {
  ClassicRig rig;
  std::vector<Answer<JoinResult>> joins;
  for (const std::vector<std::string>& liked :
       {std::vector<std::string>{"a", "b", "c"}, {"b", "a", "c"}, {"d", "b", "a"}}) {
    JoinRequest request = rig.join_request();
    request.protocols.clear();
    for (const std::string& name : liked) request.protocols.push_back({name, {}});
    joins.push_back(rig.join(request));
  }
  rig.pass(1);
  for (const auto& answer : joins) EXPECT_EQ((*answer)->protocol, "b");
}

TEST(ClassicGroup, the_first_rebalance_waits_for_more_members) {
  ClassicRig rig(3000);
  const auto first = rig.join();
  rig.pass(2000);
  const auto second = rig.join();
  rig.pass(2000);  // 4000 after the first: the second one's coming made it wait longer
  EXPECT_FALSE(*first);
  rig.pass(2001);
  ASSERT_TRUE(*first && *second);
  EXPECT_EQ((*first)->members.size(), 2U);
  EXPECT_EQ(rig.rebalances, 1U);
}

TEST(ClassicGroup, the_first_rebalance_waits_no_longer_than_the_rebalance_timeout) {
  ClassicRig rig(3000);
  JoinRequest request = rig.join_request();
  request.rebalance_timeout_ms = 7000;
  const auto first = rig.join(request);
  for (int i = 0; i < 8; ++i) {
    rig.pass(1000);
    if (!*first) rig.join(request);
  }
  EXPECT_TRUE(*first);
}

TEST(ClassicGroup, members_that_do_not_rejoin_in_time_are_out) {
  ClassicRig rig;
  const auto ids = rig.stable(2);
  const auto leader = rig.join(ids[0]);
  for (int second = 0; second < 60; ++second) {
    rig.pass(1000);
    rig.beat(ids[1], 1);  // alive, but busy for too long
  }
  rig.pass(1);
  ASSERT_TRUE(*leader);
  EXPECT_EQ((*leader)->generation, 2);
  EXPECT_EQ((*leader)->members.size(), 1U);
  EXPECT_EQ(rig.beat(ids[1], 2), unknown_member_id);
}

TEST(ClassicGroup, another_member_leads_when_the_leader_does_not_come_back) {
  ClassicRig rig;
  const auto ids = rig.stable(2);
  const auto follower = rig.join(rig.join_request(""));  // a third one begins a rebalance
  const auto second = rig.join(ids[1]);
  rig.pass(60'001);
  ASSERT_TRUE(*follower && *second);
  EXPECT_EQ((*second)->leader, ids[1]);
  EXPECT_EQ((*second)->members.size(), 2U);
}

TEST(ClassicGroup, a_group_can_be_full) {
  ClassicRig rig;
  rig.limits.members_max = 2;
  const auto ids = rig.stable(2);
  EXPECT_EQ((*rig.join())->error, group_max_size_reached);
  EXPECT_EQ(rig.leave(ids[1]), none);
  EXPECT_FALSE(*rig.join());
}

TEST(ClassicGroup, what_fits_into_no_record_is_refused_before_it_does_harm) {
  ClassicRig rig;
  const std::size_t each = rig.join_request().protocols[0].metadata.size() + 5;  // and "range"
  const auto ids = rig.stable(2);
  rig.limits.bytes_max = 2 * each;
  EXPECT_EQ((*rig.join())->error, group_max_size_reached);
  EXPECT_EQ(rig.group->state(), ClassicGroup::State::stable);
  JoinRequest larger = rig.join_request(ids[1]);
  larger.protocols[0].metadata.push_back(0);
  EXPECT_EQ((*rig.join(larger))->error, group_max_size_reached);
  EXPECT_EQ(rig.beat(ids[1], 1), none) << "it goes on with what it has";

  const auto again = rig.join(ids[0]);
  const auto too = rig.join(ids[1]);
  ASSERT_TRUE(*again && *too);
  rig.limits.bytes_max = 20;  // "assigned to ID" is longer
  EXPECT_EQ((*rig.sync(ids[0], 2, ids))->error, group_max_size_reached);
  rig.limits.bytes_max = 1000;
  EXPECT_EQ((*rig.sync(ids[0], 2, ids))->error, none);
}

TEST(ClassicGroup, a_join_sent_twice_leaves_nobody_waiting) {
  ClassicRig rig;
  const auto ids = rig.stable(2);
  const auto first = rig.join(ids[0]);
  const auto again = rig.join(ids[0]);
  ASSERT_TRUE(*first);
  EXPECT_EQ((*first)->error, rebalance_in_progress);
  EXPECT_FALSE(*again);
}

// -------------------------------------------------------------------------------- sessions

TEST(ClassicGroup, a_silent_member_expires_and_the_rest_rebalances) {
  ClassicRig rig;
  const auto ids = rig.stable(2);
  for (int second = 0; second < 11; ++second) {
    rig.pass(1000);
    rig.beat(ids[0], 1);
  }
  EXPECT_EQ(rig.beat(ids[0], 1), rebalance_in_progress);
  EXPECT_EQ(rig.beat(ids[1], 1), unknown_member_id);
}

TEST(ClassicGroup, without_members_it_is_empty_and_says_so_in_its_record) {
  ClassicRig rig;
  rig.stable(1);
  rig.records.clear();
  rig.pass(10'001);
  EXPECT_EQ(rig.group->state(), State::empty);
  EXPECT_EQ(rig.group->generation(), 2);
  ASSERT_EQ(rig.records.size(), 1U);
  const auto metadata = format::kafka::decode_group_metadata(*rig.records[0].value);
  ASSERT_TRUE(metadata);
  EXPECT_TRUE(metadata->members.empty());
  EXPECT_EQ(metadata->generation, 2);
  EXPECT_EQ(metadata->state_since.value(), rig.group->expiry().empty_since_ms);
}

TEST(ClassicGroup, a_parked_member_outlives_its_session_while_somebody_listens) {
  ClassicRig rig;
  const auto ids = rig.stable(2);
  bool here = true;
  JoinRequest request = rig.join_request(ids[0]);
  request.caller.connected = [&here] { return here; };
  const auto parked = rig.join(request);
  for (int second = 0; second < 30; ++second) {
    rig.pass(1000);
    rig.beat(ids[1], 1);
  }
  EXPECT_FALSE(*parked);
  EXPECT_NE(rig.group->find(ids[0]), nullptr);
  here = false;  // BR-24: whoever waits for an answer still expires
  for (int second = 0; second < 11; ++second) {
    rig.pass(1000);
    rig.beat(ids[1], 1);
  }
  EXPECT_EQ(rig.group->find(ids[0]), nullptr);
}

TEST(ClassicGroup, a_new_member_is_parked_for_so_long_only) {
  ClassicRig rig;
  const auto ids = rig.stable(1);
  JoinRequest request = rig.join_request();
  request.rebalance_timeout_ms = 3'600'000;
  const auto newcomer = rig.join(request);
  for (int second = 0; second < 301; ++second) {
    rig.pass(1000);
    rig.beat(ids[0], 1);
  }
  ASSERT_TRUE(*newcomer);
  EXPECT_EQ((*newcomer)->error, unknown_member_id);
}

TEST(ClassicGroup, members_that_do_not_sync_are_out) {
  ClassicRig rig;
  const auto ids = rig.stable(2);
  const auto leader = rig.join(ids[0]);
  const auto follower = rig.join(ids[1]);
  ASSERT_TRUE(*leader && *follower);
  const auto synced = rig.sync(ids[0], 2, ids);
  EXPECT_EQ(rig.group->state(), State::stable);
  for (int second = 0; second < 61; ++second) {
    rig.pass(1000);
    rig.beat(ids[0], 2);
    rig.beat(ids[1], 2);
  }
  EXPECT_EQ(rig.group->find(ids[1]), nullptr) << "it never fetched its assignment";
  EXPECT_EQ(rig.beat(ids[0], 2), rebalance_in_progress);
}

TEST(ClassicGroup, a_leader_that_vanishes_before_it_assigned_lets_the_others_rejoin) {
  ClassicRig rig;
  const auto ids = rig.stable(2);
  rig.join(ids[0]);
  rig.join(ids[1]);
  const auto waiting = rig.sync(ids[1], 2);
  rig.pass(10'001);
  ASSERT_TRUE(*waiting);
  EXPECT_EQ((*waiting)->error, rebalance_in_progress);
  const auto alone = rig.join(ids[1]);
  ASSERT_TRUE(*alone);
  EXPECT_EQ((*alone)->leader, ids[1]);
}

// -------------------------------------------------------------------------- static members

struct StaticPair {
  std::string dynamic, fixed;
};
JoinRequest static_request(const ClassicRig& rig, std::string member_id = "") {
  JoinRequest request = rig.join_request(std::move(member_id));
  request.instance_id = "i1";
  request.can_skip_assignment = true;
  return request;
}
// A Stable group of a dynamic leader and a static follower.
StaticPair with_static(ClassicRig& rig) {
  const auto first = rig.join();
  const auto second = rig.join(static_request(rig));
  rig.pass(1);
  const auto ids = rig.settle({first, second});
  return {ids[0], ids[1]};
}

TEST(StaticMember, comes_back_under_a_new_id_without_a_rebalance) {
  ClassicRig rig;
  const auto ids = with_static(rig);
  EXPECT_TRUE(ids.fixed.starts_with("i1-")) << ids.fixed;
  rig.records.clear();
  const auto back = rig.join(static_request(rig));
  ASSERT_TRUE(*back);
  EXPECT_EQ((*back)->error, none);
  EXPECT_NE((*back)->member_id, ids.fixed);
  EXPECT_EQ((*back)->generation, 1);
  EXPECT_EQ((*back)->leader, ids.dynamic);
  EXPECT_EQ(rig.group->state(), State::stable);
  EXPECT_EQ(assignment_of(rig.sync((*back)->member_id, 1)), "assigned to " + ids.fixed);
  EXPECT_EQ(rig.records.size(), 1U) << "its new id is written";
}

TEST(StaticMember, its_old_id_is_fenced) {
  ClassicRig rig;
  const auto ids = with_static(rig);
  const std::string now = (*rig.join(static_request(rig)))->member_id;
  const auto old = [&](auto check) { return check(); };
  EXPECT_EQ(old([&] { return rig.group->heartbeat({"g", ids.fixed, "i1", 1}, rig.event()); }),
            fenced_instance_id);
  EXPECT_EQ((*rig.join(static_request(rig, ids.fixed)))->error, fenced_instance_id);
  EXPECT_EQ(rig.beat(ids.fixed, 1), unknown_member_id) << "without its instance it is nobody";
  EXPECT_EQ(rig.group->heartbeat({"g", now, "i1", 1}, rig.event()), none);
  EXPECT_EQ(rig.group->heartbeat({"g", now, "i2", 1}, rig.event()), unknown_member_id);
}

TEST(StaticMember, replaced_while_parked_the_old_one_is_told) {
  ClassicRig rig;
  const auto ids = with_static(rig);
  rig.join();  // begins a rebalance
  const auto old = rig.join(static_request(rig, ids.fixed));
  EXPECT_FALSE(*old);
  const auto now = rig.join(static_request(rig));
  ASSERT_TRUE(*old);
  EXPECT_EQ((*old)->error, fenced_instance_id);
  EXPECT_FALSE(*now);
}

TEST(StaticMember, a_leader_that_comes_back_may_skip_the_assignment) {
  ClassicRig rig;
  const auto first = rig.join(static_request(rig));
  rig.pass(1);
  const auto ids = rig.settle({first});
  const auto back = rig.join(static_request(rig));
  ASSERT_TRUE(*back);
  EXPECT_TRUE((*back)->skip_assignment);
  EXPECT_EQ((*back)->leader, (*back)->member_id);
  EXPECT_EQ((*back)->members.size(), 1U);
  // An older client can't be told to skip: it is not told that it leads.
  JoinRequest older = static_request(rig);
  older.can_skip_assignment = false;
  const auto again = rig.join(older);
  ASSERT_TRUE(*again);
  EXPECT_FALSE((*again)->skip_assignment);
  EXPECT_NE((*again)->leader, (*again)->member_id);
  EXPECT_TRUE((*again)->members.empty());
}

TEST(StaticMember, with_another_subscription_it_rebalances) {
  ClassicRig rig;
  with_static(rig);
  JoinRequest request = static_request(rig);
  request.protocols = {{"range", subscription({"t", "u"})}};
  EXPECT_FALSE(*rig.join(request));
  EXPECT_EQ(rig.group->state(), State::preparing_rebalance);
}

// KAFKA-9801: it got an empty assignment.
TEST(StaticMember, that_joins_during_completion_begins_the_rebalance_anew) {
  ClassicRig rig;
  const auto ids = with_static(rig);
  rig.join(ids.dynamic);
  rig.join(static_request(rig, ids.fixed));
  ASSERT_EQ(rig.group->state(), State::completing_rebalance);
  const auto waiting = rig.sync(ids.dynamic == rig.group->leader() ? ids.fixed : ids.dynamic, 2);
  const auto back = rig.join(static_request(rig));
  EXPECT_EQ(rig.group->state(), State::preparing_rebalance);
  EXPECT_FALSE(*back);
  const auto leader = rig.join(ids.dynamic);
  ASSERT_TRUE(*leader && *back);
  const auto all = rig.settle({leader, back});
  EXPECT_EQ(assignment_of(rig.sync((*back)->member_id, rig.group->generation())),
            "assigned to " + (*back)->member_id);
}

TEST(StaticMember, that_waits_for_nothing_does_not_keep_the_broker_busy) {
  ClassicRig rig;
  const auto dynamic = rig.join();
  JoinRequest request = static_request(rig);
  request.session_timeout_ms = 300'000;
  request.rebalance_timeout_ms = 0;
  const auto lasting = rig.join(request);
  rig.pass(1);
  const auto ids = rig.settle({dynamic, lasting});
  rig.leave((*dynamic)->member_id);
  rig.pass(299'000);  // which counts how often the group is looked at
  EXPECT_EQ(rig.group->members_count(), 1U);
  rig.pass(2'000);
  EXPECT_TRUE(rig.group->empty());
}

TEST(StaticMember, stays_through_a_rebalance_it_misses_until_its_session_ends) {
  ClassicRig rig;
  const auto first = rig.join();
  JoinRequest request = static_request(rig);
  request.session_timeout_ms = 300'000;
  const auto second = rig.join(request);
  rig.pass(1);
  const auto ids = rig.settle({first, second});
  const auto leader = rig.join(ids[0]);
  rig.pass(60'001);
  ASSERT_TRUE(*leader);
  EXPECT_EQ((*leader)->members.size(), 2U) << "it keeps its place";
  rig.sync(ids[0], 2, ids);
  EXPECT_NE(rig.group->find(ids[1]), nullptr);
  for (int second_passed = 0; second_passed < 300; ++second_passed) {
    rig.pass(1000);
    if (rig.beat(ids[0], rig.group->generation()) == rebalance_in_progress) break;
  }
  EXPECT_EQ(rig.group->find(ids[1]), nullptr);
}

TEST(StaticMember, leaves_by_its_instance_alone) {
  ClassicRig rig;
  const auto ids = with_static(rig);
  const LeaveResult result = rig.group->leave(
      {"g", {{"", "i1"}, {"", "i2"}, {"nobody", std::nullopt}, {"", {}}}}, rig.event());
  EXPECT_EQ(result.members,
            (std::vector{none, unknown_member_id, unknown_member_id, unknown_member_id}));
  EXPECT_EQ(rig.group->find(ids.fixed), nullptr);
}

// ---------------------------------------------------------------------------------- records

std::unique_ptr<ClassicGroup> reload(ClassicRig& rig) {
  return ClassicGroup::load("g", rig.limits, rig.group->metadata(), rig.now, nullptr);
}

TEST(ClassicRecord, a_stable_group_comes_back_as_it_was) {
  ClassicRig rig;
  const auto ids = with_static(rig);
  const auto written = format::kafka::decode_group_metadata(*rig.records.back().value);
  ASSERT_TRUE(written);
  EXPECT_EQ(*written, rig.group->metadata());
  rig.group = reload(rig);
  EXPECT_EQ(rig.group->state(), State::stable);
  EXPECT_EQ(rig.group->leader(), ids.dynamic);
  EXPECT_EQ(rig.beat(ids.dynamic, 1), none);
  EXPECT_EQ(assignment_of(rig.sync(ids.fixed, 1)), "assigned to " + ids.fixed);
  EXPECT_TRUE(rig.group->subscribed("t"));
  EXPECT_FALSE(rig.group->subscribed("u"));
  rig.pass(10'001);
  EXPECT_EQ(rig.group->state(), State::empty) << "sessions begin with the load";
}

TEST(ClassicRecord, members_without_an_assignment_are_not_written_as_if_they_had_one) {
  ClassicRig rig;
  const auto ids = rig.stable(2);
  rig.join();  // Preparing, from Stable: the others still have theirs
  EXPECT_EQ(rig.group->metadata().members.size(), 2U);
  rig.join(ids[0]);
  rig.join(ids[1]);
  ASSERT_EQ(rig.group->state(), State::completing_rebalance);
  EXPECT_EQ(rig.group->generation(), 2);
  EXPECT_TRUE(rig.group->metadata().members.empty());
  EXPECT_EQ(rig.group->metadata().generation, 2);
}

TEST(ClassicRecord, expiry_counts_from_the_moment_the_group_became_empty) {
  ClassicRig rig;
  EXPECT_EQ(rig.group->expiry().rule, OffsetExpiry::Rule::by_commit) << "nobody ever joined";
  const auto ids = rig.stable(1);
  EXPECT_EQ(rig.group->expiry().rule, OffsetExpiry::Rule::by_commit) << "its topics are known";
  rig.pass(5000);
  rig.leave(ids[0]);
  const std::int64_t then = rig.now.wall_ms;
  rig.pass(100'000);
  EXPECT_EQ(rig.group->expiry().rule, OffsetExpiry::Rule::by_emptiness);
  EXPECT_EQ(rig.group->expiry().empty_since_ms, then);
  rig.group = reload(rig);
  EXPECT_EQ(rig.group->expiry().empty_since_ms, then) << "across a restart too";
}

TEST(ClassicRecord, a_type_without_readable_subscriptions_keeps_its_offsets) {
  ClassicRig rig;
  JoinRequest request = rig.join_request();
  request.protocol_type = "connect";
  const auto joined = rig.join(request);
  rig.pass(1);
  rig.settle({joined});
  EXPECT_EQ(rig.group->expiry().rule, OffsetExpiry::Rule::never);
  EXPECT_EQ(rig.group->check_offset_delete(), non_empty_group);
  EXPECT_EQ(rig.group->check_delete(), non_empty_group);
}

TEST(ClassicRecord, bad_metadata_does_not_fail_a_join) {
  ClassicRig rig;
  JoinRequest request = rig.join_request();
  request.protocols = {{"range", {0xff, 0xff, 1}}};
  const auto joined = rig.join(request);
  rig.pass(1);
  rig.settle({joined});
  EXPECT_TRUE(rig.group->subscribed("anything")) << "what is not known can't be ruled out";
}

TEST(ClassicGroup, description_shows_metadata_and_assignments_when_stable) {
  ClassicRig rig;
  const auto ids = rig.stable(2);
  DescribedGroup group = rig.group->describe();
  EXPECT_EQ(group.state, "Stable");
  EXPECT_EQ(group.protocol, "range");
  ASSERT_EQ(group.members.size(), 2U);
  EXPECT_EQ(group.members[0].client_id, "app");
  EXPECT_EQ(group.members[0].host, "/127.0.0.1");
  EXPECT_EQ(group.members[0].metadata, subscription({"t"}));
  EXPECT_FALSE(group.members[0].assignment.empty());
  rig.join();
  group = rig.group->describe();
  EXPECT_EQ(group.state, "PreparingRebalance");
  EXPECT_EQ(group.protocol, "");
  EXPECT_TRUE(group.members[0].metadata.empty());
}

}  // namespace
}  // namespace polylog::broker::groups
