#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/kafka_client.h"

namespace polylog::cli {

struct ConsumeOptions {
  ClientOptions client;
  std::string topic;
  std::vector<std::int32_t> partitions;  // empty: all
  std::string offset = "beginning";      // as parse_start_offset() takes it
  std::int64_t count = -1;               // -1: no limit
  bool exit_at_end = false;
  std::string format = "%s\\n";
  bool json = false;
  std::string isolation = "read_uncommitted";
};

// `polylog consume`: prints records until the count, the end, or SIGINT. Returns the exit code.
int consume(const ConsumeOptions& options);

}  // namespace polylog::cli
