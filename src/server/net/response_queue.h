#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/fifo.h"
#include "server/net/handler.h"

namespace polylog::server {

// Answers in the order of their requests, whatever the order they become ready in. A pure value.
class ResponseQueue {
 public:
  std::uint64_t open();
  // REQUIRES: `sequence` is open and not answered yet.
  void answer(std::uint64_t sequence, Answer answer);

  struct Ready {
    std::vector<Chain> chains;  // to send now, in order
    bool close = false;         // after them, nothing more
  };
  // Takes what no earlier request holds back any longer.
  Ready take_ready();
  bool anything_ready() const { return !slots_.empty() && slots_.front().has_value(); }

  std::size_t unanswered() const { return unanswered_; }
  std::size_t held_bytes() const { return held_bytes_; }  // answered, not taken
  bool empty() const { return slots_.empty(); }

 private:
  Fifo<std::optional<Answer>> slots_;
  std::uint64_t first_ = 0;  // sequence of slots_.front()
  std::size_t unanswered_ = 0;
  std::size_t held_bytes_ = 0;
};

}  // namespace polylog::server
