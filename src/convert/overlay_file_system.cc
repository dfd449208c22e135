#include "convert/overlay_file_system.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "base/assert.h"

namespace polylog::convert {
namespace {

constexpr std::uint64_t page_bytes = PageScratch::page_bytes;
constexpr std::uint64_t first_own_inode = std::uint64_t{1} << 62;  // none of a real file system

std::int64_t now_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

std::string normal(const std::string& path) {
  std::string out;
  out.reserve(path.size());
  for (const char c : path) {
    if (c == '/' && !out.empty() && out.back() == '/') continue;
    out.push_back(c);
  }
  while (out.size() > 1 && out.back() == '/') out.pop_back();
  return out;
}

class SilentVolume final : public fs::Volume {
 public:
  Result<void> sync() override { return {}; }
};

}  // namespace

// ------------------------------------------------------------------------------------- scratch

PageScratch::~PageScratch() {
  if (file_ == nullptr) return;
  file_.reset();
  static_cast<void>(fs_.remove(path_));
}

Result<void> PageScratch::store(std::uint64_t number, ByteView page) {
  if (number < memory_pages_max) {
    if (pages_.size() <= number) pages_.resize(static_cast<std::size_t>(number) + 1);
    pages_[static_cast<std::size_t>(number)].assign(page.begin(), page.end());
    return {};
  }
  if (file_ == nullptr) {
    POLYLOG_TRY(fs::create_directories(fs_, fs::parent_of(path_)));
    POLYLOG_ASSIGN(file, fs_.open(path_, fs::OpenMode::create));
    POLYLOG_TRY(file->truncate(0));
    file_ = std::move(file);
  }
  return file_->write((number - memory_pages_max) * page_bytes, page);
}

Result<std::uint64_t> PageScratch::add(ByteView page) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t number = free_.empty() ? next_ : free_.back();
  POLYLOG_TRY(store(number, page));
  if (free_.empty()) {
    ++next_;
  } else {
    free_.pop_back();
  }
  return number;
}

Result<void> PageScratch::replace(std::uint64_t number, ByteView page) {
  const std::lock_guard lock(mutex_);
  return store(number, page);
}

Result<void> PageScratch::read(std::uint64_t number, MutableBytes page) const {
  fs::FilePtr file;
  {
    const std::lock_guard lock(mutex_);
    if (number < memory_pages_max) {
      const auto& kept = pages_[static_cast<std::size_t>(number)];
      std::memcpy(page.data(), kept.data(), page.size());
      return {};
    }
    file = file_;
  }
  POLYLOG_ASSIGN(got, file->read((number - memory_pages_max) * page_bytes, page));
  if (got < page.size()) return fail(Errc::io, path_ + " is shorter than it was");
  return {};
}

void PageScratch::drop(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (number < memory_pages_max) pages_[static_cast<std::size_t>(number)] = {};
  free_.push_back(number);
}

// ------------------------------------------------------------------------------------- content

// One file: what lies below it as far as that still shows, and the pages that differ. Bytes of a
// kept page at and behind the file's end are zero.
class OverlayFileSystem::Content {
 public:
  Content(std::shared_ptr<PageScratch> scratch, std::uint64_t inode)
      : scratch_(std::move(scratch)), inode_(inode), modified_ns_(now_ns()) {}
  Content(std::shared_ptr<PageScratch> scratch, std::string below, const fs::FileInfo& info)
      : scratch_(std::move(scratch)),
        below_(std::move(below)),
        inode_(info.inode),
        size_(info.size),
        shows_(info.size),
        modified_ns_(info.modified_ns) {}
  ~Content() {
    for (const auto& [page, number] : pages_) scratch_->drop(number);
  }

  const std::string& below() const { return below_; }  // empty: no such file there

  fs::FileInfo info() const {
    const std::lock_guard lock(mutex_);
    fs::FileInfo info;
    info.size = size_;
    info.inode = inode_;
    info.modified = Timestamp(modified_ns_ / 1'000'000);
    info.modified_ns = modified_ns_;
    return info;
  }

  Result<std::size_t> read(const fs::File* file, std::uint64_t position, MutableBytes into,
                           bool wait) const {
    const std::lock_guard lock(mutex_);
    if (position >= size_) return std::size_t{0};
    into = into.first(static_cast<std::size_t>(
        std::min<std::uint64_t>(into.size(), size_ - position)));
    if (pages_.empty() && position + into.size() <= shows_) {
      return file->read(position, into, wait);
    }
    std::size_t done = 0;
    std::vector<std::uint8_t> page(page_bytes);
    while (done < into.size()) {
      const std::uint64_t at = position + done;
      const auto inside = static_cast<std::size_t>(at % page_bytes);
      const std::size_t take = std::min(into.size() - done, page.size() - inside);
      POLYLOG_TRY(load(file, at / page_bytes, page));
      std::memcpy(into.data() + done, page.data() + inside, take);
      done += take;
    }
    return done;
  }

  Result<void> write(const fs::File* file, std::uint64_t position,
                     std::span<const ByteView> parts) {
    const std::lock_guard lock(mutex_);
    for (const ByteView part : parts) {
      POLYLOG_TRY(write_part(file, position, part));
      position += part.size();
    }
    return {};
  }

  Result<void> truncate(std::uint64_t size) {
    const std::lock_guard lock(mutex_);
    if (size == size_) return {};
    if (size < size_) POLYLOG_TRY(cut(size));
    size_ = size;
    touch();
    return {};
  }

  void set_modified(Timestamp time) {
    const std::lock_guard lock(mutex_);
    modified_ns_ = time.value() * 1'000'000;
  }

 private:
  void touch() { modified_ns_ = std::max(now_ns(), modified_ns_ + 1); }

  // The page as a reader sees it, zeros behind the end.
  Result<void> load(const fs::File* file, std::uint64_t number, MutableBytes page) const {
    if (const auto kept = pages_.find(number); kept != pages_.end()) {
      return scratch_->read(kept->second, page);
    }
    std::size_t filled = 0;
    const std::uint64_t begin = number * page_bytes;
    if (begin < shows_) {
      const auto want =
          static_cast<std::size_t>(std::min<std::uint64_t>(page.size(), shows_ - begin));
      POLYLOG_ASSIGN(got, file->read(begin, page.first(want)));
      filled = got;
    }
    std::fill(page.begin() + static_cast<std::ptrdiff_t>(filled), page.end(), std::uint8_t{0});
    return {};
  }

  Result<void> keep(std::uint64_t number, ByteView page) {
    const auto kept = pages_.find(number);
    if (kept != pages_.end()) return scratch_->replace(kept->second, page);
    POLYLOG_ASSIGN(place, scratch_->add(page));
    pages_.emplace(number, place);
    return {};
  }

  Result<void> write_part(const fs::File* file, std::uint64_t position, ByteView part) {
    std::vector<std::uint8_t> page(page_bytes);
    while (!part.empty()) {
      const auto inside = static_cast<std::size_t>(position % page_bytes);
      const std::size_t take = std::min(part.size(), page.size() - inside);
      POLYLOG_TRY(load(file, position / page_bytes, page));
      if (std::memcmp(page.data() + inside, part.data(), take) != 0) {
        std::memcpy(page.data() + inside, part.data(), take);
        POLYLOG_TRY(keep(position / page_bytes, page));
        touch();
      }
      position += take;
      part = part.subspan(take);
      if (position > size_) {
        size_ = position;
        touch();
      }
    }
    return {};
  }

  Result<void> cut(std::uint64_t size) {
    shows_ = std::min(shows_, size);
    std::erase_if(pages_, [&](const auto& entry) {
      if (entry.first * page_bytes < size) return false;
      scratch_->drop(entry.second);
      return true;
    });
    const auto kept = pages_.find(size / page_bytes);
    if (kept == pages_.end()) return {};
    std::vector<std::uint8_t> page(page_bytes);
    POLYLOG_TRY(scratch_->read(kept->second, page));
    std::fill(page.begin() + static_cast<std::ptrdiff_t>(size % page_bytes), page.end(),
              std::uint8_t{0});
    return scratch_->replace(kept->second, page);
  }

  const std::shared_ptr<PageScratch> scratch_;
  const std::string below_;
  const std::uint64_t inode_;
  mutable std::mutex mutex_;  // guards all below
  std::uint64_t size_ = 0;
  std::uint64_t shows_ = 0;  // of the file below, so much shows where no page is kept
  std::unordered_map<std::uint64_t, std::uint64_t> pages_;
  std::int64_t modified_ns_;
};

class OverlayFileSystem::OverlayFile final : public fs::File {
 public:
  OverlayFile(std::shared_ptr<Content> content, fs::FilePtr below, bool writable, std::string path)
      : content_(std::move(content)),
        below_(std::move(below)),
        writable_(writable),
        path_(std::move(path)) {}

  Result<std::size_t> read(std::uint64_t position, MutableBytes into, bool wait) const override {
    return content_->read(below_.get(), position, into, wait);
  }
  Result<void> write(std::uint64_t position, std::span<const ByteView> parts) override {
    if (!writable_) return fail(Errc::invalid, path_ + " is open for reading");
    return content_->write(below_.get(), position, parts);
  }
  Result<void> sync() override { return {}; }
  void start_writeback(std::uint64_t, std::uint64_t) override {}
  Result<void> truncate(std::uint64_t size) override {
    if (!writable_) return fail(Errc::invalid, path_ + " is open for reading");
    return content_->truncate(size);
  }
  Result<fs::FileInfo> info() const override { return content_->info(); }

 private:
  const std::shared_ptr<Content> content_;
  const fs::FilePtr below_;  // null: none
  const bool writable_;
  const std::string path_;
};

class OverlayFileSystem::HeldLock final : public fs::Lock {
 public:
  HeldLock(std::shared_ptr<Held> held, std::string path)
      : held_(std::move(held)), path_(std::move(path)) {}
  ~HeldLock() override {
    const std::lock_guard lock(held_->mutex);
    held_->paths.erase(path_);
  }

 private:
  const std::shared_ptr<Held> held_;
  const std::string path_;
};

// ----------------------------------------------------------------------------------- the names

OverlayFileSystem::OverlayFileSystem(fs::FileSystem& below, const std::string& scratch)
    : below_(below),
      scratch_path_(normal(scratch)),
      scratch_(std::make_shared<PageScratch>(below, scratch_path_)),
      held_(std::make_shared<Held>()),
      next_inode_(first_own_inode) {}

OverlayFileSystem::~OverlayFileSystem() = default;

Result<fs::FileInfo> OverlayFileSystem::info_locked(const std::string& path) const {
  const auto own = entries_.find(path);
  if (own == entries_.end()) return below_.info(path);
  if (own->second.removed) return fail(Errc::not_found, path + ": no such file or directory");
  if (own->second.content != nullptr) return own->second.content->info();
  fs::FileInfo info;
  info.directory = true;
  return info;
}

Result<std::shared_ptr<OverlayFileSystem::Content>> OverlayFileSystem::content_locked(
    const std::string& path) {
  POLYLOG_ASSIGN(info, info_locked(path));
  if (info.directory) return fail(Errc::invalid, path + " is a directory");
  const auto own = entries_.find(path);
  if (own != entries_.end()) return own->second.content;
  auto content = std::make_shared<Content>(scratch_, path, info);
  entries_[path].content = content;
  return content;
}

Result<void> OverlayFileSystem::check_parent(const std::string& path) const {
  POLYLOG_ASSIGN(parent, info_locked(fs::parent_of(path)));
  if (parent.directory) return {};
  return fail(Errc::invalid, fs::parent_of(path) + " is no directory");
}

Result<fs::FilePtr> OverlayFileSystem::open(const std::string& given, fs::OpenMode mode) {
  const std::string path = normal(given);
  const std::lock_guard lock(mutex_);
  const auto there = info_locked(path);
  if (!there && there.error().code != Errc::not_found) return fail(there.error());
  const bool makes = mode == fs::OpenMode::create || mode == fs::OpenMode::create_new;
  if (there && mode == fs::OpenMode::create_new) return fail(Errc::exists, path + " exists");
  if (!there) {
    if (!makes) return fail(there.error());
    POLYLOG_TRY(check_parent(path));
    Entry made;
    made.content = std::make_shared<Content>(scratch_, next_inode_++);
    entries_[path] = std::move(made);
  }
  POLYLOG_ASSIGN(content, content_locked(path));
  fs::FilePtr file;
  if (!content->below().empty()) {
    POLYLOG_ASSIGN(opened, below_.open(content->below(), fs::OpenMode::read));
    file = std::move(opened);
  }
  return std::make_shared<OverlayFile>(std::move(content), std::move(file),
                                       mode != fs::OpenMode::read, path);
}

Result<fs::FileInfo> OverlayFileSystem::info(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  return info_locked(normal(path));
}

Result<std::vector<std::string>> OverlayFileSystem::list_locked(const std::string& path) const {
  POLYLOG_ASSIGN(info, info_locked(path));
  if (!info.directory) return fail(Errc::invalid, path + " is no directory");
  std::set<std::string> names;
  auto listed = below_.list(path);
  if (listed) {
    names.insert(listed->begin(), listed->end());
  } else if (listed.error().code != Errc::not_found) {
    return listed;
  }
  const std::string prefix = path == "/" ? path : path + "/";
  for (auto own = entries_.lower_bound(prefix);
       own != entries_.end() && own->first.starts_with(prefix); ++own) {
    const std::string name = own->first.substr(prefix.size());
    if (name.empty() || name.find('/') != std::string::npos) continue;
    if (own->second.removed) {
      names.erase(name);
    } else {
      names.insert(name);
    }
  }
  return std::vector<std::string>(names.begin(), names.end());
}

Result<std::vector<std::string>> OverlayFileSystem::list(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  return list_locked(normal(path));
}

Result<void> OverlayFileSystem::create_directory(const std::string& given) {
  const std::string path = normal(given);
  const std::lock_guard lock(mutex_);
  if (info_locked(path)) return fail(Errc::exists, path + " exists");
  POLYLOG_TRY(check_parent(path));
  entries_[path] = Entry();
  return {};
}

void OverlayFileSystem::erase_locked(const std::string& path) {
  Entry gone;
  gone.removed = true;
  entries_[path] = std::move(gone);
}

Result<void> OverlayFileSystem::rename(const std::string& given_from,
                                       const std::string& given_to) {
  const std::string from = normal(given_from), to = normal(given_to);
  const std::lock_guard lock(mutex_);
  POLYLOG_ASSIGN(info, info_locked(from));
  if (info.directory) {
    return fail(Errc::unsupported, from + ": directories are not renamed here");
  }
  POLYLOG_TRY(check_parent(to));
  if (from == to) return {};
  POLYLOG_ASSIGN(content, content_locked(from));
  Entry moved;
  moved.content = std::move(content);
  entries_[to] = std::move(moved);
  erase_locked(from);
  return {};
}

Result<void> OverlayFileSystem::remove(const std::string& given) {
  const std::string path = normal(given);
  const std::lock_guard lock(mutex_);
  POLYLOG_ASSIGN(info, info_locked(path));
  if (info.directory) return fail(Errc::invalid, path + " is a directory");
  erase_locked(path);
  return {};
}

Result<void> OverlayFileSystem::remove_directory(const std::string& given) {
  const std::string path = normal(given);
  const std::lock_guard lock(mutex_);
  POLYLOG_ASSIGN(names, list_locked(path));
  if (!names.empty()) return fail(Errc::invalid, path + " is not empty");
  erase_locked(path);
  return {};
}

Result<void> OverlayFileSystem::sync_directory(const std::string& path) {
  return info(path).map([](const auto&) {});
}

Result<void> OverlayFileSystem::set_modified(const std::string& given, Timestamp time) {
  const std::lock_guard lock(mutex_);
  POLYLOG_ASSIGN(content, content_locked(normal(given)));
  content->set_modified(time);
  return {};
}

Result<std::unique_ptr<fs::Lock>> OverlayFileSystem::lock(const std::string& given) {
  const std::string path = normal(given);
  if (below_.info(path)) return below_.lock(path);
  const std::lock_guard lock(held_->mutex);
  if (!held_->paths.insert(path).second) {
    return fail(Errc::locked, "lock " + path + ": already held by this process");
  }
  return std::make_unique<HeldLock>(held_, path);
}

Result<std::unique_ptr<fs::Volume>> OverlayFileSystem::open_volume(const std::string& path) {
  POLYLOG_TRY(info(path).map([](const auto&) {}));
  return std::make_unique<SilentVolume>();
}

// The nearest directory above the scratch file that exists.
std::string OverlayFileSystem::scratch_volume() const {
  std::string path = fs::parent_of(scratch_path_);
  while (!fs::exists(below_, path) && fs::parent_of(path) != path) path = fs::parent_of(path);
  return path;
}

Result<std::uint64_t> OverlayFileSystem::free_bytes(const std::string&) const {
  return below_.free_bytes(scratch_volume());
}

Result<std::uint64_t> OverlayFileSystem::total_bytes(const std::string&) const {
  return below_.total_bytes(scratch_volume());
}

}  // namespace polylog::convert
