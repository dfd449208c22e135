// Starting: the catalogue says what should be there, the store what is. Nothing found on the disk
// is ever removed here, except what a topic deletion had already decided.

#include <algorithm>
#include <utility>

#include "broker/broker_impl.h"
#include "broker/missing_partition.h"

namespace polylog::broker {

namespace {

// A directory of Kafka's own that looks like a partition: its metadata log.
constexpr const char* kraft_metadata = "__cluster_metadata";

}  // namespace

std::map<std::string, Broker::Impl::Found> Broker::Impl::found_topics() const {
  std::map<std::string, Found> topics;
  for (const TopicPartition& id : stores.kafka->partitions()) {
    Found& found = topics[id.topic];
    found.partitions.push_back(id.partition);
    const std::optional<Uuid> topic = stores.kafka->topic_id(id);
    if (!topic) continue;
    if (found.id && *found.id != *topic) found.ids_differ = true;
    if (!found.id) found.id = topic;
  }
  for (auto& [name, found] : topics) std::sort(found.partitions.begin(), found.partitions.end());
  return topics;
}

Result<std::vector<std::string>> Broker::Impl::load() {
  POLYLOG_ASSIGN(records, catalog->topics());
  std::map<std::string, Found> found = found_topics();
  for (meta::TopicRecord& record : records) {
    const auto it = found.find(record.name);
    const Found* here = it == found.end() ? nullptr : &it->second;
    if (!record.configs.contains(deleting_mark)) {
      load_topic(record, here);
    } else {
      finish_deletion(record, here);
      if (here != nullptr && here->id && *here->id != record.id && !here->ids_differ) continue;
    }
    if (it != found.end()) found.erase(it);
  }
  for (const auto& [name, here] : found) adopt(name, here);
  return std::exchange(notes, {});
}

void Broker::Impl::finish_deletion(const meta::TopicRecord& record, const Found* found) {
  Deletion remaining{record};
  if (found != nullptr) {
    if (found->ids_differ) {
      note("topic " + record.name + " was deleted, but its directories carry different ids: " +
           "left alone, and not served");
      return;
    }
    if (found->id && *found->id != record.id) {
      // Made by another broker after ours had decided to delete its own.
      remaining.record.partitions = 0;
    } else {
      const std::int32_t last = found->partitions.back();
      remaining.record.partitions = std::max(record.partitions, last + 1);
    }
  }
  if (const Result<void> removed = remove_marked(remaining); !removed) {
    note("topic " + record.name + " is deleted, its files remain for now: " +
         removed.error().to_string());
    deletions.emplace(record.name, std::move(remaining));
    return;
  }
  note("topic " + record.name + ": deletion finished");
}

TopicConfig Broker::Impl::config_of(const meta::TopicRecord& record) {
  auto overrides = record.configs;
  const bool suspended = overrides.erase(suspended_mark) > 0;
  Result<TopicConfig> config = resolve_topic_config(overrides, broker.settings_.values());
  if (!config) {
    note("topic " + record.name + ": its settings are not usable (" + config.error().context +
         "): served with the defaults, retention suspended");
    config = resolve_topic_config({}, broker.settings_.values());
    TopicConfig defaults = config ? *config : TopicConfig();
    defaults.log.retention_suspended = true;
    return defaults;
  }
  config->log.retention_suspended = config->log.retention_suspended || suspended;
  return *config;
}

// The disk may have more than the catalogue knows when another broker ran on it.
void Broker::Impl::reconcile(meta::TopicRecord& record, const Found& found) {
  const std::int32_t limit = std::max(record.partitions, partitions_per_topic_max);
  std::int32_t count = record.partitions;
  for (const std::int32_t index : found.partitions) {
    if (index >= limit) {
      note("topic " + record.name + ": partition " + std::to_string(index) +
           " is beyond what a topic can have: left alone, and not served");
      break;
    }
    count = std::max(count, index + 1);
  }
  if (count == record.partitions) return;
  note("topic " + record.name + ": " + std::to_string(count) + " partitions found, " +
       std::to_string(record.partitions) + " known: all are served");
  record.partitions = count;
  if (const Result<void> set = catalog->set_partitions(record.name, count); !set) {
    note("topic " + record.name + ": not recorded: " + set.error().to_string());
  }
}

void Broker::Impl::reconcile_id(meta::TopicRecord& record, const Found& found) {
  if (found.ids_differ) {
    note("topic " + record.name + ": its directories carry different topic ids; served as " +
         record.id.to_string());
    return;
  }
  if (!found.id || *found.id == record.id) return;
  note("topic " + record.name + ": its directories carry the id " + found.id->to_string() +
       ", the catalogue has " + record.id.to_string() + ": the directories are believed");
  record.id = *found.id;
  // A crash between the two leaves directories without settings, which are adopted.
  Result<void> replaced = catalog->delete_topic(record.name);
  if (replaced) replaced = catalog->create_topic(record);
  if (!replaced) {
    note("topic " + record.name + ": not recorded: " + replaced.error().to_string());
  }
}

std::shared_ptr<storage::PartitionLog> Broker::Impl::open_partition(
    const std::shared_ptr<Topic>& topic, std::int32_t index) {
  const TopicPartition id{topic->name, index};
  const storage::LogConfig& config = topic->config.log;
  if (auto log = stores.kafka->find(id)) {
    log->configure(config);
    return log;
  }
  auto made = stores.kafka->create(id, topic->id, config);
  if (made) return std::move(*made);
  note("topic " + topic->name + ": partition " + std::to_string(index) +
       " can't be made yet: " + made.error().to_string());
  missing.push_back({topic, index});
  return make_missing_partition(std::move(made).error());
}

void Broker::Impl::load_topic(meta::TopicRecord record, const Found* found) {
  if (record.layout != "kafka") {
    note("topic " + record.name + ": layout " + record.layout +
         " is not available in this build: not served");
    return;
  }
  if (found != nullptr) {
    reconcile(record, *found);
    reconcile_id(record, *found);
  }
  auto topic = std::make_shared<Topic>();
  topic->name = record.name;
  topic->id = record.id;
  topic->config = config_of(record);
  topic->overrides = record.configs;
  topic->overrides.erase(suspended_mark);
  const auto config = std::make_shared<const TopicConfig>(topic->config);
  const std::size_t missing_before = missing.size();
  std::int32_t made = 0;
  for (std::int32_t index = 0; index < record.partitions; ++index) {
    if (stores.kafka->find({topic->name, index}) == nullptr) ++made;
    topic->partitions.push_back(
        make_partition(*topic, index, open_partition(topic, index), config));
  }
  made -= static_cast<std::int32_t>(missing.size() - missing_before);
  if (made > 0) {
    note("topic " + topic->name + ": " + std::to_string(made) + " of " +
         std::to_string(record.partitions) + " partitions were not on the disk and were made");
  }
  add_topic(std::move(topic));
}

void Broker::Impl::adopt(const std::string& name, const Found& found) {
  if (name == kraft_metadata) return;
  if (const Result<void> named = check_topic_name(name); !named) {
    note("directory of \"" + name + "\" is left alone: " + named.error().context);
    return;
  }
  const auto beyond = std::find_if(found.partitions.begin(), found.partitions.end(),
                                   [](std::int32_t index) {
                                     return index >= partitions_per_topic_max;
                                   });
  if (beyond == found.partitions.begin()) {
    note("topic " + name + ": partition " + std::to_string(*beyond) +
         " is beyond what a topic can have: left alone, and not served");
    return;
  }
  meta::TopicRecord record;
  record.name = name;
  record.id = found.id.value_or(Uuid::random());
  if (by_id.contains(record.id)) record.id = Uuid::random();
  record.partitions = *std::prev(beyond) + 1;
  record.configs[suspended_mark] = "true";
  note("topic " + name + ": found without settings, " + std::to_string(record.partitions) +
       " partition(s); served with the defaults, retention suspended until its settings are set");
  if (const Result<void> stored = catalog->create_topic(record); !stored) {
    note("topic " + name + ": not recorded: " + stored.error().to_string());
  }
  load_topic(std::move(record), nullptr);
}

}  // namespace polylog::broker
