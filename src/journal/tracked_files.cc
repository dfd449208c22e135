#include "journal/tracked_files.h"

#include <algorithm>
#include <string_view>

#include "fs/file_system.h"

namespace polylog::journal {
namespace {

constexpr std::size_t ranges_max = 64;  // of one file; beyond that it is synced
constexpr std::size_t recent_bytes_max = std::size_t{32} << 10;  // of one file
constexpr std::int64_t held_bytes_max = std::int64_t{16} << 20;

}  // namespace

void Dirt::note_write(std::uint64_t from, std::uint64_t to) {
  if (from >= to || other_) return;  // a sync covers it too
  if (!ranges_.empty() && from <= ranges_.back().to && to >= ranges_.back().from) {
    ranges_.back().from = std::min(ranges_.back().from, from);
    ranges_.back().to = std::max(ranges_.back().to, to);
    return;
  }
  ranges_.push_back({from, to});
  if (ranges_.size() <= ranges_max) return;
  tidy();
  if (ranges_.size() <= ranges_max / 2) return;
  ranges_.clear();
  other_ = true;
}

void Dirt::merge(const Dirt& more) {
  for (const Range& range : more.ranges_) note_write(range.from, range.to);
  if (more.other_) other_ = true;
}

std::uint64_t Dirt::bytes() const {
  std::uint64_t total = 0;
  for (const Range& range : ranges_) total += range.to - range.from;
  return total;
}

void Dirt::tidy() {
  if (ranges_.size() < 2) return;
  std::sort(ranges_.begin(), ranges_.end(),
            [](const Range& a, const Range& b) { return a.from < b.from; });
  std::vector<Range> joined;
  for (const Range& range : ranges_) {
    if (!joined.empty() && range.from <= joined.back().to) {
      joined.back().to = std::max(joined.back().to, range.to);
    } else {
      joined.push_back(range);
    }
  }
  ranges_ = std::move(joined);
}

std::atomic<std::int64_t> Recent::held_{0};

void Recent::note_write(std::uint64_t at, std::span<const ByteView> parts) {
  std::uint64_t size = 0;
  for (const ByteView part : parts) size += part.size();
  if (at < from_ || at > from_ + bytes_.size()) forget();  // one stretch is kept
  if (bytes_.empty()) from_ = at;
  const std::uint64_t end = std::max<std::uint64_t>(bytes_.size(), at - from_ + size);
  const auto more = static_cast<std::int64_t>(end - bytes_.size());
  if (end > recent_bytes_max || held_.fetch_add(more) + more > held_bytes_max) {
    if (end <= recent_bytes_max) held_.fetch_sub(more);
    return forget();
  }
  bytes_.reserve(static_cast<std::size_t>(end));
  auto position = static_cast<std::size_t>(at - from_);
  for (const ByteView part : parts) {
    const std::size_t over = std::min(part.size(), bytes_.size() - position);
    std::copy_n(part.begin(), over, bytes_.begin() + static_cast<std::ptrdiff_t>(position));
    bytes_.insert(bytes_.end(), part.begin() + static_cast<std::ptrdiff_t>(over), part.end());
    position += part.size();
  }
}

void Recent::forget() {
  held_.fetch_sub(static_cast<std::int64_t>(bytes_.size()));
  bytes_ = {};
}

std::optional<ByteView> Recent::bytes(std::uint64_t from, std::size_t size) const {
  if (from < from_ || from - from_ > bytes_.size() || size > bytes_.size() - (from - from_)) {
    return std::nullopt;
  }
  return ByteView(bytes_).subspan(static_cast<std::size_t>(from - from_), size);
}

std::uint64_t TrackedFile::begin() {
  ++begun;
  if (!dirt.empty()) under_way.emplace_back(begun, std::exchange(dirt, {}));
  return begun;
}

void TrackedFile::done(std::uint64_t number) {
  std::erase_if(under_way, [&](const auto& item) { return item.first <= number; });
  if (dirt.empty() && under_way.empty()) recent.forget();
}

void TrackedFile::put_back(std::uint64_t number) {
  for (const auto& [begun_as, what] : under_way) {
    if (begun_as == number) dirt.merge(what);
  }
  std::erase_if(under_way, [&](const auto& item) { return item.first == number; });
}

Dirt TrackedFile::uncovered() const {
  Dirt all;
  for (const auto& [ticket, what] : under_way) all.merge(what);
  all.merge(dirt);
  all.tidy();
  return all;
}

TrackedFilePtr TrackedFiles::opened(std::uint64_t inode, const std::string& path, bool made) {
  const std::lock_guard lock(mutex_);
  TrackedFilePtr& file = by_inode_[inode];
  if (file == nullptr || made) {
    file = std::make_shared<TrackedFile>(inode, plain_path(path), !made);
  }
  return file;
}

TrackedFilePtr TrackedFiles::find(std::uint64_t inode) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_inode_.find(inode);
  return found == by_inode_.end() ? nullptr : found->second;
}

std::vector<TrackedFilePtr> TrackedFiles::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<TrackedFilePtr> files;
  files.reserve(by_inode_.size());
  for (const auto& [inode, file] : by_inode_) files.push_back(file);
  return files;
}

std::vector<TrackedFilePtr> TrackedFiles::unnamed_in(const std::string& directory) const {
  const std::string plain = plain_path(directory);
  std::vector<TrackedFilePtr> files;
  for (const TrackedFilePtr& file : all()) {
    const std::lock_guard lock(file->mutex);
    const bool here = !file->named && plain_path(fs::parent_of(file->path)) == plain;
    if (here) files.push_back(file);
  }
  return files;
}

void TrackedFiles::removed(const TrackedFilePtr& file) {
  if (file == nullptr) return;
  const std::lock_guard lock(mutex_);
  {
    const std::lock_guard file_lock(file->mutex);
    file->removed = true;
  }
  const auto found = by_inode_.find(file->inode);
  if (found != by_inode_.end() && found->second == file) by_inode_.erase(found);
}

void TrackedFiles::renamed(std::uint64_t inode, const std::string& to) {
  const TrackedFilePtr file = find(inode);
  if (file == nullptr) return;
  const std::lock_guard lock(file->mutex);
  file->path = plain_path(to);
  file->named = false;
  file->entries = {};
}

void TrackedFiles::directory_renamed(const std::string& from, const std::string& to) {
  const std::string old_path = plain_path(from);
  for (const TrackedFilePtr& file : all()) {
    const std::lock_guard lock(file->mutex);
    if (!lies_below(file->path, old_path)) continue;
    file->path = plain_path(to) + file->path.substr(old_path.size());
    file->synced_only = true;
    file->entries = {};
  }
}

std::string plain_path(const std::string& path) {
  std::string plain;
  std::string_view rest = path;
  if (rest.starts_with('/')) plain = "/";
  while (!rest.empty()) {
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    const std::string_view part = rest.substr(0, slash);
    if (!part.empty() && part != ".") {
      if (!plain.empty() && plain.back() != '/') plain += '/';
      plain += part;
    }
    rest.remove_prefix(std::min(slash + 1, rest.size()));
  }
  return plain;
}

bool lies_below(const std::string& path, const std::string& directory) {
  if (directory.empty()) return !path.starts_with('/');
  return path.size() > directory.size() && path.starts_with(directory) &&
         (directory.back() == '/' || path[directory.size()] == '/');
}

}  // namespace polylog::journal
