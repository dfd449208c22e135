#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "protocol/kafka/alter_partition_reassignments_request.h"
#include "protocol/kafka/alter_partition_reassignments_response.h"
#include "protocol/kafka/create_partitions_request.h"
#include "protocol/kafka/create_partitions_response.h"
#include "protocol/kafka/create_topics_request.h"
#include "protocol/kafka/create_topics_response.h"
#include "protocol/kafka/delete_topics_request.h"
#include "protocol/kafka/delete_topics_response.h"
#include "protocol/kafka/describe_log_dirs_request.h"
#include "protocol/kafka/describe_log_dirs_response.h"
#include "protocol/kafka/describe_producers_request.h"
#include "protocol/kafka/describe_producers_response.h"
#include "protocol/kafka/describe_topic_partitions_request.h"
#include "protocol/kafka/describe_topic_partitions_response.h"
#include "protocol/kafka/elect_leaders_request.h"
#include "protocol/kafka/elect_leaders_response.h"
#include "protocol/kafka/find_coordinator_request.h"
#include "protocol/kafka/find_coordinator_response.h"
#include "protocol/kafka/list_offsets_request.h"
#include "protocol/kafka/list_offsets_response.h"
#include "protocol/kafka/list_partition_reassignments_request.h"
#include "protocol/kafka/list_partition_reassignments_response.h"
#include "protocol/kafka/metadata_request.h"
#include "protocol/kafka/metadata_response.h"
#include "protocol/kafka/produce_request.h"
#include "protocol/kafka/produce_response.h"
#include "server/kafka/broker_rig.h"

// Administration of topics and partitions, over a socket, in every layout.
namespace polylog::server::kafka {
namespace {

using namespace protocol::kafka;
using Values = std::vector<std::string>;
using Counts = std::map<std::string, std::int32_t>;

struct TopicAdmin : testing::TestWithParam<const char*> {
  CreatePartitionsRequest growth(const std::string& name, std::int32_t count) {
    CreatePartitionsRequest request;
    auto& topic = request.topics.emplace_back();
    topic.name = name;
    topic.count = count;
    topic.assignments = std::nullopt;
    return request;
  }
  CreatePartitionsResponse::CreatePartitionsTopicResult grow(const CreatePartitionsRequest& request,
                                                             std::int16_t version = 3) {
    return client.ask<CreatePartitionsResponse>(request, version).results.at(0);
  }
  std::int16_t grow(const std::string& name, std::int32_t count) {
    return grow(growth(name, count)).error_code;
  }
  std::int16_t assign(std::int32_t count, std::vector<std::vector<std::int32_t>> brokers) {
    CreatePartitionsRequest request = growth("t", count);
    request.topics[0].assignments.emplace();
    for (const auto& ids : brokers) {
      request.topics[0].assignments->emplace_back().broker_ids = ids;
    }
    return grow(request).error_code;
  }
  // By name, of those that exist.
  Counts partitions(const Values& names) {
    MetadataRequest request;
    request.topics.emplace();
    for (const std::string& name : names) request.topics->emplace_back().name = name;
    request.allow_auto_topic_creation = false;
    Counts counts;
    for (const auto& topic : client.ask<MetadataResponse>(request, 12).topics) {
      if (topic.error_code != 0) continue;
      counts[*topic.name] = static_cast<std::int32_t>(topic.partitions.size());
    }
    return counts;
  }
  std::int16_t produce(const std::string& name, std::int32_t partition, const Values& values,
                       Stamp stamp = {}) {
    ProduceRequest request;
    request.acks = -1;
    request.timeout_ms = 10'000;
    auto& topic = request.topic_data.emplace_back();
    topic.name = name;
    auto& data = topic.partition_data.emplace_back();
    data.index = partition;
    data.records = batch_of(values, stamp);
    const auto response = client.ask<ProduceResponse>(request, 9);
    return response.responses.at(0).partition_responses.at(0).error_code;
  }
  DescribeLogDirsResponse::DescribeLogDirsResult log_dir(const DescribeLogDirsRequest& request,
                                                         std::int16_t version = 4) {
    const auto response = client.ask<DescribeLogDirsResponse>(request, version);
    for (const auto& result : response.results) {
      if (std::filesystem::path(result.log_dir).filename() == GetParam()) return result;
    }
    ADD_FAILURE() << "no directory of the layout among " << response.results.size();
    return {};
  }

  BrokerRig rig{{{"polylog.layout", GetParam()}}};
  WireClient client{rig.port()};
};

INSTANTIATE_TEST_SUITE_P(Layout, TopicAdmin, testing::Values("kafka", "rocketmq", "segment"),
                         [](const auto& layout) { return std::string(layout.param); });

// ------------------------------------------------------------------------- CreatePartitions

TEST_P(TopicAdmin, a_topic_grows_in_every_version_and_the_new_partitions_take_records) {
  rig.create_topic("t");
  const Uuid before = rig.topic_id("t");
  ASSERT_EQ(produce("t", 0, {"old"}), 0);
  for (std::int16_t version = 0; version <= 3; ++version) {
    const std::int32_t count = version + 2;
    EXPECT_EQ(produce("t", count - 1, {"early"}), 3);
    const auto answer = grow(growth("t", count), version);
    EXPECT_EQ(answer.error_code, 0) << answer.error_message.value_or("");
    EXPECT_FALSE(answer.error_message);
    EXPECT_EQ(partitions({"t"}), (Counts{{"t", count}}));
    EXPECT_EQ(produce("t", count - 1, {"new"}), 0);
  }
  EXPECT_EQ(rig.topic_id("t"), before);
}

TEST_P(TopicAdmin, only_growth_is_possible) {
  rig.create_topic("t", 3);
  const auto same = grow(growth("t", 3));
  EXPECT_EQ(same.error_code, 37);
  EXPECT_EQ(same.error_message, "Topic already has 3 partition(s).");
  for (const std::int32_t count : {2, 0, -1, INT32_MIN, 10'001, INT32_MAX}) {
    EXPECT_EQ(grow("t", count), 37) << count;
  }
  EXPECT_EQ(grow("none", 2), 3);
  EXPECT_EQ(partitions({"t"}), (Counts{{"t", 3}}));
}

TEST_P(TopicAdmin, assignments_of_new_partitions_are_checked) {
  rig.create_topic("t", 2);
  EXPECT_EQ(assign(4, {{1}}), 39) << "one is missing";
  EXPECT_EQ(assign(4, {{1}, {2}}), 39) << "no such broker";
  EXPECT_EQ(assign(4, {{1}, {1, 1}}), 39);
  EXPECT_EQ(assign(4, {{1}, {}}), 39);
  EXPECT_EQ(assign(4, {}), 39);
  EXPECT_EQ(assign(2, {{1}}), 37) << "the count comes first";
  EXPECT_EQ(partitions({"t"}), (Counts{{"t", 2}}));
  EXPECT_EQ(assign(4, {{1}, {1}}), 0);
  EXPECT_EQ(partitions({"t"}), (Counts{{"t", 4}}));
}

TEST_P(TopicAdmin, growth_is_only_validated_when_asked) {
  rig.create_topic("t");
  CreatePartitionsRequest request = growth("t", 2);
  request.validate_only = true;
  EXPECT_EQ(grow(request).error_code, 0);
  request.topics[0].count = 1;
  EXPECT_EQ(grow(request).error_code, 37);
  EXPECT_EQ(partitions({"t"}), (Counts{{"t", 1}}));
}

TEST_P(TopicAdmin, several_topics_grow_at_once_and_each_is_answered_for_itself) {
  rig.create_topic("a");
  rig.create_topic("b", 2);
  CreatePartitionsRequest request = growth("a", 5);
  request.topics.push_back(growth("b", 2).topics[0]);
  request.topics.push_back(growth("twice", 2).topics[0]);
  request.topics.push_back(growth("twice", 3).topics[0]);
  const auto results = client.ask<CreatePartitionsResponse>(request, 3).results;
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].error_code, 0);
  EXPECT_EQ(results[1].error_code, 37);
  EXPECT_EQ(results[2].name, "twice");
  EXPECT_EQ(results[2].error_code, 42);
  EXPECT_EQ(partitions({"a", "b"}), (Counts{{"a", 5}, {"b", 2}}));
}

TEST_P(TopicAdmin, growth_survives_a_stop_of_either_kind) {
  rig.create_topic("t");
  const Uuid id = rig.topic_id("t");
  EXPECT_EQ(grow("t", 3), 0);
  ASSERT_EQ(produce("t", 2, {"a", "b"}), 0);
  for (const bool clean : {false, true}) {
    rig.restart(clean);
    rig.on_reactor([&] {
      const auto topic = rig.broker().find("t");
      ASSERT_NE(topic, nullptr);
      EXPECT_EQ(topic->id, id);
      EXPECT_FALSE(topic->config.log.retention_suspended);
      ASSERT_EQ(topic->partitions.size(), 3U);
      EXPECT_EQ(topic->partitions[1]->high_watermark(), Offset(0));
      EXPECT_EQ(topic->partitions[2]->high_watermark(), Offset(2));
    });
  }
}

TEST_P(TopicAdmin, a_topic_that_grew_can_be_deleted_and_made_again) {
  rig.create_topic("t");
  EXPECT_EQ(grow("t", 3), 0);
  ASSERT_EQ(produce("t", 2, {"x"}), 0);
  DeleteTopicsRequest remove;
  remove.topics.emplace_back().topic_id = rig.topic_id("t");
  EXPECT_EQ(client.ask<DeleteTopicsResponse>(remove, 6).responses.at(0).error_code, 0);
  EXPECT_EQ(partitions({"t"}), Counts{});
  rig.create_topic("t");
  EXPECT_EQ(grow("t", 3), 0);
  EXPECT_EQ(produce("t", 2, {"y"}), 0);
}

// ------------------------------------------------------------------ DescribeTopicPartitions

TEST_P(TopicAdmin, topics_are_described_page_by_page) {
  rig.create_topic("b", 3);
  rig.create_topic("a", 2);
  rig.create_topic("c");
  DescribeTopicPartitionsRequest request;
  request.response_partition_limit = 2;
  std::vector<std::pair<std::string, std::int32_t>> seen;
  int pages = 0;
  for (; pages < 10; ++pages) {
    const auto page = client.ask<DescribeTopicPartitionsResponse>(request, 0);
    for (const auto& topic : page.topics) {
      EXPECT_EQ(topic.error_code, 0);
      EXPECT_EQ(topic.topic_id, rig.topic_id(*topic.name));
      EXPECT_EQ(topic.topic_authorized_operations, 0x0df8);
      for (const auto& partition : topic.partitions) {
        seen.emplace_back(*topic.name, partition.partition_index);
        EXPECT_EQ(partition.leader_id, 1);
        EXPECT_EQ(partition.replica_nodes, std::vector<std::int32_t>{1});
        EXPECT_EQ(partition.isr_nodes, std::vector<std::int32_t>{1});
        EXPECT_EQ(partition.eligible_leader_replicas, std::vector<std::int32_t>{});
        EXPECT_EQ(partition.last_known_elr, std::vector<std::int32_t>{});
        EXPECT_TRUE(partition.offline_replicas.empty());
      }
    }
    if (!page.next_cursor) break;
    request.cursor = DescribeTopicPartitionsRequest::Cursor();
    request.cursor->topic_name = page.next_cursor->topic_name;
    request.cursor->partition_index = page.next_cursor->partition_index;
  }
  EXPECT_EQ(pages, 2);
  const std::vector<std::pair<std::string, std::int32_t>> all{{"a", 0}, {"a", 1}, {"b", 0},
                                                              {"b", 1}, {"b", 2}, {"c", 0}};
  EXPECT_EQ(seen, all);
}

TEST_P(TopicAdmin, named_topics_are_described_in_order_and_unknown_ones_too) {
  rig.create_topic("b");
  DescribeTopicPartitionsRequest request;
  for (const char* name : {"none", "b", "a b", "b"}) request.topics.emplace_back().name = name;
  const auto response = client.ask<DescribeTopicPartitionsResponse>(request, 0);
  ASSERT_EQ(response.topics.size(), 3U);
  EXPECT_EQ(response.topics[0].name, "a b");
  EXPECT_EQ(response.topics[0].error_code, 17);
  EXPECT_EQ(response.topics[1].name, "b");
  EXPECT_EQ(response.topics[1].error_code, 0);
  EXPECT_EQ(response.topics[2].name, "none");
  EXPECT_EQ(response.topics[2].error_code, 3);
  EXPECT_FALSE(response.next_cursor);
}

TEST_P(TopicAdmin, a_cursor_must_be_among_the_topics_and_may_point_past_the_end) {
  rig.create_topic("a", 2);
  const auto error_with = [&](const std::string& name, std::int32_t partition) {
    DescribeTopicPartitionsRequest request;
    request.topics.emplace_back().name = "a";
    request.cursor = DescribeTopicPartitionsRequest::Cursor();
    request.cursor->topic_name = name;
    request.cursor->partition_index = partition;
    const auto response = client.ask<DescribeTopicPartitionsResponse>(request, 0);
    return response.topics.at(0);
  };
  EXPECT_EQ(error_with("b", 0).error_code, 42);
  EXPECT_EQ(error_with("a", -1).error_code, 42);
  EXPECT_EQ(error_with("a", 1).partitions.size(), 1U);
  EXPECT_EQ(error_with("a", INT32_MAX).partitions.size(), 0U);
}

TEST_P(TopicAdmin, a_page_has_2000_partitions_at_most_and_one_at_least) {
  rig.create_topic("many", 2001);
  DescribeTopicPartitionsRequest request;
  request.response_partition_limit = INT32_MAX;
  auto page = client.ask<DescribeTopicPartitionsResponse>(request, 0);
  EXPECT_EQ(page.topics.at(0).partitions.size(), 2000U);
  ASSERT_TRUE(page.next_cursor);
  EXPECT_EQ(page.next_cursor->partition_index, 2000);
  request.response_partition_limit = -5;
  page = client.ask<DescribeTopicPartitionsResponse>(request, 0);
  EXPECT_EQ(page.topics.at(0).partitions.size(), 1U);
}

// -------------------------------------------------------------------------- DescribeLogDirs

TEST_P(TopicAdmin, log_directories_tell_what_partitions_take_up) {
  rig.create_topic("t", 2);
  rig.create_topic("small");
  const std::string text(2000, 'x');
  for (int i = 0; i < 50; ++i) ASSERT_EQ(produce("t", 1, {text}), 0);
  ASSERT_EQ(produce("small", 0, {"1"}), 0);
  for (std::int16_t version = 1; version <= 5; ++version) {
    DescribeLogDirsRequest request;
    request.topics = std::nullopt;
    const auto result = log_dir(request, version);
    EXPECT_EQ(result.error_code, 0);
    std::map<std::pair<std::string, std::int32_t>, std::int64_t> sizes;
    for (const auto& topic : result.topics) {
      for (const auto& partition : topic.partitions) {
        sizes[{topic.name, partition.partition_index}] = partition.partition_size;
        EXPECT_EQ(partition.offset_lag, 0);
        EXPECT_FALSE(partition.is_future_key);
      }
    }
    ASSERT_EQ(sizes.size(), 3U);
    EXPECT_EQ((sizes[{"t", 0}]), 0);
    EXPECT_GT((sizes[{"t", 1}]), 100'000);
    EXPECT_LT((sizes[{"t", 1}]), 130'000);
    EXPECT_GT((sizes[{"small", 0}]), 0);
    EXPECT_LT((sizes[{"small", 0}]), 1000);
    if (version < 4) {
      EXPECT_EQ(result.total_bytes, -1);
    } else {
      EXPECT_GT(result.usable_bytes, 0);
      EXPECT_GE(result.total_bytes, result.usable_bytes);
    }
  }
}

TEST_P(TopicAdmin, log_directories_are_narrowed_to_what_is_asked_for) {
  rig.create_topic("t", 3);
  rig.create_topic("u");
  DescribeLogDirsRequest request;
  request.topics->push_back({"t", {2, 2, 9}});
  request.topics->push_back({"none", {0}});
  const auto result = log_dir(request);
  ASSERT_EQ(result.topics.size(), 1U);
  EXPECT_EQ(result.topics[0].name, "t");
  ASSERT_EQ(result.topics[0].partitions.size(), 1U);
  EXPECT_EQ(result.topics[0].partitions[0].partition_index, 2);
  EXPECT_TRUE(log_dir(DescribeLogDirsRequest()).topics.empty()) << "an empty list asks for none";
}

// ------------------------------------------------------------------------ DescribeProducers

TEST_P(TopicAdmin, producers_that_wrote_lately_are_described) {
  rig.create_topic("t", 2);
  ASSERT_EQ(produce("t", 0, {"plain"}), 0);
  ASSERT_EQ(produce("t", 0, {"a", "b"}, {.producer_id = 7, .epoch = 2, .sequence = 0}), 0);
  ASSERT_EQ(produce("t", 0, {"c"}, {.producer_id = 7, .epoch = 2, .sequence = 2}), 0);
  ASSERT_EQ(produce("t", 0, {"d"}, {.producer_id = 3, .epoch = 0, .sequence = 0}), 0);
  DescribeProducersRequest request;
  request.topics.push_back({"t", {0, 1, 2}});
  request.topics.push_back({"none", {0}});
  request.topics.push_back({"a b", {0}});
  const auto response = client.ask<DescribeProducersResponse>(request, 0);
  ASSERT_EQ(response.topics.size(), 3U);
  const auto& partitions = response.topics[0].partitions;
  ASSERT_EQ(partitions.size(), 3U);
  EXPECT_EQ(partitions[0].error_code, 0);
  const auto& producers = partitions[0].active_producers;
  ASSERT_EQ(producers.size(), 2U);
  EXPECT_EQ(producers[0].producer_id, 3);
  EXPECT_EQ(producers[1].producer_id, 7);
  EXPECT_EQ(producers[1].producer_epoch, 2);
  EXPECT_EQ(producers[1].last_sequence, 2);
  EXPECT_GT(producers[1].last_timestamp, 1'600'000'000'000);
  EXPECT_EQ(producers[1].coordinator_epoch, -1);
  EXPECT_EQ(producers[1].current_txn_start_offset, -1);
  EXPECT_EQ(partitions[1].error_code, 0);
  EXPECT_TRUE(partitions[1].active_producers.empty());
  EXPECT_EQ(partitions[2].error_code, 3);
  EXPECT_EQ(response.topics[1].partitions.at(0).error_code, 3);
  EXPECT_EQ(response.topics[2].partitions.at(0).error_code, 17);
}

// ---------------------------------------------------------------- elections, reassignments

TEST_P(TopicAdmin, elections_are_never_needed) {
  rig.create_topic("t");
  for (std::int16_t version = 0; version <= 2; ++version) {
    for (const std::int8_t type : {std::int8_t{0}, std::int8_t{1}}) {
      ElectLeadersRequest request;
      if (version > 0) request.election_type = type;
      request.topic_partitions->push_back({"t", {0, 5}});
      const auto response = client.ask<ElectLeadersResponse>(request, version);
      EXPECT_EQ(response.error_code, 0);
      const auto& results = response.replica_election_results.at(0).partition_result;
      ASSERT_EQ(results.size(), 2U);
      EXPECT_EQ(results[0].error_code, 84);
      EXPECT_EQ(results[1].error_code, 3);
    }
  }
  ElectLeadersRequest all;
  all.topic_partitions = std::nullopt;
  const auto response = client.ask<ElectLeadersResponse>(all, 2);
  ASSERT_EQ(response.replica_election_results.size(), 1U);
  EXPECT_TRUE(response.replica_election_results[0].partition_result.empty());
  all.election_type = 9;
  EXPECT_EQ(client.ask<ElectLeadersResponse>(all, 2).error_code, 42);
}

TEST_P(TopicAdmin, a_partition_can_only_be_assigned_to_where_it_is) {
  rig.create_topic("t");
  using Ids = std::vector<std::int32_t>;
  const auto error_of = [&](const std::string& name, const std::optional<Ids>& replicas) {
    AlterPartitionReassignmentsRequest request;
    auto& topic = request.topics.emplace_back();
    topic.name = name;
    topic.partitions.emplace_back().replicas = replicas;
    const auto response = client.ask<AlterPartitionReassignmentsResponse>(request, 1);
    EXPECT_EQ(response.error_code, 0);
    return response.responses.at(0).partitions.at(0).error_code;
  };
  EXPECT_EQ(error_of("t", Ids({1})), 0);
  EXPECT_EQ(error_of("t", Ids({2})), 39);
  EXPECT_EQ(error_of("t", Ids({1, 2})), 39);
  EXPECT_EQ(error_of("t", Ids({1, 1})), 39);
  EXPECT_EQ(error_of("t", Ids()), 39);
  EXPECT_EQ(error_of("t", std::nullopt), 85);
  EXPECT_EQ(error_of("none", Ids({1})), 3);
  const auto listed =
      client.ask<ListPartitionReassignmentsResponse>(ListPartitionReassignmentsRequest{}, 0);
  EXPECT_EQ(listed.error_code, 0);
  EXPECT_TRUE(listed.topics.empty());
}

// ------------------------------------------------------------------------- internal topics

TEST_P(TopicAdmin, internal_topics_are_not_the_clients_to_make_or_to_delete) {
  for (const char* name :
       {"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"}) {
    CreateTopicsRequest create;
    auto& topic = create.topics.emplace_back();
    topic.name = name;
    topic.num_partitions = 1;
    topic.replication_factor = 1;
    EXPECT_EQ(client.ask<CreateTopicsResponse>(create, 7).topics.at(0).error_code, 42) << name;
  }
  {
    FindCoordinatorRequest find;
    find.key = "g";
    EXPECT_EQ(client.ask<FindCoordinatorResponse>(find, 1).error_code, 0);
    EXPECT_EQ(grow("__consumer_offsets", 100), 17) << "where a group is follows from their number";
    EXPECT_EQ(partitions({"__consumer_offsets"}), (Counts{{"__consumer_offsets", 50}}));
    DeleteTopicsRequest remove;
    remove.topics.emplace_back().name = "__consumer_offsets";
    EXPECT_EQ(client.ask<DeleteTopicsResponse>(remove, 6).responses.at(0).error_code, 17);
  }
  bool made = false;
  rig.on_reactor([&] { made = rig.broker().find("__share_group_state") != nullptr; });
  EXPECT_FALSE(made);
  MetadataRequest request;
  request.topics.emplace().emplace_back().name = "__share_group_state";
  const auto unknown = client.ask<MetadataResponse>(request, 12).topics.at(0);
  EXPECT_EQ(unknown.error_code, 3);
  EXPECT_TRUE(unknown.is_internal);
}

// ----------------------------------------------------------------- creation and deletion

TEST_P(TopicAdmin, a_topic_asked_for_twice_is_not_deleted) {
  rig.create_topic("t");
  rig.create_topic("u");
  DeleteTopicsRequest request;
  request.topics.emplace_back().name = "t";
  request.topics.emplace_back().topic_id = rig.topic_id("t");
  request.topics.emplace_back().name = "u";
  request.topics.emplace_back().name = "none";
  request.topics.emplace_back().name = "none";
  const auto responses = client.ask<DeleteTopicsResponse>(request, 6).responses;
  ASSERT_EQ(responses.size(), 3U);
  EXPECT_EQ(responses[0].error_code, 42);
  EXPECT_EQ(responses[1].error_code, 0);
  EXPECT_EQ(responses[2].error_code, 42);
  EXPECT_EQ(partitions({"t", "u"}), (Counts{{"t", 1}}));
}

TEST_P(TopicAdmin, creation_answers_with_what_was_made) {
  CreateTopicsRequest request;
  auto& topic = request.topics.emplace_back();
  topic.name = "by.hand";
  topic.num_partitions = -1;
  topic.replication_factor = -1;
  for (const std::int32_t index : {2, 0, 1}) {
    auto& assignment = topic.assignments.emplace_back();
    assignment.partition_index = index;
    assignment.broker_ids = {1};
  }
  auto& config = topic.configs.emplace_back();
  config.name = "retention.ms";
  config.value = "1234567";
  const auto made = client.ask<CreateTopicsResponse>(request, 7).topics.at(0);
  EXPECT_EQ(made.error_code, 0) << made.error_message.value_or("");
  EXPECT_EQ(made.topic_id, rig.topic_id("by.hand"));
  EXPECT_EQ(made.num_partitions, 3);
  EXPECT_EQ(made.replication_factor, 1);
  ASSERT_TRUE(made.configs);
  const auto found = std::find_if(made.configs->begin(), made.configs->end(),
                                  [](const auto& each) { return each.name == "retention.ms"; });
  ASSERT_NE(found, made.configs->end());
  EXPECT_EQ(found->value, "1234567");
  EXPECT_EQ(found->config_source, 1);

  request.topics[0].name = "by_hand";
  const auto twin = client.ask<CreateTopicsResponse>(request, 7).topics.at(0);
  EXPECT_EQ(twin.error_code, 17);
  request.topics[0].name = "gap";
  request.topics[0].assignments[0].partition_index = 5;
  EXPECT_EQ(client.ask<CreateTopicsResponse>(request, 7).topics.at(0).error_code, 39);
  request.topics[0].assignments[0].partition_index = 1;
  EXPECT_EQ(client.ask<CreateTopicsResponse>(request, 7).topics.at(0).error_code, 39);
  request.topics[0].assignments[0].partition_index = 2;
  request.topics[0].assignments[0].broker_ids = {1, 7};
  EXPECT_EQ(client.ask<CreateTopicsResponse>(request, 7).topics.at(0).error_code, 39);
}

TEST_P(TopicAdmin, what_a_requests_time_does_not_reach_is_told_so_and_not_done) {
  CreateTopicsRequest create;
  DeleteTopicsRequest remove;
  Values names;
  for (int i = 0; i < 60; ++i) {
    names.push_back("t" + std::to_string(i));
    auto& topic = create.topics.emplace_back();
    topic.name = names.back();
    topic.num_partitions = 1;
    topic.replication_factor = 1;
    remove.topics.emplace_back().name = names.back();
  }
  create.timeout_ms = 1;
  const auto made = client.ask<CreateTopicsResponse>(create, 7).topics;
  Counts expected;
  for (const auto& topic : made) {
    EXPECT_TRUE(topic.error_code == 0 || topic.error_code == 7) << topic.error_code;
    if (topic.error_code == 0) expected[topic.name] = 1;
  }
  EXPECT_EQ(made.back().error_code, 7) << "60 topics in a millisecond";
  EXPECT_EQ(partitions(names), expected);

  // 0 is no time limit.
  create.timeout_ms = 0;
  for (const auto& topic : client.ask<CreateTopicsResponse>(create, 7).topics) {
    EXPECT_EQ(topic.error_code, expected.contains(topic.name) ? 36 : 0) << topic.name;
  }
  remove.timeout_ms = 1;
  std::size_t gone = 0;
  for (const auto& topic : client.ask<DeleteTopicsResponse>(remove, 6).responses) {
    EXPECT_TRUE(topic.error_code == 0 || topic.error_code == 7) << topic.error_code;
    gone += topic.error_code == 0 ? 1 : 0;
  }
  EXPECT_EQ(partitions(names).size(), names.size() - gone);
}

TEST_P(TopicAdmin, a_count_of_minus_1_means_the_brokers_default) {
  CreateTopicsRequest request;
  auto& topic = request.topics.emplace_back();
  topic.name = "t";
  topic.num_partitions = -1;
  topic.replication_factor = -1;
  const auto made = client.ask<CreateTopicsResponse>(request, 7).topics.at(0);
  EXPECT_EQ(made.error_code, 0);
  EXPECT_EQ(made.num_partitions, 1);
  EXPECT_EQ(partitions({"t"}), (Counts{{"t", 1}}));
}

// ------------------------------------------------------------------------------ ListOffsets

TEST_P(TopicAdmin, offsets_of_many_topics_are_listed_in_one_request) {
  ListOffsetsRequest request;
  for (int i = 0; i < 20; ++i) {
    const std::string name = "t" + std::to_string(i);
    rig.create_topic(name, 2);
    for (int k = 0; k < i % 4; ++k) ASSERT_EQ(produce(name, 1, {"a", "b"}), 0);
    auto& topic = request.topics.emplace_back();
    topic.name = name;
    for (const std::int32_t index : {1, 0, 2}) {
      auto& partition = topic.partitions.emplace_back();
      partition.partition_index = index;
      partition.timestamp = i % 2 == 0 ? -1 : 0;
    }
  }
  const auto response = client.ask<ListOffsetsResponse>(request, 10);
  ASSERT_EQ(response.topics.size(), 20U);
  for (int i = 0; i < 20; ++i) {
    const auto& topic = response.topics[static_cast<std::size_t>(i)];
    EXPECT_EQ(topic.name, "t" + std::to_string(i));
    ASSERT_EQ(topic.partitions.size(), 3U);
    const std::int64_t records = 2 * (i % 4);
    const std::int64_t first = records > 0 ? 0 : -1;  // of a lookup by time
    EXPECT_EQ(topic.partitions[0].offset, i % 2 == 0 ? records : first) << i;
    EXPECT_EQ(topic.partitions[1].offset, i % 2 == 0 ? 0 : -1) << i;
    EXPECT_EQ(topic.partitions[2].error_code, 3);
    EXPECT_EQ(topic.partitions[2].offset, -1);
  }
}

}  // namespace
}  // namespace polylog::server::kafka
