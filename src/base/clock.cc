#include "base/clock.h"

#include <ctime>

namespace polylog {
namespace {

std::int64_t read_ns(clockid_t which) {
  timespec at{};
  clock_gettime(which, &at);
  return static_cast<std::int64_t>(at.tv_sec) * 1'000'000'000 + at.tv_nsec;
}

}  // namespace

Timestamp SystemClock::now() const { return Timestamp(read_ns(CLOCK_REALTIME) / 1'000'000); }

std::int64_t SystemClock::steady_ns() const { return read_ns(CLOCK_MONOTONIC); }

}  // namespace polylog
