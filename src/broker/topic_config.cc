#include "broker/topic_config.h"

#include <algorithm>

#include "base/assert.h"
#include "broker/config_value.h"
#include "broker/shared_log_keys.h"
#include "broker/topic_keys.h"

namespace polylog::broker {
namespace {

constexpr std::int64_t unlimited = INT64_MAX;
constexpr std::int64_t internal_segment_bytes_min = 14;
constexpr std::string_view internal_segment_bytes = "internal.segment.bytes";

using Values = std::map<std::string, std::string>;
using Source = ConfigEntry::Source;

// One key's value after overrides and defaults: already in the topic key's own unit.
struct Effective {
  std::string value;
  Source source = Source::default_value;
};

// The broker's word on a topic key, checked, or nothing.
Result<std::optional<std::string>> broker_value(const TopicKey& rule, const Values& defaults) {
  for (const BrokerSynonym& synonym : broker_synonyms()) {
    if (synonym.topic_key != rule.key.name) continue;
    const auto given = defaults.find(std::string(synonym.name));
    if (given == defaults.end()) continue;
    std::string value(trimmed(given->second));
    if (synonym.unit_ms > 1) {
      POLYLOG_ASSIGN(count, parse_integer(synonym.name, value, INT32_MIN, INT32_MAX));
      // Below nothing is no limit, in any unit: log.retention.hours = -1.
      value = std::to_string(count < 0 ? -1 : count * synonym.unit_ms);
    }
    POLYLOG_TRY(check_topic_value(rule, synonym.name, value));
    if (rule.key.name == "retention.ms" && value == "0") {
      return fail(Errc::invalid, std::string(synonym.name) + " = 0: must be -1 or at least 1");
    }
    return std::optional(std::move(value));
  }
  return std::optional<std::string>();
}

Result<Effective> effective(const TopicKey& rule, const Values& overrides,
                            const Values& defaults) {
  if (const auto own = overrides.find(std::string(rule.key.name)); own != overrides.end()) {
    POLYLOG_TRY(check_topic_value(rule, rule.key.name, own->second));
    return Effective{std::string(trimmed(own->second)), Source::topic};
  }
  POLYLOG_ASSIGN(from_broker, broker_value(rule, defaults));
  if (from_broker) return Effective{std::move(*from_broker), Source::broker};
  return Effective{std::string(rule.key.default_value), Source::default_value};
}

using EffectiveValues = std::map<std::string_view, Effective>;

// The layout a topic was made in is its own, whatever the broker's default has become.
Result<void> keep_layout(EffectiveValues& all, storage::Layout layout) {
  Effective& shown = all.at("polylog.layout");
  if (shown.value == layout_name(layout)) return {};
  if (shown.source == Source::topic) {
    return fail(Errc::invalid, "a topic stays in the layout it was created in");
  }
  shown = {std::string(layout_name(layout)), Source::topic};
  return {};
}

Result<EffectiveValues> all_effective(const Values& overrides, const Values& defaults,
                                      std::optional<storage::Layout> layout) {
  EffectiveValues all;
  for (const TopicKey& rule : topic_keys()) {
    POLYLOG_ASSIGN(value, effective(rule, overrides, defaults));
    all.emplace(rule.key.name, std::move(value));
  }
  if (layout) POLYLOG_TRY(keep_layout(all, *layout));
  return all;
}

storage::Layout layout_of(const EffectiveValues& all) {
  return parse_layout(all.at("polylog.layout").value).value_or(storage::Layout::kafka);
}

// After check_topic_value has accepted the text.
std::int64_t integer_of(const EffectiveValues& all, std::string_view name) {
  const auto value = parse_integer(name, all.at(name).value, INT64_MIN, INT64_MAX);
  POLYLOG_ASSERT(value.has_value());
  return *value;
}

std::int32_t int_of(const EffectiveValues& all, std::string_view name) {
  return static_cast<std::int32_t>(integer_of(all, name));
}

Result<void> check_names(const Values& overrides) {
  for (const auto& [name, value] : overrides) {
    if (find_topic_key(name) != nullptr || name == internal_segment_bytes) continue;
    for (const std::string_view gone : {"message.format.version",
                                        "message.timestamp.difference.max.ms",
                                        "message.downconversion.enable"}) {
      if (name == gone) {
        return fail(Errc::invalid, name + " has been gone since Kafka 4.0");
      }
    }
    std::vector<std::string_view> known;
    for (const TopicKey& key : topic_keys()) known.push_back(key.key.name);
    std::string_view meant = nearest_name(name, known);
    for (const BrokerSynonym& synonym : broker_synonyms()) {
      if (synonym.name == name) meant = synonym.topic_key;
    }
    std::string message = "there is no topic setting '" + name.substr(0, 128) + "'";
    if (!meant.empty()) message += "; did you mean " + std::string(meant) + "?";
    return fail(Errc::invalid, std::move(message));
  }
  return {};
}

// What Kafka's two flush settings ask for, if anything. Each is satisfied by the policy returned,
// which may be stricter: polylog has nothing between every message and none.
std::optional<FlushPolicy> kafka_flush(std::int64_t messages, std::int64_t ms) {
  if (messages < unlimited || ms == 0) return FlushPolicy{FlushPolicy::Kind::ack, 0};
  if (ms < unlimited) return FlushPolicy{FlushPolicy::Kind::interval, ms};
  return std::nullopt;
}

// The same, of one level alone: only the values whose source it is.
std::optional<FlushPolicy> kafka_flush_of(const EffectiveValues& all, Source level) {
  const bool messages = all.at("flush.messages").source == level;
  const bool ms = all.at("flush.ms").source == level;
  return kafka_flush(messages ? integer_of(all, "flush.messages") : unlimited,
                     ms ? integer_of(all, "flush.ms") : unlimited);
}

struct Flush {
  FlushPolicy policy;
  Source source = Source::default_value;
};

// What flushDiskType says of the topic's layout: it speaks of that alone, so it outranks what the
// broker says of all.
Result<std::optional<FlushPolicy>> layout_flush(const EffectiveValues& all,
                                                const Values& defaults) {
  if (layout_of(all) != storage::Layout::rocketmq) return std::optional<FlushPolicy>();
  return shared_log_flush(defaults);
}

// Topic before broker; on one level polylog.flush and Kafka's two must say the same. Where the
// topic sets one of Kafka's two, the broker's other still counts, as it does in Kafka.
Result<Flush> resolve_flush(const EffectiveValues& all, const Values& defaults) {
  const Effective& own = all.at("polylog.flush");
  POLYLOG_ASSIGN(of_layout, layout_flush(all, defaults));
  for (const Source level : {Source::topic, Source::broker}) {
    if (level == Source::broker && of_layout) return Flush{*of_layout, level};
    const auto asked = kafka_flush_of(all, level);
    if (own.source == level) {
      POLYLOG_ASSIGN(policy, FlushPolicy::parse(own.value));
      if (asked && *asked != policy) {
        return fail(Errc::invalid, "polylog.flush = " + policy.to_string() +
                                       " contradicts flush.messages or flush.ms, which mean " +
                                       asked->to_string());
      }
      return Flush{policy, level};
    }
    if (!asked) continue;
    const bool outranked =
        level == Source::topic && (own.source == Source::broker || of_layout.has_value());
    const auto merged = kafka_flush(integer_of(all, "flush.messages"), integer_of(all, "flush.ms"));
    return Flush{outranked ? *asked : *merged, level};
  }
  return Flush{};
}

// A local limit is part of the whole one; only a topic that sets one of its own is held to it.
Result<void> check_local_limit(const EffectiveValues& all, std::string_view local,
                               std::string_view whole) {
  if (all.at(local).source != Source::topic) return {};
  const std::int64_t part = integer_of(all, local);
  const std::int64_t limit = integer_of(all, whole);
  if (part == -2 || limit == -1) return {};
  if (part >= 0 && part <= limit) return {};
  return fail(Errc::invalid, std::string(local) + " = " + std::to_string(part) + " is over " +
                                 std::string(whole) + " = " + std::to_string(limit));
}

Result<void> check_across(const EffectiveValues& all) {
  if (integer_of(all, "min.compaction.lag.ms") > integer_of(all, "max.compaction.lag.ms")) {
    return fail(Errc::invalid, "min.compaction.lag.ms is over max.compaction.lag.ms");
  }
  POLYLOG_TRY(check_local_limit(all, "local.retention.ms", "retention.ms"));
  return check_local_limit(all, "local.retention.bytes", "retention.bytes");
}

Result<void> fill_cleanup(TopicConfig& config, const EffectiveValues& all) {
  POLYLOG_ASSIGN(policies, parse_list("cleanup.policy", all.at("cleanup.policy").value));
  const auto has = [&](std::string_view word) {
    return std::find(policies.begin(), policies.end(), word) != policies.end();
  };
  config.compact = has("compact");
  config.delete_policy = has("delete");
  if (!config.delete_policy) {
    // The latest value of each key must stay, however old: time and size delete nothing.
    config.log.retention_ms = -1;
    config.log.retention_bytes = -1;
  }
  return {};
}

storage::LogConfig log_config(const EffectiveValues& all) {
  storage::LogConfig log;
  log.segment_bytes = integer_of(all, "segment.bytes");
  log.segment_ms = integer_of(all, "segment.ms");
  log.segment_jitter_ms = integer_of(all, "segment.jitter.ms");
  log.segment_index_bytes = integer_of(all, "segment.index.bytes");
  log.index_interval_bytes = integer_of(all, "index.interval.bytes");
  log.retention_bytes = integer_of(all, "retention.bytes");
  log.retention_ms = integer_of(all, "retention.ms");
  log.file_delete_delay_ms = integer_of(all, "file.delete.delay.ms");
  return log;
}

// A store with one log for all topics deletes whole files of it, whoever's records they hold.
std::int64_t kept_ms(std::int64_t retention_ms, std::int64_t reserved_ms) {
  return retention_ms < 0 ? reserved_ms : std::min(retention_ms, reserved_ms);
}

std::string in_hours(std::int64_t ms) { return std::to_string(ms / 3600000) + " hours"; }

// What a topic asks for must be what its layout can do; a broker's default is only cut to it.
Result<void> check_compaction(const EffectiveValues& all, const TopicConfig& config) {
  if (!config.compact) return {};
  return fail(Errc::invalid, "cleanup.policy = " + all.at("cleanup.policy").value +
                                 ": a topic in the " + std::string(layout_name(config.layout)) +
                                 " layout can't be compacted");
}

Result<void> check_shared_log(const EffectiveValues& all, const TopicConfig& config,
                              std::int64_t reserved_ms) {
  const std::string layout(layout_name(config.layout));
  if (!config.delete_policy && all.at("cleanup.policy").source == Source::topic) {
    return fail(Errc::invalid, "cleanup.policy must contain delete: the " + layout +
                                   " layout keeps no record longer than fileReservedTime, " +
                                   in_hours(reserved_ms));
  }
  if (all.at("retention.ms").source != Source::topic) return {};
  const std::int64_t asked = integer_of(all, "retention.ms");
  if (asked == kept_ms(asked, reserved_ms)) return {};
  return fail(Errc::invalid, "retention.ms = " + std::to_string(asked) + ": the " + layout +
                                 " layout keeps no record longer than fileReservedTime, " +
                                 in_hours(reserved_ms) + " (" + std::to_string(reserved_ms) +
                                 " ms)");
}

Result<TopicConfig> resolve(const Values& overrides, const Values& defaults,
                            std::optional<storage::Layout> layout, bool asked_now) {
  POLYLOG_TRY(check_names(overrides));
  POLYLOG_ASSIGN(all, all_effective(overrides, defaults, layout));
  POLYLOG_TRY(check_across(all));
  TopicConfig config;
  config.layout = layout_of(all);
  config.log = log_config(all);
  if (const auto given = overrides.find(std::string(internal_segment_bytes));
      given != overrides.end()) {
    POLYLOG_ASSIGN(bytes, parse_integer(given->first, given->second, internal_segment_bytes_min,
                                        INT32_MAX));
    config.log.segment_bytes = bytes;
  }
  POLYLOG_TRY(fill_cleanup(config, all));
  if (config.layout != storage::Layout::kafka) {
    if (asked_now) POLYLOG_TRY(check_compaction(all, config));
    config.compact = false;
  }
  if (config.layout == storage::Layout::rocketmq) {
    POLYLOG_ASSIGN(shared, shared_log_config(defaults));
    if (asked_now) POLYLOG_TRY(check_shared_log(all, config, shared.reserved_ms));
    config.log.retention_ms = kept_ms(config.log.retention_ms, shared.reserved_ms);
  }
  POLYLOG_ASSIGN(flush, resolve_flush(all, defaults));
  config.flush = flush.policy;
  config.max_message_bytes = int_of(all, "max.message.bytes");
  config.min_insync_replicas = int_of(all, "min.insync.replicas");
  config.timestamp_type = all.at("message.timestamp.type").value == "LogAppendTime"
                              ? TimestampType::log_append_time
                              : TimestampType::create_time;
  config.timestamp_before_max_ms = integer_of(all, "message.timestamp.before.max.ms");
  config.timestamp_after_max_ms = integer_of(all, "message.timestamp.after.max.ms");
  config.compression_type = all.at("compression.type").value;
  config.gzip_level = int_of(all, "compression.gzip.level");
  config.lz4_level = int_of(all, "compression.lz4.level");
  config.zstd_level = int_of(all, "compression.zstd.level");
  return config;
}

// A default retention that the layout cuts is shown as what it comes to.
void show_kept(EffectiveValues& all, const Values& defaults) {
  Effective& shown = all.at("retention.ms");
  const auto shared = shared_log_config(defaults);
  if (!shared || shown.source == Source::topic) return;
  const std::int64_t asked = integer_of(all, "retention.ms");
  const std::int64_t kept = kept_ms(asked, shared->reserved_ms);
  if (kept == asked) return;
  const bool set = defaults.contains("fileReservedTime");
  shown = {std::to_string(kept), set ? Source::broker : Source::default_value};
}

}  // namespace

std::string_view layout_name(storage::Layout layout) {
  switch (layout) {
    case storage::Layout::kafka: return "kafka";
    case storage::Layout::rocketmq: return "rocketmq";
    case storage::Layout::segment: return "segment";
  }
  return "";
}

std::optional<storage::Layout> parse_layout(std::string_view name) {
  using storage::Layout;
  for (const Layout layout : {Layout::kafka, Layout::rocketmq, Layout::segment}) {
    if (name == layout_name(layout)) return layout;
  }
  return std::nullopt;
}

std::string FlushPolicy::to_string() const {
  switch (kind) {
    case Kind::ack: return "ack";
    case Kind::interval: return "interval:" + std::to_string(interval_ms);
    case Kind::never: return "never";
  }
  return "ack";
}

Result<FlushPolicy> FlushPolicy::parse(std::string_view text) {
  constexpr std::string_view prefix = "interval:";
  const std::string_view word = trimmed(text);
  if (word == "ack") return FlushPolicy{Kind::ack, 0};
  if (word == "never") return FlushPolicy{Kind::never, 0};
  if (word.starts_with(prefix)) {
    POLYLOG_ASSIGN(ms, parse_integer("interval", word.substr(prefix.size()), 1, INT64_MAX - 1));
    return FlushPolicy{Kind::interval, ms};
  }
  return fail(Errc::invalid, "must be ack, interval:MS or never");
}

Result<TopicConfig> resolve_topic_config(const Values& overrides, const Values& defaults,
                                         std::optional<storage::Layout> layout) {
  return resolve(overrides, defaults, layout, false);
}

Result<TopicConfig> accept_topic_config(const Values& overrides, const Values& defaults,
                                        std::optional<storage::Layout> layout) {
  return resolve(overrides, defaults, layout, true);
}

std::vector<ConfigEntry> describe_topic_config(const Values& overrides, const Values& defaults,
                                               std::optional<storage::Layout> layout) {
  std::vector<ConfigEntry> entries;
  auto resolved = all_effective(overrides, defaults, layout);
  if (!resolved) return entries;
  EffectiveValues& all = *resolved;
  if (layout_of(all) == storage::Layout::rocketmq) show_kept(all, defaults);
  if (const auto flush = resolve_flush(all, defaults)) {
    const FlushPolicy& policy = flush->policy;
    const bool ack = policy.kind == FlushPolicy::Kind::ack;
    const bool timed = policy.kind == FlushPolicy::Kind::interval;
    const auto settle = [&](std::string_view name, std::string value) {
      if (all.at(name).source != Source::topic) all.at(name) = {std::move(value), flush->source};
    };
    settle("flush.messages", std::to_string(ack ? 1 : unlimited));
    settle("flush.ms", std::to_string(timed ? policy.interval_ms : unlimited));
    settle("polylog.flush", policy.to_string());
  }
  for (const ConfigKey& key : topic_config_keys()) {
    Effective& value = all.at(key.name);
    entries.push_back({&key, std::move(value.value), value.source});
  }
  return entries;
}

}  // namespace polylog::broker
