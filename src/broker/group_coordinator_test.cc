#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "broker/broker_fakes.h"
#include "broker/groups/classic_group_rig.h"
#include "broker/groups/consumer_types.h"
#include "broker/groups/coordinator.h"
#include "broker/groups/offsets_topic.h"

// The coordinator on a broker whose syncs and failures the test decides.
namespace polylog::broker::groups {
namespace {

constexpr std::int64_t day_ms = 86'400'000;

template <typename R>
using Told = std::shared_ptr<std::optional<R>>;

struct CoordinatorTest : testing::Test {
  std::vector<std::string> reports;
  FakeDisk disk;
  Timestamp wall{1'700'000'000'000};  // when the next broker starts
  std::unique_ptr<World> world;
  std::unique_ptr<Coordinator> coordinator;

  CoordinatorTest() {
    open();
    world->make("t");
    find();
  }
  void open() {
    world = std::make_unique<World>(disk,
                                    Settings::from({{"offsets.topic.num.partitions", "2"},
                                                    {"group.initial.rebalance.delay.ms", "0"},
                                                    {"offsets.retention.check.interval.ms", "10"}})
                                        .value());
    world->clock.jump_wall_to(wall);
    coordinator = std::make_unique<Coordinator>(
        world->broker(), [this](const std::string& line) { reports.push_back(line); });
    coordinator->start();
  }
  void close() {
    wall = world->clock.now();
    coordinator = nullptr;
    world = nullptr;
  }
  void find() {
    std::optional<GroupError> found;
    coordinator->find([&](GroupError error) { found = error; });
    world->run_until([&] { return found.has_value(); });
    EXPECT_EQ(found, GroupError::none);
    wait_until_loaded();
  }
  void wait_until_loaded() {
    world->run_until([&] {
      world->sync_round();
      return !coordinator->loading();
    });
  }
  void start_anew() {
    close();
    open();
    wait_until_loaded();
  }
  FakeLog& log() { return world->log_of({offsets_topic, partition_of_group("g", 2)}); }

  Told<GroupError> commit(std::int64_t offset, const std::string& topic = "t") {
    CommitRequest request;
    request.group = "g";
    request.topics.push_back({topic, {}, {{0, offset, -1, ""}}});
    auto told = std::make_shared<std::optional<GroupError>>();
    coordinator->commit(std::move(request),
                        [told](CommitResult result) { *told = result.topics.at(0).at(0); });
    return told;
  }
  Told<FetchOffsetsResult> fetch(const std::string& topic = "t") {
    FetchOffsetsRequest request;
    request.group = "g";
    request.topics.emplace().push_back({topic, {}, {0}});
    auto told = std::make_shared<std::optional<FetchOffsetsResult>>();
    coordinator->fetch(std::move(request), [told](FetchOffsetsResult result) { *told = result; });
    return told;
  }
  // With syncs as they come.
  std::int64_t offset_now(const std::string& topic = "t") {
    Told<FetchOffsetsResult> told;
    world->run_until([&] {
      if (!told || (*told && (**told).error != GroupError::none)) told = fetch(topic);
      world->sync_round();
      return *told && (**told).error == GroupError::none;
    });
    const auto& committed = (**told).topics.at(0).partitions.at(0).committed;
    return committed ? committed->offset : -1;
  }
  JoinRequest join_request(std::string member_id = "") {
    JoinRequest request;
    request.group = "g";
    request.member_id = std::move(member_id);
    request.session_timeout_ms = 10'000;
    request.rebalance_timeout_ms = 60'000;
    request.protocol_type = "consumer";
    request.protocols = {{"range", subscription({"t"})}};
    return request;
  }
  Told<JoinResult> join(JoinRequest request) {
    auto told = std::make_shared<std::optional<JoinResult>>();
    coordinator->join(std::move(request), [told](JoinResult result) { *told = std::move(result); });
    return told;
  }
  // The only member of a Stable classic group.
  JoinResult classic_member() {
    const auto joined = join(join_request());
    settle([&] { return joined->has_value(); });
    if (!*joined) return {};
    SyncRequest request;
    request.group = "g";
    request.member_id = (**joined).member_id;
    request.generation = (**joined).generation;
    std::optional<GroupError> synced;
    coordinator->sync(std::move(request), [&](SyncResult result) { synced = result.error; });
    settle([&] { return synced.has_value(); });
    EXPECT_EQ(synced, GroupError::none);
    return **joined;
  }
  ConsumerHeartbeatResult beat(const std::string& member, std::int32_t epoch,
                               std::optional<std::string> expression = std::nullopt) {
    ConsumerHeartbeat request;
    request.group = "g";
    request.member_id = member;
    request.member_epoch = epoch;
    request.names_itself = true;
    if (epoch == 0) {
      request.rebalance_timeout_ms = 60'000;
      request.topics = std::vector<std::string>{"t"};
      request.owned.emplace();
      request.expression = std::move(expression);
    }
    std::optional<ConsumerHeartbeatResult> told;
    coordinator->consumer_heartbeat(std::move(request),
                                    [&](ConsumerHeartbeatResult result) { told = result; });
    settle([&] { return told.has_value(); });
    return told.value_or(ConsumerHeartbeatResult());
  }
  template <typename Condition>
  void settle(Condition condition) {
    world->run_until([&] {
      world->sync_round();
      return condition();
    });
  }
  void committed(std::int64_t offset) {
    const auto told = commit(offset);
    world->sync_round();
    ASSERT_TRUE(*told);
    ASSERT_EQ(**told, GroupError::none);
  }
};

TEST_F(CoordinatorTest, nothing_is_told_before_it_is_on_the_disk) {
  const auto told = commit(5);
  const auto seen = fetch();
  for (int i = 0; i < 5; ++i) world->turn();
  EXPECT_FALSE(*told);
  EXPECT_FALSE(*seen) << "an offset that may still be lost";
  world->sync_round();
  ASSERT_TRUE(*told && *seen);
  EXPECT_EQ(**told, GroupError::none);
  EXPECT_EQ((**seen).topics.at(0).partitions.at(0).committed->offset, 5);
}

TEST_F(CoordinatorTest, what_was_acknowledged_is_there_after_a_start_and_nothing_else) {
  committed(5);
  commit(6);  // never synced, and never told
  start_anew();
  EXPECT_GE(offset_now(), 5);
}

TEST_F(CoordinatorTest, after_a_failed_write_the_log_says_what_is_true) {
  committed(5);
  log().write_error = Errc::no_space;
  const auto lost = commit(6);
  const auto seen = fetch();
  world->turn();
  ASSERT_TRUE(*lost && *seen);
  EXPECT_EQ(**lost, GroupError::not_coordinator);
  EXPECT_EQ((**seen).error, GroupError::not_coordinator);
  EXPECT_TRUE(coordinator->loading());
  ASSERT_FALSE(reports.empty());
  EXPECT_NE(reports.front().find("loads its groups anew"), std::string::npos);
  EXPECT_EQ(offset_now(), 5);
  committed(7);
  EXPECT_EQ(offset_now(), 7);
}

TEST_F(CoordinatorTest, an_append_that_is_refused_is_a_failed_write) {
  committed(5);
  log().append_error = Errc::no_space;
  const auto lost = commit(6);
  ASSERT_TRUE(*lost);
  EXPECT_EQ(**lost, GroupError::not_coordinator);
  log().append_error.reset();
  EXPECT_EQ(offset_now(), 5);
}

// Retention of a standalone consumer counts from its commit, in wall time that did not jump.
TEST_F(CoordinatorTest, offsets_expire_when_time_has_passed_and_not_when_the_clock_was_moved) {
  committed(5);
  world->clock.jump_wall_to(Timestamp(world->clock.now().value() + 365 * day_ms));
  const auto looked = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  world->run_until([&] { return std::chrono::steady_clock::now() > looked; });
  EXPECT_EQ(coordinator->stats().offsets_expired, 0U);
  EXPECT_EQ(offset_now(), 5);

  world->clock.advance_ms(8 * day_ms);
  world->run_until([&] { return coordinator->stats().offsets_expired == 1; });
  EXPECT_EQ(offset_now(), -1);
  world->run_until([&] { return coordinator->stats().groups_expired == 1; });
  EXPECT_EQ(coordinator->groups_in_state("Empty"), 0U);
  start_anew();
  EXPECT_EQ(offset_now(), -1) << "their deletion is in the log";
}

TEST_F(CoordinatorTest, a_deleted_topic_takes_its_offsets_with_it) {
  committed(5);
  EXPECT_EQ(world->wait(world->broker().delete_topic("t")).error, Broker::TopicError::none);
  world->make("t");
  EXPECT_EQ(offset_now(), -1);
}

TEST_F(CoordinatorTest, a_topic_of_the_same_name_made_while_nobody_looked_has_no_offsets) {
  committed(5);
  coordinator = nullptr;  // it misses what happens now
  EXPECT_EQ(world->wait(world->broker().delete_topic("t")).error, Broker::TopicError::none);
  world->make("t");
  world->sync_round();
  start_anew();
  EXPECT_EQ(offset_now(), -1);
}

TEST_F(CoordinatorTest, a_stop_answers_who_is_parked) {
  JoinRequest request;
  request.group = "g";
  request.session_timeout_ms = 10'000;
  request.rebalance_timeout_ms = 60'000;
  request.protocol_type = "consumer";
  request.protocols = {{"range", {}}};
  std::optional<GroupError> told;
  coordinator->join(request, [&](JoinResult result) { told = result.error; });
  EXPECT_FALSE(told);
  coordinator->stop();
  world->turn();
  EXPECT_EQ(told, GroupError::not_coordinator);
  coordinator->join(request, [&](JoinResult result) { told = result.error; });
  EXPECT_EQ(told, GroupError::not_coordinator);
}

TEST_F(CoordinatorTest, sessions_outside_the_limits_and_empty_ids_are_refused) {
  const auto join = [&](std::int32_t session_timeout_ms, const std::string& group) {
    JoinRequest request;
    request.group = group;
    request.session_timeout_ms = session_timeout_ms;
    GroupError told = GroupError::none;
    coordinator->join(request, [&](JoinResult result) { told = result.error; });
    return told;
  };
  EXPECT_EQ(join(5999, "g"), GroupError::invalid_session_timeout);
  EXPECT_EQ(join(1'800'001, "g"), GroupError::invalid_session_timeout);
  EXPECT_EQ(join(10'000, ""), GroupError::invalid_group_id);
  EXPECT_EQ(join(10'000, "g"), GroupError::inconsistent_group_protocol);
}

TEST_F(CoordinatorTest, what_a_failed_sync_left_unsure_is_shown_once_it_is_sure) {
  committed(5);
  log().dirty_error = Errc::no_space;
  const auto unsure = commit(6);
  world->sync_round();
  ASSERT_TRUE(*unsure);
  EXPECT_EQ(**unsure, GroupError::not_coordinator);
  const auto a_while = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
  world->run_until([&] {
    const auto seen = fetch();
    world->sync_round();
    EXPECT_TRUE(!*seen || (**seen).error != GroupError::none);
    return std::chrono::steady_clock::now() > a_while;
  });
  EXPECT_EQ(reports.size(), 1U) << "the same trouble is told once";
  log().dirty_error.reset();
  EXPECT_EQ(offset_now(), 6) << "it was written after all";
}

TEST_F(CoordinatorTest, a_commit_may_ask_to_be_kept_for_ever) {
  CommitRequest request;
  request.group = "g";
  request.retention_ms = INT64_MAX;
  request.topics.push_back({"t", {}, {{0, 5, -1, ""}}});
  coordinator->commit(std::move(request), [](CommitResult) {});
  world->sync_round();
  world->clock.advance_ms(365 * day_ms);
  const auto looked = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  world->run_until([&] { return std::chrono::steady_clock::now() > looked; });
  EXPECT_EQ(offset_now(), 5);
}

TEST_F(CoordinatorTest, an_event_larger_than_a_segment_is_written_in_parts) {
  constexpr std::int32_t partitions = 400;
  world->make("wide", {}, partitions);
  CommitRequest request;
  request.group = "g";
  CommitTopic& topic = request.topics.emplace_back();
  topic.name = "wide";
  for (std::int32_t p = 0; p < partitions; ++p) {
    topic.partitions.push_back({p, p, -1, std::string(4000, 'm')});
  }
  std::optional<CommitResult> told;
  coordinator->commit(std::move(request), [&](CommitResult result) { told = std::move(result); });
  const std::size_t before = log().batches.size();
  settle([&] { return told.has_value(); });
  EXPECT_EQ(told->topics[0], std::vector<GroupError>(partitions, GroupError::none));
  EXPECT_GT(log().batches.size(), before + 2);
  for (const Batch& batch : log().batches) EXPECT_LT(batch.bytes.size(), 600'000U);
  EXPECT_EQ(world->wait(world->broker().delete_topic("wide")).error, Broker::TopicError::none);
  start_anew();
  EXPECT_EQ(offset_now("wide"), -1);
}

// ------------------------------------------------------------ from one protocol to the other

TEST_F(CoordinatorTest, who_is_turned_down_does_not_disturb_a_classic_group) {
  const JoinResult member = classic_member();
  ASSERT_EQ(member.error, GroupError::none);
  EXPECT_EQ(beat("m", 0, "(").error, GroupError::invalid_regular_expression);
  HeartbeatRequest request{"g", member.member_id, std::nullopt, member.generation};
  std::optional<GroupError> told;
  coordinator->heartbeat(request, [&](GroupError error) { told = error; });
  EXPECT_EQ(told, GroupError::none);
  EXPECT_EQ(coordinator->groups_in_state("Stable"), 1U);
  EXPECT_EQ(beat("m", 0).error, GroupError::none) << "one that asks properly gets in";
}

TEST_F(CoordinatorTest, an_id_that_nobody_came_back_with_keeps_no_other_protocol_out) {
  JoinRequest request = join_request();
  request.must_know_id = true;
  const auto told = join(request);
  ASSERT_TRUE(*told);
  EXPECT_EQ((**told).error, GroupError::member_id_required);
  EXPECT_EQ(beat("m", 0).error, GroupError::none);
  const auto late = join(join_request((**told).member_id));
  settle([&] { return late->has_value(); });
  EXPECT_EQ((**late).error, GroupError::none) << "it joins the group of the other protocol";
}

// A KIP-848 group whose offsets are older than the retention when its last member goes, and a
// classic member that asks for an id and never comes.
TEST_F(CoordinatorTest, offsets_of_a_group_of_either_protocol_count_from_its_end) {
  committed(5);
  const auto look = [&] {
    const auto looked = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    world->run_until([&] { return std::chrono::steady_clock::now() > looked; });
  };
  EXPECT_EQ(beat("m", 0).error, GroupError::none);
  world->clock.advance_ms(8 * day_ms);
  EXPECT_EQ(beat("m", 0).error, GroupError::none);  // in case its session has ended
  EXPECT_EQ(beat("m", -1).error, GroupError::none);
  look();
  EXPECT_EQ(offset_now(), 5);
  world->clock.advance_ms(3 * day_ms);
  start_anew();
  look();
  EXPECT_EQ(offset_now(), 5) << "three days of seven";

  JoinRequest request = join_request();
  request.must_know_id = true;
  join(request);
  look();
  EXPECT_EQ(offset_now(), 5);
  start_anew();
  world->clock.advance_ms(3 * day_ms);
  look();
  EXPECT_EQ(offset_now(), 5);
  world->clock.advance_ms(2 * day_ms);
  look();
  EXPECT_EQ(offset_now(), -1);
}

}  // namespace
}  // namespace polylog::broker::groups
