#pragma once

#include <string>
#include <vector>

#include "cli/kafka_client.h"

// `polylog quota VERB`. Each prints to stdout and returns the exit code.
namespace polylog::cli {

struct QuotaOptions {
  ClientOptions client;
  bool json = false;
  std::string user, client_id, ip;  // empty: not given
  bool default_user = false, default_client_id = false, default_ip = false;
  std::vector<std::string> words;  // set: key=value; remove: keys, none: all
  bool dry_run = false;
};

int quota_list(const QuotaOptions& options);
int quota_set(const QuotaOptions& options);
int quota_remove(const QuotaOptions& options);

}  // namespace polylog::cli
