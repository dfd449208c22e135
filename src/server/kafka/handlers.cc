#include "server/kafka/handlers.h"

#include <array>

namespace polylog::server::kafka {
namespace {

using protocol::kafka::ApiKey;

// In order of their keys, as Kafka lists them.
constexpr std::array<Api, 14> served{{
    {ApiKey::produce, 3, 13, 0, produce},
    {ApiKey::fetch, 4, 18, 4, fetch},
    {ApiKey::list_offsets, 1, 11, 1, list_offsets},
    {ApiKey::metadata, 0, 13, 0, metadata},
    {ApiKey::api_versions, 0, 4, 0, api_versions},
    {ApiKey::create_topics, 0, 7, 0, create_topics},
    {ApiKey::delete_topics, 0, 6, 0, delete_topics},
    {ApiKey::delete_records, 0, 2, 0, delete_records},
    {ApiKey::find_coordinator, 0, 6, 0, find_coordinator},
    {ApiKey::init_producer_id, 0, 5, 0, init_producer_id},
    {ApiKey::offset_for_leader_epoch, 2, 4, 2, offset_for_leader_epoch},
    {ApiKey::describe_configs, 1, 4, 1, describe_configs},
    {ApiKey::incremental_alter_configs, 0, 1, 0, incremental_alter_configs},
    {ApiKey::describe_cluster, 0, 2, 0, describe_cluster},
}};

}  // namespace

std::span<const Api> apis() { return served; }

const Api* find_api(std::int16_t key) {
  for (const Api& api : served) {
    if (static_cast<std::int16_t>(api.key) == key) return &api;
  }
  return nullptr;
}

}  // namespace polylog::server::kafka
