#include "cli/links.h"

#include <cstdio>
#include <filesystem>

#include "cli/command.h"
#include "cli/kafka_tools/tool.h"

namespace polylog::cli {

namespace stdfs = std::filesystem;

int make_links(const LinksOptions& options) {
  std::error_code error;
  const stdfs::path program = stdfs::read_symlink("/proc/self/exe", error);
  if (error) return complain("this program's own file cannot be found: " + error.message());
  stdfs::create_directories(options.directory, error);
  if (error) return complain(options.directory + ": " + error.message());
  int code = exit_done;
  for (const kafka_tools::Tool& tool : kafka_tools::tools()) {
    for (const char* suffix : {"", ".sh"}) {
      const stdfs::path link = stdfs::path(options.directory) / (std::string(tool.name) + suffix);
      const bool there = stdfs::read_symlink(link, error) == program;
      if (!there) {
        error.clear();
        stdfs::create_symlink(program, link, error);
        if (error) {
          code = complain(link.string() + ": " + error.message());
          continue;
        }
      }
      std::printf("%s\n", link.c_str());
    }
  }
  return finished(stdout, code);
}

}  // namespace polylog::cli
