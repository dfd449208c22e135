#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "storage/store.h"

namespace polylog::broker {

// The writes at the end of one turn of the reactor, one for each log that has something staged.
// A turn over hundreds of logs is milliseconds of work for the kernel, so another thread may take
// part: whoever is free takes the next log. The reactor never waits for more than the write that
// is under way there, and does all of them when nobody comes.
class TurnWrites {
 public:
  explicit TurnWrites(std::vector<std::shared_ptr<storage::Log>> logs);

  // Writes logs until none is left to take. Any thread; this object must outlive the call.
  void help();
  // What the write of log number `index` came to; lets go of the log. On the reactor, once for
  // each log.
  Result<void> outcome(std::size_t index);

 private:
  struct Write {
    std::shared_ptr<storage::Log> log;
    Result<void> outcome;
    std::atomic<std::uint32_t> done{0};
  };
  bool write_next();

  std::vector<Write> writes_;
  std::atomic<std::size_t> next_{0};
};

// Calls another thread to the writes of a turn. However long all threads are busy, one call at most
// waits for them: it keeps nothing of a turn that has ended, and helps with the one that is under
// way when a thread comes to it.
class TurnHelp {
 public:
  // Runs the task on another thread, some time or never; false: never. Callable on the reactor.
  using Submit = std::function<bool(std::function<void()> task)>;

  explicit TurnHelp(Submit submit) : submit_(std::move(submit)) {}
  void call(const std::shared_ptr<TurnWrites>& turn);  // on the reactor

 private:
  struct Call {
    std::mutex mutex;
    std::weak_ptr<TurnWrites> turn;  // the latest one
    bool waits = false;
  };
  static void answer(Call& call);

  const Submit submit_;
  const std::shared_ptr<Call> call_ = std::make_shared<Call>();
};

}  // namespace polylog::broker
