// Creating, deleting and altering topics. The order of the steps, and what a crash between any
// two of them leaves, is in docs/decisions/topic-creation-and-deletion.md.

#include <algorithm>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include "broker/broker_impl.h"
#include "broker/missing_partition.h"

// g++ 12 sees a mismatch where it has inlined how a coroutine's frame is allocated and not how it
// is freed.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

namespace polylog::broker {

namespace {

using TopicError = Broker::TopicError;
using TopicOutcome = Broker::TopicOutcome;

constexpr std::size_t topic_name_max = 249;

bool name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

}  // namespace

TopicOutcome refuse(TopicError error, std::string message) {
  return {error, std::move(message), nullptr};
}

TopicOutcome refuse(const Error& error) {
  const TopicError kind = error.code == Errc::exists ? TopicError::exists : TopicError::storage;
  return refuse(kind, error.to_string());
}

Result<void> check_topic_name(const std::string& name) {
  if (name.empty()) return fail(Errc::invalid, "a topic name can't be empty");
  if (name == "." || name == "..") {
    return fail(Errc::invalid, "a topic can't be called \"" + name + "\"");
  }
  if (name.size() > topic_name_max) {
    return fail(Errc::invalid, "a topic name has at most 249 characters, not " +
                                   std::to_string(name.size()));
  }
  if (!std::all_of(name.begin(), name.end(), name_character)) {
    return fail(Errc::invalid,
                "a topic name has only ASCII letters and digits, '.', '_' and '-'");
  }
  return {};
}

std::string collision_key(std::string_view name) {
  std::string key(name);
  std::replace(key.begin(), key.end(), '.', '_');
  return key;
}

// -------------------------------------------------------------------------------- NameLocks

Async<NameLocks::Hold> NameLocks::acquire(std::string name) {
  std::string key = collision_key(name);
  for (;;) {
    const auto it = held_.find(key);
    if (it == held_.end()) break;
    const std::shared_ptr<Watermark> released = it->second;
    Result<void> ignored = co_await released->reached(1, INT64_MAX);
    static_cast<void>(ignored);
  }
  held_.emplace(key, std::make_shared<Watermark>(context_, 0));
  Hold hold(shared_from_this(), std::move(key));
  co_return std::move(hold);
}

void NameLocks::release(const std::string& key) {
  const auto it = held_.find(key);
  if (it == held_.end()) return;
  const std::shared_ptr<Watermark> released = std::move(it->second);
  held_.erase(it);
  released->advance(1);
}

// ------------------------------------------------------------------------------ the registry

void Broker::Impl::add_topic(std::shared_ptr<Topic> topic) {
  by_collision_key.emplace(collision_key(topic->name), topic->name);
  by_id[topic->id] = topic;
  by_name[topic->name] = std::move(topic);
}

void Broker::Impl::drop_topic(const std::shared_ptr<Topic>& topic) {
  topic->deleting = true;
  by_name.erase(topic->name);
  by_id.erase(topic->id);
  const auto [first, last] = by_collision_key.equal_range(collision_key(topic->name));
  const auto it =
      std::find_if(first, last, [&](const auto& entry) { return entry.second == topic->name; });
  if (it != last) by_collision_key.erase(it);
  for (const std::shared_ptr<Partition>& partition : topic->partitions) {
    partition->remove();
    LogState& state = partition->log_state();
    if (state.shared) continue;
    retries.erase(state.shared_from_this());
    states.erase(state.log.get());
  }
}

void Broker::Impl::tell(const Topic& topic, TopicEvent event) {
  for (const TopicObserver& observer : topic_observers) observer(topic, event);
}

std::shared_ptr<Partition> Broker::Impl::make_partition(
    const Topic& topic, std::int32_t index, std::shared_ptr<storage::PartitionLog> log,
    std::shared_ptr<const TopicConfig> config) {
  TopicPartition id{topic.name, index};
  const storage::Store& store = *stores.of(topic.config.layout);
  // One that stands for a missing partition has a log of its own.
  const bool shared = store.traits().shared_log && store.find(id) == log;
  std::shared_ptr<LogState> state = state_of(log->log(), shared);
  return std::make_shared<Partition>(broker, std::move(id), topic.id, std::move(log),
                                     std::move(state), std::move(config),
                                     store.traits().native);
}

void Broker::Impl::extend(const std::shared_ptr<Topic>& topic, const PartitionLogs& logs,
                          const Error& why_missing) {
  const auto config = std::make_shared<const TopicConfig>(topic->config);
  for (std::shared_ptr<storage::PartitionLog> log : logs) {
    const auto index = static_cast<std::int32_t>(topic->partitions.size());
    if (log == nullptr) {
      missing.push_back({topic, index});
      log = make_missing_partition(why_missing);
    }
    topic->partitions.push_back(make_partition(*topic, index, std::move(log), config));
    submit(topic->partitions.back()->log_state());  // its directory, before any record
  }
}

// ---------------------------------------------------------------------------- on the disk

// The catalogue's commit is the moment a topic exists; load() makes partitions that a crash
// kept from being made. `left` is what of a failure could not be undone at once.
Result<Broker::Impl::PartitionLogs> Broker::Impl::make_topic(storage::Store& store,
                                                             const meta::TopicRecord& record,
                                                             const storage::LogConfig& config,
                                                             std::optional<Deletion>& left) {
  if (Result<void> stored = catalog->create_topic(record); !stored) {
    if (stored.error().code == Errc::exists) return fail(std::move(stored).error());
    // Whether a failed commit took effect is not known.
    const Result<void> undone = catalog->delete_topic(record.name);
    if (!undone && undone.error().code != Errc::not_found) left = Deletion{record};
    return fail(std::move(stored).error());
  }
  PartitionLogs logs;
  for (std::int32_t index = 0; index < record.partitions; ++index) {
    auto log = store.create({record.name, index}, record.id, config);
    if (!log) {
      Error error = std::move(log).error();
      if (error.code == Errc::exists) error.code = Errc::io;  // a directory nobody knows
      logs.clear();
      Deletion undoing{record};
      if (!remove_topic(undoing)) left = std::move(undoing);
      return fail(std::move(error));
    }
    logs.push_back(std::move(*log));
  }
  return logs;
}

// From here on the topic never comes back: load() finishes what a crash interrupts.
Result<void> Broker::Impl::mark_deleting(const meta::TopicRecord& record) {
  auto configs = record.configs;
  configs[deleting_mark] = "true";
  POLYLOG_TRY(catalog->set_configs(record.name, configs));
  if (stores.grants) stores.grants->topic_deleting(record.name);
  return {};
}

// Goes on where it stopped. Partitions that are gone are no error, except one whose removal
// failed before: whether its directory is really gone only the next start can tell, and until
// then the marked row must stay.
Result<void> Broker::Impl::remove_marked(Deletion& deletion) {
  const meta::TopicRecord& record = deletion.record;
  const auto layout = parse_layout(record.layout);
  storage::Store* const store = layout ? stores.of(*layout) : nullptr;
  if (store == nullptr) {
    return fail(Errc::unsupported, "layout " + record.layout + " is not available in this build");
  }
  for (; deletion.next < record.partitions; ++deletion.next) {
    const Result<void> removed = store->remove({record.name, deletion.next});
    const bool gone = removed || (removed.error().code == Errc::not_found && !deletion.stuck);
    deletion.stuck = !gone;
    if (!gone) return removed;
  }
  const Result<void> forgotten = catalog->delete_topic(record.name);
  if (!forgotten && forgotten.error().code != Errc::not_found) return forgotten;
  if (stores.grants) stores.grants->topic_gone(record.name);
  return {};
}

Result<void> Broker::Impl::remove_topic(Deletion& deletion) {
  const Result<void> marked = mark_deleting(deletion.record);
  if (!marked && marked.error().code != Errc::not_found) return marked;
  return remove_marked(deletion);
}

// ----------------------------------------------------------------------------------- create

TopicOutcome Broker::Impl::check_new(const NewTopic& request, meta::TopicRecord& record,
                                     TopicConfig& config) const {
  const Settings& settings = broker.settings_;
  if (by_name.contains(request.name)) {
    return refuse(TopicError::exists, "Topic '" + request.name + "' already exists.");
  }
  if (deletions.contains(request.name)) {
    return refuse(TopicError::exists, "Topic '" + request.name + "' is still being deleted.");
  }
  const auto twin = by_collision_key.find(collision_key(request.name));
  if (twin != by_collision_key.end()) {
    return refuse(TopicError::invalid_name,
                  "Topic '" + request.name + "' collides with existing topic '" + twin->second +
                      "': names must differ in more than '.' and '_'.");
  }
  record.name = request.name;
  record.partitions = request.partitions == -1 ? settings.num_partitions : request.partitions;
  if (record.partitions < 1) {
    return refuse(TopicError::invalid_partitions, "Number of partitions must be larger than 0.");
  }
  if (record.partitions > partitions_per_topic_max) {
    return refuse(TopicError::invalid_partitions,
                  "A topic has at most " + std::to_string(partitions_per_topic_max) +
                      " partitions here, not " + std::to_string(record.partitions) + ".");
  }
  const std::int16_t replicas = request.replication_factor == -1
                                    ? settings.default_replication_factor
                                    : request.replication_factor;
  if (replicas < 1) {
    return refuse(TopicError::invalid_replication_factor,
                  "Replication factor must be larger than 0.");
  }
  if (replicas > 1) {
    return refuse(TopicError::invalid_replication_factor,
                  "Replication factor: " + std::to_string(replicas) +
                      " larger than available brokers: 1.");
  }
  Result<TopicConfig> resolved = accept_topic_config(request.configs, settings.values());
  if (!resolved) return refuse(TopicError::invalid_config, resolved.error().context);
  config = std::move(*resolved);
  record.layout = layout_name(config.layout);
  const storage::Store* const store = stores.of(config.layout);
  if (store == nullptr) {
    return refuse(TopicError::invalid_config,
                  "layout " + record.layout + " is not available in this build");
  }
  if (const auto stored = stored_topic(store->traits().native, request.name); !stored) {
    return refuse(TopicError::invalid_name, "Topic '" + request.name + "' can't be in the " +
                                                record.layout +
                                                " layout: " + stored.error().context);
  }
  record.configs = request.configs;
  return {};
}

Async<TopicOutcome> Broker::create_topic(NewTopic request) {
  const std::shared_ptr<Impl> impl = impl_;
  if (const Result<void> named = check_topic_name(request.name); !named) {
    co_return refuse(TopicError::invalid_name, named.error().context);
  }
  const NameLocks::Hold hold = co_await impl->names->acquire(request.name);
  if (impl->closing) co_return refuse(TopicError::storage, "the broker is stopping");
  meta::TopicRecord record;
  auto config = std::make_shared<TopicConfig>();
  const std::uint64_t settings_seen = impl->settings_changes;
  TopicOutcome checked = impl->check_new(request, record, *config);
  if (checked.error != TopicError::none || request.validate_only) co_return checked;

  do {
    record.id = Uuid::random();
  } while (impl->by_id.contains(record.id));
  Result<Impl::PartitionLogs> made;
  std::optional<Impl::Deletion> left;
  std::function<void()> make = [&made, &left, &record, &config, &impl] {
    made = impl->make_topic(*impl->stores.of(config->layout), record, config->log, left);
  };
  co_await pool_.run(std::move(make));
  if (!made) {
    // A topic whose creation failed must not show up later.
    if (left) impl->deletions.emplace(record.name, std::move(*left));
    co_return refuse(made.error());
  }
  if (impl->closing) co_return refuse(TopicError::storage, "the broker is stopping");

  auto topic = std::make_shared<Topic>();
  topic->name = record.name;
  topic->id = record.id;
  topic->config = *config;
  topic->overrides = record.configs;
  impl->extend(topic, *made, Error{});
  impl->add_topic(topic);
  if (impl->settings_changes != settings_seen) {
    // The broker's own settings changed while the directories were made.
    Result<TopicConfig> now = impl->config_now(*topic);
    if (now) impl->configure(*topic, std::move(*now));
  }
  impl->tell(*topic, TopicEvent::created);
  checked.topic = std::move(topic);
  co_return checked;
}

// ----------------------------------------------------------------------------------- delete

Async<TopicOutcome> Broker::delete_topic(std::string name) {
  const std::shared_ptr<Impl> impl = impl_;
  const NameLocks::Hold hold = co_await impl->names->acquire(name);
  if (impl->closing) co_return refuse(TopicError::storage, "the broker is stopping");
  const std::shared_ptr<Topic> topic = find(name);
  if (topic == nullptr) co_return refuse(TopicError::unknown, "This server has no such topic.");

  Impl::Deletion deletion;
  deletion.record.name = topic->name;
  deletion.record.id = topic->id;
  deletion.record.partitions = static_cast<std::int32_t>(topic->partitions.size());
  deletion.record.layout = layout_name(topic->config.layout);
  deletion.record.configs = topic->overrides;
  Result<void> done;
  std::function<void()> mark = [&done, &deletion, &impl] {
    done = impl->mark_deleting(deletion.record);
  };
  co_await pool_.run(std::move(mark));
  if (!done) co_return refuse(done.error());

  impl->drop_topic(topic);
  impl->tell(*topic, TopicEvent::deleted);
  std::function<void()> remove = [&done, &deletion, &impl] {
    done = impl->remove_marked(deletion);
  };
  co_await pool_.run(std::move(remove));
  if (!done) {
    impl->report("topic " + name + " is deleted, its files remain for now: " +
                 done.error().to_string());
    impl->deletions.emplace(name, std::move(deletion));
  }
  TopicOutcome outcome;
  outcome.topic = topic;
  co_return outcome;
}

// ------------------------------------------------------------------------------------ alter

Async<TopicOutcome> Broker::alter_topic(std::string name,
                                        std::map<std::string, std::string> configs) {
  ConfigChange change = [configs = std::move(configs)](const auto&) {
    return Result<std::map<std::string, std::string>>(configs);
  };
  TopicOutcome outcome = co_await change_topic(std::move(name), std::move(change), false);
  co_return outcome;
}

Async<TopicOutcome> Broker::change_topic(std::string name, ConfigChange change,
                                         bool validate_only) {
  const std::shared_ptr<Impl> impl = impl_;
  const NameLocks::Hold hold = co_await impl->names->acquire(name);
  if (impl->closing) co_return refuse(TopicError::storage, "the broker is stopping");
  const std::shared_ptr<Topic> topic = find(name);
  if (topic == nullptr) co_return refuse(TopicError::unknown, "This server has no such topic.");
  Result<std::map<std::string, std::string>> configs = change(topic->overrides);
  if (!configs) co_return refuse(TopicError::invalid_config, configs.error().context);
  Result<TopicConfig> resolved =
      accept_topic_config(*configs, settings_.values(), topic->config.layout);
  if (!resolved) co_return refuse(TopicError::invalid_config, resolved.error().context);
  TopicOutcome outcome;
  outcome.topic = topic;
  if (validate_only) co_return outcome;
  Result<void> stored;
  std::function<void()> store = [&stored, &name, &configs, &impl] {
    stored = impl->catalog->set_configs(name, *configs);
  };
  co_await pool_.run(std::move(store));
  if (!stored) co_return refuse(stored.error());
  topic->overrides = std::move(*configs);
  // The broker's own settings may have changed meanwhile.
  Result<TopicConfig> now = impl->config_now(*topic);
  impl->configure(*topic, now ? std::move(*now) : std::move(*resolved));
  co_return outcome;
}

}  // namespace polylog::broker
