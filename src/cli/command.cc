#include "cli/command.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace polylog::cli {

int complain(std::string_view what, int code) {
  std::string line(what);
  std::replace_if(line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  std::fprintf(stderr, "polylog: %s\n", line.c_str());
  return code;
}

Result<void> finish(std::FILE* out) {
  if (std::fflush(out) != 0 || std::ferror(out) != 0) {
    return fail(Errc::io, std::string("cannot write the results: ") + std::strerror(errno));
  }
  return {};
}

int finished(std::FILE* out, int code) {
  if (auto written = finish(out); !written) return complain(written.error().context);
  return code;
}

}  // namespace polylog::cli
