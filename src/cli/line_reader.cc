#include "cli/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace polylog::cli {
namespace {

constexpr std::size_t read_bytes = 256 * 1024;

}  // namespace

bool LineReader::take(std::string_view& line) {
  const std::size_t end = buffer_.find('\n', std::max(at_, searched_));
  if (end == std::string::npos) {
    searched_ = buffer_.size();
    return false;
  }
  line = std::string_view(buffer_).substr(at_, end - at_);
  at_ = end + 1;
  ++lines_;
  return true;
}

Result<bool> LineReader::ready(int wait_ms) const {
  pollfd waiting{descriptor_, POLLIN, 0};
  const int got = ::poll(&waiting, 1, wait_ms);
  if (got < 0 && errno != EINTR) {
    return fail(Errc::io, std::string("cannot wait for input: ") + std::strerror(errno));
  }
  return got > 0;
}

Result<LineReader::State> LineReader::next(int wait_ms, std::string_view& line) {
  for (;;) {
    if (take(line)) return State::line;
    const std::size_t pending = buffer_.size() - at_;
    if (ended_) {
      if (pending == 0) return State::end;
      line = std::string_view(buffer_).substr(at_);
      at_ = buffer_.size();
      ++lines_;
      return State::line;
    }
    if (pending > line_bytes_max_) {
      return fail(Errc::too_large, "line " + std::to_string(lines_ + 1) + " is longer than " +
                                       std::to_string(line_bytes_max_) + " bytes");
    }
    POLYLOG_ASSIGN(readable, ready(wait_ms));
    if (!readable) return State::none;
    buffer_.erase(0, at_);
    searched_ -= std::min(searched_, at_);
    at_ = 0;
    const std::size_t before = buffer_.size();
    buffer_.resize(before + read_bytes);
    const ssize_t got = ::read(descriptor_, buffer_.data() + before, read_bytes);
    buffer_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno != EINTR && errno != EAGAIN) {
      return fail(Errc::io, std::string("cannot read the input: ") + std::strerror(errno));
    }
    ended_ = got == 0;
  }
}

}  // namespace polylog::cli
