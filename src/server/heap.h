#pragma once

#include <atomic>
#include <cstdint>

// How glibc's allocator treats what the broker frees. Buffers of a megabyte come and go all the
// time; handing each back to the kernel and faulting it in again costs as much as reading it.
namespace polylog::server {

// Freed memory at the top of the heap that stays at hand.
inline constexpr int heap_kept_bytes = 64 << 20;
inline constexpr std::int64_t heap_rest_ms = 5000;

// For the whole process. Before any other thread runs.
void keep_freed_memory();

// Resident memory of this process; 0 when the system does not tell.
std::int64_t resident_bytes();

// Lets go of what a burst left behind, so that the broker is as small again a few seconds later.
// Any thread.
class HeapRest {
 public:
  // Every `heap_rest_ms`. Cheap unless the process grew since the last time; then it takes a few
  // milliseconds.
  void give_back();

 private:
  std::atomic<bool> busy_ = false;
  std::int64_t rest_bytes_ = 0;  // resident after the last time; whoever is busy has it
};

}  // namespace polylog::server
