#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/kafka_client.h"

// `polylog topic VERB`. Each prints to stdout and returns the exit code; of several topics those
// that work are done, and the others reported.
namespace polylog::cli {

struct TopicOptions {
  ClientOptions client;
  bool json = false;
  std::vector<std::string> names;
  std::vector<std::string> configs;  // key=value
  // create
  std::int32_t partitions = -1;          // -1: the broker's default
  std::int16_t replication_factor = -1;  // likewise
  bool if_not_exists = false;
  // create and alter
  bool dry_run = false;
  // alter
  std::vector<std::string> unset;
  // list
  bool internal = false;
  // describe
  bool all_configs = false;
};

int topic_create(const TopicOptions& options);
int topic_list(const TopicOptions& options);
int topic_describe(const TopicOptions& options);
int topic_alter(const TopicOptions& options);
int topic_delete(const TopicOptions& options);

}  // namespace polylog::cli
