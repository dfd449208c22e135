#include "server/kafka/fetch_sessions.h"

#include <gtest/gtest.h>

namespace polylog::server::kafka {
namespace {

using protocol::kafka::ErrorCode;
using protocol::kafka::FetchRequest;

FetchRequest request_of(std::int32_t session, std::int32_t epoch,
                        const std::vector<std::int32_t>& partitions,
                        const std::vector<std::int32_t>& forgotten = {}) {
  FetchRequest request;
  request.session_id = session;
  request.session_epoch = epoch;
  if (!partitions.empty()) {
    auto& topic = request.topics.emplace_back();
    topic.topic = "t";
    for (const std::int32_t partition : partitions) {
      topic.partitions.emplace_back().partition = partition;
    }
  }
  if (!forgotten.empty()) {
    auto& topic = request.forgotten_topics_data.emplace_back();
    topic.topic = "t";
    topic.partitions = forgotten;
  }
  return request;
}

FetchAnswer quiet(std::int64_t high_watermark = 0) { return {high_watermark, 0, false, false}; }

class Sessions : public testing::Test {
 protected:
  // Opens a session over the partitions; returns its id.
  std::int32_t open(const std::vector<std::int32_t>& partitions, std::int64_t now_ms = 0) {
    const auto plan = sessions_.begin(request_of(0, 0, partitions), false, now_ms);
    EXPECT_EQ(plan.error, ErrorCode::none);
    const std::vector<FetchAnswer> answers(partitions.size(), quiet());
    return sessions_.finish(plan, answers, now_ms).session_id;
  }
  std::vector<std::int32_t> order(const FetchSessions::Plan& plan) {
    std::vector<std::int32_t> order;
    for (const auto& partition : plan.partitions) order.push_back(partition->asked.partition);
    return order;
  }
  FetchSessions sessions_{2, 1000};
};

using Order = std::vector<std::int32_t>;

TEST_F(Sessions, a_sessionless_fetch_makes_none) {
  const auto plan = sessions_.begin(request_of(0, -1, {0}), false, 0);
  const auto outcome = sessions_.finish(plan, {quiet()}, 0);
  EXPECT_EQ(outcome.session_id, 0);
  EXPECT_EQ(outcome.included, std::vector<bool>{true});
  EXPECT_EQ(sessions_.size(), 0U);
}

TEST_F(Sessions, an_incremental_answer_holds_only_what_is_new) {
  const std::int32_t id = open({0, 1, 2, 3});
  ASSERT_NE(id, 0);
  auto plan = sessions_.begin(request_of(id, 1, {}), false, 0);
  ASSERT_EQ(plan.error, ErrorCode::none);
  EXPECT_EQ(order(plan), (Order{0, 1, 2, 3}));
  const FetchAnswer records{5, 0, true, false}, moved_mark{5, 0, false, false},
      moved_start{0, 1, false, false};
  auto outcome = sessions_.finish(plan, {records, quiet(), moved_mark, moved_start}, 0);
  EXPECT_EQ(outcome.session_id, id);
  EXPECT_EQ(outcome.included, (std::vector<bool>{true, false, true, true}));

  plan = sessions_.begin(request_of(id, 2, {}), false, 0);
  EXPECT_EQ(order(plan), (Order{1, 2, 3, 0})) << "who had records goes last";
  outcome = sessions_.finish(plan, {quiet(), moved_mark, moved_start, {5, 0, false, false}}, 0);
  EXPECT_EQ(outcome.included, (std::vector<bool>{false, false, false, false}));
}

TEST_F(Sessions, an_error_is_told_and_what_follows_it_too) {
  const std::int32_t id = open({0});
  auto plan = sessions_.begin(request_of(id, 1, {}), false, 0);
  EXPECT_TRUE(sessions_.finish(plan, {{-1, -1, false, true}}, 0).included[0]);
  plan = sessions_.begin(request_of(id, 2, {}), false, 0);
  EXPECT_TRUE(sessions_.finish(plan, {quiet()}, 0).included[0]);
  plan = sessions_.begin(request_of(id, 3, {}), false, 0);
  EXPECT_FALSE(sessions_.finish(plan, {quiet()}, 0).included[0]);
}

TEST_F(Sessions, partitions_are_added_changed_and_forgotten) {
  const std::int32_t id = open({0, 1});
  FetchRequest request = request_of(id, 1, {1, 7}, {0});
  request.topics[0].partitions[0].fetch_offset = 42;
  const auto plan = sessions_.begin(request, false, 0);
  EXPECT_EQ(order(plan), (Order{1, 7}));
  EXPECT_EQ(plan.partitions[0]->asked.fetch_offset, 42);
}

TEST_F(Sessions, epochs_rise_by_one_and_wrap) {
  const std::int32_t id = open({0});
  EXPECT_EQ(sessions_.begin(request_of(id, 2, {}), false, 0).error,
            ErrorCode::invalid_fetch_session_epoch);
  EXPECT_EQ(sessions_.begin(request_of(id, 1, {}), false, 0).error, ErrorCode::none);
  EXPECT_EQ(sessions_.begin(request_of(id, 1, {}), false, 0).error,
            ErrorCode::invalid_fetch_session_epoch);
  EXPECT_EQ(next_session_epoch(INT32_MAX), 1);
  EXPECT_EQ(next_session_epoch(1), 2);
}

TEST_F(Sessions, unknown_ids_and_mixed_naming_are_refused) {
  const std::int32_t id = open({0});
  const std::int32_t other = id == 1 ? 2 : 1;
  EXPECT_EQ(sessions_.begin(request_of(other, 1, {}), false, 0).error,
            ErrorCode::fetch_session_id_not_found);
  EXPECT_EQ(sessions_.begin(request_of(id, 1, {}), true, 0).error,
            ErrorCode::fetch_session_topic_id_error);
}

TEST_F(Sessions, a_final_or_new_full_fetch_closes_the_old_session) {
  const std::int32_t id = open({0});
  sessions_.begin(request_of(id, -1, {0}), false, 0);
  EXPECT_EQ(sessions_.size(), 0U);
  const std::int32_t second = open({0});
  const auto plan = sessions_.begin(request_of(second, 0, {0}), false, 0);
  EXPECT_EQ(sessions_.size(), 0U);
  EXPECT_NE(sessions_.finish(plan, {quiet()}, 0).session_id, 0);
}

TEST_F(Sessions, a_session_without_partitions_closes) {
  const std::int32_t id = open({0});
  const auto plan = sessions_.begin(request_of(id, 1, {}, {0}), false, 0);
  EXPECT_EQ(plan.error, ErrorCode::none);
  EXPECT_TRUE(plan.partitions.empty());
  EXPECT_EQ(sessions_.finish(plan, {}, 0).session_id, 0);
  EXPECT_EQ(sessions_.size(), 0U);
}

TEST_F(Sessions, the_cache_is_bounded_and_keeps_who_is_active) {
  const std::int32_t first = open({0}, 0);
  EXPECT_NE(open({0}, 0), 0);
  EXPECT_EQ(open({0}, 500), 0) << "full, nobody idle";
  sessions_.begin(request_of(first, 1, {}), false, 900);
  EXPECT_NE(open({0}, 1500), 0) << "the second was idle";
  EXPECT_EQ(sessions_.begin(request_of(first, 2, {}), false, 1500).error, ErrorCode::none);
  EXPECT_EQ(sessions_.size(), 2U);
}

TEST_F(Sessions, an_old_small_session_makes_room_for_a_larger_one) {
  const std::int32_t small = open({0}, 0);
  const std::int32_t large = open({0, 1, 2}, 0);
  sessions_.begin(request_of(small, 1, {}), false, 1400);
  sessions_.begin(request_of(large, 1, {}), false, 1400);
  EXPECT_EQ(open({0}, 1500), 0);
  EXPECT_NE(open({0, 1}, 1500), 0);
  EXPECT_EQ(sessions_.begin(request_of(small, 2, {}), false, 1500).error,
            ErrorCode::fetch_session_id_not_found);
  EXPECT_EQ(sessions_.begin(request_of(large, 2, {}), false, 1500).error, ErrorCode::none);
}

}  // namespace
}  // namespace polylog::server::kafka
