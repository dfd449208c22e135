#include "broker/turn_writes.h"

#include <utility>

namespace polylog::broker {

TurnWrites::TurnWrites(std::vector<std::shared_ptr<storage::Log>> logs) : writes_(logs.size()) {
  for (std::size_t i = 0; i < logs.size(); ++i) writes_[i].log = std::move(logs[i]);
}

bool TurnWrites::write_next() {
  const std::size_t index = next_.fetch_add(1, std::memory_order_relaxed);
  if (index >= writes_.size()) return false;
  Write& write = writes_[index];
  write.outcome = write.log->write_staged();
  write.done.store(1);
  write.done.notify_one();
  return true;
}

void TurnWrites::help() {
  while (write_next()) {
  }
}

Result<void> TurnWrites::outcome(std::size_t index) {
  Write& write = writes_[index];
  while (write.done.load(std::memory_order_acquire) == 0) {
    if (!write_next()) write.done.wait(0, std::memory_order_acquire);
  }
  write.log.reset();
  return std::move(write.outcome);
}

void TurnHelp::call(const std::shared_ptr<TurnWrites>& turn) {
  {
    const std::lock_guard lock(call_->mutex);
    call_->turn = turn;
    if (std::exchange(call_->waits, true)) return;
  }
  if (submit_([call = call_] { answer(*call); })) return;
  const std::lock_guard lock(call_->mutex);
  call_->waits = false;
}

void TurnHelp::answer(Call& call) {
  std::shared_ptr<TurnWrites> turn;
  {
    const std::lock_guard lock(call.mutex);
    call.waits = false;
    turn = call.turn.lock();
  }
  if (turn != nullptr) turn->help();
}

}  // namespace polylog::broker
