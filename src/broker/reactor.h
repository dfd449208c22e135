#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "broker/async.h"

namespace polylog::broker {

// The thread that runs every connection, handler and waiter: an io_context run to completion by
// exactly one thread. Nothing on it may sleep, sync, create, rename or unlink (design: "Threads,
// disk and network"); such work goes to the Pool.
class Reactor {
 public:
  Reactor();
  ~Reactor();
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  boost::asio::io_context& context();
  void run();   // until stop()
  void stop();  // any thread
  // Runs `task` on the reactor, after what is queued already. Any thread.
  void post(std::function<void()> task);
  // Runs `task` on the reactor every `period_ms` until stop(), first after `first_ms` (after one
  // period when that is negative). Runs that were missed are not made up for. On the reactor, or
  // before run().
  void every(std::int64_t period_ms, std::function<void()> task, std::int64_t first_ms = -1);
  // Runs `task` once, `delay_ms` from now. On the reactor, or before run().
  void after(std::int64_t delay_ms, std::function<void()> task);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A few threads for work that waits: directory operations, database commits, cold reads,
// decompression of large batches. The queue is bounded: work that nobody waits for is refused
// beyond `queue_max`, and each run() holds one suspended coroutine, so that the limits on
// connections and requests in flight bound the rest.
class Pool {
 public:
  static constexpr std::size_t queue_max = 4096;

  Pool(Reactor& reactor, std::size_t threads);
  ~Pool();  // finishes what is queued; destroy it before the reactor
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Runs `work` on a pool thread and resumes the awaiting coroutine on the reactor. `work`
  // stores its result where the caller (suspended meanwhile) can see it. Not cancellable, so
  // that the caller's frame is there until `work` has ended.
  Async<void> run(std::function<void()> work);
  // Fire and forget; `done` (may be empty) is posted to the reactor. False, and nothing
  // happens, when the queue is full. Any thread.
  bool submit(std::function<void()> work, std::function<void()> done);
  // Returns when nothing is queued or running. Not on the reactor while handlers still queue.
  void drain();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace polylog::broker
