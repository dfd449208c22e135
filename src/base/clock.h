#pragma once

#include <atomic>
#include <cstdint>

#include "base/ids.h"

namespace polylog {

// Time as an argument. Wall time may jump either way; steady time never goes back.
// Implementations may be called from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Timestamp now() const = 0;           // wall clock, ms since 1970
  virtual std::int64_t steady_ns() const = 0;  // monotonic, arbitrary origin
};

class SystemClock final : public Clock {
 public:
  Timestamp now() const override;
  std::int64_t steady_ns() const override;
};

// A clock a test moves by hand.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Timestamp start) : now_ms_(start.value()) {}
  Timestamp now() const override { return Timestamp(now_ms_.load()); }
  std::int64_t steady_ns() const override { return steady_ns_.load(); }
  void advance_ms(std::int64_t ms) {
    now_ms_ += ms;
    steady_ns_ += ms * 1'000'000;
  }
  void jump_wall_to(Timestamp to) { now_ms_ = to.value(); }

 private:
  std::atomic<std::int64_t> now_ms_;
  std::atomic<std::int64_t> steady_ns_{0};
};

}  // namespace polylog
