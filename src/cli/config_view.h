#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/kafka_client.h"

// Settings of topics, brokers and groups as a broker tells and takes them. Errors, besides
// KafkaClient's: invalid and not_found, with Kafka's code and words.
namespace polylog::cli {

// Kafka wire protocol, "DescribeConfigs", resource types.
enum class ConfigResource : std::int8_t {
  topic = 2,
  broker = 4,
  broker_logger = 8,
  client_metrics = 16,
  group = 32
};

struct ConfigSynonym {
  std::string name;
  std::optional<std::string> value;
  std::int8_t source = 0;
};
struct ConfigSetting {
  std::string name;
  std::optional<std::string> value;  // nothing: none, or a secret
  std::int8_t source = 0;
  bool sensitive = false;
  bool read_only = false;
  std::vector<ConfigSynonym> synonyms;  // the first one counts
};

inline constexpr std::int8_t source_default = 5;

// DYNAMIC_TOPIC_CONFIG and so on.
std::string source_constant(std::int8_t source);
// topic, broker, default, ... as `topic describe` has them.
std::string source_words(std::int8_t source);

// In the broker's order. `name` is empty for the default of all brokers.
Result<std::vector<ConfigSetting>> describe_configs(KafkaClient& client, ConfigResource resource,
                                                    const std::string& name);

struct ConfigChange {
  enum class Operation : std::int8_t { set = 0, erase = 1, append = 2, subtract = 3 };
  std::string name;
  std::string value;
  Operation operation = Operation::set;
};
Result<WireAnswer> alter_configs(KafkaClient& client, ConfigResource resource,
                                 const std::string& name, const std::vector<ConfigChange>& changes,
                                 bool dry_run);

// Names of groups or client metrics that have settings. unsupported: the broker cannot say.
Result<std::vector<std::string>> list_config_resources(KafkaClient& client,
                                                       ConfigResource resource);

// Ids of the live brokers.
Result<std::vector<std::int32_t>> list_brokers(KafkaClient& client);

}  // namespace polylog::cli
