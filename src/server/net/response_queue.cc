#include "server/net/response_queue.h"

#include "base/assert.h"

namespace polylog::server {

std::uint64_t ResponseQueue::open() {
  slots_.push_back(std::nullopt);
  ++unanswered_;
  return first_ + slots_.size() - 1;
}

void ResponseQueue::answer(std::uint64_t sequence, Answer answer) {
  POLYLOG_ASSERT(sequence >= first_ && sequence - first_ < slots_.size());
  std::optional<Answer>& slot = slots_[sequence - first_];
  POLYLOG_ASSERT(!slot);
  held_bytes_ += answer.bytes.size();
  slot = std::move(answer);
  --unanswered_;
}

ResponseQueue::Ready ResponseQueue::take_ready() {
  Ready ready;
  while (anything_ready() && !ready.close) {
    Answer answer = std::move(*slots_.front());
    slots_.pop_front();
    ++first_;
    held_bytes_ -= answer.bytes.size();
    ready.close = answer.kind == Answer::Kind::last || answer.kind == Answer::Kind::close;
    if (answer.bytes.size() > 0) ready.chains.push_back(std::move(answer.bytes));
  }
  return ready;
}

}  // namespace polylog::server
