#include "cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/text.h"

namespace polylog::cli {
namespace {

constexpr std::chrono::milliseconds redraw_pause{100};

std::size_t terminal_columns() {
  winsize size{};
  constexpr std::size_t usual = 80;
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual;
}

}  // namespace

Progress::Progress(std::string label, std::uint64_t total)
    : label_(std::move(label)),
      total_(total),
      shown_(total >= shown_from_bytes && ::isatty(STDERR_FILENO) != 0 &&
             ::isatty(STDOUT_FILENO) == 0) {}

Progress::~Progress() {
  if (visible_) std::fputs("\r\x1b[K", stderr);
}

void Progress::at(std::uint64_t done) {
  if (!shown_) return;
  const Clock::time_point now = Clock::now();
  if (now - drawn_ < redraw_pause) return;
  drawn_ = now;
  visible_ = true;
  const std::chrono::duration<double> took = now - started_;
  const std::string line =
      progress_line(label_, done, total_, took.count(), terminal_columns() - 1);
  std::fprintf(stderr, "\r%s\x1b[K", line.c_str());
  std::fflush(stderr);
}

std::string progress_line(const std::string& label, std::uint64_t done, std::uint64_t total,
                          double seconds, std::size_t columns) {
  done = std::min(done, total);
  const double part = total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  char right[64];
  std::snprintf(right, sizeof right, " %3.0f%%  %s/s", part * 100,
                format_size(static_cast<std::uint64_t>(rate)).c_str());
  std::string tail = right;
  if (rate > 0) {
    std::snprintf(right, sizeof right, "  %.0f s left", static_cast<double>(total - done) / rate);
    tail += right;
  }
  constexpr std::size_t bar_columns_min = 10, bar_columns_max = 40, frame_columns = 3;
  const std::size_t fixed = tail.size() + frame_columns + bar_columns_min;
  const std::size_t room = columns > fixed ? columns - fixed : 0;
  std::string head = label.size() <= room ? label : label.substr(label.size() - room);
  const std::size_t bar = std::min(bar_columns_max, room - head.size() + bar_columns_min);
  const auto full = static_cast<std::size_t>(part * static_cast<double>(bar));
  return head + " [" + std::string(full, '=') + std::string(bar - full, ' ') + "]" + tail;
}

}  // namespace polylog::cli
