#include "server/kafka/config_changes.h"

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <charconv>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "broker/config_layers.h"
#include "broker/config_value.h"
#include "broker/group_config.h"
#include "server/kafka/config_codes.h"

namespace polylog::server::kafka {
namespace {

using Values = std::map<std::string, std::string>;
using Kind = ConfigOperation::Kind;
using Type = broker::ConfigKey::Type;

AlterationOutcome refused(ErrorCode code, std::string message) {
  return {code, std::move(message)};
}

std::optional<Type> type_of(std::int8_t resource, const std::string& name) {
  if (resource == group_resource) {
    if (broker::find_group_key(name) != nullptr) return Type::integer;
    return std::nullopt;
  }
  if (resource == broker_resource) {
    const broker::SettingKey* key = broker::find_setting_key(name);
    if (key != nullptr) return key->type;
    return std::nullopt;
  }
  for (const broker::ConfigKey& key : broker::topic_config_keys()) {
    if (key.name == name) return key.type;
  }
  return std::nullopt;
}

// What can be said of a request without looking at what there is.
std::optional<AlterationOutcome> check_shape(const ConfigAlteration& alteration) {
  std::set<std::string_view> names;
  std::string without_value;
  for (const ConfigOperation& operation : alteration.operations) {
    if (!names.insert(operation.name).second) {
      return refused(ErrorCode::invalid_request, "Error due to duplicate config keys");
    }
    if (operation.kind != Kind::erase && !operation.value) {
      without_value += (without_value.empty() ? "" : ", ") + operation.name;
    }
  }
  if (!without_value.empty()) {
    return refused(ErrorCode::invalid_request, "Null value not supported for : " + without_value);
  }
  for (const ConfigOperation& operation : alteration.operations) {
    const auto kind = static_cast<int>(operation.kind);
    if (kind < 0 || kind > 3) {
      return refused(ErrorCode::invalid_request,
                     "Unknown operations type " + std::to_string(kind));
    }
    if (operation.kind != Kind::append && operation.kind != Kind::subtract) continue;
    if (type_of(alteration.resource_type, operation.name) == Type::list) continue;
    const std::string verb = operation.kind == Kind::append ? "append" : "subtract";
    return refused(ErrorCode::invalid_config, "Config value " + verb +
                                                  " is not allowed for config key: " +
                                                  operation.name);
  }
  return std::nullopt;
}

// A list with the words of another added or taken out.
Result<std::string> combine(const std::string& name, const std::string& current,
                            const std::string& change, Kind kind) {
  POLYLOG_ASSIGN(words, broker::parse_list(name, current));
  POLYLOG_ASSIGN(changed, broker::parse_list(name, change));
  for (const std::string& word : changed) {
    const auto found = std::find(words.begin(), words.end(), word);
    if (kind == Kind::append && found == words.end()) words.push_back(word);
    if (kind == Kind::subtract && found != words.end()) words.erase(found);
  }
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ",") + word;
  return list;
}

// The value a list has before words are added to it where the resource sets none itself.
std::string inherited(const Context& context, const ConfigAlteration& alteration,
                      const std::string& name, const Values& current) {
  const Values& settings = context.broker.settings().values();
  if (alteration.resource_type == broker_resource) {
    const auto set = settings.find(name);
    return set == settings.end() ? broker::find_setting_key(name)->default_value : set->second;
  }
  for (const broker::ConfigEntry& entry : broker::describe_topic_config(current, settings)) {
    if (entry.key->name == name) return entry.value;
  }
  return {};
}

// From what is set to what is to be. Runs under the resource's lock.
Result<Values> altered(const Context& context, const ConfigAlteration& alteration,
                       const Values& current) {
  Values next = alteration.replaces ? Values{} : current;
  for (const ConfigOperation& operation : alteration.operations) {
    if (operation.kind == Kind::erase) {
      next.erase(operation.name);
    } else if (operation.kind == Kind::set) {
      next[operation.name] = *operation.value;
    } else {
      const auto own = next.find(operation.name);
      const std::string before = own != next.end()
                                     ? own->second
                                     : inherited(context, alteration, operation.name, next);
      POLYLOG_ASSIGN(list, combine(operation.name, before, *operation.value, operation.kind));
      next[operation.name] = std::move(list);
    }
  }
  return next;
}

std::optional<AlterationOutcome> check_resource(const Context& context,
                                                const ConfigAlteration& alteration) {
  const std::string& name = alteration.resource_name;
  switch (alteration.resource_type) {
    case topic_resource:
      if (name.empty()) {
        return refused(ErrorCode::invalid_request, "Default topic resources are not allowed.");
      }
      if (const auto named = broker::check_topic_name(name); !named) {
        return refused(ErrorCode::invalid_topic_exception, named.error().context);
      }
      return std::nullopt;
    case broker_resource:
      if (name.empty()) return std::nullopt;
      if (auto wrong = wrong_node_name(context, name)) {
        return refused(ErrorCode::invalid_request, std::move(*wrong));
      }
      return std::nullopt;
    case group_resource:
      if (!name.empty()) return std::nullopt;
      return refused(ErrorCode::invalid_request, "Default group resources are not allowed.");
    case logger_resource:
      if (alteration.replaces) break;
      return refused(ErrorCode::invalid_request, "polylog has no log levels to change");
    case client_metrics_resource:
      return refused(ErrorCode::invalid_request,
                     "polylog asks clients for no metrics: there is nothing to subscribe");
    default: break;
  }
  return refused(ErrorCode::invalid_request,
                 "Unknown resource type " + std::to_string(alteration.resource_type));
}

AlterationOutcome outcome_of(const Result<void>& done, std::int8_t resource) {
  if (done) return {};
  if (done.error().code != Errc::invalid) {
    return refused(error_code(done.error().code), done.error().to_string());
  }
  // Kafka's brokers call a bad value of theirs a bad request.
  const ErrorCode code =
      resource == broker_resource ? ErrorCode::invalid_request : ErrorCode::invalid_config;
  return refused(code, done.error().context);
}

void log_change(const ConfigAlteration& alteration) {
  std::string names;
  for (const ConfigOperation& operation : alteration.operations) {
    names += (names.empty() ? ": " : ", ") + operation.name;
  }
  const char* what = "the group ";
  if (alteration.resource_type == topic_resource) what = "topic ";
  if (alteration.resource_type == broker_resource) what = "the broker's settings ";
  log_info("kafka: changed " + (what + alteration.resource_name) + names);
}

Async<AlterationOutcome> alter_one(Context& context, ConfigAlteration alteration,
                                   bool validate_only) {
  std::optional<AlterationOutcome> wrong = check_resource(context, alteration);
  if (!wrong) wrong = check_shape(alteration);
  if (wrong) co_return *wrong;
  broker::Broker::ConfigChange change = [&context, &alteration](const Values& current) {
    return altered(context, alteration, current);
  };
  AlterationOutcome outcome;
  if (alteration.resource_type == topic_resource) {
    std::string name = alteration.resource_name;
    const broker::Broker::TopicOutcome done =
        co_await context.broker.change_topic(std::move(name), std::move(change), validate_only);
    outcome.code = error_code(done.error);
    if (outcome.code != ErrorCode::none) outcome.message = done.message;
  } else {
    using ScopeKind = meta::ConfigScope::Kind;
    meta::ConfigScope scope;
    scope.name = alteration.resource_name;
    if (alteration.resource_type == group_resource) scope.kind = ScopeKind::group;
    if (alteration.resource_type == broker_resource && !scope.name.empty()) {
      scope.kind = ScopeKind::broker;
      scope.name = std::to_string(context.broker.settings().node_id);
    }
    const Result<void> done =
        co_await context.broker.change_settings(std::move(scope), std::move(change), validate_only);
    outcome = outcome_of(done, alteration.resource_type);
  }
  if (outcome.code == ErrorCode::none && !validate_only) log_change(alteration);
  co_return outcome;
}

}  // namespace

std::optional<std::string> wrong_node_name(const Context& context, const std::string& name) {
  std::int32_t id = 0;
  const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), id);
  if (code != std::errc() || end != name.data() + name.size()) {
    return "Node id must be an integer, but it is: " + name;
  }
  const std::int32_t node = context.broker.settings().node_id;
  if (id == node) return std::nullopt;
  return "Unexpected broker id, expected " + std::to_string(node) + ", but received " + name;
}

Async<std::vector<AlterationOutcome>> alter_configs_of(Context& context,
                                                       std::vector<ConfigAlteration> alterations,
                                                       bool validate_only) {
  std::map<std::pair<std::int8_t, std::string>, int> times_named;
  for (const ConfigAlteration& each : alterations) {
    ++times_named[{each.resource_type, each.resource_name}];
  }
  std::vector<AlterationOutcome> outcomes;
  for (ConfigAlteration& each : alterations) {
    if (times_named[{each.resource_type, each.resource_name}] > 1) {
      AlterationOutcome twice =
          refused(ErrorCode::invalid_request, "Each resource must appear at most once.");
      outcomes.push_back(std::move(twice));
      continue;
    }
    ConfigAlteration alteration = std::move(each);
    AlterationOutcome done = co_await alter_one(context, std::move(alteration), validate_only);
    outcomes.push_back(std::move(done));
  }
  co_return outcomes;
}

}  // namespace polylog::server::kafka
