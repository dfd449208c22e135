#include <algorithm>
#include <charconv>
#include <climits>
#include <set>
#include <utility>

#include "cli/client_quotas.h"
#include "cli/config_view.h"
#include "cli/group_view.h"
#include "cli/kafka_tools/java_errors.h"
#include "cli/kafka_tools/java_text.h"
#include "cli/kafka_tools/table.h"
#include "cli/text.h"
#include "cli/topic_view.h"
#include "protocol/kafka/errors.h"

// kafka-configs: what ConfigCommand prints (Kafka 4.4, tools).
namespace polylog::cli::kafka_tools {
namespace {

using protocol::kafka::ErrorCode;
using Pairs = std::vector<std::pair<std::string, std::string>>;

// What is described or altered; the name is empty for a default, and missing for all.
struct Entity {
  std::string type;  // topics, brokers, groups, users, clients, ips, ...
  std::optional<std::string> name;
};

struct Shortcut {
  const char* flag;
  const char* type;
  bool named;
};
constexpr Shortcut shortcuts[] = {
    {"topic", "topics", true},
    {"client", "clients", true},
    {"client-defaults", "clients", false},
    {"user", "users", true},
    {"user-defaults", "users", false},
    {"broker", "brokers", true},
    {"broker-defaults", "brokers", false},
    {"broker-logger", "broker-loggers", true},
    {"ip", "ips", true},
    {"ip-defaults", "ips", false},
    {"client-metrics", "client-metrics", true},
    {"group", "groups", true},
};

bool of_quotas(const std::string& type) {
  return type == "users" || type == "clients" || type == "ips";
}

ConfigResource resource_of(const std::string& type) {
  if (type == "brokers") return ConfigResource::broker;
  if (type == "groups") return ConfigResource::group;
  if (type == "client-metrics") return ConfigResource::client_metrics;
  return type == "broker-loggers" ? ConfigResource::broker_logger : ConfigResource::topic;
}

std::string singular(const std::string& type) { return type.substr(0, type.size() - 1); }

// The commas of "a=1,b=[2,3]" that stand in no brackets part the settings.
Result<Pairs> parse_settings(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    if (c == '[') ++depth;
    if (c == ']' && depth > 0) --depth;
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else if (c != '[' && c != ']') {
      parts.back() += c;
    }
  }
  Pairs pairs;
  const auto trim = [](const std::string& word) {
    const std::size_t first = word.find_first_not_of(' ');
    if (first == std::string::npos) return std::string();
    return word.substr(first, word.find_last_not_of(' ') - first + 1);
  };
  for (const std::string& part : parts) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) {
      return fail(Errc::invalid,
                  "requirement failed: Invalid entity config: all configs to be "
                  "added must be in the format \"key=val\".");
    }
    pairs.emplace_back(trim(part.substr(0, equals)), trim(part.substr(equals + 1)));
    const std::string& key = pairs.back().first;
    const bool clean = std::all_of(key.begin(), key.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '.' || c == '_' || c == '-';
    });
    if (!clean) return fail(Errc::invalid, "Invalid character found for config key: " + key);
  }
  return pairs;
}

class ConfigCommand {
 public:
  ConfigCommand(const Arguments& arguments, KafkaClient& client, std::vector<Entity> entities)
      : arguments_(arguments), client_(client), entities_(std::move(entities)) {}

  Result<void> describe() {
    if (of_quotas(entities_.front().type)) return describe_quotas();
    const Entity& entity = entities_.front();
    if (entity.type == "topics" && entity.name) {
      const auto found = describe_configs(client_, ConfigResource::topic, *entity.name);
      if (!found && found.error().code == Errc::not_found) {
        print("The topic '" + *entity.name + "' doesn't exist and doesn't have dynamic config.\n");
        return {};
      }
    }
    POLYLOG_ASSIGN(names, described_names(entity));
    for (const std::string& name : names) POLYLOG_TRY(describe_resource(entity.type, name));
    return {};
  }

  Result<void> alter() {
    POLYLOG_TRY(read_changes());
    const Entity& entity = entities_.front();
    if (of_quotas(entity.type)) {
      POLYLOG_TRY(alter_quota());
    } else {
      POLYLOG_TRY(alter_resource(entity));
    }
    print(entity.name->empty()
              ? "Completed updating default config for " + entity.type + " in the cluster.\n"
              : "Completed updating config for " + singular(entity.type) + " " + *entity.name +
                    ".\n");
    return {};
  }

 private:
  Result<std::vector<std::string>> described_names(const Entity& entity) {
    std::vector<std::string> names;
    if (entity.name) return std::vector<std::string>{*entity.name};
    if (entity.type == "topics") {
      POLYLOG_ASSIGN(topics, list_topics(client_));
      for (const TopicView& topic : topics) names.push_back(topic.name);
    } else if (entity.type == "groups") {
      POLYLOG_ASSIGN(groups, Groups(ClientOptions{}, client_).list());
      for (const GroupListing& group : groups) names.push_back(group.id);
      if (const auto more = list_config_resources(client_, ConfigResource::group)) {
        names.insert(names.end(), more->begin(), more->end());
      }
      std::sort(names.begin(), names.end());
      names.erase(std::unique(names.begin(), names.end()), names.end());
    } else if (entity.type == "client-metrics") {
      return list_config_resources(client_, ConfigResource::client_metrics);
    } else {
      POLYLOG_ASSIGN(brokers, list_brokers(client_));
      for (const std::int32_t broker : brokers) names.push_back(std::to_string(broker));
      names.emplace_back();
    }
    return names;
  }

  Result<void> describe_resource(const std::string& type, const std::string& name) {
    const bool all = arguments_.has("all");
    if (name.empty()) {
      print("Default configs for " + type + " in the cluster are:\n");
    } else {
      print(std::string(all ? "All" : "Dynamic") + " configs for " + singular(type) + " " + name +
            " are:\n");
    }
    if (type == "brokers" && !name.empty() && !parse_integer(name)) {
      return fail(Errc::invalid,
                  "The entity name for brokers must be a valid integer broker id, "
                  "found: " +
                      name);
    }
    POLYLOG_ASSIGN(settings, describe_configs(client_, resource_of(type), name));
    std::sort(settings.begin(), settings.end(),
              [](const ConfigSetting& a, const ConfigSetting& b) { return a.name < b.name; });
    for (const ConfigSetting& setting : settings) {
      if (!all && setting.source != own_source(type, name)) continue;
      std::string synonyms;
      for (const ConfigSynonym& synonym : setting.synonyms) {
        synonyms += (synonyms.empty() ? "" : ", ") + source_constant(synonym.source) + ":" +
                    synonym.name + "=" + synonym.value.value_or("null");
      }
      print("  " + setting.name + "=" + setting.value.value_or("null") + " sensitive=" +
            (setting.sensitive ? "true" : "false") + " synonyms={" + synonyms + "}\n");
    }
    return {};
  }

  // Settings from elsewhere are shown with --all only.
  static std::int8_t own_source(const std::string& type, const std::string& name) {
    if (type == "topics") return 1;
    if (type == "brokers") return name.empty() ? 3 : 2;
    if (type == "broker-loggers") return 6;
    return type == "client-metrics" ? 7 : 8;
  }

  static std::string quota_type(const std::string& type) {
    return type == "users" ? "user" : type == "clients" ? "client-id" : "ip";
  }

  Result<std::vector<QuotaView>> find_quotas() {
    std::vector<QuotaFilter> filters;
    for (const Entity& entity : entities_) {
      QuotaFilter filter;
      filter.entity_type = quota_type(entity.type);
      if (entity.name) {
        filter.match =
            entity.name->empty() ? QuotaFilter::Match::standard : QuotaFilter::Match::exact;
        filter.name = *entity.name;
      }
      filters.push_back(filter);
    }
    return list_quotas(client_, filters, true);
  }

  Result<void> describe_quotas() {
    POLYLOG_ASSIGN(quotas, find_quotas());
    for (const QuotaView& quota : quotas) {
      std::string entity, limits;
      for (const auto& [type, words] :
           {std::pair("user", "user-principal"), std::pair("client-id", "client-id"),
            std::pair("ip", "ip")}) {
        const auto at = quota.entity.find(type);
        if (at == quota.entity.end()) continue;
        entity += (entity.empty() ? "" : ", ") +
                  (at->second ? std::string(words) + " '" + *at->second + "'"
                              : "the default " + std::string(words));
      }
      for (const auto& [key, limit] : quota.limits) {
        limits += (limits.empty() ? "" : ", ") + key + "=" + java_double(limit);
      }
      print("Quota configs for " + entity + " are " + limits + "\n");
    }
    return {};
  }

  Result<void> read_changes() {
    for (const std::string& path : arguments_.values("add-config-file")) {
      POLYLOG_ASSIGN(settings, read_properties(path));
      added_.insert(added_.end(), settings.begin(), settings.end());
    }
    for (const std::string& text : arguments_.values("add-config")) {
      POLYLOG_ASSIGN(settings, parse_settings(text));
      added_.insert(added_.end(), settings.begin(), settings.end());
    }
    for (const std::string& text : arguments_.values("delete-config")) {
      std::string word;
      for (const char c : text + ",") {
        if (c == ',' && !word.empty()) removed_.push_back(std::exchange(word, {}));
        if (c != ',' && c != ' ') word += c;
      }
    }
    return {};
  }

  Result<void> alter_resource(const Entity& entity) {
    std::vector<ConfigChange> changes;
    for (const auto& [key, value] : added_) changes.push_back({key, value});
    for (const std::string& key : removed_) {
      changes.push_back({key, "", ConfigChange::Operation::erase});
    }
    POLYLOG_ASSIGN(answer,
                   alter_configs(client_, resource_of(entity.type), *entity.name, changes, false));
    return done(answer);
  }

  Result<void> done(const WireAnswer& answer) {
    if (answer.error_code == 0) return {};
    return fail(Errc::io, "java.util.concurrent.ExecutionException: " + java_exception(answer));
  }

  static bool is_limit(const std::string& type, const std::string& key) {
    if (type == "ips") return key == "connection_creation_rate";
    return key == "producer_byte_rate" || key == "consumer_byte_rate" ||
           key == "request_percentage" || key == "controller_mutation_rate";
  }

  Result<void> check_limits(const std::string& type, const std::vector<std::string>& keys,
                            const std::string& verb) {
    std::string unknown;
    for (const std::string& key : keys) {
      if (is_limit(type, key)) continue;
      if (key.starts_with("SCRAM-")) {
        return fail(Errc::unsupported, "Passwords are not kept here: " + key);
      }
      unknown += (unknown.empty() ? "" : ",") + key;
    }
    if (unknown.empty()) return {};
    const std::string kind = type == "users" && entities_.size() == 1 ? "quota and SCRAM credential"
                             : type == "ips"                          ? "connection quota"
                                                                      : "quota";
    const std::string where = type == "users" && entities_.size() == 2 ? "clients" : type;
    return fail(Errc::invalid,
                "Only " + kind + " configs can be " + verb + " for '" + where +
                    "' using --bootstrap-server. Unexpected config names: " + unknown);
  }

  Result<void> alter_quota() {
    const std::string& type = entities_.front().type;
    std::vector<std::string> keys;
    for (const auto& [key, value] : added_) keys.push_back(key);
    POLYLOG_TRY(check_limits(type, keys, "added"));
    POLYLOG_TRY(check_limits(type, removed_, "deleted"));
    QuotaEntity entity;
    for (const Entity& part : entities_) {
      std::optional<std::string>& name = entity[quota_type(part.type)];
      if (!part.name->empty()) name = *part.name;
    }
    POLYLOG_ASSIGN(before, find_quotas());
    std::string absent;
    for (const std::string& key : removed_) {
      if (!before.empty() && before.front().limits.contains(key)) continue;
      absent += (absent.empty() ? "" : ",") + key;
    }
    if (!absent.empty()) return fail(Errc::invalid, "Invalid config(s): " + absent);
    std::vector<QuotaChange> changes;
    for (const auto& [key, value] : added_) {
      double limit = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), limit);
      if (error != std::errc() || end != value.data() + value.size()) {
        return fail(Errc::invalid,
                    "Cannot parse quota configuration value for " + key + ": " + value);
      }
      changes.push_back({key, limit});
    }
    for (const std::string& key : removed_) changes.push_back({key, {}});
    POLYLOG_ASSIGN(answer, alter_quotas(client_, entity, changes, false));
    return done(answer);
  }

  const Arguments& arguments_;
  KafkaClient& client_;
  const std::vector<Entity> entities_;
  Pairs added_;
  std::vector<std::string> removed_;
};

Result<std::vector<Entity>> parse_entities(const Arguments& arguments) {
  static const std::set<std::string> types = {
      "broker-loggers", "topics", "clients", "users", "brokers", "ips", "client-metrics", "groups"};
  std::vector<Entity> entities;
  for (const std::string& type : arguments.values("entity-type")) {
    if (!types.contains(type)) {
      return fail(Errc::invalid,
                  "Invalid entity type " + type +
                      ", the entity type must be one of broker-loggers, topics, clients, users, "
                      "brokers, ips, client-metrics, groups with a --bootstrap-server or "
                      "--bootstrap-controller argument");
    }
    entities.push_back({type, {}});
  }
  // Names and defaults belong to the types in their order.
  std::size_t at = 0;
  for (const auto& [flag, value] : arguments.in_order()) {
    const bool names = flag == "entity-name" || flag == "entity-default";
    if (names && at < entities.size()) entities[at++].name = value;
  }
  for (const Shortcut& shortcut : shortcuts) {
    if (!arguments.has(shortcut.flag)) continue;
    if (!arguments.values("entity-type").empty()) {
      return fail(Errc::invalid,
                  "--entity-{type,name,default} should not be used in conjunction "
                  "with specific entity flags");
    }
    POLYLOG_ASSIGN(name, arguments.value(shortcut.flag));
    entities.push_back({shortcut.type, shortcut.named ? name : std::optional<std::string>("")});
  }
  if (entities.empty()) return fail(Errc::invalid, "At least one entity type must be specified");
  const bool pair =
      entities.size() == 2 && ((entities[0].type == "users" && entities[1].type == "clients") ||
                               (entities[0].type == "clients" && entities[1].type == "users"));
  if (entities.size() > 1 && !pair) {
    return fail(Errc::invalid, "Only 'users' and 'clients' entity types may be specified together");
  }
  return entities;
}

Result<void> check_flags(const Arguments& arguments, const std::vector<Entity>& entities) {
  if (!arguments.has("alter")) return {};
  const Entity& entity = entities.front();
  if (!entity.name && !of_quotas(entity.type)) {
    return fail(Errc::invalid, "An entity name must be specified with --alter of " + entity.type);
  }
  for (const Entity& each : entities) {
    if (each.name) continue;
    return fail(Errc::invalid,
                "An entity-name or default entity must be specified with --alter of users, "
                "clients or ips");
  }
  const bool any = arguments.has("add-config") || arguments.has("add-config-file") ||
                   arguments.has("delete-config");
  if (!any) {
    return fail(Errc::invalid,
                "At least one of --add-config, --add-config-file, or "
                "--delete-config must be specified with --alter");
  }
  if (arguments.has("add-config") && arguments.has("add-config-file")) {
    return fail(Errc::invalid, "Only one of --add-config or --add-config-file must be specified");
  }
  return {};
}

}  // namespace

std::vector<Flag> configs_flags() {
  using enum Flag::Value;
  return {
      bootstrap_flag(),
      {"bootstrap-controller", required, "Not here: a broker has no controller of its own"},
      command_config_flag(),
      {"describe", none, "Show settings or quotas"},
      {"alter", none, "Change settings or quotas"},
      {"entity-type", required, "topics, brokers, groups, users, clients, ips, client-metrics"},
      {"entity-name", required, "Its name, or the broker's id"},
      {"entity-default", none, "The default of that type"},
      {"all", none, "With --describe: settings from elsewhere as well"},
      {"add-config", required, "key=value,key=[value,value]"},
      {"add-config-file", required, "A file of lines key=value"},
      {"delete-config", required, "key,key: back to the default; quotas: none"},
      {"topic", required, "This topic's settings"},
      {"broker", required, "This broker's settings"},
      {"broker-defaults", none, "Settings of all brokers"},
      {"broker-logger", required, "This broker's log levels"},
      {"group", required, "This group's settings"},
      {"client-metrics", required, "These client metrics' settings"},
      {"user", required, "This user's quotas"},
      {"user-defaults", none, "Quotas of users without their own"},
      {"client", required, "This client id's quotas"},
      {"client-defaults", none, "Quotas of client ids without their own"},
      {"ip", required, "This address's quotas"},
      {"ip-defaults", none, "Quotas of addresses without their own"},
  };
}

int run_configs(const Tool& tool, const Arguments& arguments) {
  if (arguments.has("describe") == arguments.has("alter")) {
    return wrong_usage(tool, "Command must include exactly one action: --describe, --alter");
  }
  if (arguments.has("bootstrap-controller")) {
    return failed("--bootstrap-controller is not supported: use --bootstrap-server");
  }
  if (!arguments.has("bootstrap-server")) {
    return failed(
        "One of the required --bootstrap-server or --bootstrap-controller arguments "
        "must be specified");
  }
  auto entities = parse_entities(arguments);
  if (!entities) return failed(entities.error().context);
  if (auto fine = check_flags(arguments, *entities); !fine) return failed(fine.error().context);
  ClientOptions options;
  auto client = connect(arguments, options);
  if (!client) return failed(client.error().context);
  ConfigCommand command(arguments, **client, std::move(*entities));
  const Result<void> done = arguments.has("alter") ? command.alter() : command.describe();
  if (done) return 0;
  const bool refused = done.error().code == Errc::io;
  return failed((refused ? "Error while executing config command\n" : "") + done.error().context);
}

}  // namespace polylog::cli::kafka_tools
