#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "fs/file_system.h"

namespace polylog::storage {

// A file that holds room on the disk for the moment when there is none left: given back when
// something must be written to start at all, laid again when there is plenty. Its content says
// nothing. Not thread-safe; `fs` outlives it.
class Ballast {
 public:
  Ballast(fs::FileSystem& fs, std::string directory, std::uint64_t bytes,
          std::string_view name = "ballast");

  // Removes the file when less than its size is free.
  Result<void> give_back_if_short();
  // Removes the file; false: there was none.
  Result<bool> give_back();
  // Makes the file when it is missing and four times its size is free. Failing leaves no file.
  Result<void> lay_if_roomy();
  bool laid() const { return laid_; }

 private:
  Result<void> lay();

  fs::FileSystem& fs_;
  const std::string directory_;
  const std::string path_;
  const std::uint64_t bytes_;
  bool laid_ = false;
};

}  // namespace polylog::storage
