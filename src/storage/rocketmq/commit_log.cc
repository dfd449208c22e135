#include "storage/rocketmq/commit_log.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "format/rocketmq/message.h"
#include "format/rocketmq/names.h"

namespace polylog::storage::rocketmq {

namespace stored = format::rocketmq;

FrameSize MessageDecoder::frame_size(ByteView window) const {
  if (window.size() < stored::blank_bytes) return {FrameSize::Kind::more, stored::blank_bytes};
  const stored::FrameHead head = stored::next_frame(window, UINT64_MAX);
  switch (head.state) {
    case stored::FrameState::complete: return {FrameSize::Kind::complete, head.size};
    case stored::FrameState::blank:
    case stored::FrameState::zeros: return {FrameSize::Kind::end, 0};
    case stored::FrameState::torn:
    case stored::FrameState::corrupt: break;
  }
  return {FrameSize::Kind::corrupt, 0};
}

std::string CommitLog::path_of(std::int64_t base) const {
  return fs::join(directory_, stored::file_name(base));
}

CommitFilePtr CommitLog::find(std::int64_t position) const {
  if (files_.empty() || position < files_.front()->base) return nullptr;
  const auto index = static_cast<std::size_t>((position - files_.front()->base) / file_bytes_);
  return index < files_.size() ? files_[index] : nullptr;
}

Result<std::vector<CommitLog::Found>> CommitLog::list() const {
  POLYLOG_ASSIGN(names, fs_.list(directory_));
  std::vector<Found> found;
  for (const std::string& name : names) {
    const std::string path = fs::join(directory_, name);
    POLYLOG_ASSIGN(info, fs_.info(path));
    if (info.directory) continue;  // the original passes them over too
    const auto base = stored::parse_file_name(name);
    if (!base || *base % file_bytes_ != 0) {
      return fail(Errc::invalid, path + " is no commit log file of " + std::to_string(file_bytes_) +
                                     " bytes (mappedFileSizeCommitLog)");
    }
    found.push_back({*base, info});
  }
  return found;
}

Result<void> CommitLog::load(std::int64_t durable) {
  POLYLOG_ASSIGN(found, list());
  std::size_t keep = found.size();
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto& [base, info] = found[i];
    const bool beyond = durable >= 0 ? base >= durable : i + 1 == found.size();
    if (i == 0 && durable >= 0 && base > durable) {
      keep = 0;  // the file before it never got its name
      continue;
    }
    if (i > 0 && base != found[i - 1].base + file_bytes_) {
      if (durable >= 0 && found[i - 1].base + file_bytes_ >= durable) {
        keep = std::min(keep, i);
        continue;
      }
      return fail(Errc::invalid,
                  directory_ + ": the file before " + stored::file_name(base) + " is missing");
    }
    if (info.size != static_cast<std::uint64_t>(file_bytes_) && !(beyond && info.size == 0)) {
      return fail(Errc::invalid, path_of(base) + " has " + std::to_string(info.size) +
                                     " bytes, mappedFileSizeCommitLog is " +
                                     std::to_string(file_bytes_));
    }
  }
  for (std::size_t i = keep; i < found.size(); ++i) {
    POLYLOG_TRY(fs_.remove(path_of(found[i].base)));
  }
  found.resize(keep);
  for (const auto& [base, info] : found) {
    auto file = std::make_shared<CommitFile>();
    file->path = path_of(base);
    file->base = base;
    file->inode = info.inode;
    POLYLOG_ASSIGN(opened, fs_.open(file->path, fs::OpenMode::write));
    file->file = std::move(opened);
    if (info.size == 0) {
      POLYLOG_TRY(file->file->truncate(static_cast<std::uint64_t>(file_bytes_)));
      file->dirty = true;
    }
    files_.push_back(std::move(file));
  }
  return {};
}

Result<CommitFilePtr> CommitLog::make(const std::string& path) const {
  auto made = std::make_shared<CommitFile>();
  made->path = path;
  POLYLOG_ASSIGN(file, fs_.open(made->path, fs::OpenMode::create));
  // Twice, so that nothing of a leftover of that name shows through.
  POLYLOG_TRY(file->truncate(0));
  POLYLOG_TRY(file->truncate(static_cast<std::uint64_t>(file_bytes_)));
  POLYLOG_ASSIGN(info, file->info());
  made->inode = info.inode;
  made->file = std::move(file);
  made->dirty = made->fresh = true;
  return made;
}

Result<CommitFilePtr> CommitLog::prepare(const std::string& temporary) const {
  return make(temporary);
}

Result<bool> CommitLog::adopt_next(CommitFilePtr next) {
  if (next_ready()) return false;
  next->base = files_.back()->base + file_bytes_;
  const std::string temporary = std::exchange(next->path, path_of(next->base));
  POLYLOG_TRY(fs_.rename(temporary, next->path));
  prepared_ = std::move(next);
  return true;
}

Result<void> CommitLog::add_file(std::int64_t base) {
  POLYLOG_ASSERT(files_.empty() || base == files_.back()->base + file_bytes_);
  if (prepared_ != nullptr && prepared_->base == base) {
    files_.push_back(std::exchange(prepared_, nullptr));
    return {};
  }
  POLYLOG_ASSIGN(made, make(path_of(base)));
  made->base = base;
  files_.push_back(std::move(made));
  return {};
}

std::vector<CommitFilePtr> CommitLog::drop_from(std::int64_t position) {
  std::vector<CommitFilePtr> dropped;
  if (prepared_ != nullptr) dropped.push_back(std::exchange(prepared_, nullptr));
  while (!files_.empty() && files_.back()->base >= position) {
    dropped.push_back(std::move(files_.back()));
    files_.pop_back();
  }
  return dropped;
}

std::vector<CommitFilePtr> CommitLog::drop_oldest(std::size_t count) {
  POLYLOG_ASSERT(count < files_.size());
  const auto cut = files_.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<CommitFilePtr> dropped(files_.begin(), cut);
  files_.erase(files_.begin(), cut);
  return dropped;
}

}  // namespace polylog::storage::rocketmq
