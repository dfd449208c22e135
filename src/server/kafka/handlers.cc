#include "server/kafka/handlers.h"

namespace polylog::server::kafka {
namespace {

using protocol::kafka::ApiKey;

// In order of their keys, as Kafka lists them.
constexpr Api served[] = {
    {ApiKey::produce, 3, 13, 0, produce},
    {ApiKey::fetch, 4, 18, 4, fetch},
    {ApiKey::list_offsets, 1, 11, 1, list_offsets},
    {ApiKey::metadata, 0, 13, 0, metadata},
    {ApiKey::offset_commit, 2, 10, 2, offset_commit},
    {ApiKey::offset_fetch, 1, 10, 1, offset_fetch},
    {ApiKey::find_coordinator, 0, 6, 0, find_coordinator},
    {ApiKey::join_group, 0, 9, 0, join_group},
    {ApiKey::heartbeat, 0, 4, 0, heartbeat},
    {ApiKey::leave_group, 0, 5, 0, leave_group},
    {ApiKey::sync_group, 0, 5, 0, sync_group},
    {ApiKey::describe_groups, 0, 6, 0, describe_groups},
    {ApiKey::list_groups, 0, 5, 0, list_groups},
    {ApiKey::api_versions, 0, 4, 0, api_versions},
    {ApiKey::create_topics, 0, 7, 0, create_topics},
    {ApiKey::delete_topics, 0, 6, 0, delete_topics},
    {ApiKey::delete_records, 0, 2, 0, delete_records},
    {ApiKey::init_producer_id, 0, 5, 0, init_producer_id},
    {ApiKey::offset_for_leader_epoch, 2, 4, 2, offset_for_leader_epoch},
    {ApiKey::describe_configs, 1, 4, 1, describe_configs},
    {ApiKey::alter_configs, 0, 2, 0, alter_configs},
    {ApiKey::describe_log_dirs, 1, 5, 1, describe_log_dirs},
    {ApiKey::create_partitions, 0, 3, 0, create_partitions},
    {ApiKey::delete_groups, 0, 2, 0, delete_groups},
    {ApiKey::elect_leaders, 0, 2, 0, elect_leaders},
    {ApiKey::incremental_alter_configs, 0, 1, 0, incremental_alter_configs},
    {ApiKey::alter_partition_reassignments, 0, 1, 0, alter_partition_reassignments},
    {ApiKey::list_partition_reassignments, 0, 0, 0, list_partition_reassignments},
    {ApiKey::offset_delete, 0, 0, 0, offset_delete},
    {ApiKey::describe_client_quotas, 0, 1, 0, describe_client_quotas},
    {ApiKey::alter_client_quotas, 0, 1, 0, alter_client_quotas},
    {ApiKey::describe_cluster, 0, 2, 0, describe_cluster},
    {ApiKey::describe_producers, 0, 0, 0, describe_producers},
    {ApiKey::consumer_group_heartbeat, 0, 1, 0, consumer_group_heartbeat},
    {ApiKey::consumer_group_describe, 0, 1, 0, consumer_group_describe},
    {ApiKey::list_config_resources, 0, 1, 0, list_config_resources},
    {ApiKey::describe_topic_partitions, 0, 0, 0, describe_topic_partitions},
};

}  // namespace

std::span<const Api> apis() { return served; }

const Api* find_api(std::int16_t key) {
  for (const Api& api : served) {
    if (static_cast<std::int16_t>(api.key) == key) return &api;
  }
  return nullptr;
}

}  // namespace polylog::server::kafka
