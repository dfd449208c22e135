#pragma once

// Included by the .cc files that define command lines; they have CLI11 anyway.

#include <CLI/CLI.hpp>

#include "cli/kafka_client.h"

namespace polylog::cli {

inline void add_client_options(CLI::App& app, ClientOptions& options) {
  app.add_option("-b,--broker", options.broker, "The broker")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  app.add_option_function<int>(
         "--timeout",
         [&options](int seconds) { options.request_ms = std::int64_t{seconds} * 1000; },
         "How long to wait for an answer; default 30")
      ->type_name("SECONDS")
      ->check(CLI::Range(1, 86400).description(""));
}

}  // namespace polylog::cli
