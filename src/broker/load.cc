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

Broker::Impl::FoundTopics Broker::Impl::found_topics() const {
  FoundTopics topics;
  for (const auto& [layout, store] : stores.opened()) {
    for (const TopicPartition& id : store->partitions()) {
      Found& found = topics[id.topic][layout];
      found.partitions.push_back(id.partition);
      const std::optional<Uuid> topic = store->topic_id(id);
      if (!topic) continue;
      if (found.id && *found.id != *topic) found.ids_differ = true;
      if (!found.id) found.id = topic;
    }
  }
  for (auto& [name, by_layout] : topics) {
    for (auto& [layout, found] : by_layout) {
      std::sort(found.partitions.begin(), found.partitions.end());
    }
  }
  return topics;
}

Result<std::vector<std::string>> Broker::Impl::load() {
  POLYLOG_TRY(load_changed_settings());
  POLYLOG_ASSIGN(records, catalog->topics());
  FoundTopics found = found_topics();
  for (const meta::TopicRecord& record : records) {
    const auto here = found.find(record.name);
    std::map<storage::Layout, Found> none;
    const bool name_taken = load_record(record, here == found.end() ? none : here->second);
    if (here == found.end()) continue;
    if (name_taken) leave_alone(record.name, here->second);
    if (name_taken || here->second.empty()) found.erase(here);
  }
  for (auto& [name, by_layout] : found) {
    const auto first = by_layout.extract(by_layout.begin());
    adopt(name, first.key(), first.mapped());
    leave_alone(name, by_layout);
  }
  return std::exchange(notes, {});
}

// One row of the catalogue, with what its own store has of it, which is taken out of `found`.
// False when the name is free again, and what else has it may be adopted.
bool Broker::Impl::load_record(const meta::TopicRecord& record,
                               std::map<storage::Layout, Found>& found) {
  const auto layout = parse_layout(record.layout);
  const auto its = layout ? found.find(*layout) : found.end();
  const Found* const here = its == found.end() ? nullptr : &its->second;
  const bool deleted = record.configs.contains(deleting_mark);
  bool name_taken = true;
  if (deleted) {
    name_taken = !finish_deletion(record, here);
  } else {
    load_topic(record, here);
  }
  // Directories that another broker made after ours had decided to delete its own stay.
  const bool foreign =
      deleted && here != nullptr && here->id && *here->id != record.id && !here->ids_differ;
  if (here != nullptr && !foreign) found.erase(its);
  return name_taken;
}

void Broker::Impl::leave_alone(const std::string& name,
                               const std::map<storage::Layout, Found>& found) {
  for (const auto& [layout, here] : found) {
    note("topic " + name + ": there is another of that name in the " +
         std::string(layout_name(layout)) + " store, with " +
         std::to_string(here.partitions.size()) +
         " partition(s): left alone, and not served");
  }
}

bool Broker::Impl::finish_deletion(const meta::TopicRecord& record, const Found* found) {
  Deletion remaining{record};
  if (found != nullptr) {
    if (found->ids_differ) {
      note("topic " + record.name + " was deleted, but its directories carry different ids: " +
           "left alone, and not served");
      return false;
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
    return false;
  }
  note("topic " + record.name + ": deletion finished");
  return true;
}

TopicConfig Broker::Impl::config_of(const meta::TopicRecord& record, storage::Layout layout) {
  auto overrides = record.configs;
  const bool suspended = overrides.erase(suspended_mark) > 0;
  const auto& defaults = broker.settings_.values();
  Result<TopicConfig> config = resolve_topic_config(overrides, defaults, layout);
  if (!config) {
    note("topic " + record.name + ": its settings are not usable (" + config.error().context +
         "): served with the defaults, retention suspended");
    TopicConfig usable = resolve_topic_config({}, defaults, layout).value_or(TopicConfig());
    usable.layout = layout;
    usable.log.retention_suspended = true;
    return usable;
  }
  if (const auto accepted = accept_topic_config(overrides, defaults, layout); !accepted) {
    note("topic " + record.name + ": " + accepted.error().context);
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
  storage::Store& store = *stores.of(topic->config.layout);
  if (auto log = store.find(id)) {
    log->configure(config);
    return log;
  }
  auto made = store.create(id, topic->id, config);
  if (made) return std::move(*made);
  note("topic " + topic->name + ": partition " + std::to_string(index) +
       " can't be made yet: " + made.error().to_string());
  missing.push_back({topic, index});
  return make_missing_partition(std::move(made).error());
}

void Broker::Impl::load_topic(meta::TopicRecord record, const Found* found) {
  const auto layout = parse_layout(record.layout);
  const storage::Store* const store = layout ? stores.of(*layout) : nullptr;
  if (store == nullptr) {
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
  topic->config = config_of(record, *layout);
  topic->overrides = record.configs;
  topic->overrides.erase(suspended_mark);
  const auto config = std::make_shared<const TopicConfig>(topic->config);
  const std::size_t missing_before = missing.size();
  std::int32_t made = 0;
  for (std::int32_t index = 0; index < record.partitions; ++index) {
    if (store->find({topic->name, index}) == nullptr) ++made;
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

void Broker::Impl::adopt(const std::string& name, storage::Layout layout, const Found& found) {
  if (name == kraft_metadata) return;
  Result<void> named = check_topic_name(name);
  if (named) {
    named = stored_topic(stores.of(layout)->traits().native, name).map([](const std::string&) {});
  }
  if (!named) {
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
  record.layout = layout_name(layout);
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
