#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <thread>

#include "protocol/kafka/api_versions_request.h"
#include "protocol/kafka/api_versions_response.h"
#include "protocol/kafka/create_topics_request.h"
#include "protocol/kafka/create_topics_response.h"
#include "protocol/kafka/delete_topics_request.h"
#include "protocol/kafka/delete_topics_response.h"
#include "protocol/kafka/describe_cluster_request.h"
#include "protocol/kafka/describe_cluster_response.h"
#include "protocol/kafka/describe_configs_request.h"
#include "protocol/kafka/describe_configs_response.h"
#include "protocol/kafka/incremental_alter_configs_request.h"
#include "protocol/kafka/incremental_alter_configs_response.h"
#include "protocol/kafka/init_producer_id_request.h"
#include "protocol/kafka/init_producer_id_response.h"
#include "protocol/kafka/metadata_request.h"
#include "protocol/kafka/metadata_response.h"
#include "server/kafka/broker_rig.h"
#include "server/kafka/handlers.h"

// What is not produce and fetch, over a socket, in every version that is served.
namespace polylog::server::kafka {
namespace {

using namespace protocol::kafka;

std::vector<std::uint8_t> hex(std::string_view digits) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(
        static_cast<std::uint8_t>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

struct Admin : testing::Test {
  BrokerRig rig;
  WireClient client{rig.port()};
};

// BR-68.
TEST_F(Admin, an_unknown_version_of_api_versions_is_answered_in_version_0) {
  client.send_bytes(hex("0000000a0012006300000007ffff"));
  const std::optional<Slice> frame = client.receive_frame();
  ASSERT_TRUE(frame);
  // correlation 7, error 35, one entry: key 18, versions 0 to 4
  EXPECT_EQ(to_vector(frame->view()), hex("00000007"
                                          "0023"
                                          "00000001"
                                          "0012"
                                          "0000"
                                          "0004"));
  client.send_bytes(hex("0000000a0012000000000008ffff"));
  ASSERT_TRUE(client.receive_frame()) << "the connection stays open for the retry";
}

TEST_F(Admin, api_versions_lists_what_is_served_and_produce_from_0) {
  for (std::int16_t version = 0; version <= 4; ++version) {
    ApiVersionsRequest request;
    request.client_software_name = "kcat";
    request.client_software_version = "1.7.1-librdkafka";
    const auto response = client.ask<ApiVersionsResponse>(request, version);
    EXPECT_EQ(response.error_code, 0);
    ASSERT_EQ(response.api_keys.size(), apis().size());
    EXPECT_EQ(response.api_keys[0].api_key, 0);
    EXPECT_EQ(response.api_keys[0].min_version, 0);
    EXPECT_EQ(response.api_keys[0].max_version, 13);
    // The level of KIP-848 groups, and none of transactions.
    ASSERT_EQ(response.finalized_features.size(), version >= 3 ? 1U : 0U);
    ASSERT_EQ(response.supported_features.size(), version >= 4 ? 1U : 0U);
    if (version >= 3) {
      EXPECT_EQ(response.finalized_features[0].name, "group.version");
      EXPECT_EQ(response.finalized_features[0].max_version_level, 1);
    }
  }
}

TEST_F(Admin, software_names_are_checked_and_the_connection_survives) {
  ApiVersionsRequest request;
  request.client_software_version = "1";
  for (const std::string bad : {"", "-x", "x-", "a b", "a/b", "."}) {
    request.client_software_name = bad;
    EXPECT_EQ(client.ask<ApiVersionsResponse>(request, 3).error_code, 42) << bad;
  }
  request.client_software_name = "apache-kafka.java";
  EXPECT_EQ(client.ask<ApiVersionsResponse>(request, 3).error_code, 0);
}

TEST_F(Admin, unknown_apis_and_versions_and_broken_bodies_close) {
  for (const std::string& bytes :
       {std::string("0000000a7fff000000000001ffff"),          // no such API
        std::string("0000000a0003000e00000001ffff"),          // Metadata v14
        std::string("0000000a0000000200000001ffff"),          // Produce v2
        std::string("00000004000300ff"),                      // no whole header
        std::string("0000000e000300010000000100007fffffff"),  // BR-65: 2^31-1 topics
        std::string("0000000f0003000900000001ffff00ffffffff0f")}) {
    WireClient bad(rig.port());
    bad.send_bytes(hex(bytes));
    EXPECT_TRUE(bad.closed_by_peer()) << bytes;
  }
  EXPECT_EQ(client.ask<MetadataResponse>(MetadataRequest{}, 1).brokers.size(), 1U);
}

TEST_F(Admin, metadata_names_the_address_the_client_came_to) {
  rig.create_topic("a", 3);
  for (std::int16_t version = 0; version <= 13; ++version) {
    MetadataRequest request;
    request.topics.emplace();
    request.topics->emplace_back().name = "a";
    const auto response = client.ask<MetadataResponse>(request, version);
    ASSERT_EQ(response.brokers.size(), 1U);
    EXPECT_EQ(response.brokers[0].host, "127.0.0.1");
    EXPECT_EQ(response.brokers[0].port, rig.port());
    ASSERT_EQ(response.topics.size(), 1U);
    EXPECT_EQ(response.topics[0].error_code, 0);
    EXPECT_EQ(response.topics[0].partitions.size(), 3U);
    EXPECT_EQ(response.topics[0].partitions[0].leader_id, response.brokers[0].node_id);
    EXPECT_EQ(response.topics[0].topic_authorized_operations, INT32_MIN);
    EXPECT_EQ(response.topics[0].topic_id, version >= 10 ? rig.topic_id("a") : Uuid{});
  }
}

TEST_F(Admin, metadata_lists_all_for_null_and_nothing_for_an_empty_list) {
  rig.create_topic("a");
  rig.create_topic("b");
  MetadataRequest none;
  none.topics.emplace();
  EXPECT_EQ(client.ask<MetadataResponse>(none, 0).topics.size(), 2U) << "version 0: empty is all";
  EXPECT_EQ(client.ask<MetadataResponse>(none, 1).topics.size(), 0U);
  EXPECT_EQ(client.ask<MetadataResponse>(none, 13).topics.size(), 0U);
  MetadataRequest all;
  all.topics = std::nullopt;
  EXPECT_EQ(client.ask<MetadataResponse>(all, 1).topics.size(), 2U);
  EXPECT_EQ(client.ask<MetadataResponse>(all, 12).topics.size(), 2U);
}

TEST_F(Admin, metadata_creates_a_topic_when_asked_and_says_unknown_the_first_time) {
  MetadataRequest request;
  request.topics.emplace().emplace_back().name = "fresh";
  request.allow_auto_topic_creation = false;
  EXPECT_EQ(client.ask<MetadataResponse>(request, 4).topics[0].error_code, 3);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(client.ask<MetadataResponse>(request, 4).topics[0].error_code, 3);
  request.allow_auto_topic_creation = true;
  EXPECT_EQ(client.ask<MetadataResponse>(request, 4).topics[0].error_code, 3);
  std::int16_t error = 3;
  for (int i = 0; i < 500 && error != 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    error = client.ask<MetadataResponse>(request, 4).topics[0].error_code;
  }
  EXPECT_EQ(error, 0);
}

TEST_F(Admin, metadata_refuses_bad_names_and_unknown_ids) {
  MetadataRequest request;
  request.topics.emplace().emplace_back().name = "a b";
  EXPECT_EQ(client.ask<MetadataResponse>(request, 4).topics[0].error_code, 17);
  request.topics->front().name = std::string(250, 'd');
  EXPECT_EQ(client.ask<MetadataResponse>(request, 4).topics[0].error_code, 17);
  request.topics->front().name = std::nullopt;
  request.topics->front().topic_id = Uuid::random();
  const auto response = client.ask<MetadataResponse>(request, 12);
  EXPECT_EQ(response.topics[0].error_code, 100);
  EXPECT_FALSE(response.topics[0].name);
  EXPECT_EQ(client.ask<MetadataResponse>(request, 10).topics[0].error_code, 42);
}

TEST_F(Admin, advertised_listeners_are_believed) {
  const std::map<std::string, std::string> settings = {
      {"advertised.listeners", "PLAINTEXT://kafka.example:19092"}};
  BrokerRig other(settings);
  WireClient to_other(other.port());
  const auto response = to_other.ask<MetadataResponse>(MetadataRequest{}, 9);
  EXPECT_EQ(response.brokers[0].host, "kafka.example");
  EXPECT_EQ(response.brokers[0].port, 19092);
}

TEST_F(Admin, topics_are_created_and_deleted_in_every_version) {
  for (std::int16_t version = 0; version <= 7; ++version) {
    CreateTopicsRequest request;
    auto& topic = request.topics.emplace_back();
    topic.name = "v" + std::to_string(version);
    topic.num_partitions = 2;
    topic.replication_factor = 1;
    const auto response = client.ask<CreateTopicsResponse>(request, version);
    ASSERT_EQ(response.topics.size(), 1U);
    EXPECT_EQ(response.topics[0].error_code, 0) << version;
    if (version >= 5) {
      EXPECT_EQ(response.topics[0].num_partitions, 2);
      EXPECT_GT(response.topics[0].configs->size(), 10U);
    }
    EXPECT_EQ(client.ask<CreateTopicsResponse>(request, version).topics[0].error_code, 36);
  }
  for (std::int16_t version = 0; version <= 6; ++version) {
    DeleteTopicsRequest request;
    const std::string name = "v" + std::to_string(version);
    if (version < 6) request.topic_names.push_back(name);
    if (version == 6) request.topics.emplace_back().topic_id = rig.topic_id(name);
    const auto response = client.ask<DeleteTopicsResponse>(request, version);
    ASSERT_EQ(response.responses.size(), 1U);
    EXPECT_EQ(response.responses[0].error_code, 0) << version;
    EXPECT_EQ(response.responses[0].name, name);
  }
  DeleteTopicsRequest request;
  request.topics.emplace_back().name = "v0";
  request.topics.emplace_back().topic_id = Uuid::random();
  request.topics.emplace_back();
  const auto response = client.ask<DeleteTopicsResponse>(request, 6);
  EXPECT_EQ(response.responses[0].error_code, 3);
  EXPECT_EQ(response.responses[1].error_code, 100);
  EXPECT_EQ(response.responses[2].error_code, 42);
}

TEST_F(Admin, what_cannot_be_created_is_refused_with_the_code_that_says_why) {
  const auto error_of = [&](const CreateTopicsRequest::CreatableTopic& topic) {
    CreateTopicsRequest request;
    request.topics.push_back(topic);
    return client.ask<CreateTopicsResponse>(request, 7).topics.at(0).error_code;
  };
  CreateTopicsRequest::CreatableTopic topic;
  topic.name = "t";
  topic.num_partitions = 1;
  topic.replication_factor = 3;
  EXPECT_EQ(error_of(topic), 38);
  topic.replication_factor = 1;
  topic.num_partitions = 0;
  EXPECT_EQ(error_of(topic), 37);
  topic.num_partitions = 1;
  topic.configs.emplace_back().name = "no.such.config";
  EXPECT_EQ(error_of(topic), 40);
  topic.configs[0].value = std::nullopt;
  EXPECT_EQ(error_of(topic), 40);
  topic.configs.clear();
  topic.name = "a/b";
  EXPECT_EQ(error_of(topic), 17);
  topic.name = std::string(250, 'x');
  EXPECT_EQ(error_of(topic), 17);
  topic.name = "t";
  topic.assignments.emplace_back().broker_ids = {1};
  EXPECT_EQ(error_of(topic), 42) << "assignment and count";
  topic.num_partitions = -1;
  topic.replication_factor = -1;
  topic.assignments[0].broker_ids = {2};
  EXPECT_EQ(error_of(topic), 39);
  topic.assignments[0].broker_ids = {1};
  EXPECT_EQ(error_of(topic), 0);
  CreateTopicsRequest twice;
  for (int i = 0; i < 2; ++i) {
    auto& entry = twice.topics.emplace_back();
    entry.name = "u";
    entry.num_partitions = 1;
    entry.replication_factor = 1;
  }
  const auto response = client.ask<CreateTopicsResponse>(twice, 7);
  ASSERT_EQ(response.topics.size(), 1U);
  EXPECT_EQ(response.topics[0].error_code, 42);
}

TEST_F(Admin, validate_only_creates_nothing) {
  CreateTopicsRequest request;
  request.validate_only = true;
  auto& topic = request.topics.emplace_back();
  topic.name = "t";
  topic.num_partitions = -1;
  topic.replication_factor = -1;
  EXPECT_EQ(client.ask<CreateTopicsResponse>(request, 7).topics[0].error_code, 0);
  EXPECT_TRUE(rig.topic_id("t").is_zero());
}

TEST_F(Admin, cluster_is_described) {
  for (std::int16_t version = 0; version <= 2; ++version) {
    const auto response = client.ask<DescribeClusterResponse>(DescribeClusterRequest{}, version);
    EXPECT_EQ(response.error_code, 0);
    ASSERT_EQ(response.brokers.size(), 1U);
    EXPECT_EQ(response.brokers[0].port, rig.port());
    EXPECT_EQ(response.cluster_id.size(), 22U);
  }
  DescribeClusterRequest controllers;
  controllers.endpoint_type = 2;
  EXPECT_EQ(client.ask<DescribeClusterResponse>(controllers, 1).error_code, 114);
}

TEST_F(Admin, configs_are_described_and_altered) {
  rig.create_topic("t", 1, {{"retention.ms", "1000"}});
  const auto value_of = [&](const std::string& key) {
    DescribeConfigsRequest request;
    auto& resource = request.resources.emplace_back();
    resource.resource_type = 2;
    resource.resource_name = "t";
    resource.configuration_keys = std::vector<std::string>{key};
    request.include_synonyms = true;
    const auto response = client.ask<DescribeConfigsResponse>(request, 4);
    EXPECT_EQ(response.results.at(0).error_code, 0);
    EXPECT_EQ(response.results.at(0).configs.size(), 1U);
    return response.results.at(0).configs.at(0);
  };
  const auto alter = [&](const std::string& key, std::int8_t operation,
                         std::optional<std::string> value, bool validate_only = false) {
    IncrementalAlterConfigsRequest request;
    request.validate_only = validate_only;
    auto& resource = request.resources.emplace_back();
    resource.resource_type = 2;
    resource.resource_name = "t";
    auto& config = resource.configs.emplace_back();
    config.name = key;
    config.config_operation = operation;
    config.value = std::move(value);
    return client.ask<IncrementalAlterConfigsResponse>(request, 1).responses.at(0).error_code;
  };
  EXPECT_EQ(value_of("retention.ms").value, "1000");
  EXPECT_EQ(value_of("retention.ms").config_source, 1);
  EXPECT_EQ(alter("retention.ms", 0, "2000", true), 0);
  EXPECT_EQ(value_of("retention.ms").value, "1000");
  EXPECT_EQ(alter("retention.ms", 0, "2000"), 0);
  EXPECT_EQ(value_of("retention.ms").value, "2000");
  EXPECT_EQ(alter("retention.ms", 1, std::nullopt), 0);
  EXPECT_EQ(value_of("retention.ms").value, "604800000");
  EXPECT_EQ(value_of("retention.ms").config_source, 5);
  EXPECT_EQ(alter("retention.ms", 0, "soon"), 40);
  EXPECT_EQ(alter("retention.ms", 2, "1"), 40) << "no list";
  EXPECT_EQ(alter("no.such", 0, "1"), 40);
  EXPECT_EQ(alter("cleanup.policy", 2, "compact"), 0);
  EXPECT_EQ(value_of("cleanup.policy").value, "delete,compact");
  EXPECT_EQ(alter("cleanup.policy", 3, "compact"), 0);
  EXPECT_EQ(value_of("cleanup.policy").value, "delete");
}

TEST_F(Admin, producer_ids_are_given_out_once) {
  std::set<std::int64_t> ids;
  for (std::int16_t version = 0; version <= 5; ++version) {
    InitProducerIdRequest request;
    request.transactional_id = std::nullopt;
    const auto response = client.ask<InitProducerIdResponse>(request, version);
    EXPECT_EQ(response.error_code, 0);
    EXPECT_EQ(response.producer_epoch, 0);
    EXPECT_TRUE(ids.insert(response.producer_id).second);
  }
  InitProducerIdRequest transactional;
  transactional.transactional_id = "tx";
  EXPECT_EQ(client.ask<InitProducerIdResponse>(transactional, 4).error_code, 35);
}

}  // namespace
}  // namespace polylog::server::kafka
