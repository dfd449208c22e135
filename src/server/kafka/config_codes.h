#pragma once

#include <cstdint>

#include "broker/config_layers.h"

namespace polylog::server::kafka {

// Where a value comes from and what type it has (Kafka wire protocol, "Configs").
constexpr std::int8_t config_source(broker::ConfigEntry::Source source) {
  switch (source) {
    case broker::ConfigEntry::Source::topic: return 1;
    case broker::ConfigEntry::Source::broker: return 4;
    case broker::ConfigEntry::Source::default_value: return 5;
  }
  return 0;
}

constexpr std::int8_t config_source(broker::ConfigSource source) {
  switch (source) {
    case broker::ConfigSource::topic: return 1;
    case broker::ConfigSource::node: return 2;
    case broker::ConfigSource::cluster: return 3;
    case broker::ConfigSource::fixed: return 4;
    case broker::ConfigSource::default_value: return 5;
    case broker::ConfigSource::group: return 8;
  }
  return 0;
}
inline constexpr std::int8_t logger_source = 6;

constexpr std::int8_t config_type(broker::ConfigKey::Type type) {
  switch (type) {
    case broker::ConfigKey::Type::boolean: return 1;
    case broker::ConfigKey::Type::string: return 2;
    case broker::ConfigKey::Type::integer: return 3;
    case broker::ConfigKey::Type::long_integer: return 5;
    case broker::ConfigKey::Type::real: return 6;
    case broker::ConfigKey::Type::list: return 7;
  }
  return 0;
}

inline constexpr std::int8_t topic_resource = 2;
inline constexpr std::int8_t broker_resource = 4;
inline constexpr std::int8_t logger_resource = 8;
inline constexpr std::int8_t client_metrics_resource = 16;
inline constexpr std::int8_t group_resource = 32;

}  // namespace polylog::server::kafka
