#pragma once

#include <cstdint>
#include <vector>

// How much passed lately, for client quotas. Times are any clock's that never goes back, in
// milliseconds. Pure values.
namespace polylog::broker::quotas {

// `count` windows of `window_ms` each, the running one among them.
struct Windows {
  std::int32_t count = 11;
  std::int64_t window_ms = 1000;
  std::int64_t span_ms() const { return count * window_ms; }
};

// Amounts per second over the last windows, reckoned as Kafka does (its metrics' Rate): windows
// begin with what is recorded, and the time over which they are averaged is never less than all of
// them but the running one, so that a first burst is not taken for a rate.
class SampledRate {
 public:
  // A negative amount takes back what was recorded.
  void record(double amount, std::int64_t now_ms, const Windows& windows);
  double per_second(std::int64_t now_ms, const Windows& windows);
  // How long nothing may be recorded for the rate to come down to `limit`. 0: it is there.
  std::int64_t wait_ms(double limit, std::int64_t now_ms, const Windows& windows);
  bool empty(std::int64_t now_ms, const Windows& windows);

 private:
  struct Sample {
    std::int64_t start_ms;
    double sum;
  };
  void forget_old(std::int64_t now_ms, const Windows& windows);
  std::int64_t averaged_ms(std::int64_t now_ms, const Windows& windows) const;

  std::vector<Sample> samples_;  // oldest first, never more than windows
};

// Tokens that come back at a steady rate; as many as the windows give are saved up. It may go
// below nothing, and is then used up until it is back at none.
class TokenBucket {
 public:
  void take(double tokens, double per_second, std::int64_t now_ms, const Windows& windows);
  std::int64_t wait_ms(double per_second, std::int64_t now_ms, const Windows& windows);

 private:
  void refill(double per_second, std::int64_t now_ms, const Windows& windows);

  bool fresh_ = true;  // full when first used
  double tokens_ = 0;
  std::int64_t updated_ms_ = 0;
};

}  // namespace polylog::broker::quotas
