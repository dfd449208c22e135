#include "broker/config_layers.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "broker/config_value.h"
#include "broker/group_config.h"
#include "broker/topic_keys.h"

namespace polylog::broker {
namespace {

using Values = SettingLayers::Values;
using Names = std::vector<std::string>;

void add_set(const Values& values, const Names& names, ConfigSource source,
             std::vector<ConfigLayer>& out) {
  for (const std::string& name : names) {
    if (const auto set = values.find(name); set != values.end()) {
      out.push_back({name, std::string(trimmed(set->second)), source});
    }
  }
}

// What the broker says under any of these names, each level's most specific name first.
std::vector<ConfigLayer> layers_of(const Names& names, const SettingLayers& layers) {
  std::vector<ConfigLayer> out;
  add_set(layers.node, names, ConfigSource::node, out);
  add_set(layers.cluster, names, ConfigSource::cluster, out);
  add_set(layers.fixed, names, ConfigSource::fixed, out);
  for (const std::string& name : names) {
    const SettingKey* key = find_setting_key(name);
    if (key != nullptr && !key->default_value.empty()) {
      out.push_back({name, key->default_value, ConfigSource::default_value});
    }
  }
  return out;
}

// The names under which the broker sets what this topic key takes for its default.
Names broker_names(std::string_view topic_key) {
  Names names;
  for (const BrokerSynonym& synonym : broker_synonyms()) {
    if (synonym.topic_key == topic_key) names.emplace_back(synonym.name);
  }
  return names;
}

// All names of one broker setting: log.retention.ms, .minutes and .hours are one.
Names names_of(const std::string& name) {
  for (const BrokerSynonym& synonym : broker_synonyms()) {
    if (synonym.name == name) return broker_names(synonym.topic_key);
  }
  return {name};
}

bool is_flush_key(std::string_view name) {
  return name == "flush.messages" || name == "flush.ms" || name == "polylog.flush";
}

// Where a default of the flush settings comes from: any of them decides for all.
ConfigSource flush_source(const SettingLayers& layers) {
  Names names{"polylog.flush", "flushDiskType"};
  for (const char* key : {"flush.messages", "flush.ms"}) {
    for (std::string& name : broker_names(key)) names.push_back(std::move(name));
  }
  for (const ConfigLayer& layer : layers_of(names, layers)) return layer.source;
  return ConfigSource::default_value;
}

DescribedConfig describe_entry(const ConfigEntry& entry, const Values& overrides,
                               const SettingLayers& layers, const std::string& policy) {
  DescribedConfig out;
  out.name = entry.key->name;
  out.value = entry.value;
  out.type = entry.key->type;
  out.help = entry.key->help;
  const bool own = overrides.contains(out.name) || entry.source == ConfigEntry::Source::topic;
  if (own) out.layers.push_back({out.name, entry.value, ConfigSource::topic});
  std::vector<ConfigLayer> below = layers_of(broker_names(out.name), layers);
  const bool fits = !below.empty() && below.front().value == entry.value;
  if (!own && is_flush_key(out.name) && !fits) {
    // It follows from another of the flush settings.
    out.layers.push_back({"polylog.flush", policy, flush_source(layers)});
  }
  out.layers.insert(out.layers.end(), std::make_move_iterator(below.begin()),
                    std::make_move_iterator(below.end()));
  if (out.layers.empty()) out.layers.push_back({out.name, out.value, out.source});
  out.source = out.layers.front().source;
  return out;
}

}  // namespace

Values SettingLayers::merged() const {
  Values all = node;
  all.insert(cluster.begin(), cluster.end());
  all.insert(fixed.begin(), fixed.end());
  return all;
}

Result<void> check_dynamic(const Values& values) {
  std::string fixed;
  for (const auto& [name, value] : values) {
    const SettingKey* key = find_setting_key(name);
    if (key != nullptr && key->dynamic) continue;
    if (key == nullptr) {
      const auto known = Settings::from({{name, value}});
      if (!known) return fail(Errc::invalid, known.error().context);
    }
    fixed += (fixed.empty() ? "" : ", ") + name;
  }
  if (fixed.empty()) return {};
  return fail(Errc::invalid, "Cannot update these configs dynamically: " + fixed);
}

std::vector<DescribedConfig> describe_topic(const Values& overrides, const SettingLayers& layers,
                                            storage::Layout layout) {
  const std::vector<ConfigEntry> entries =
      describe_topic_config(overrides, layers.merged(), layout);
  std::string policy;
  for (const ConfigEntry& entry : entries) {
    if (entry.key->name == "polylog.flush") policy = entry.value;
  }
  std::vector<DescribedConfig> all;
  for (const ConfigEntry& entry : entries) {
    all.push_back(describe_entry(entry, overrides, layers, policy));
  }
  return all;
}

std::vector<DescribedConfig> describe_broker(const SettingLayers& layers) {
  std::vector<DescribedConfig> all;
  for (const SettingKey& key : setting_keys()) {
    DescribedConfig& out = all.emplace_back();
    out.name = key.name;
    out.type = key.type;
    out.read_only = !key.dynamic;
    out.help = key.help;
    out.layers = layers_of(names_of(key.name), layers);
    // As Kafka does: what other names say in front of this one's is theirs alone.
    const auto own = std::find_if(out.layers.begin(), out.layers.end(),
                                  [&](const ConfigLayer& layer) { return layer.name == key.name; });
    out.layers.erase(out.layers.begin(), own);
    if (out.layers.empty()) {
      out.value = key.default_value;
    } else {
      out.value = out.layers.front().value;
      out.source = out.layers.front().source;
    }
  }
  return all;
}

std::vector<DescribedConfig> describe_cluster(const SettingLayers& layers) {
  std::vector<DescribedConfig> all;
  for (const auto& [name, value] : layers.cluster) {
    const SettingKey* key = find_setting_key(name);
    if (key == nullptr) continue;
    DescribedConfig& out = all.emplace_back();
    out.name = name;
    out.value = trimmed(value);
    out.type = key->type;
    out.source = ConfigSource::cluster;
    out.read_only = !key->dynamic;
    out.help = key->help;
    out.layers.push_back({name, out.value, out.source});
  }
  return all;
}

std::vector<DescribedConfig> describe_group(const Values& overrides,
                                            const SettingLayers& layers) {
  std::vector<DescribedConfig> all;
  for (const GroupKey& key : group_keys()) {
    DescribedConfig& out = all.emplace_back();
    out.name = key.name;
    out.type = ConfigKey::Type::integer;
    out.help = key.help;
    if (const auto own = overrides.find(out.name); own != overrides.end()) {
      out.layers.push_back({out.name, std::string(trimmed(own->second)), ConfigSource::group});
    }
    for (ConfigLayer& layer : layers_of({std::string(key.broker_name)}, layers)) {
      out.layers.push_back(std::move(layer));
    }
    if (out.layers.empty()) {
      out.layers.push_back({out.name, std::string(key.default_value), out.source});
    }
    out.value = out.layers.front().value;
    out.source = out.layers.front().source;
  }
  return all;
}

}  // namespace polylog::broker
