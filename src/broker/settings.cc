#include "broker/settings.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "broker/config_value.h"
#include "broker/group_settings.h"
#include "broker/shared_log_keys.h"
#include "broker/topic_keys.h"

namespace polylog::broker {
namespace {

using Type = ConfigKey::Type;

constexpr std::int64_t int_max = INT32_MAX;
constexpr std::int64_t short_max = INT16_MAX;
constexpr std::int64_t long_max = INT64_MAX;
constexpr std::int64_t decompressed_bytes_default = 268435456;
constexpr std::int64_t decompressed_factor_default = 64;

struct OwnKey {
  std::string_view name;
  std::string_view default_value;
  Type type;
  std::int64_t min;
  std::int64_t max;
  void (*set)(Settings&, std::int64_t);  // null: the key has no effect, or is set elsewhere
  std::string_view help;
  std::string_view no_effect;
};

// Puts a checked number into a field of any integral type.
template <auto field>
void put(Settings& settings, std::int64_t value) {
  auto& place = settings.*field;
  place = static_cast<std::remove_reference_t<decltype(place)>>(value);
}

constexpr std::string_view own_threads = "polylog sizes its threads by the machine";
constexpr std::string_view kernel_sizes = "the kernel sizes socket buffers";
constexpr std::string_view later = "compaction is not built yet";

constexpr OwnKey own_keys[] = {
    {"advertised.listeners", "", Type::list, 0, 0, nullptr,
     "PLAINTEXT://HOST:PORT that clients are told to connect to; by default the address they "
     "reached the broker at",
     ""},
    {"auto.create.topics.enable", "true", Type::boolean, 0, 1, put<&Settings::auto_create_topics>,
     "A topic that is asked for by name and missing is made", ""},
    {"background.threads", "10", Type::integer, 1, int_max, nullptr,
     "Threads for background work", own_threads},
    {"broker.id", "", Type::integer, 0, int_max, nullptr, "Older name of node.id", ""},
    {"connections.max.idle.ms", "600000", Type::long_integer, -1, long_max,
     put<&Settings::connections_max_idle_ms>,
     "A connection without requests is closed after this time; -1 for never", ""},
    {"controller.quota.window.num", "11", Type::integer, 1, int_max,
     put<&Settings::mutation_quota_windows>,
     "Windows over which controller_mutation_rate is reckoned", ""},
    {"controller.quota.window.size.seconds", "1", Type::integer, 1, int_max,
     put<&Settings::mutation_quota_window_seconds>, "Length of such a window", ""},
    {"default.replication.factor", "1", Type::integer, 1, short_max,
     put<&Settings::default_replication_factor>,
     "Replicas of topics made without a number; more than one can't be met by one node, and "
     "such topics are refused",
     ""},
    {"fetch.max.bytes", "57671680", Type::integer, 1024, int_max, put<&Settings::fetch_max_bytes>,
     "Largest answer to one fetch", ""},
    {"log.cleaner.backoff.ms", "15000", Type::long_integer, 0, long_max, nullptr,
     "Pause of the compactor when there is nothing to do", later},
    {"log.cleaner.dedupe.buffer.size", "134217728", Type::long_integer, 0, long_max, nullptr,
     "Memory for compaction", later},
    {"log.cleaner.enable", "true", Type::boolean, 0, 1, nullptr, "Compaction at all", later},
    {"log.cleaner.io.buffer.load.factor", "0.9", Type::real, 0, 1, nullptr,
     "How full the compactor's map may be", later},
    {"log.cleaner.io.buffer.size", "524288", Type::integer, 0, int_max, nullptr,
     "Read and write buffer of the compactor", later},
    {"log.cleaner.io.max.bytes.per.second", "1.7976931348623157E308", Type::real, 0, long_max,
     nullptr, "Most that compaction may read and write in a second", later},
    {"log.cleaner.threads", "1", Type::integer, 0, int_max, nullptr, "Threads for compaction",
     later},
    {"log.flush.offset.checkpoint.interval.ms", "60000", Type::integer, 1, int_max,
     put<&Settings::checkpoint_interval_ms>,
     "How often recovery points and start offsets are written to their checkpoint files", ""},
    {"log.flush.start.offset.checkpoint.interval.ms", "60000", Type::integer, 0, int_max, nullptr,
     "How often start offsets are written to their checkpoint file",
     "they go with log.flush.offset.checkpoint.interval.ms"},
    {"log.retention.check.interval.ms", "300000", Type::long_integer, 1, long_max,
     put<&Settings::retention_check_interval_ms>,
     "How often segments are looked through for those past retention", ""},
    {"max.connections", "2147483647", Type::integer, 0, int_max, put<&Settings::max_connections>,
     "Connections at a time; one more is closed", ""},
    {"max.decompressed.message.bytes", "", Type::long_integer, 1, long_max,
     put<&Settings::max_decompressed_bytes>,
     "Most that one batch may decompress to; by default 268435456, or 64 times message.max.bytes "
     "where that is more",
     ""},
    {"max.incremental.fetch.session.cache.slots", "1000", Type::integer, 0, int_max,
     put<&Settings::fetch_session_slots>, "Fetch sessions remembered at a time", ""},
    {"node.id", "1", Type::integer, 0, int_max, put<&Settings::node_id>,
     "This broker's number in Kafka's metadata", ""},
    {"num.io.threads", "8", Type::integer, 1, int_max, nullptr, "Threads for requests",
     own_threads},
    {"num.network.threads", "3", Type::integer, 1, int_max, nullptr, "Threads for connections",
     own_threads},
    {"num.partitions", "1", Type::integer, 1, int_max, put<&Settings::num_partitions>,
     "Partitions of topics made without a number", ""},
    {"num.recovery.threads.per.data.dir", "2", Type::integer, 1, int_max, nullptr,
     "Threads for recovery", own_threads},
    {"polylog.journal", "false", Type::boolean, 0, 1, put<&Settings::journal>,
     "One journal makes the small writes of many partitions durable at once", ""},
    {"polylog.journal.bytes", "134217728", Type::long_integer, 1 << 20, long_max,
     put<&Settings::journal_bytes>, "Size of the journal's file, which is written in advance", ""},
    {"producer.id.expiration.check.interval.ms", "600000", Type::integer, 1, int_max,
     put<&Settings::producer_id_expiration_check_ms>,
     "How often idempotent producers are looked through for those past expiration", ""},
    {"producer.id.expiration.ms", "86400000", Type::integer, 1, int_max,
     put<&Settings::producer_id_expiration_ms>,
     "An idempotent producer silent for this long is forgotten", ""},
    {"queued.max.requests", "500", Type::integer, 1, int_max, nullptr,
     "Requests waiting for a thread", "requests wait in their connection"},
    {"quota.window.num", "11", Type::integer, 1, int_max, put<&Settings::quota_windows>,
     "Windows over which the rates of client quotas are reckoned", ""},
    {"quota.window.size.seconds", "1", Type::integer, 1, int_max,
     put<&Settings::quota_window_seconds>, "Length of such a window", ""},
    {"replica.high.watermark.checkpoint.interval.ms", "5000", Type::long_integer, 0, long_max,
     nullptr, "How often high watermarks are written to their checkpoint file",
     "they go with log.flush.offset.checkpoint.interval.ms"},
    {"socket.receive.buffer.bytes", "102400", Type::integer, -1, int_max, nullptr,
     "Receive buffer of a connection", kernel_sizes},
    {"socket.request.max.bytes", "104857600", Type::integer, 1, int_max,
     put<&Settings::socket_request_max_bytes>, "Largest request", ""},
    {"socket.send.buffer.bytes", "102400", Type::integer, -1, int_max, nullptr,
     "Send buffer of a connection", kernel_sizes},
};

// Those that Kafka changes while it runs. So it does the first name of each topic default.
constexpr std::string_view dynamic_own_keys[] = {
    "background.threads",
    "log.cleaner.backoff.ms",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.io.buffer.load.factor",
    "log.cleaner.io.buffer.size",
    "log.cleaner.io.max.bytes.per.second",
    "log.cleaner.threads",
    "max.connections",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "producer.id.expiration.ms",
};

// Keys of Kafka's that promise something nothing here can keep. A name ending in '.' or '*'
// stands for all that begin with it.
struct Refused {
  std::string_view name;
  std::string_view why;
};
constexpr std::string_view use_data = "the data directory is given with --data";
constexpr std::string_view use_kafka = "the address is given with --kafka";
constexpr std::string_view no_share = "share groups and streams groups are not built yet";
constexpr std::string_view no_transactions = "transactions are not built yet";
constexpr std::string_view no_security = "TLS, SASL and authorisation are not built yet";
constexpr std::string_view one_node = "there is one node, without controllers or replicas";
constexpr Refused refused[] = {
    {"log.dir", use_data},
    {"log.dirs", use_data},
    {"metadata.log.dir", use_data},
    {"cordoned.log.dirs", "there is one data directory"},
    {"log.dir.failure.timeout.ms", "there is one data directory"},
    {"listeners", use_kafka},
    {"listener.", no_security},
    {"ssl.", no_security},
    {"sasl.", no_security},
    {"security.", no_security},
    {"authorizer.class.name", no_security},
    {"super.users", no_security},
    {"allow.everyone.if.no.acl.found", no_security},
    {"delegation.", no_security},
    {"password.", no_security},
    {"process.roles", one_node},
    {"controller.", one_node},
    {"broker.", one_node},
    {"inter.broker.", one_node},
    {"replica.", one_node},
    {"metadata.", one_node},
    {"zookeeper.", one_node},
    {"group.share.", no_share},
    {"group.streams.", no_share},
    {"transaction.", no_transactions},
    {"transactional.", no_transactions},
    {"remote.", "there is no remote storage"},
    {"create.topic.policy.class.name", "there are no plug-ins"},
    {"alter.config.policy.class.name", "there are no plug-ins"},
    {"metric.", "there are no plug-ins"},
    {"metrics.", "metrics are served over --http"},
    {"quota.", "only quota.window.num and quota.window.size.seconds are"},
    {"client.quota.", "there are no plug-ins"},
    {"max.connections.", "connections are limited by max.connections alone"},
    {"max.connection.", "connections are limited by max.connections alone"},
    {"connections.", "connections are limited by max.connections alone"},
    {"log.cleaner.", later},
    {"log.initial.task.delay.ms", "it is internal to Kafka"},
};

const OwnKey* find_own(std::string_view name) {
  const auto* at = std::lower_bound(
      std::begin(own_keys), std::end(own_keys), name,
      [](const OwnKey& key, std::string_view wanted) { return key.name < wanted; });
  return at != std::end(own_keys) && at->name == name ? at : nullptr;
}

bool is_synonym(std::string_view name) {
  const auto all = broker_synonyms();
  return std::any_of(all.begin(), all.end(),
                     [&](const BrokerSynonym& synonym) { return synonym.name == name; });
}

Error unknown(const std::string& name) {
  for (const Refused& rule : refused) {
    const bool family = rule.name.ends_with('.');
    if (family ? name.starts_with(rule.name) : name == rule.name) {
      return {Errc::unsupported, name + " is not supported: " + std::string(rule.why)};
    }
  }
  std::vector<std::string_view> known;
  for (const SettingKey& key : setting_keys()) known.push_back(key.name);
  std::string_view meant = nearest_name(name, known);
  if (const TopicKey* topic = find_topic_key(name); topic != nullptr) {
    meant = topic->key.broker_name;
  }
  std::string message = "there is no setting '" + name.substr(0, 128) + "'";
  if (!meant.empty()) message += "; did you mean " + std::string(meant) + "?";
  return {Errc::invalid, std::move(message)};
}

// PLAINTEXT://host:port, the host of an IPv6 address in brackets.
Result<void> set_advertised(Settings& settings, const std::string& text) {
  constexpr std::string_view key = "advertised.listeners";
  constexpr std::string_view scheme = "PLAINTEXT://";
  const auto wrong = [&](std::string_view rule) {
    return fail(Errc::invalid, std::string(key) + " = '" + text + "': " + std::string(rule));
  };
  POLYLOG_ASSIGN(items, parse_list(key, text));
  if (items.empty()) return {};
  if (items.size() > 1) return wrong("one listener can be advertised");
  std::string_view rest(items.front());
  const std::size_t colons = rest.find("://");
  if (colons == std::string_view::npos) return wrong("must be PLAINTEXT://HOST:PORT");
  if (!rest.starts_with(scheme)) {
    return fail(Errc::unsupported,
                std::string(key) + " = '" + text + "': only PLAINTEXT:// is supported");
  }
  rest.remove_prefix(scheme.size());
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos) return wrong("the port is missing");
  std::string_view host = rest.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return wrong("an IPv6 address stands in brackets");
  }
  if (host.empty() || host.find_first_of("[]/@ ") != std::string_view::npos) {
    return wrong("the host is missing or malformed");
  }
  if (host == "0.0.0.0" || host == "::") return wrong("clients can't connect to this address");
  POLYLOG_ASSIGN(port, parse_integer(key, rest.substr(colon + 1), 1, 65535));
  settings.advertised_host = std::string(host);
  settings.advertised_port = static_cast<std::int32_t>(port);
  return {};
}

Result<void> apply(Settings& settings, const OwnKey& key, const std::string& text) {
  if (key.name == "advertised.listeners") return set_advertised(settings, text);
  if (key.type == Type::real) {
    POLYLOG_TRY(parse_real(key.name, text, 0, std::numeric_limits<double>::max()));
    return {};
  }
  if (key.type == Type::boolean) {
    POLYLOG_ASSIGN(on, parse_boolean(key.name, text));
    if (key.set != nullptr) key.set(settings, on ? 1 : 0);
    return {};
  }
  POLYLOG_ASSIGN(value, parse_integer(key.name, text, key.min, key.max));
  if (key.set != nullptr) key.set(settings, value);
  return {};
}

Result<void> set_node_id(Settings& settings, const std::map<std::string, std::string>& values) {
  const auto old_name = values.find("broker.id");
  if (old_name == values.end()) return {};
  POLYLOG_ASSIGN(id, parse_integer("broker.id", old_name->second, 0, int_max));
  if (values.contains("node.id") && settings.node_id != id) {
    return fail(Errc::invalid, "broker.id and node.id are the same setting and differ");
  }
  settings.node_id = static_cast<std::int32_t>(id);
  return {};
}

std::string synonym_help(const BrokerSynonym& synonym) {
  std::string help = "Default of the topic setting " + std::string(synonym.topic_key);
  if (synonym.name.ends_with(".minutes")) help += ", in minutes";
  if (synonym.name.ends_with(".hours")) help += ", in hours";
  return help;
}

// A layout is chosen when a topic is made: its default is the operator's, not an application's.
bool is_dynamic(const BrokerSynonym& synonym) {
  if (synonym.name == "polylog.layout") return false;
  const auto all = broker_synonyms();
  const auto first = std::find_if(all.begin(), all.end(), [&](const BrokerSynonym& other) {
    return other.topic_key == synonym.topic_key;
  });
  return first->name == synonym.name;
}

std::vector<SettingKey> all_keys() {
  std::vector<SettingKey> all;
  for (const OwnKey& key : own_keys) {
    const bool dynamic = std::find(std::begin(dynamic_own_keys), std::end(dynamic_own_keys),
                                   key.name) != std::end(dynamic_own_keys);
    all.push_back({std::string(key.name), std::string(key.default_value), key.type,
                   std::string(key.help), std::string(key.no_effect), dynamic});
  }
  for (const SharedLogKey& key : shared_log_keys()) {
    all.push_back({std::string(key.name), std::string(key.default_value), key.type,
                   std::string(key.help), std::string(key.no_effect), false});
  }
  for (const GroupSettingKey& key : group_setting_keys()) {
    all.push_back({std::string(key.name), std::string(key.default_value), key.type,
                   std::string(key.help), std::string(key.no_effect), false});
  }
  for (const BrokerSynonym& synonym : broker_synonyms()) {
    const ConfigKey& topic = find_topic_key(synonym.topic_key)->key;
    const bool same = synonym.default_value == "=";
    const Type type = synonym.unit_ms > 1 ? Type::integer : topic.type;
    all.push_back({std::string(synonym.name),
                   std::string(same ? topic.default_value : synonym.default_value), type,
                   synonym_help(synonym), std::string(topic.no_effect), is_dynamic(synonym)});
  }
  std::sort(all.begin(), all.end(),
            [](const SettingKey& a, const SettingKey& b) { return a.name < b.name; });
  return all;
}

}  // namespace

const std::vector<SettingKey>& setting_keys() {
  static const std::vector<SettingKey> all = all_keys();
  return all;
}

const SettingKey* find_setting_key(std::string_view name) {
  const std::vector<SettingKey>& all = setting_keys();
  const auto at = std::lower_bound(
      all.begin(), all.end(), name,
      [](const SettingKey& key, std::string_view wanted) { return key.name < wanted; });
  return at != all.end() && at->name == name ? &*at : nullptr;
}

Result<Settings> Settings::changed(const std::map<std::string, std::string>& values) const {
  POLYLOG_ASSIGN(next, from(values));
  POLYLOG_ASSIGN(plain, from(values_));
  next.shared_log = shared_log;
  next.groups = groups;
  // Fewer than asked for: no more descriptors than those are to be had.
  if (max_connections < plain.max_connections) {
    next.max_connections = std::min(next.max_connections, max_connections);
  }
  return next;
}

Result<Settings> Settings::from(const std::map<std::string, std::string>& values) {
  Settings settings;
  settings.values_ = values;
  for (const auto& [name, value] : values) {
    if (const OwnKey* key = find_own(name); key != nullptr) {
      POLYLOG_TRY(apply(settings, *key, value));
    } else if (find_shared_log_key(name) == nullptr && find_group_setting(name) == nullptr &&
               !is_synonym(name)) {
      return fail(unknown(name));
    }
  }
  POLYLOG_TRY(set_node_id(settings, values));
  // The topic defaults among them, each by its own rule and together.
  for (const BrokerSynonym& synonym : broker_synonyms()) {
    const auto given = values.find(std::string(synonym.name));
    if (given == values.end()) continue;
    const std::map<std::string, std::string> alone{*given};
    POLYLOG_TRY(resolve_topic_config({}, alone));
  }
  POLYLOG_ASSIGN(shared_log, shared_log_config(values));
  POLYLOG_TRY(shared_log_flush(values).map([](const auto&) {}));
  settings.shared_log = std::move(shared_log);
  POLYLOG_ASSIGN(groups, group_settings(values));
  settings.groups = std::move(groups);
  POLYLOG_ASSIGN(topics, accept_topic_config({}, values));
  if (!values.contains("max.decompressed.message.bytes")) {
    settings.max_decompressed_bytes =
        std::max(decompressed_bytes_default,
                 decompressed_factor_default * std::int64_t{topics.max_message_bytes});
  }
  if (const auto layout = values.find("polylog.layout"); layout != values.end()) {
    settings.default_layout = std::string(trimmed(layout->second));
  }
  return settings;
}

}  // namespace polylog::broker
