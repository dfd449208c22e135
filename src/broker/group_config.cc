#include "broker/group_config.h"

#include <algorithm>
#include <vector>

#include "broker/config_value.h"

namespace polylog::broker {
namespace {

using Values = std::map<std::string, std::string>;

constexpr std::int64_t int_max = INT32_MAX;

constexpr GroupKey keys[] = {
    {"consumer.heartbeat.interval.ms", "group.consumer.heartbeat.interval.ms", "5000",
     "group.consumer.min.heartbeat.interval.ms", 5000, "group.consumer.max.heartbeat.interval.ms",
     15000, "How often members of the group report, under the protocol of KIP-848"},
    {"consumer.session.timeout.ms", "group.consumer.session.timeout.ms", "45000",
     "group.consumer.min.session.timeout.ms", 45000, "group.consumer.max.session.timeout.ms",
     60000, "A member that does not report for so long is out of the group"},
};

std::int64_t bound(const Values& values, std::string_view name, std::int64_t otherwise) {
  const auto set = values.find(std::string(name));
  if (set == values.end()) return otherwise;
  return parse_integer(name, set->second, 0, int_max).value_or(otherwise);
}

Result<std::int64_t> effective(std::string_view name, const Values& overrides,
                               const Values& values) {
  const GroupKey& key = *find_group_key(name);
  const auto own = overrides.find(std::string(name));
  if (own == overrides.end()) {
    const std::int64_t otherwise = *parse_integer(name, key.default_value, 0, int_max);
    return bound(values, key.broker_name, otherwise);
  }
  POLYLOG_ASSIGN(value, parse_integer(name, own->second, 1, int_max));
  const std::int64_t min = bound(values, key.min_name, key.min);
  const std::int64_t max = bound(values, key.max_name, key.max);
  if (value < min) {
    return fail(Errc::invalid, std::string(name) + " must be greater than or equal to " +
                                   std::string(key.min_name) + " (" + std::to_string(min) + ")");
  }
  if (value > max) {
    return fail(Errc::invalid, std::string(name) + " must be less than or equal to " +
                                   std::string(key.max_name) + " (" + std::to_string(max) + ")");
  }
  return value;
}

}  // namespace

std::span<const GroupKey> group_keys() { return keys; }

const GroupKey* find_group_key(std::string_view name) {
  const auto* at = std::find_if(std::begin(keys), std::end(keys),
                                [&](const GroupKey& key) { return key.name == name; });
  return at == std::end(keys) ? nullptr : at;
}

Result<void> check_group_configs(const Values& overrides, const Values& values) {
  for (const auto& [name, value] : overrides) {
    if (find_group_key(name) != nullptr) continue;
    std::vector<std::string_view> known;
    for (const GroupKey& key : keys) known.push_back(key.name);
    std::string message = "Unknown group config name: " + name.substr(0, 128);
    const std::string_view meant = nearest_name(name, known);
    if (!meant.empty()) message += "; did you mean " + std::string(meant) + "?";
    return fail(Errc::invalid, std::move(message));
  }
  POLYLOG_ASSIGN(heartbeat, effective("consumer.heartbeat.interval.ms", overrides, values));
  POLYLOG_ASSIGN(session, effective("consumer.session.timeout.ms", overrides, values));
  if (!overrides.empty() && heartbeat >= session) {
    return fail(Errc::invalid,
                "consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms");
  }
  return {};
}

}  // namespace polylog::broker
