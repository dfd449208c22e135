#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "broker/group_settings.h"
#include "broker/topic_config.h"

namespace polylog::broker {

// One accepted key of the broker, for `config` listings and the guide.
struct SettingKey {
  std::string name;
  std::string default_value;
  ConfigKey::Type type;
  std::string help;
  std::string no_effect;  // why it is accepted and changes nothing; "": it acts
  bool dynamic = false;   // can be changed while the broker runs, as in Kafka
};
const std::vector<SettingKey>& setting_keys();  // sorted by name
const SettingKey* find_setting_key(std::string_view name);  // nullptr: unknown

// The broker's settings under the originals' own names (Kafka's server.properties keys, RocketMQ's
// for its layout, and polylog.*), from TOML file and --set, later ones winning. Unknown keys are
// refused with the nearest known name.
class Settings {
 public:
  // Each value as text, the way a properties file has it. invalid: unknown key, value outside its
  // range, contradiction; unsupported: a key of the originals that nothing here can act on.
  static Result<Settings> from(const std::map<std::string, std::string>& values);
  // TOML: dotted keys and tables are flattened: [log] retention.hours = 1 -> log.retention.hours;
  // an array becomes a comma-separated list. `origin` names the text in errors. Keys are not
  // checked here: what --set adds is merged over the result first.
  static Result<std::map<std::string, std::string>> parse_toml(const std::string& text,
                                                               const std::string& origin);

  // These settings with `values` instead of their own, among which only dynamic keys differ.
  // What was set apart from the values (by whoever knows descriptors and addresses) stays.
  Result<Settings> changed(const std::map<std::string, std::string>& values) const;

  const std::map<std::string, std::string>& values() const { return values_; }

  std::int32_t node_id = 1;
  std::int32_t num_partitions = 1;
  std::int16_t default_replication_factor = 1;
  bool auto_create_topics = true;
  std::int32_t socket_request_max_bytes = 104857600;
  std::int32_t fetch_max_bytes = 57671680;
  std::int32_t max_connections = 2147483647;
  std::int64_t connections_max_idle_ms = 600000;
  std::int32_t fetch_session_slots = 1000;
  std::int64_t retention_check_interval_ms = 300000;
  std::int64_t checkpoint_interval_ms = 60000;
  std::int64_t producer_id_expiration_ms = 86400000;
  std::int64_t producer_id_expiration_check_ms = 600000;
  std::int32_t quota_windows = 11;
  std::int32_t quota_window_seconds = 1;
  std::int32_t mutation_quota_windows = 11;
  std::int32_t mutation_quota_window_seconds = 1;
  // max.decompressed.message.bytes, per batch; by default 256 MiB, or 64 times message.max.bytes
  // where that is more.
  std::int64_t max_decompressed_bytes = 268435456;
  std::string advertised_host;              // advertised.listeners; "" = as the client reached us
  std::int32_t advertised_port = 0;
  std::string default_layout = "kafka";     // polylog.layout
  bool journal = false;                     // polylog.journal
  std::int64_t journal_bytes = 134217728;   // polylog.journal.bytes
  // What RocketMQ's names among the settings come to. store_host is no setting: it is set by
  // whoever knows where clients connect.
  storage::SharedLogConfig shared_log;
  GroupSettings groups;

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace polylog::broker
