#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/rocketmq/message.h"
#include "fs/file_system.h"

namespace polylog::cli {

// The name of a path (0), of the directory it is in (1), and so on; empty beyond the beginning.
std::string_view path_part(std::string_view path, int up);

// A store's commit log, for following queues and indexes into it. Used by one thread.
class StoreLog {
 public:
  // Of the store that has `path` below it, so many levels down. Nothing: there is none.
  static Result<std::optional<StoreLog>> beside(fs::FileSystem& fs, const std::string& path,
                                                int levels);

  struct Found {
    enum class State {
      whole,    // `message` is valid until the next call
      deleted,  // before the first file there is
      wrong,    // no record begins there; `why` says what is there instead
    } state = State::whole;
    std::string why;
    format::rocketmq::Message message;
    std::uint64_t size = 0;
  };
  // What begins at a position of the log. Errors: a file cannot be read.
  Result<Found> at(std::int64_t position);

 private:
  struct Part {
    std::int64_t first = 0;
    std::uint64_t size = 0;
    fs::FilePtr file;
  };

  std::vector<Part> parts_;  // by position; not empty
  std::vector<std::uint8_t> record_;
};

}  // namespace polylog::cli
