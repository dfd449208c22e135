#include "cli/quota.h"

#include <charconv>
#include <cstdio>

#include "cli/client_quotas.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/text.h"

namespace polylog::cli {
namespace {

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

struct Part {
  const char* type;
  const std::string& name;
  bool standard;
};

std::vector<Part> parts(const QuotaOptions& options) {
  return {{"user", options.user, options.default_user},
          {"client-id", options.client_id, options.default_client_id},
          {"ip", options.ip, options.default_ip}};
}

QuotaEntity entity_of(const QuotaOptions& options) {
  QuotaEntity entity;
  for (const Part& part : parts(options)) {
    if (part.standard) entity[part.type] = std::nullopt;
    if (!part.name.empty()) entity[part.type] = part.name;
  }
  return entity;
}

std::vector<QuotaFilter> filters_of(const QuotaOptions& options) {
  std::vector<QuotaFilter> filters;
  for (const auto& [type, name] : entity_of(options)) {
    QuotaFilter filter;
    filter.entity_type = type;
    filter.match = name ? QuotaFilter::Match::exact : QuotaFilter::Match::standard;
    filter.name = name.value_or("");
    filters.push_back(filter);
  }
  return filters;
}

std::string number(double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return {text, end};
}

// "user alice, client-id app", "user (default)".
std::string words_of(const QuotaEntity& entity) {
  std::string words;
  // Kafka's order: a user's client ids come behind the user.
  for (const char* type : {"user", "client-id", "ip"}) {
    const auto at = entity.find(type);
    if (at == entity.end()) continue;
    words +=
        (words.empty() ? "" : ", ") + std::string(type) + " " + at->second.value_or("(default)");
  }
  return words;
}

void add_entity(JsonWriter& json, const QuotaEntity& entity) {
  json.key("entity").begin_object();
  for (const auto& [type, name] : entity) {
    json.key(type);
    if (name) {
      json.value(*name);
    } else {
      json.null();
    }
  }
  json.end_object();
}

template <typename F>
int with_client(const QuotaOptions& options, F&& run) {
  auto client = KafkaClient::connect(options.client);
  if (!client) return complain(client.error().context);
  const Result<int> code = run(**client);
  if (!code) return complain(code.error().context);
  return finished(stdout, *code);
}

Result<int> alter(KafkaClient& client, const QuotaOptions& options,
                  const std::vector<QuotaChange>& changes) {
  const QuotaEntity entity = entity_of(options);
  POLYLOG_ASSIGN(answer, alter_quotas(client, entity, changes, options.dry_run));
  if (answer.error_code != 0) {
    return complain("quotas of " + words_of(entity) +
                    " were not altered: " + wire_error(answer.error_code, answer.error_message));
  }
  if (options.json) {
    JsonWriter json;
    json.begin_object();
    add_entity(json, entity);
    json.field("altered", !options.dry_run).end_object();
    print(json.take() + "\n");
  } else {
    print((options.dry_run ? "would alter quotas of " : "altered quotas of ") + words_of(entity) +
          "\n");
  }
  return exit_done;
}

constexpr const char* nobody =
    "whose? give --user, --client-id, --ip, or their --default-user, --default-client-id, "
    "--default-ip";

}  // namespace

int quota_list(const QuotaOptions& options) {
  return with_client(options, [&](KafkaClient& client) -> Result<int> {
    POLYLOG_ASSIGN(quotas, list_quotas(client, filters_of(options), false));
    JsonWriter json;
    json.begin_object().key("quotas").begin_array();
    std::vector<std::vector<std::string>> rows = {{"WHO", "QUOTA", "LIMIT"}};
    for (const QuotaView& quota : quotas) {
      json.begin_object();
      add_entity(json, quota.entity);
      json.key("limits").begin_object();
      for (const auto& [key, limit] : quota.limits) {
        json.field(key, limit);
        rows.push_back({words_of(quota.entity), key, number(limit)});
      }
      json.end_object().end_object();
    }
    json.end_array().end_object();
    if (options.json) {
      print(json.take() + "\n");
    } else if (rows.size() > 1) {
      print(format_table(rows));
    }
    return exit_done;
  });
}

int quota_set(const QuotaOptions& options) {
  if (entity_of(options).empty()) return complain(nobody, exit_usage);
  std::vector<QuotaChange> changes;
  for (const std::string& pair : options.words) {
    const std::size_t equals = pair.find('=');
    const std::string text = equals == std::string::npos ? "" : pair.substr(equals + 1);
    double limit = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
    if (text.empty() || equals == 0 || error != std::errc() || end != text.data() + text.size()) {
      return complain("set takes quota=number, not '" + pair + "'", exit_usage);
    }
    changes.push_back({pair.substr(0, equals), limit});
  }
  return with_client(options, [&](KafkaClient& client) { return alter(client, options, changes); });
}

int quota_remove(const QuotaOptions& options) {
  if (entity_of(options).empty()) return complain(nobody, exit_usage);
  return with_client(options, [&](KafkaClient& client) -> Result<int> {
    std::vector<std::string> keys = options.words;
    if (keys.empty()) {
      POLYLOG_ASSIGN(quotas, list_quotas(client, filters_of(options), true));
      for (const QuotaView& quota : quotas) {
        for (const auto& [key, limit] : quota.limits) keys.push_back(key);
      }
    }
    if (keys.empty()) return complain(words_of(entity_of(options)) + " has no quotas");
    std::vector<QuotaChange> changes;
    for (const std::string& key : keys) changes.push_back({key, {}});
    return alter(client, options, changes);
  });
}

}  // namespace polylog::cli
