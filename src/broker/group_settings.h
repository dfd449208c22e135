#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "broker/topic_config.h"

// The settings of consumer groups and their committed offsets, under Kafka's names (`group.*`,
// `offset.*`, `offsets.*`). Values only.
namespace polylog::broker {

enum class GroupMigration { disabled, upgrade, downgrade, bidirectional };

struct GroupSettings {
  // Classic groups.
  std::int64_t session_timeout_min_ms = 6000;
  std::int64_t session_timeout_max_ms = 1'800'000;
  std::int64_t initial_rebalance_delay_ms = 3000;
  std::int64_t members_max = INT32_MAX;

  // Committed offsets and their topic.
  std::int64_t offset_metadata_bytes_max = 4096;
  std::int64_t retention_ms = 10080LL * 60'000;
  std::int64_t retention_check_interval_ms = 600'000;
  std::int32_t offsets_partitions = 50;
  std::int64_t offsets_segment_bytes = 104'857'600;

  // KIP-848 groups.
  bool consumer_protocol = true;  // group.coordinator.rebalance.protocols names "consumer"
  std::int64_t consumer_session_timeout_ms = 45'000;
  std::int64_t consumer_session_timeout_min_ms = 45'000;
  std::int64_t consumer_session_timeout_max_ms = 60'000;
  std::int64_t consumer_heartbeat_interval_ms = 5000;
  std::int64_t consumer_heartbeat_interval_min_ms = 5000;
  std::int64_t consumer_heartbeat_interval_max_ms = 15'000;
  std::int64_t consumer_members_max = INT32_MAX;
  std::int64_t consumer_assignment_interval_ms = 1000;
  std::int64_t consumer_regex_refresh_interval_ms = 600'000;
  std::vector<std::string> consumer_assignors = {"uniform", "range"};  // the first is the default
  GroupMigration consumer_migration = GroupMigration::bidirectional;
};

struct GroupSettingKey {
  std::string_view name;
  std::string_view default_value;
  ConfigKey::Type type;
  std::int64_t min;
  std::int64_t max;
  void (*set)(GroupSettings&, std::int64_t);  // null: read elsewhere, or no effect
  std::string_view help;
  std::string_view no_effect;
};
std::span<const GroupSettingKey> group_setting_keys();  // sorted by name
const GroupSettingKey* find_group_setting(std::string_view name);

// What those of `values` that are group keys come to; others are passed over. invalid: a value
// outside its range, or two that contradict each other.
Result<GroupSettings> group_settings(const std::map<std::string, std::string>& values);

}  // namespace polylog::broker
