#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
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

}  // namespace polylog::broker
