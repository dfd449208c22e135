#include <gtest/gtest.h>

#include <map>

#include "protocol/kafka/alter_client_quotas_request.h"
#include "protocol/kafka/alter_client_quotas_response.h"
#include "protocol/kafka/alter_configs_request.h"
#include "protocol/kafka/alter_configs_response.h"
#include "protocol/kafka/alter_partition_reassignments_request.h"
#include "protocol/kafka/alter_partition_reassignments_response.h"
#include "protocol/kafka/api_versions_request.h"
#include "protocol/kafka/api_versions_response.h"
#include "protocol/kafka/consumer_group_describe_request.h"
#include "protocol/kafka/consumer_group_describe_response.h"
#include "protocol/kafka/consumer_group_heartbeat_request.h"
#include "protocol/kafka/consumer_group_heartbeat_response.h"
#include "protocol/kafka/create_partitions_request.h"
#include "protocol/kafka/create_partitions_response.h"
#include "protocol/kafka/create_topics_request.h"
#include "protocol/kafka/create_topics_response.h"
#include "protocol/kafka/delete_groups_request.h"
#include "protocol/kafka/delete_groups_response.h"
#include "protocol/kafka/delete_records_request.h"
#include "protocol/kafka/delete_records_response.h"
#include "protocol/kafka/delete_topics_request.h"
#include "protocol/kafka/delete_topics_response.h"
#include "protocol/kafka/describe_client_quotas_request.h"
#include "protocol/kafka/describe_client_quotas_response.h"
#include "protocol/kafka/describe_cluster_request.h"
#include "protocol/kafka/describe_cluster_response.h"
#include "protocol/kafka/describe_configs_request.h"
#include "protocol/kafka/describe_configs_response.h"
#include "protocol/kafka/describe_groups_request.h"
#include "protocol/kafka/describe_groups_response.h"
#include "protocol/kafka/describe_log_dirs_request.h"
#include "protocol/kafka/describe_log_dirs_response.h"
#include "protocol/kafka/describe_producers_request.h"
#include "protocol/kafka/describe_producers_response.h"
#include "protocol/kafka/describe_topic_partitions_request.h"
#include "protocol/kafka/describe_topic_partitions_response.h"
#include "protocol/kafka/elect_leaders_request.h"
#include "protocol/kafka/elect_leaders_response.h"
#include "protocol/kafka/fetch_request.h"
#include "protocol/kafka/fetch_response.h"
#include "protocol/kafka/find_coordinator_request.h"
#include "protocol/kafka/find_coordinator_response.h"
#include "protocol/kafka/heartbeat_request.h"
#include "protocol/kafka/heartbeat_response.h"
#include "protocol/kafka/incremental_alter_configs_request.h"
#include "protocol/kafka/incremental_alter_configs_response.h"
#include "protocol/kafka/init_producer_id_request.h"
#include "protocol/kafka/init_producer_id_response.h"
#include "protocol/kafka/join_group_request.h"
#include "protocol/kafka/join_group_response.h"
#include "protocol/kafka/leave_group_request.h"
#include "protocol/kafka/leave_group_response.h"
#include "protocol/kafka/list_config_resources_request.h"
#include "protocol/kafka/list_config_resources_response.h"
#include "protocol/kafka/list_groups_request.h"
#include "protocol/kafka/list_groups_response.h"
#include "protocol/kafka/list_offsets_request.h"
#include "protocol/kafka/list_offsets_response.h"
#include "protocol/kafka/list_partition_reassignments_request.h"
#include "protocol/kafka/list_partition_reassignments_response.h"
#include "protocol/kafka/metadata_request.h"
#include "protocol/kafka/metadata_response.h"
#include "protocol/kafka/offset_commit_request.h"
#include "protocol/kafka/offset_commit_response.h"
#include "protocol/kafka/offset_delete_request.h"
#include "protocol/kafka/offset_delete_response.h"
#include "protocol/kafka/offset_fetch_request.h"
#include "protocol/kafka/offset_fetch_response.h"
#include "protocol/kafka/offset_for_leader_epoch_request.h"
#include "protocol/kafka/offset_for_leader_epoch_response.h"
#include "protocol/kafka/produce_request.h"
#include "protocol/kafka/produce_response.h"
#include "protocol/kafka/sync_group_request.h"
#include "protocol/kafka/sync_group_response.h"
#include "server/kafka/broker_rig.h"
#include "server/kafka/handlers.h"

// Every version of every API that is served: a small valid request gets an answer that the
// published schema decodes, and encodes to the same bytes again, so that none is left over.
namespace polylog::server::kafka {
namespace {

using namespace protocol::kafka;

struct Scene {
  BrokerRig rig;
  Uuid topic;  // of "t", which has one partition with a record
  std::int16_t version = 0;
};

template <typename Request, typename Response>
void exchange(Scene& scene, const Request& request) {
  WireClient client(scene.rig.port());
  client.send(request, scene.version);
  const std::optional<Slice> frame = client.receive_frame();
  ASSERT_TRUE(frame) << "closed or silent";
  const auto header = ResponseHeader::decode(*frame, Response::api_key, scene.version);
  ASSERT_TRUE(header) << header.error().to_string();
  EXPECT_EQ(header->correlation_id, 1);
  const Slice body = header->body(*frame);
  const Result<Response> response = Response::decode(body, scene.version);
  ASSERT_TRUE(response) << response.error().to_string();
  ByteWriter again;
  const Result<void> encoded = response->encode(again, scene.version);
  ASSERT_TRUE(encoded) << encoded.error().to_string();
  EXPECT_EQ(to_vector(again.take().flatten()), to_vector(body.view()));
}

// What a request says beyond its defaults; the empty one is sent too.
void fill(const Scene& scene, ProduceRequest& request) {
  request.acks = 1;
  request.timeout_ms = 1000;
  auto& topic = request.topic_data.emplace_back();
  topic.name = "t";
  topic.topic_id = scene.topic;
  auto& partition = topic.partition_data.emplace_back();
  partition.records = batch_of(std::vector<std::string>{"v"});
}
void fill(const Scene& scene, FetchRequest& request) {
  auto& topic = request.topics.emplace_back();
  topic.topic = "t";
  topic.topic_id = scene.topic;
  topic.partitions.emplace_back().partition_max_bytes = 1 << 20;
}
void fill(const Scene&, ListOffsetsRequest& request) {
  for (const char* name : {"t", "none"}) {
    auto& topic = request.topics.emplace_back();
    topic.name = name;
    topic.partitions.emplace_back().timestamp = -1;
  }
}
void fill(const Scene&, MetadataRequest& request) {
  request.topics.emplace();
  request.topics->emplace_back().name = "t";
  request.topics->emplace_back().name = "a b";
}
void fill(const Scene&, ApiVersionsRequest& request) {
  request.client_software_name = "sweep";
  request.client_software_version = "1";
}
void fill(const Scene& scene, CreateTopicsRequest& request) {
  auto& topic = request.topics.emplace_back();
  topic.name = "made" + std::to_string(scene.version);
  topic.num_partitions = 1;
  topic.replication_factor = 1;
}
void fill(const Scene& scene, DeleteTopicsRequest& request) {
  const std::string name = "made" + std::to_string(scene.version);
  if (scene.version >= 6) request.topics.emplace_back().name = name;
  if (scene.version < 6) request.topic_names.push_back(name);
}
void fill(const Scene&, DeleteRecordsRequest& request) {
  auto& topic = request.topics.emplace_back();
  topic.name = "t";
  topic.partitions.emplace_back();
}
void fill(const Scene& scene, FindCoordinatorRequest& request) {
  if (scene.version >= 4) request.coordinator_keys.emplace_back("g");
  if (scene.version < 4) request.key = "g";
}
void fill(const Scene&, InitProducerIdRequest& request) { request.transactional_id = std::nullopt; }
void fill(const Scene&, OffsetForLeaderEpochRequest& request) {
  auto& topic = request.topics.emplace_back();
  topic.topic = "t";
  topic.partitions.emplace_back();
}
template <typename Request>
void fill_resource(Request& request) {
  auto& resource = request.resources.emplace_back();
  resource.resource_type = 2;
  resource.resource_name = "t";
}
void fill(const Scene&, DescribeConfigsRequest& request) {
  fill_resource(request);
  request.include_synonyms = true;
}
void fill(const Scene&, AlterConfigsRequest& request) { fill_resource(request); }
void fill(const Scene&, IncrementalAlterConfigsRequest& request) { fill_resource(request); }
void fill(const Scene&, DescribeLogDirsRequest& request) { request.topics = std::nullopt; }
void fill(const Scene&, CreatePartitionsRequest& request) {
  request.validate_only = true;
  auto& topic = request.topics.emplace_back();
  topic.name = "t";
  topic.count = 2;
  topic.assignments = std::nullopt;
}
void fill(const Scene&, ElectLeadersRequest& request) {
  request.topic_partitions.emplace().push_back({"t", {0, 1}});
}
void fill(const Scene&, AlterPartitionReassignmentsRequest& request) {
  auto& topic = request.topics.emplace_back();
  topic.name = "t";
  topic.partitions.emplace_back().replicas = std::vector<std::int32_t>{1};
}
void fill(const Scene&, ListPartitionReassignmentsRequest& request) {
  request.topics.emplace().push_back({"t", {0}});
}
void fill(const Scene&, DescribeClusterRequest& request) {
  request.include_cluster_authorized_operations = true;
}
void fill(const Scene&, DescribeProducersRequest& request) {
  request.topics.push_back({"t", {0, 1}});
}
void fill(const Scene&, DescribeTopicPartitionsRequest& request) {
  request.topics.emplace_back().name = "t";
}
void fill(const Scene&, JoinGroupRequest& request) {
  request.group_id = "g";
  request.member_id = "nobody";
  request.session_timeout_ms = 10'000;
  request.protocol_type = "consumer";
  request.protocols.emplace_back().name = "range";
}
void fill(const Scene&, SyncGroupRequest& request) {
  request.group_id = "g";
  request.member_id = "nobody";
}
void fill(const Scene&, HeartbeatRequest& request) {
  request.group_id = "g";
  request.member_id = "nobody";
}
void fill(const Scene& scene, LeaveGroupRequest& request) {
  request.group_id = "g";
  if (scene.version >= 3) request.members.emplace_back().member_id = "nobody";
  if (scene.version < 3) request.member_id = "nobody";
}
void fill(const Scene& scene, OffsetCommitRequest& request) {
  request.group_id = "g";
  auto& topic = request.topics.emplace_back();
  topic.name = "t";
  topic.topic_id = scene.topic;
  topic.partitions.emplace_back();
}
void fill(const Scene& scene, OffsetFetchRequest& request) {
  if (scene.version >= 8) {
    auto& group = request.groups.emplace_back();
    group.group_id = "g";
    auto& topic = group.topics->emplace_back();
    topic.name = "t";
    topic.topic_id = scene.topic;
    topic.partition_indexes = {0};
  } else {
    request.group_id = "g";
    auto& topic = request.topics->emplace_back();
    topic.name = "t";
    topic.partition_indexes = {0};
  }
}
void fill(const Scene&, OffsetDeleteRequest& request) {
  request.group_id = "g";
  auto& topic = request.topics.emplace_back();
  topic.name = "t";
  topic.partitions.emplace_back();
}
void fill(const Scene&, DescribeGroupsRequest& request) { request.groups = {"g", "none"}; }
void fill(const Scene&, ListGroupsRequest&) {}
void fill(const Scene&, DeleteGroupsRequest& request) { request.groups_names = {"none"}; }
void fill(const Scene&, ConsumerGroupHeartbeatRequest& request) {
  request.group_id = "next";
  request.member_id = "nobody";
  request.member_epoch = 7;
}
void fill(const Scene&, ConsumerGroupDescribeRequest& request) { request.group_ids = {"none"}; }
void fill(const Scene&, DescribeClientQuotasRequest& request) {
  request.components.emplace_back().entity_type = "client-id";
}
void fill(const Scene&, AlterClientQuotasRequest& request) {
  request.validate_only = true;
  auto& entry = request.entries.emplace_back();
  entry.entity.push_back({"client-id", "c"});
  entry.ops.push_back({"producer_byte_rate", 1e6, false});
}
void fill(const Scene&, ListConfigResourcesRequest&) {}

template <typename Request, typename Response>
void both(Scene& scene) {
  static_assert(Request::api_key == Response::api_key);
  Request request;
  {
    SCOPED_TRACE("empty");
    exchange<Request, Response>(scene, request);
  }
  SCOPED_TRACE("filled");
  fill(scene, request);
  exchange<Request, Response>(scene, request);
}

// Produce without acks is never answered: its smallest request is the filled one.
template <>
void both<ProduceRequest, ProduceResponse>(Scene& scene) {
  ProduceRequest request;
  fill(scene, request);
  exchange<ProduceRequest, ProduceResponse>(scene, request);
}

using Exchanges = std::map<std::int16_t, void (*)(Scene&)>;
template <typename Request, typename Response>
Exchanges::value_type of() {
  return {Request::api_key, &both<Request, Response>};
}

// One line per API. What is served and has none here fails the test.
const Exchanges& exchanges() {
  static const Exchanges all{
      of<ProduceRequest, ProduceResponse>(),
      of<FetchRequest, FetchResponse>(),
      of<ListOffsetsRequest, ListOffsetsResponse>(),
      of<MetadataRequest, MetadataResponse>(),
      of<OffsetCommitRequest, OffsetCommitResponse>(),
      of<OffsetFetchRequest, OffsetFetchResponse>(),
      of<FindCoordinatorRequest, FindCoordinatorResponse>(),
      of<JoinGroupRequest, JoinGroupResponse>(),
      of<HeartbeatRequest, HeartbeatResponse>(),
      of<LeaveGroupRequest, LeaveGroupResponse>(),
      of<SyncGroupRequest, SyncGroupResponse>(),
      of<DescribeGroupsRequest, DescribeGroupsResponse>(),
      of<ListGroupsRequest, ListGroupsResponse>(),
      of<ApiVersionsRequest, ApiVersionsResponse>(),
      of<CreateTopicsRequest, CreateTopicsResponse>(),
      of<DeleteTopicsRequest, DeleteTopicsResponse>(),
      of<DeleteRecordsRequest, DeleteRecordsResponse>(),
      of<InitProducerIdRequest, InitProducerIdResponse>(),
      of<OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse>(),
      of<DescribeConfigsRequest, DescribeConfigsResponse>(),
      of<AlterConfigsRequest, AlterConfigsResponse>(),
      of<DescribeLogDirsRequest, DescribeLogDirsResponse>(),
      of<CreatePartitionsRequest, CreatePartitionsResponse>(),
      of<DeleteGroupsRequest, DeleteGroupsResponse>(),
      of<ElectLeadersRequest, ElectLeadersResponse>(),
      of<IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse>(),
      of<AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse>(),
      of<ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse>(),
      of<OffsetDeleteRequest, OffsetDeleteResponse>(),
      of<DescribeClientQuotasRequest, DescribeClientQuotasResponse>(),
      of<AlterClientQuotasRequest, AlterClientQuotasResponse>(),
      of<DescribeClusterRequest, DescribeClusterResponse>(),
      of<DescribeProducersRequest, DescribeProducersResponse>(),
      of<ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse>(),
      of<ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse>(),
      of<ListConfigResourcesRequest, ListConfigResourcesResponse>(),
      of<DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse>(),
  };
  return all;
}

TEST(EveryVersion, is_answered_to_the_last_byte_and_no_further) {
  Scene scene;
  scene.rig.create_topic("t");
  scene.topic = scene.rig.topic_id("t");
  std::int16_t before = -1;
  for (const Api& api : apis()) {
    const auto key = static_cast<std::int16_t>(api.key);
    EXPECT_LT(before, key) << "in order of their keys, each once";
    before = key;
    const auto found = exchanges().find(key);
    ASSERT_NE(found, exchanges().end()) << "no request here for " << name(api.key);
    for (std::int16_t version = api.first; version <= api.last; ++version) {
      SCOPED_TRACE(std::string(name(api.key)) + " version " + std::to_string(version));
      scene.version = version;
      found->second(scene);
    }
  }
}

}  // namespace
}  // namespace polylog::server::kafka
