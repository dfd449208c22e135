#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

namespace polylog::server {

// The broker's log: one line per event, information to stdout, warnings and errors to stderr.
// Any thread. Lines never carry record contents or secrets.
void log_info(std::string_view line);
void log_warn(std::string_view line);
void log_error(std::string_view line);

// Lets one event per period through, so that a misbehaving client cannot flood the log.
class RateLimit {
 public:
  explicit RateLimit(std::int64_t period_ms = 10'000) : period_ns_(period_ms * 1'000'000) {}

  // How many events were held back since the last one let through; nothing: hold this one back.
  std::optional<std::uint64_t> pass();

 private:
  std::int64_t period_ns_;
  std::atomic<std::int64_t> next_ns_{INT64_MIN};
  std::atomic<std::uint64_t> held_back_{0};
};

// log_warn when `limit` lets it pass, with the number of similar lines left out.
void log_warn(RateLimit& limit, std::string_view line);

}  // namespace polylog::server
