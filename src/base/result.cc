#include "base/result.h"

namespace polylog {

std::string_view to_string(Errc code) {
  switch (code) {
    case Errc::invalid: return "invalid";
    case Errc::out_of_range: return "out of range";
    case Errc::not_found: return "not found";
    case Errc::exists: return "exists";
    case Errc::too_large: return "too large";
    case Errc::corrupt: return "corrupt";
    case Errc::unsupported: return "unsupported";
    case Errc::fenced: return "fenced";
    case Errc::no_space: return "no space";
    case Errc::io: return "I/O error";
    case Errc::unavailable: return "unavailable";
    case Errc::would_block: return "would block";
    case Errc::locked: return "locked";
    case Errc::timed_out: return "timed out";
  }
  return "unknown";
}

std::string Error::to_string() const {
  std::string text(polylog::to_string(code));
  if (!context.empty()) {
    text += ": ";
    text += context;
  }
  return text;
}

}  // namespace polylog
