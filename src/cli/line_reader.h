#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace polylog::cli {

// Lines of a file, pipe or terminal as they arrive. Used by one thread.
class LineReader {
 public:
  enum class State { line, none, end };

  // `descriptor` stays open and the caller's.
  LineReader(int descriptor, std::size_t line_bytes_max)
      : descriptor_(descriptor), line_bytes_max_(line_bytes_max) {}

  // The next line without its '\n', valid until the next call; the last one needs none. Waits at
  // most `wait_ms` for it (-1: for ever), then says `none`. too_large: the line is longer than
  // allowed. io: reading failed.
  Result<State> next(int wait_ms, std::string_view& line);

  std::size_t lines() const { return lines_; }  // handed out

 private:
  bool take(std::string_view& line);
  Result<bool> ready(int wait_ms) const;

  const int descriptor_;
  const std::size_t line_bytes_max_;
  std::string buffer_;
  std::size_t at_ = 0;        // of the next line in the buffer
  std::size_t searched_ = 0;  // no '\n' before this
  std::size_t lines_ = 0;
  bool ended_ = false;
};

}  // namespace polylog::cli
