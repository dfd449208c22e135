#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace polylog::cli {

// A bar on stderr for work that takes a while: only when stderr is a terminal, stdout is none
// (the results would run through the bar), and there is enough to do. Used by one thread.
class Progress {
 public:
  static constexpr std::uint64_t shown_from_bytes = std::uint64_t{64} << 20;

  // `label` goes before the bar; `total` is in bytes.
  Progress(std::string label, std::uint64_t total);
  ~Progress();  // takes the bar away
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void at(std::uint64_t done);

 private:
  using Clock = std::chrono::steady_clock;

  const std::string label_;
  const std::uint64_t total_;
  const bool shown_;
  const Clock::time_point started_ = Clock::now();
  Clock::time_point drawn_ = started_;
  bool visible_ = false;
};

// "label [=====     ]  50%  1.2 GiB/s  4 s left", as wide as `columns` at most.
std::string progress_line(const std::string& label, std::uint64_t done, std::uint64_t total,
                          double seconds, std::size_t columns);

}  // namespace polylog::cli
