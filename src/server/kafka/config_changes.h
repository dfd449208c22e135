#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "broker/async.h"
#include "server/kafka/context.h"

// What AlterConfigs and IncrementalAlterConfigs have in common.
namespace polylog::server::kafka {

struct ConfigOperation {
  enum class Kind : std::int8_t { set = 0, erase = 1, append = 2, subtract = 3 };
  std::string name;
  Kind kind = Kind::set;
  std::optional<std::string> value;
};

// What one resource of a request is to become.
struct ConfigAlteration {
  std::int8_t resource_type = 0;
  std::string resource_name;
  std::vector<ConfigOperation> operations;
  bool replaces = false;  // what is not named goes: AlterConfigs
};

struct AlterationOutcome {
  ErrorCode code = ErrorCode::none;
  std::optional<std::string> message;
};

// Checks and, unless `validate_only`, makes one change after the other; each is durable and in
// force when this returns. A resource that is named twice is left as it is. One outcome for each,
// in their order, with the codes of Kafka's brokers.
Async<std::vector<AlterationOutcome>> alter_configs_of(Context& context,
                                                       std::vector<ConfigAlteration> alterations,
                                                       bool validate_only);

// Kafka's words for a broker's name in a request; nothing: it is this one's.
std::optional<std::string> wrong_node_name(const Context& context, const std::string& name);

}  // namespace polylog::server::kafka
