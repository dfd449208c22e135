#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "broker/topic_config.h"
#include "storage/store.h"

// The settings of a layout with one shared log, under RocketMQ's own names and the spellings of
// its older versions (RocketMQ store format, "Parameters"). Values only.
namespace polylog::broker {

struct SharedLogKey {
  std::string_view name;
  std::string_view default_value;
  ConfigKey::Type type;
  std::int64_t min;
  std::int64_t max;
  void (*set)(storage::SharedLogConfig&, std::int64_t);  // null: read elsewhere, or no effect
  std::string_view help;
  std::string_view no_effect;
};
std::span<const SharedLogKey> shared_log_keys();  // sorted by name
const SharedLogKey* find_shared_log_key(std::string_view name);

using SettingValues = std::map<std::string, std::string>;

// What those of `values` that are shared log keys come to; others are passed over. invalid: a
// value outside its range, or two names of one setting that differ.
Result<storage::SharedLogConfig> shared_log_config(const SettingValues& values);

// What flushDiskType makes the default of topics in such a layout; nothing when it is not set.
Result<std::optional<FlushPolicy>> shared_log_flush(const SettingValues& values);

}  // namespace polylog::broker
