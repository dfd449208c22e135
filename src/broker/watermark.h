#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "broker/async.h"

namespace polylog::broker {

// A value that only rises, and the coroutines that wait for it: the one waiting primitive of the
// broker (acknowledgements wait per Log, long polls and pushes per partition). Reactor only.
class Watermark {
 public:
  Watermark(boost::asio::io_context& context, std::int64_t value);
  ~Watermark();  // wakes whoever still waits with unavailable
  Watermark(const Watermark&) = delete;
  Watermark& operator=(const Watermark&) = delete;

  std::int64_t value() const;
  // Raises the value (a lower one is ignored) and wakes whoever waited for it.
  void advance(std::int64_t to);
  // Wakes everybody who still waits with `error`; new waits are as before.
  void fail_waiters(const Error& error);
  // Wakes those who wait for more than `position`: what lay beyond it is gone.
  void fail_beyond(std::int64_t position, const Error& error);
  // fail_waiters, and every later wait beyond value() fails at once.
  void close(const Error& error);

  // Returns at once when value() >= target. timed_out at the deadline (Clock::steady_ns scale
  // of the system's monotonic clock; INT64_MAX waits for ever); the error given to
  // fail_waiters(), fail_beyond() or close(). Needs no timer when the target is reached already.
  Async<Result<void>> reached(std::int64_t target, std::int64_t deadline_ns);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Wakes a coroutine that waits for any of several things (a fetch over many partitions).
class Signal {
 public:
  explicit Signal(boost::asio::io_context& context);
  ~Signal();
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
  void raise();  // wakes the waiter; remembered until waited for
  // True when raised, false at the deadline. Takes the raise with it. One waiter at a time.
  Async<bool> wait(std::int64_t deadline_ns);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace polylog::broker
