#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "fs/file_system.h"

// Test only: a disk whose syncs of files wait until they are let go.
namespace polylog::storage {

class HeldSyncs : public fs::FileSystem {
 public:
  explicit HeldSyncs(fs::FileSystem& disk) : disk_(disk) {}

  void hold() {
    const std::lock_guard lock(gate_->mutex);
    gate_->held = true;
  }
  void let_go() {
    const std::lock_guard lock(gate_->mutex);
    gate_->held = false;
    gate_->changed.notify_all();
  }
  // Until some sync waits; false: none came.
  bool one_waits() {
    std::unique_lock lock(gate_->mutex);
    return gate_->changed.wait_for(lock, std::chrono::seconds(30),
                                   [this] { return gate_->waiting > 0; });
  }

  Result<fs::FilePtr> open(const std::string& path, fs::OpenMode mode) override {
    POLYLOG_ASSIGN(file, disk_.open(path, mode));
    return fs::FilePtr(std::make_shared<HeldFile>(gate_, std::move(file)));
  }
  Result<fs::FileInfo> info(const std::string& path) const override { return disk_.info(path); }
  Result<std::vector<std::string>> list(const std::string& path) const override {
    return disk_.list(path);
  }
  Result<void> create_directory(const std::string& path) override {
    return disk_.create_directory(path);
  }
  Result<void> rename(const std::string& from, const std::string& to) override {
    return disk_.rename(from, to);
  }
  Result<void> remove(const std::string& path) override { return disk_.remove(path); }
  Result<void> remove_directory(const std::string& path) override {
    return disk_.remove_directory(path);
  }
  Result<void> sync_directory(const std::string& path) override {
    return disk_.sync_directory(path);
  }
  Result<void> set_modified(const std::string& path, Timestamp time) override {
    return disk_.set_modified(path, time);
  }
  Result<std::unique_ptr<fs::Lock>> lock(const std::string& path) override {
    return disk_.lock(path);
  }
  Result<std::unique_ptr<fs::Volume>> open_volume(const std::string& path) override {
    return disk_.open_volume(path);
  }
  Result<std::uint64_t> free_bytes(const std::string& path) const override {
    return disk_.free_bytes(path);
  }
  Result<std::uint64_t> total_bytes(const std::string& path) const override {
    return disk_.total_bytes(path);
  }

 private:
  struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool held = false;
    int waiting = 0;
    void pass() {
      std::unique_lock lock(mutex);
      ++waiting;
      changed.notify_all();
      changed.wait(lock, [this] { return !held; });
      --waiting;
    }
  };
  class HeldFile final : public fs::File {
   public:
    HeldFile(std::shared_ptr<Gate> gate, fs::FilePtr file)
        : gate_(std::move(gate)), file_(std::move(file)) {}
    Result<std::size_t> read(std::uint64_t position, MutableBytes into, bool wait) const override {
      return file_->read(position, into, wait);
    }
    Result<void> write(std::uint64_t position, std::span<const ByteView> parts) override {
      return file_->write(position, parts);
    }
    Result<void> sync() override {
      gate_->pass();
      return file_->sync();
    }
    void start_writeback(std::uint64_t position, std::uint64_t size) override {
      file_->start_writeback(position, size);
    }
    Result<void> truncate(std::uint64_t size) override { return file_->truncate(size); }
    Result<fs::FileInfo> info() const override { return file_->info(); }

   private:
    const std::shared_ptr<Gate> gate_;
    const fs::FilePtr file_;
  };

  fs::FileSystem& disk_;
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
};

}  // namespace polylog::storage
