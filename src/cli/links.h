#pragma once

#include <string>

namespace polylog::cli {

struct LinksOptions {
  std::string directory;
};

// `polylog links`: in a directory, links to this program by the names of Kafka's tools, with and
// without .sh. Links that are there already are left; nothing else is replaced. Returns the exit
// code.
int make_links(const LinksOptions& options);

}  // namespace polylog::cli
