#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

// Settings of single consumer groups (KIP-848): what a group overrides of the broker's defaults.
// Values only.
namespace polylog::broker {

struct GroupKey {
  std::string_view name;
  std::string_view broker_name;  // the broker's setting that supplies the default
  std::string_view default_value;
  std::string_view min_name;  // broker's settings that bound it, and Kafka's values for them
  std::int64_t min;
  std::string_view max_name;
  std::int64_t max;
  std::string_view help;
};
std::span<const GroupKey> group_keys();  // sorted by name
const GroupKey* find_group_key(std::string_view name);

// `overrides` are the group's own, `values` the broker's settings. invalid: an unknown key, a
// value outside the broker's bounds, or a heartbeat interval that is no less than the session's
// timeout. The context is fit to show a user.
Result<void> check_group_configs(const std::map<std::string, std::string>& overrides,
                                 const std::map<std::string, std::string>& values);

}  // namespace polylog::broker
