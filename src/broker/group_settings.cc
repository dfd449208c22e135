#include "broker/group_settings.h"

#include <algorithm>
#include <iterator>
#include <type_traits>
#include <utility>

#include "broker/config_value.h"

namespace polylog::broker {
namespace {

using Type = ConfigKey::Type;

constexpr std::int64_t int_max = INT32_MAX;
constexpr std::int64_t minute_ms = 60'000;
constexpr std::string_view one_node = "there is one node, and one replica of everything";
constexpr std::string_view on_reactor = "groups live on the thread that serves connections";

// Puts a checked number into a field of any integral type.
template <auto field>
void put(GroupSettings& settings, std::int64_t value) {
  auto& place = settings.*field;
  place = static_cast<std::remove_reference_t<decltype(place)>>(value);
}

void put_retention(GroupSettings& settings, std::int64_t minutes) {
  settings.retention_ms = minutes * minute_ms;
}

constexpr GroupSettingKey keys[] = {
    {"group.consumer.assignment.interval.ms", "1000", Type::integer, 0, 15000,
     put<&GroupSettings::consumer_assignment_interval_ms>,
     "Least time between two assignments of a KIP-848 group", ""},
    {"group.consumer.assignors", "uniform,range", Type::list, 0, 0, nullptr,
     "Assignors that KIP-848 groups can choose from: uniform, range; the first is the default", ""},
    {"group.consumer.heartbeat.interval.ms", "5000", Type::integer, 1, int_max,
     put<&GroupSettings::consumer_heartbeat_interval_ms>,
     "How often members of KIP-848 groups are told to send a heartbeat", ""},
    {"group.consumer.max.heartbeat.interval.ms", "15000", Type::integer, 1, int_max,
     put<&GroupSettings::consumer_heartbeat_interval_max_ms>,
     "Most that group.consumer.heartbeat.interval.ms may be", ""},
    {"group.consumer.max.session.timeout.ms", "60000", Type::integer, 1, int_max,
     put<&GroupSettings::consumer_session_timeout_max_ms>,
     "Most that group.consumer.session.timeout.ms may be", ""},
    {"group.consumer.max.size", "2147483647", Type::integer, 1, int_max,
     put<&GroupSettings::consumer_members_max>, "Members of a KIP-848 group at most", ""},
    {"group.consumer.migration.policy", "bidirectional", Type::string, 0, 0, nullptr,
     "Whether a group changes its protocol while members of both roll: disabled, upgrade, "
     "downgrade, bidirectional",
     ""},
    {"group.consumer.min.heartbeat.interval.ms", "5000", Type::integer, 1, int_max,
     put<&GroupSettings::consumer_heartbeat_interval_min_ms>,
     "Least that group.consumer.heartbeat.interval.ms may be", ""},
    {"group.consumer.min.session.timeout.ms", "45000", Type::integer, 1, int_max,
     put<&GroupSettings::consumer_session_timeout_min_ms>,
     "Least that group.consumer.session.timeout.ms may be", ""},
    {"group.consumer.regex.refresh.interval.ms", "600000", Type::integer, 10000, int_max,
     put<&GroupSettings::consumer_regex_refresh_interval_ms>,
     "How often subscriptions by regular expression are resolved anew", ""},
    {"group.consumer.session.timeout.ms", "45000", Type::integer, 1, int_max,
     put<&GroupSettings::consumer_session_timeout_ms>,
     "A member of a KIP-848 group silent for this long is put out", ""},
    {"group.coordinator.append.linger.ms", "5", Type::integer, -1, int_max, nullptr,
     "How long writes of group state wait for each other",
     "writes of one turn of the reactor go together, and none waits longer"},
    {"group.coordinator.rebalance.protocols", "classic,consumer", Type::list, 0, 0, nullptr,
     "Group protocols that are served: classic, consumer; classic can't be left out", ""},
    {"group.coordinator.threads", "4", Type::integer, 1, int_max, nullptr, "Threads for groups",
     on_reactor},
    {"group.initial.rebalance.delay.ms", "3000", Type::integer, 0, int_max,
     put<&GroupSettings::initial_rebalance_delay_ms>,
     "How long the first rebalance of an empty group waits for more members", ""},
    {"group.max.session.timeout.ms", "1800000", Type::integer, 1, int_max,
     put<&GroupSettings::session_timeout_max_ms>, "Longest session a member can ask for", ""},
    {"group.max.size", "2147483647", Type::integer, 1, int_max, put<&GroupSettings::members_max>,
     "Members of a classic group at most", ""},
    {"group.min.session.timeout.ms", "6000", Type::integer, 1, int_max,
     put<&GroupSettings::session_timeout_min_ms>, "Shortest session a member can ask for", ""},
    {"offset.metadata.max.bytes", "4096", Type::integer, 0, 32767,
     put<&GroupSettings::offset_metadata_bytes_max>, "Longest text committed with an offset", ""},
    {"offsets.commit.timeout.ms", "5000", Type::integer, 1, int_max, nullptr,
     "How long a commit waits for replicas", one_node},
    {"offsets.load.buffer.size", "5242880", Type::integer, 1, int_max, nullptr,
     "Bytes read at a time when groups are loaded", "reads have a size of their own"},
    {"offsets.retention.check.interval.ms", "600000", Type::long_integer, 1, INT64_MAX,
     put<&GroupSettings::retention_check_interval_ms>,
     "How often groups are looked through for offsets past retention", ""},
    {"offsets.retention.minutes", "10080", Type::integer, 1, int_max, put_retention,
     "Committed offsets go this long after their group became empty; those of a consumer without "
     "a group, this long after their commit",
     ""},
    {"offsets.topic.compression.codec", "0", Type::integer, 0, 4, nullptr,
     "Codec of the records in __consumer_offsets", "they are written uncompressed"},
    {"offsets.topic.num.partitions", "50", Type::integer, 1, 10000,
     put<&GroupSettings::offsets_partitions>,
     "Partitions of __consumer_offsets when it is made; one that exists keeps its own", ""},
    {"offsets.topic.replication.factor", "3", Type::integer, 1, INT16_MAX, nullptr,
     "Replicas of __consumer_offsets", one_node},
    {"offsets.topic.segment.bytes", "104857600", Type::integer, 1048576, int_max,
     put<&GroupSettings::offsets_segment_bytes>,
     "Size of a segment of __consumer_offsets when it is made", ""},
};
static_assert(std::is_sorted(std::begin(keys), std::end(keys),
                             [](const GroupSettingKey& a, const GroupSettingKey& b) {
                               return a.name < b.name;
                             }));

Result<void> set_assignors(GroupSettings& settings, std::string_view key, const std::string& text) {
  POLYLOG_ASSIGN(names, parse_list(key, text));
  for (std::string& name : names) {
    // Kafka's own classes go by their names too.
    if (name.ends_with(".UniformAssignor")) name = "uniform";
    if (name.ends_with(".RangeAssignor")) name = "range";
    if (name != "uniform" && name != "range") {
      return fail(Errc::invalid,
                  std::string(key) + " = '" + text + "': only uniform and range are there");
    }
  }
  if (names.empty()) return fail(Errc::invalid, std::string(key) + " can't be empty");
  settings.consumer_assignors = std::move(names);
  return {};
}

Result<void> set_migration(GroupSettings& settings, std::string_view key, const std::string& text) {
  POLYLOG_ASSIGN(word, parse_word(key, text, "disabled|upgrade|downgrade|bidirectional"));
  settings.consumer_migration = GroupMigration::bidirectional;
  if (word == "disabled") settings.consumer_migration = GroupMigration::disabled;
  if (word == "upgrade") settings.consumer_migration = GroupMigration::upgrade;
  if (word == "downgrade") settings.consumer_migration = GroupMigration::downgrade;
  return {};
}

Result<void> set_protocols(GroupSettings& settings, std::string_view key, const std::string& text) {
  POLYLOG_ASSIGN(names, parse_list(key, text));
  bool classic = false;
  settings.consumer_protocol = false;
  for (const std::string& name : names) {
    if (name == "classic") {
      classic = true;
    } else if (name == "consumer") {
      settings.consumer_protocol = true;
    } else {
      return fail(Errc::unsupported,
                  std::string(key) + " = '" + text + "': only classic and consumer are served");
    }
  }
  if (!classic) {
    return fail(Errc::invalid, std::string(key) + " = '" + text + "': classic is missing");
  }
  return {};
}

Result<void> apply(GroupSettings& settings, const GroupSettingKey& key, const std::string& text) {
  if (key.name == "group.consumer.assignors") return set_assignors(settings, key.name, text);
  if (key.name == "group.consumer.migration.policy") {
    return set_migration(settings, key.name, text);
  }
  if (key.name == "group.coordinator.rebalance.protocols") {
    return set_protocols(settings, key.name, text);
  }
  POLYLOG_ASSIGN(value, parse_integer(key.name, text, key.min, key.max));
  if (key.set != nullptr) key.set(settings, value);
  return {};
}

Result<void> check_between(std::string_view name, std::int64_t min, std::int64_t value,
                           std::int64_t max) {
  if (min <= value && value <= max) return {};
  return fail(Errc::invalid, std::string(name) + " = " + std::to_string(value) +
                                 " is not within its own limits, " + std::to_string(min) + " to " +
                                 std::to_string(max));
}

Result<void> check_together(const GroupSettings& settings) {
  if (settings.session_timeout_min_ms > settings.session_timeout_max_ms) {
    return fail(Errc::invalid, "group.min.session.timeout.ms is over group.max.session.timeout.ms");
  }
  POLYLOG_TRY(check_between(
      "group.consumer.session.timeout.ms", settings.consumer_session_timeout_min_ms,
      settings.consumer_session_timeout_ms, settings.consumer_session_timeout_max_ms));
  POLYLOG_TRY(check_between(
      "group.consumer.heartbeat.interval.ms", settings.consumer_heartbeat_interval_min_ms,
      settings.consumer_heartbeat_interval_ms, settings.consumer_heartbeat_interval_max_ms));
  if (settings.consumer_heartbeat_interval_ms < settings.consumer_session_timeout_ms) return {};
  return fail(Errc::invalid,
              "group.consumer.heartbeat.interval.ms must be below "
              "group.consumer.session.timeout.ms");
}

}  // namespace

std::span<const GroupSettingKey> group_setting_keys() { return keys; }

const GroupSettingKey* find_group_setting(std::string_view name) {
  const auto* at = std::lower_bound(
      std::begin(keys), std::end(keys), name,
      [](const GroupSettingKey& key, std::string_view wanted) { return key.name < wanted; });
  return at != std::end(keys) && at->name == name ? at : nullptr;
}

Result<GroupSettings> group_settings(const std::map<std::string, std::string>& values) {
  GroupSettings settings;
  for (const GroupSettingKey& key : keys) {
    const auto given = values.find(std::string(key.name));
    if (given != values.end()) POLYLOG_TRY(apply(settings, key, given->second));
  }
  POLYLOG_TRY(check_together(settings));
  return settings;
}

}  // namespace polylog::broker
