#include "convert/plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "broker/broker.h"
#include "broker/broker_impl.h"
#include "broker/topic_keys.h"
#include "broker/transcoder.h"

namespace polylog::convert {
namespace {

using storage::Layout;

Error about(const std::string& topic, const Error& error) {
  return {error.code, "topic " + topic + ": " + error.context};
}

std::string leave_out(const std::string& topic) {
  return " (--exclude '" + topic + "' leaves it out)";
}

Result<void> check_name(const std::string& name, Layout layout) {
  auto good = broker::check_topic_name(name);
  if (good) {
    good = broker::stored_topic(format_of(layout), name).map([](const std::string&) {});
  }
  if (good) return {};
  return fail(good.error().code, good.error().context + leave_out(name));
}

using Values = std::map<std::string, std::string>;

// The broker's settings, with those that were changed while it ran on top.
Values broker_values(const DataDirectory& source, const broker::Settings& settings) {
  using Kind = meta::ConfigScope::Kind;
  Values values = settings.values();
  const meta::ConfigScope scopes[] = {{Kind::brokers, ""},
                                      {Kind::broker, std::to_string(settings.node_id)}};
  for (const meta::ConfigScope& scope : scopes) {
    const auto changed = source.scoped_configs().find(scope);
    if (changed == source.scoped_configs().end()) continue;
    for (const auto& [name, value] : changed->second) values[name] = value;
  }
  return values;
}

// Whether somebody has said how long the topic's records are kept: it itself, or the broker's
// settings. What a Kafka broker's own file said is not known.
bool says_retention(const PlannedTopic& topic, const Values& defaults) {
  if (!topic.config.delete_policy || topic.to.record.configs.contains("retention.ms")) return true;
  const auto synonyms = broker::broker_synonyms();
  return std::any_of(synonyms.begin(), synonyms.end(), [&](const broker::BrokerSynonym& synonym) {
    return synonym.topic_key == "retention.ms" && defaults.contains(std::string(synonym.name));
  });
}

Result<PlannedTopic> plan_topic(const Topic& from, const Options& options,
                                const Values& defaults) {
  PlannedTopic planned;
  planned.from = planned.to = from;
  planned.to.layout = from.kafka_internal ? Layout::kafka : options.layout;
  meta::TopicRecord& record = planned.to.record;
  record.layout = broker::layout_name(planned.to.layout);
  if (from.rocketmq_internal) {
    if (options.layout == Layout::rocketmq) return planned;
    return fail(Errc::unsupported, "it is one of RocketMQ's own and holds messages; only the " +
                                       std::string("rocketmq layout can keep it") +
                                       leave_out(record.name));
  }
  if (!from.kafka_internal && record.name == offsets_topic) {
    return fail(Errc::unsupported, "the name is that of the broker's own topic" +
                                       leave_out(record.name));
  }
  POLYLOG_TRY(check_name(record.name, planned.to.layout));
  bool suspended = record.configs.contains(broker::suspended_mark);
  auto overrides = record.configs;
  overrides.erase(broker::suspended_mark);
  if (!from.kafka_internal || overrides.contains("polylog.layout")) {
    overrides["polylog.layout"] = record.layout;
  }
  auto config = broker::accept_topic_config(overrides, defaults, planned.to.layout);
  if (!config) return fail(config.error());
  planned.config = std::move(*config);
  record.configs = std::move(overrides);
  if (from.settings_known && says_retention(planned, defaults)) suspended = false;
  planned.config.log.retention_suspended = suspended;
  if (suspended) record.configs[broker::suspended_mark] = "true";
  return planned;
}

}  // namespace

Result<std::vector<PlannedTopic>> plan_topics(const DataDirectory& source, const Options& options) {
  std::vector<PlannedTopic> plan;
  std::map<Uuid, std::string> ids;
  std::string unsaid;
  const Values defaults = broker_values(source, options.settings);
  for (const Topic& topic : source.topics()) {
    if (options.exclude.contains(topic.record.name)) continue;
    auto planned = plan_topic(topic, options, defaults);
    if (!planned) return fail(about(topic.record.name, planned.error()));
    const Uuid& id = planned->to.record.id;
    if (!id.is_zero() && !ids.emplace(id, topic.record.name).second) {
      return fail(Errc::invalid, "topics " + ids[id] + " and " + topic.record.name +
                                     " have the same id: they can't be served together");
    }
    if (topic.settings_known && planned->config.log.retention_suspended) {
      unsaid += (unsaid.empty() ? "" : ", ") + topic.record.name;
    }
    plan.push_back(std::move(*planned));
  }
  if (!unsaid.empty()) {
    options.note("how long these topics keep their records was said by Kafka's server.properties, "
                 "which is not in the directory; they keep all until retention.ms is set, unless "
                 "--set log.retention.hours=N says it now: " + unsaid);
  }
  return plan;
}

Surroundings surroundings_of(const PlannedTopic& topic, std::int32_t partition,
                             const broker::Settings& settings) {
  Surroundings around;
  around.topic = topic.to.record.name;
  around.partition = partition;
  around.log_append_time =
      topic.config.timestamp_type == broker::TimestampType::log_append_time;
  around.store_host = broker::parse_origin(settings.shared_log.store_host);
  around.body_bytes_max = static_cast<std::size_t>(settings.shared_log.body_bytes_max);
  return around;
}

}  // namespace polylog::convert
