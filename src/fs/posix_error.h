#pragma once

#include <cerrno>
#include <string>
#include <string_view>

#include "base/result.h"

namespace polylog::fs {

// The failure of one system call on one path, as "fdatasync /data/x: Input/output error".
Error posix_error(std::string_view call, const std::string& path, int code);

// Repeats a system call for as long as a signal interrupts it.
template <typename Call>
auto retry_interrupted(Call call) {
  for (;;) {
    const auto result = call();
    if (result != -1 || errno != EINTR) return result;
  }
}

}  // namespace polylog::fs
