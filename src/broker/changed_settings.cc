// Settings that are changed while the broker runs: its own, those of all brokers, those of groups;
// and client quotas. The catalogue has each change before anybody sees it.

#include <unordered_set>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include "broker/broker_impl.h"
#include "broker/group_config.h"

namespace polylog::broker {

namespace {

using Values = std::map<std::string, std::string>;
using Kind = meta::ConfigScope::Kind;

// Keys of NameLocks that no topic can have.
const std::string settings_lock = "/settings";
const std::string quotas_lock = "/quotas";

}  // namespace

// New settings of the broker, and what they make of every topic.
struct Broker::Impl::Reconfigured {
  struct Changed {
    std::shared_ptr<Topic> topic;
    Values overrides;  // those it was reckoned with
    storage::Layout layout;
    TopicConfig config;
    bool unusable = false;  // its settings were no good before either: left as it is
  };
  SettingLayers layers;
  Settings settings;
  Values before;  // the settings so far
  std::vector<Changed> topics;

  // Waits for nothing, but takes its time: for a pool thread.
  Result<void> resolve() {
    for (Changed& changed : topics) {
      Result<TopicConfig> config =
          resolve_topic_config(changed.overrides, settings.values(), changed.layout);
      if (!config && !resolve_topic_config(changed.overrides, before, changed.layout)) {
        changed.unusable = true;
        continue;
      }
      if (!config) {
        return fail(Errc::invalid,
                    "topic " + changed.topic->name + ": " + config.error().context);
      }
      changed.config = std::move(*config);
    }
    return {};
  }
};

std::shared_ptr<Broker::Impl::Reconfigured> Broker::Impl::reconfigured(const SettingLayers& next,
                                                                       Settings settings) {
  auto change = std::make_shared<Reconfigured>();
  change->layers = next;
  change->settings = std::move(settings);
  change->before = broker.settings_.values();
  for (const auto& [name, topic] : by_name) {
    Reconfigured::Changed& changed = change->topics.emplace_back();
    changed.topic = topic;
    changed.overrides = topic->overrides;
    changed.layout = topic->config.layout;
  }
  return change;
}

Result<TopicConfig> Broker::Impl::config_now(const Topic& topic) const {
  return resolve_topic_config(topic.overrides, broker.settings_.values(), topic.config.layout);
}

void Broker::Impl::configure(Topic& topic, TopicConfig config) {
  const auto shared = std::make_shared<const TopicConfig>(std::move(config));
  topic.config = *shared;
  for (const std::shared_ptr<Partition>& partition : topic.partitions) partition->configure(shared);
}

void Broker::Impl::put_in_force(Reconfigured& change) {
  layers = std::move(change.layers);
  broker.settings_ = std::move(change.settings);
  ++settings_changes;
  std::unordered_set<const Topic*> known;
  for (Reconfigured::Changed& changed : change.topics) {
    Topic& topic = *changed.topic;
    known.insert(&topic);
    if (topic.deleting || changed.unusable) continue;
    if (topic.overrides != changed.overrides) {
      Result<TopicConfig> now = config_now(topic);
      if (!now) {
        report("topic " + topic.name + " keeps its settings as they were: " +
               now.error().to_string());
        continue;
      }
      changed.config = std::move(*now);
    }
    changed.config.log.retention_suspended = topic.config.log.retention_suspended;
    configure(topic, std::move(changed.config));
  }
  for (const auto& [name, topic] : by_name) {  // those made while the others were reckoned
    if (known.contains(topic.get())) continue;
    if (Result<TopicConfig> now = config_now(*topic)) configure(*topic, std::move(*now));
  }
  for (const auto& observer : setting_observers) observer();
}

// What an earlier run was told. A setting that nothing here can follow any longer is left out, so
// that the broker starts.
Result<void> Broker::Impl::load_changed_settings() {
  layers.fixed = broker.fixed_settings_.values();
  POLYLOG_ASSIGN(scoped, catalog->scoped_configs());
  const std::string node = std::to_string(broker.fixed_settings_.node_id);
  for (auto& [scope, values] : scoped) {
    if (scope.kind == Kind::group) {
      group_overrides[scope.name] = std::move(values);
      continue;
    }
    if (scope.kind == Kind::broker && scope.name != node) continue;
    Values& layer = scope.kind == Kind::broker ? layers.node : layers.cluster;
    for (const auto& [key, value] : values) {
      layer[key] = value;
      Result<void> good = check_dynamic({{key, value}});
      if (good) good = broker.fixed_settings_.changed(layers.merged()).map([](const auto&) {});
      if (good) continue;
      note("the setting " + key + ", changed at run time, is passed over: " +
           good.error().context);
      layer.erase(key);
    }
  }
  if (layers.merged() != layers.fixed) {
    Result<Settings> settings = broker.fixed_settings_.changed(layers.merged());
    if (settings) broker.settings_ = std::move(*settings);
  }
  POLYLOG_ASSIGN(limits, catalog->quotas());
  broker.quotas_.replace(limits);
  return {};
}

const SettingLayers& Broker::setting_layers() const { return impl_->layers; }

void Broker::observe_settings(std::function<void()> observer) {
  impl_->setting_observers.push_back(std::move(observer));
}

Values Broker::group_configs(const std::string& group) const {
  const auto own = impl_->group_overrides.find(group);
  return own == impl_->group_overrides.end() ? Values{} : own->second;
}

std::optional<std::string> Broker::group_config(const std::string& group,
                                                const std::string& key) const {
  const auto own = impl_->group_overrides.find(group);
  if (own == impl_->group_overrides.end()) return std::nullopt;
  const auto value = own->second.find(key);
  if (value == own->second.end()) return std::nullopt;
  return value->second;
}

std::vector<std::string> Broker::configured_groups() const {
  std::vector<std::string> names;
  for (const auto& [name, values] : impl_->group_overrides) names.push_back(name);
  return names;
}

Async<Result<void>> Broker::change_settings(meta::ConfigScope scope, ConfigChange change,
                                            bool validate_only) {
  const std::shared_ptr<Impl> impl = impl_;
  const NameLocks::Hold hold = co_await impl->names->acquire(settings_lock);
  if (impl->closing) co_return fail(Errc::unavailable, "the broker is stopping");
  const bool of_group = scope.kind == Kind::group;
  SettingLayers next = impl->layers;
  Values group = group_configs(scope.name);
  Values* layer = &group;
  if (scope.kind == Kind::broker) layer = &next.node;
  if (scope.kind == Kind::brokers) layer = &next.cluster;
  Result<Values> values = change(*layer);
  if (!values) co_return fail(std::move(values).error());
  Result<void> good =
      of_group ? check_group_configs(*values, settings_.values()) : check_dynamic(*values);
  if (!good) co_return good;
  *layer = *values;
  std::shared_ptr<Impl::Reconfigured> reconfigured;
  if (!of_group) {
    Result<Settings> settings = fixed_settings_.changed(next.merged());
    if (!settings) co_return fail(Errc::invalid, settings.error().context);
    reconfigured = impl->reconfigured(next, std::move(*settings));
  }
  Result<void> done;
  std::function<void()> work = [&done, &reconfigured, &scope, &values, &impl, validate_only] {
    if (reconfigured) done = reconfigured->resolve();
    if (done && !validate_only) done = impl->catalog->set_scoped_configs(scope, *values);
  };
  co_await pool_.run(std::move(work));
  if (!done || validate_only) co_return done;
  if (reconfigured) {
    impl->put_in_force(*reconfigured);
  } else if (values->empty()) {
    impl->group_overrides.erase(scope.name);
  } else {
    impl->group_overrides[scope.name] = std::move(*values);
  }
  co_return done;
}

Async<Result<void>> Broker::change_quotas(std::vector<meta::QuotaChange> changes) {
  const std::shared_ptr<Impl> impl = impl_;
  const NameLocks::Hold hold = co_await impl->names->acquire(quotas_lock);
  if (impl->closing) co_return fail(Errc::unavailable, "the broker is stopping");
  Result<void> stored;
  std::function<void()> store = [&stored, &changes, &impl] {
    stored = impl->catalog->change_quotas(changes);
  };
  co_await pool_.run(std::move(store));
  if (!stored) co_return stored;
  for (const meta::QuotaChange& one : changes) quotas_.apply(one);
  co_return stored;
}

}  // namespace polylog::broker
