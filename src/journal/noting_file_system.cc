#include "journal/noting_file_system.h"

#include <utility>

namespace polylog::journal {
namespace {

// The volume that the journal opened at its start does the work: it has seen all errors since.
class NotedVolume final : public fs::Volume {
 public:
  explicit NotedVolume(Journal::Core& core) : core_(core) {}
  Result<void> sync() override { return core_.checkpoint(); }

 private:
  Journal::Core& core_;
};

}  // namespace

Result<void> NotedFile::write(std::uint64_t position, std::span<const ByteView> parts) {
  std::uint64_t bytes = 0;
  for (const ByteView part : parts) bytes += part.size();
  const std::lock_guard lock(state_->mutex);
  auto wrote = below_->write(position, parts);
  // A write that failed may have left some of it.
  state_->dirt.note_write(position, position + bytes);
  wrote ? state_->recent.note_write(position, parts) : state_->recent.forget();
  return wrote;
}

Result<fs::FilePtr> NotingFileSystem::open(const std::string& path, fs::OpenMode mode) {
  if (mode == fs::OpenMode::read) return disk_.open(path, mode);
  bool made = mode == fs::OpenMode::create_new;
  if (mode == fs::OpenMode::create) {
    const auto info = disk_.info(path);
    made = !info && info.error().code == Errc::not_found;
  }
  POLYLOG_ASSIGN(below, disk_.open(path, mode));
  POLYLOG_ASSIGN(info, below->info());
  TrackedFilePtr state = core_.files().opened(info.inode, path, made);
  return fs::FilePtr(std::make_shared<NotedFile>(core_, std::move(state), std::move(below)));
}

Result<void> NotingFileSystem::sync_directory(const std::string& path) {
  const std::vector<TrackedFilePtr> unnamed = core_.files().unnamed_in(path);
  auto synced = disk_.sync_directory(path);
  for (const TrackedFilePtr& file : unnamed) {
    const std::lock_guard lock(file->mutex);
    synced ? file->named = true : file->synced_only = true;
  }
  return synced;
}

Result<std::unique_ptr<fs::Volume>> NotingFileSystem::open_volume(const std::string& path) {
  POLYLOG_TRY(disk_.open_volume(path).map([](const auto&) {}));  // it must be there
  return std::make_unique<NotedVolume>(core_);
}

}  // namespace polylog::journal
