#include "cli/config.h"

#include <algorithm>

#include "cli/command.h"
#include "cli/config_view.h"
#include "cli/json.h"
#include "cli/text.h"

namespace polylog::cli {
namespace {

struct Scope {
  ConfigResource resource = ConfigResource::topic;
  std::string name;   // empty: all brokers
  std::string words;  // "topic 'orders'"
  std::string kind;   // topic, broker, group, cluster
};

// The scope, and what stands behind it in `rest`.
Result<Scope> parse_scope(const std::vector<std::string>& words, std::vector<std::string>& rest) {
  Scope scope;
  scope.kind = words.empty() ? "" : words.front();
  std::size_t used = 1;
  if (scope.kind == "cluster") {
    scope.resource = ConfigResource::broker;
    scope.words = "the cluster";
  } else if (scope.kind == "topic" || scope.kind == "broker" || scope.kind == "group") {
    if (words.size() < 2) return fail(Errc::invalid, "which " + scope.kind + "?");
    scope.name = words[1];
    scope.words = scope.kind + " '" + scope.name + "'";
    used = 2;
    if (scope.kind == "broker") {
      scope.resource = ConfigResource::broker;
      if (!parse_integer(scope.name)) {
        return fail(Errc::invalid, "a broker is named by its number, not '" + scope.name + "'");
      }
    }
    if (scope.kind == "group") scope.resource = ConfigResource::group;
  } else {
    return fail(Errc::invalid,
                "settings belong to a topic, a broker, a group or the cluster, not "
                "to '" +
                    scope.kind + "'");
  }
  rest.assign(words.begin() + static_cast<std::ptrdiff_t>(used), words.end());
  return scope;
}

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

// Set where it is described: not inherited, and no default.
bool own(const Scope& scope, const ConfigSetting& setting) {
  switch (scope.resource) {
    case ConfigResource::topic: return setting.source == 1;
    case ConfigResource::group: return setting.source == 8;
    default: return scope.name.empty() ? setting.source == 3 : setting.source == 2;
  }
}

Result<std::vector<ConfigSetting>> describe(KafkaClient& client, const Scope& scope) {
  auto settings = describe_configs(client, scope.resource, scope.name);
  if (!settings &&
      (settings.error().code == Errc::invalid || settings.error().code == Errc::not_found)) {
    return fail(settings.error().code, scope.words + ": " + settings.error().context);
  }
  if (settings) {
    std::sort(settings->begin(), settings->end(),
              [](const ConfigSetting& a, const ConfigSetting& b) { return a.name < b.name; });
  }
  return settings;
}

void show(const ConfigOptions& options, const Scope& scope,
          const std::vector<ConfigSetting>& settings) {
  if (!options.json) {
    std::vector<std::vector<std::string>> rows = {{"SETTING", "VALUE", "SOURCE"}};
    for (const ConfigSetting& setting : settings) {
      const std::string value = setting.sensitive ? "(secret)" : setting.value.value_or("-");
      rows.push_back({setting.name, value, source_words(setting.source)});
    }
    if (rows.size() > 1) print(format_table(rows));
    return;
  }
  JsonWriter json;
  json.begin_object().field("scope", scope.kind).field("name", scope.name);
  json.key("configs").begin_array();
  for (const ConfigSetting& setting : settings) {
    json.begin_object().field("name", setting.name).key("value");
    if (setting.value) {
      json.value(*setting.value);
    } else {
      json.null();
    }
    json.field("source", source_words(setting.source)).field("sensitive", setting.sensitive);
    json.end_object();
  }
  json.end_array().end_object();
  print(json.take() + "\n");
}

// Parses the scope, connects, runs, reports. `run` gets what stands behind the scope.
template <typename F>
int with_scope(const ConfigOptions& options, bool more, F&& run) {
  std::vector<std::string> rest;
  const auto scope = parse_scope(options.words, rest);
  if (!scope) return complain(scope.error().context, exit_usage);
  if (more && rest.empty()) return complain("which settings of " + scope->words + "?", exit_usage);
  auto client = KafkaClient::connect(options.client);
  if (!client) return complain(client.error().context);
  const Result<int> code = run(**client, *scope, rest);
  if (!code) return complain(code.error().context);
  return finished(stdout, *code);
}

Result<int> alter(KafkaClient& client, const ConfigOptions& options, const Scope& scope,
                  const std::vector<ConfigChange>& changes) {
  POLYLOG_ASSIGN(answer,
                 alter_configs(client, scope.resource, scope.name, changes, options.dry_run));
  if (answer.error_code != 0) {
    return complain(scope.words +
                    " was not altered: " + wire_error(answer.error_code, answer.error_message));
  }
  if (options.json) {
    JsonWriter json;
    json.begin_object().field("scope", scope.kind).field("name", scope.name);
    json.field("altered", !options.dry_run).end_object();
    print(json.take() + "\n");
  } else {
    print((options.dry_run ? "would alter " : "altered ") + scope.words + "\n");
  }
  return exit_done;
}

}  // namespace

int config_list(const ConfigOptions& options) {
  return with_scope(options, false,
                    [&](KafkaClient& client, const Scope& scope,
                        const std::vector<std::string>& rest) -> Result<int> {
                      if (!rest.empty()) {
                        return complain("list takes no '" + rest.front() + "'", exit_usage);
                      }
                      POLYLOG_ASSIGN(settings, describe(client, scope));
                      if (!options.all) {
                        std::erase_if(settings, [&](const ConfigSetting& setting) {
                          return !own(scope, setting);
                        });
                      }
                      show(options, scope, settings);
                      return exit_done;
                    });
}

int config_get(const ConfigOptions& options) {
  return with_scope(options, true,
                    [&](KafkaClient& client, const Scope& scope,
                        const std::vector<std::string>& names) -> Result<int> {
                      POLYLOG_ASSIGN(settings, describe(client, scope));
                      std::vector<ConfigSetting> found;
                      int code = exit_done;
                      for (const std::string& name : names) {
                        const auto at = std::find_if(
                            settings.begin(), settings.end(),
                            [&](const ConfigSetting& setting) { return setting.name == name; });
                        if (at == settings.end()) {
                          code = complain(scope.words + " has no setting '" + name + "'");
                        } else {
                          found.push_back(*at);
                        }
                      }
                      show(options, scope, found);
                      return code;
                    });
}

int config_set(const ConfigOptions& options) {
  return with_scope(options, true,
                    [&](KafkaClient& client, const Scope& scope,
                        const std::vector<std::string>& pairs) -> Result<int> {
                      std::vector<ConfigChange> changes;
                      for (const std::string& pair : pairs) {
                        const std::size_t equals = pair.find('=');
                        if (equals == std::string::npos || equals == 0) {
                          return complain("set takes key=value, not '" + pair + "'", exit_usage);
                        }
                        changes.push_back({pair.substr(0, equals), pair.substr(equals + 1)});
                      }
                      return alter(client, options, scope, changes);
                    });
}

int config_unset(const ConfigOptions& options) {
  return with_scope(options, true,
                    [&](KafkaClient& client, const Scope& scope,
                        const std::vector<std::string>& names) -> Result<int> {
                      std::vector<ConfigChange> changes;
                      for (const std::string& name : names) {
                        changes.push_back({name, "", ConfigChange::Operation::erase});
                      }
                      return alter(client, options, scope, changes);
                    });
}

}  // namespace polylog::cli
