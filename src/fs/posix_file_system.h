#pragma once

#include "fs/file_system.h"

namespace polylog::fs {

// The real disk (Linux). Stateless apart from the process-wide lock registry, so any number of
// instances may be used side by side. Every descriptor is close-on-exec; interrupted calls are
// repeated. New files get mode 0644 and new directories 0755, less the umask.
//
// Errors name the call, the path and the reason. ENOSPC and EDQUOT are no_space; running out
// of descriptors or kernel memory is unavailable; a path of the wrong kind (a directory where
// a file was meant, a file among the parents) is invalid; permission and device errors are io.
class PosixFileSystem final : public FileSystem {
 public:
  Result<FilePtr> open(const std::string& path, OpenMode mode) override;
  Result<FilePtr> open_direct(const std::string& path) override;
  Result<FileInfo> info(const std::string& path) const override;
  Result<std::vector<std::string>> list(const std::string& path) const override;
  Result<void> create_directory(const std::string& path) override;
  Result<void> rename(const std::string& from, const std::string& to) override;
  Result<void> remove(const std::string& path) override;
  Result<void> remove_directory(const std::string& path) override;
  Result<void> sync_directory(const std::string& path) override;
  Result<void> set_modified(const std::string& path, Timestamp time) override;
  Result<std::unique_ptr<Lock>> lock(const std::string& path) override;
  Result<std::unique_ptr<Volume>> open_volume(const std::string& path) override;
  Result<std::uint64_t> free_bytes(const std::string& path) const override;
  Result<std::uint64_t> total_bytes(const std::string& path) const override;
};

}  // namespace polylog::fs
