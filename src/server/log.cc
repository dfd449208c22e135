#include "server/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <memory>

namespace polylog::server {
namespace {

constexpr const char* pattern = "%Y-%m-%dT%H:%M:%S.%e%z %l %v";

spdlog::logger& out_logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = std::make_shared<spdlog::logger>(
        "polylog", std::make_shared<spdlog::sinks::stdout_sink_mt>());
    made->set_pattern(pattern);
    made->flush_on(spdlog::level::info);
    return made;
  }();
  return *logger;
}

spdlog::logger& error_logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = std::make_shared<spdlog::logger>(
        "polylog", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern(pattern);
    return made;
  }();
  return *logger;
}

spdlog::string_view_t view(std::string_view line) { return {line.data(), line.size()}; }

}  // namespace

void log_info(std::string_view line) { out_logger().info(view(line)); }
void log_warn(std::string_view line) { error_logger().warn(view(line)); }
void log_error(std::string_view line) { error_logger().error(view(line)); }

std::optional<std::uint64_t> RateLimit::pass() {
  const std::int64_t now_ns = std::chrono::steady_clock::now().time_since_epoch().count();
  std::int64_t next_ns = next_ns_.load();
  if (now_ns < next_ns || !next_ns_.compare_exchange_strong(next_ns, now_ns + period_ns_)) {
    ++held_back_;
    return std::nullopt;
  }
  return held_back_.exchange(0);
}

void log_warn(RateLimit& limit, std::string_view line) {
  const std::optional<std::uint64_t> held_back = limit.pass();
  if (!held_back) return;
  if (*held_back == 0) {
    log_warn(line);
  } else {
    log_warn(std::string(line) + " (and " + std::to_string(*held_back) + " similar before)");
  }
}

}  // namespace polylog::server
