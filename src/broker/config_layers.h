#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "broker/settings.h"
#include "broker/topic_config.h"

// Settings in layers, and what `describe` shows of them: every value with where it comes from and
// what it stands in front of. Values only.
namespace polylog::broker {

// The broker's settings by who set them; the first to name a key decides.
struct SettingLayers {
  using Values = std::map<std::string, std::string>;
  Values node;     // changed while running, for this broker
  Values cluster;  // changed while running, for all brokers
  Values fixed;    // from the file and --set
  Values merged() const;
};

// invalid: `values` has a name nobody knows, or one that takes effect at a start only. What the
// values come to is checked elsewhere (Settings::from).
Result<void> check_dynamic(const SettingLayers::Values& values);

enum class ConfigSource { topic, node, cluster, fixed, default_value, group };

struct ConfigLayer {
  std::string name;  // a broker's setting may have another name than the topic's it is behind
  std::string value;
  ConfigSource source = ConfigSource::default_value;
};

struct DescribedConfig {
  std::string name;
  std::string value;
  ConfigKey::Type type = ConfigKey::Type::string;
  ConfigSource source = ConfigSource::default_value;
  bool read_only = false;
  std::string help;
  std::vector<ConfigLayer> layers;  // most specific first; the first one is in force
};

// REQUIRES: resolve_topic_config accepts the overrides with the layers.
std::vector<DescribedConfig> describe_topic(const std::map<std::string, std::string>& overrides,
                                            const SettingLayers& layers, storage::Layout layout);
std::vector<DescribedConfig> describe_broker(const SettingLayers& layers);
std::vector<DescribedConfig> describe_cluster(const SettingLayers& layers);  // what is set there
std::vector<DescribedConfig> describe_group(const std::map<std::string, std::string>& overrides,
                                            const SettingLayers& layers);

}  // namespace polylog::broker
