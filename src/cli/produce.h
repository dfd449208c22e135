#pragma once

#include <cstdint>
#include <string>

#include "cli/kafka_client.h"

namespace polylog::cli {

struct ProduceOptions {
  ClientOptions client;
  std::string topic;
  std::int32_t partition = -1;  // -1: by key, or one after the other
  std::string key_delimiter;    // empty: lines have no key
  bool empty_is_null = false;
  std::string codec = "none";
  std::string acks = "all";
  bool idempotent = false;
  std::size_t batch_bytes = 128 * 1024;  // uncompressed; a longer line is a batch of its own
  bool json = false;
};

// `polylog produce`: each line of stdin becomes a record. Returns the exit code.
int produce(const ProduceOptions& options);

}  // namespace polylog::cli
