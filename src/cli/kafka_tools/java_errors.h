#pragma once

#include <cstdint>
#include <string>

#include "cli/kafka_client.h"

// Errors of the protocol as Kafka's Java tools print them.
namespace polylog::cli::kafka_tools {

// The broker's own words, or what Kafka's client says when it gave none.
std::string java_message(const WireAnswer& answer);

// The same behind the name of the exception: "org.apache.kafka.common.errors.X: words".
std::string java_exception(const WireAnswer& answer);

}  // namespace polylog::cli::kafka_tools
