#pragma once

#include <string>
#include <vector>

#include "cli/kafka_client.h"

// `polylog config VERB SCOPE ...`. Each prints to stdout and returns the exit code.
namespace polylog::cli {

struct ConfigOptions {
  ClientOptions client;
  bool json = false;
  // topic NAME, broker ID, group NAME or cluster, then what the verb takes: settings for get and
  // unset, key=value for set.
  std::vector<std::string> words;
  bool all = false;      // list: settings from elsewhere as well
  bool dry_run = false;  // set and unset
};

int config_list(const ConfigOptions& options);
int config_get(const ConfigOptions& options);
int config_set(const ConfigOptions& options);
int config_unset(const ConfigOptions& options);

}  // namespace polylog::cli
