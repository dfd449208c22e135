#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/kafka_client.h"

// `polylog group VERB`. Each prints to stdout and returns the exit code; of several groups those
// that work are done, and the others reported.
namespace polylog::cli {

struct GroupOptions {
  ClientOptions client;
  bool json = false;
  std::vector<std::string> names;
  // list
  std::vector<std::string> states;
  // reset
  std::vector<std::string> topics;  // NAME or NAME:0,1
  bool all_topics = false;
  bool to_earliest = false, to_latest = false, to_current = false;
  std::optional<std::int64_t> to_offset, shift_by;
  std::string to_datetime, by_duration, from_file;  // empty: not given
  bool execute = false;
};

int group_list(const GroupOptions& options);
int group_describe(const GroupOptions& options);
int group_reset(const GroupOptions& options);
int group_delete(const GroupOptions& options);

}  // namespace polylog::cli
