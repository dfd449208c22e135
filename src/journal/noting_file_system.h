#pragma once

#include <memory>
#include <string>
#include <vector>

#include "journal/core.h"

namespace polylog::journal {

// A file open for writing: what is written goes to the file below and is noted.
class NotedFile final : public fs::File {
 public:
  NotedFile(Journal::Core& core, TrackedFilePtr state, fs::FilePtr below)
      : core_(core), state_(std::move(state)), below_(std::move(below)) {}

  const TrackedFilePtr& state() const { return state_; }
  const fs::FilePtr& below() const { return below_; }

  Result<std::size_t> read(std::uint64_t position, MutableBytes into, bool wait) const override {
    return below_->read(position, into, wait);
  }
  Result<void> write(std::uint64_t position, std::span<const ByteView> parts) override;
  Result<void> sync() override { return core_.sync(state_, *below_); }
  void start_writeback(std::uint64_t position, std::uint64_t size) override {
    below_->start_writeback(position, size);
  }
  Result<void> truncate(std::uint64_t size) override {
    return core_.truncate(state_, *below_, size);
  }
  Result<fs::FileInfo> info() const override { return below_->info(); }

 private:
  Journal::Core& core_;
  const TrackedFilePtr state_;
  const fs::FilePtr below_;
};

// What the stores see: the disk, with writes noted and names changed only over settled files.
class NotingFileSystem final : public fs::FileSystem {
 public:
  explicit NotingFileSystem(Journal::Core& core) : core_(core), disk_(core.disk()) {}

  Result<fs::FilePtr> open(const std::string& path, fs::OpenMode mode) override;
  Result<fs::FileInfo> info(const std::string& path) const override { return disk_.info(path); }
  Result<std::vector<std::string>> list(const std::string& path) const override {
    return disk_.list(path);
  }
  Result<void> create_directory(const std::string& path) override {
    return disk_.create_directory(path);
  }
  Result<void> rename(const std::string& from, const std::string& to) override {
    return core_.rename(from, to);
  }
  Result<void> remove(const std::string& path) override { return core_.remove(path); }
  Result<void> remove_directory(const std::string& path) override {
    return disk_.remove_directory(path);
  }
  Result<void> sync_directory(const std::string& path) override;
  Result<void> set_modified(const std::string& path, Timestamp time) override {
    return disk_.set_modified(path, time);
  }
  Result<std::unique_ptr<fs::Lock>> lock(const std::string& path) override {
    return disk_.lock(path);
  }
  Result<std::unique_ptr<fs::Volume>> open_volume(const std::string& path) override;
  Result<std::uint64_t> free_bytes(const std::string& path) const override {
    return disk_.free_bytes(path);
  }
  Result<std::uint64_t> total_bytes(const std::string& path) const override {
    return disk_.total_bytes(path);
  }

 private:
  Journal::Core& core_;
  fs::FileSystem& disk_;
};

}  // namespace polylog::journal
