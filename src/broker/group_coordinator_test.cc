#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "broker/broker_fakes.h"
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
                                                    {"offsets.retention.check.interval.ms", "10"}})
                                        .value());
    coordinator = std::make_unique<Coordinator>(
        world->broker(), [this](const std::string& line) { reports.push_back(line); });
    coordinator->start();
  }
  void close() {
    coordinator = nullptr;
    world = nullptr;
  }
  void find() {
    std::optional<GroupError> found;
    coordinator->find([&](GroupError error) { found = error; });
    world->run_until([&] { return found.has_value() && !coordinator->loading(); });
    EXPECT_EQ(found, GroupError::none);
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
  close();
  open();
  world->run_until([&] { return !coordinator->loading(); });
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
  close();
  open();
  world->run_until([&] { return !coordinator->loading(); });
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
  close();
  open();
  world->run_until([&] { return !coordinator->loading(); });
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

}  // namespace
}  // namespace polylog::broker::groups
