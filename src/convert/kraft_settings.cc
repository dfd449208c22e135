#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "broker/broker_impl.h"
#include "broker/group_config.h"
#include "broker/quotas/rules.h"
#include "broker/topic_config.h"
#include "broker/topic_keys.h"
#include "convert/data_directory.h"
#include "convert/kraft_metadata.h"

// What a Kafka directory's metadata log says of its topics, and of the cluster.
namespace polylog::convert {
namespace {

using format::kafka::ClusterMetadata;
using storage::Layout;
namespace kafka = format::kafka;

// A few names of many.
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t shown = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(shown, names.size()); ++i) {
    text += (i > 0 ? ", " : "") + names[i];
  }
  return names.size() > shown ? text + ", ..." : text;
}

// Here is one node: where more than one copy is asked for every write would be refused.
bool asks_for_copies(const std::string& name, const std::string& value) {
  return name == "min.insync.replicas" && value != "1";
}

// The settings that mean something here; why the others don't, in `left_out`.
std::map<std::string, std::string> usable_settings(
    const std::map<std::string, std::string>& settings, std::vector<std::string>& left_out) {
  std::map<std::string, std::string> usable;
  for (const auto& [name, value] : settings) {
    const auto good = broker::resolve_topic_config({{name, value}}, {}, Layout::kafka);
    if (good && asks_for_copies(name, value)) {
      left_out.push_back(name + " = " + value + " (there is one node)");
    } else if (good) {
      usable[name] = value;
    } else {
      left_out.push_back(name + " = " + value + " (" + good.error().context + ")");
    }
  }
  return usable;
}

bool is_broker_default(const std::string& name) {
  const auto synonyms = broker::broker_synonyms();
  return std::any_of(synonyms.begin(), synonyms.end(),
                     [&](const auto& synonym) { return synonym.name == name; });
}

Result<meta::QuotaEntity> quota_entity(const kafka::QuotaOf& of) {
  std::vector<broker::quotas::EntityPart> parts;
  for (const auto& [type, name] : of) parts.push_back({type, name});
  return broker::quotas::make_entity(parts);
}

meta::Quotas usable_quotas(const ClusterMetadata& metadata, std::vector<std::string>& left_out) {
  meta::Quotas usable;
  for (const auto& [of, limits] : metadata.quotas()) {
    const auto entity = quota_entity(of);
    for (const auto& [key, value] : limits) {
      if (entity && broker::quotas::check_key(*entity, key) &&
          broker::quotas::check_limit(key, value)) {
        usable[*entity][key] = value;
      } else {
        left_out.push_back(key);
      }
    }
  }
  return usable;
}

// Defaults of topics, which all brokers have, and settings of groups. Whatever else a broker of
// Kafka's is set to means nothing here, and its value may be a secret.
meta::ScopedConfigs usable_defaults(const ClusterMetadata& metadata,
                                    std::vector<std::string>& left_out) {
  meta::ScopedConfigs usable;
  for (const auto& [of, settings] : metadata.settings()) {
    const auto& [resource, name] = of;
    const bool of_all = resource == kafka::broker_resource && name.empty();
    const bool of_group = resource == kafka::group_resource;
    meta::ConfigScope scope;
    if (of_group) scope = {meta::ConfigScope::Kind::group, name};
    for (const auto& [key, value] : settings) {
      const bool good =
          (of_all && is_broker_default(key) && !asks_for_copies(key, value) &&
           broker::resolve_topic_config({}, {{key, value}}, Layout::kafka)) ||
          (of_group && broker::check_group_configs({{key, value}}, {}));
      if (good) {
        usable[scope][key] = value;
      } else {
        left_out.push_back(key + (name.empty() ? "" : " of " + name));
      }
    }
  }
  return usable;
}

}  // namespace

Result<void> DataDirectory::read_kraft(const std::string& directory) {
  if (kind_ != Kind::kafka) return {};
  const std::string& where = directory.empty() ? path_ : directory;
  POLYLOG_ASSIGN(metadata, read_kraft_metadata(fs_, where, notes_));
  if (!metadata) {
    const std::string missing =
        "there is no " + std::string(kafka::cluster_metadata_topic) + "-0 in " + where;
    if (!directory.empty()) return fail(Errc::invalid, missing);
    note(missing + " (--kafka-metadata names Kafka's metadata.log.dir): topics keep all their " +
         "records until their settings are set");
    return {};
  }
  for (Topic& topic : topics_) take_from_kraft(topic, *metadata);
  take_from_kraft(*metadata);
  return {};
}

void DataDirectory::take_from_kraft(Topic& topic, const ClusterMetadata& metadata) {
  meta::TopicRecord& record = topic.record;
  const auto found = metadata.topics().find(record.name);
  const bool same = found != metadata.topics().end() &&
                    (record.id.is_zero() || record.id == found->second.id);
  if (!same) {
    // Kafka would put it aside as stray; whoever converts it wants it, perhaps.
    note("topic " + record.name + ": Kafka's metadata log has " +
         (found == metadata.topics().end() ? "no such topic" : "another topic of that name") +
         "; it keeps all its records until its settings are set");
    return;
  }
  record.id = found->second.id;
  record.partitions = std::max(record.partitions, found->second.partitions);
  std::vector<std::string> elsewhere;
  for (std::int32_t i = 0; i < record.partitions; ++i) {
    if (find(topic, i) == nullptr) elsewhere.push_back(std::to_string(i));
  }
  if (!elsewhere.empty()) {
    note("topic " + record.name + ": " + std::to_string(elsewhere.size()) +
         " partition(s) are not in this directory and will be empty: " + some_of(elsewhere));
  }
  std::vector<std::string> left_out;
  record.configs = usable_settings(found->second.settings, left_out);
  for (const std::string& line : left_out) {
    note("topic " + record.name + ": the setting " + line + " is left out");
  }
  record.configs[broker::suspended_mark] = "true";  // whether it stays is the plan's to decide
  topic.settings_known = true;
}

void DataDirectory::take_from_kraft(const ClusterMetadata& metadata) {
  producer_ids_end_ = std::max(producer_ids_end_, metadata.producer_ids_end());
  std::vector<std::string> elsewhere, left_out;
  for (const auto& [name, topic] : metadata.topics()) {
    const auto at = std::find_if(topics_.begin(), topics_.end(),
                                 [&](const Topic& ours) { return ours.record.name == name; });
    if (at == topics_.end()) elsewhere.push_back(name);
  }
  if (!elsewhere.empty()) {
    note(std::to_string(elsewhere.size()) + " topic(s) of the cluster have no partition in this " +
         "directory: " + some_of(elsewhere));
  }
  scoped_configs_ = usable_defaults(metadata, left_out);
  quotas_ = usable_quotas(metadata, left_out);
  if (!left_out.empty()) {
    note(std::to_string(left_out.size()) + " setting(s) of brokers, groups or clients are left " +
         "out: " + some_of(left_out));
  }
}

}  // namespace polylog::convert
