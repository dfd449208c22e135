#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "base/assert.h"

namespace polylog {

// First in, first out, for queues that are empty most of the time: an empty one holds no memory
// (std::deque takes more than half a KiB before anything is in it). T's default value owns
// nothing. A pure value.
template <typename T>
class Fifo {
 public:
  bool empty() const { return first_ == items_.size(); }
  std::size_t size() const { return items_.size() - first_; }
  // REQUIRES: i < size().
  T& operator[](std::size_t i) { return items_[first_ + i]; }
  const T& operator[](std::size_t i) const { return items_[first_ + i]; }
  // REQUIRES: not empty.
  T& front() { return items_[first_]; }
  const T& front() const { return items_[first_]; }

  void push_back(T item) {
    // Amortised: as many were taken out as are moved now.
    if (first_ > 0 && first_ >= size()) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    items_.push_back(std::move(item));
  }

  template <typename Predicate>
  void erase_if(Predicate which) {
    items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
    std::erase_if(items_, which);
    if (items_.empty()) items_ = std::vector<T>();
  }

  // REQUIRES: not empty.
  void pop_front() {
    POLYLOG_ASSERT(!empty());
    items_[first_++] = T();
    if (!empty()) return;
    items_ = std::vector<T>();
    first_ = 0;
  }

 private:
  std::vector<T> items_;
  std::size_t first_ = 0;  // those before it were taken out
};

}  // namespace polylog
