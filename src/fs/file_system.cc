#include "fs/file_system.h"

namespace polylog::fs {
namespace {

Result<void> write_new_content(FileSystem& fs, const std::string& path, ByteView content) {
  POLYLOG_ASSIGN(file, fs.open(path, OpenMode::create));
  POLYLOG_TRY(file->truncate(0));  // a crash may have left an older attempt
  POLYLOG_TRY(file->write(0, content));
  return file->sync();
}

}  // namespace

Result<FilePtr> FileSystem::open_direct(const std::string& path) {
  return fail(Errc::unsupported, path + ": no writing past the page cache here");
}

bool exists(const FileSystem& fs, const std::string& path) {
  // A name that could not be looked up counts as taken: nobody should create over it, and
  // whoever opens it gets the real error.
  const Result<FileInfo> info = fs.info(path);
  return info.has_value() || info.error().code != Errc::not_found;
}

Result<std::vector<std::uint8_t>> read_file(FileSystem& fs, const std::string& path,
                                            std::size_t bytes_max) {
  POLYLOG_ASSIGN(file, fs.open(path, OpenMode::read));
  POLYLOG_ASSIGN(info, file->info());
  if (info.size > bytes_max) {
    return fail(Errc::too_large, path + ": " + std::to_string(info.size) +
                                     " bytes, the limit here is " + std::to_string(bytes_max));
  }
  std::vector<std::uint8_t> content(static_cast<std::size_t>(info.size));
  POLYLOG_ASSIGN(count, file->read(0, content));
  content.resize(count);
  return content;
}

Result<void> create_directories(FileSystem& fs, const std::string& path) {
  const Result<FileInfo> info = fs.info(path);
  if (info) {
    if (info->directory) return {};
    return fail(Errc::invalid, path + ": not a directory");
  }
  if (info.error().code != Errc::not_found) return fail(info.error());
  const std::string parent = parent_of(path);
  if (parent == path) return fail(info.error());
  POLYLOG_TRY(create_directories(fs, parent));
  Result<void> made = fs.create_directory(path);
  // Somebody else making it at the same time is fine; the name still gets synced by us.
  if (!made && made.error().code != Errc::exists) return made;
  return fs.sync_directory(parent);
}

Result<void> remove_tree(FileSystem& fs, const std::string& path) {
  // Removing first and asking later means that a symbolic link is removed, never followed.
  Result<void> removed = fs.remove(path);
  if (removed || removed.error().code != Errc::invalid) return removed;
  POLYLOG_ASSIGN(names, fs.list(path));
  for (const std::string& name : names) POLYLOG_TRY(remove_tree(fs, join(path, name)));
  return fs.remove_directory(path);
}

Result<void> replace_file(FileSystem& fs, const std::string& path, ByteView content) {
  const std::string draft = path + ".tmp";
  Result<void> done = write_new_content(fs, draft, content);
  if (done) done = fs.rename(draft, path);
  if (!done) {
    // Gives the space back on a full disk; the first error is the one to report.
    static_cast<void>(fs.remove(draft));
    return done;
  }
  return fs.sync_directory(parent_of(path));
}

std::string parent_of(const std::string& path) {
  const std::size_t last = path.find_last_not_of('/');
  if (last == std::string::npos) return path.empty() ? "." : "/";
  const std::size_t slash = path.find_last_of('/', last);
  if (slash == std::string::npos) return ".";
  const std::size_t end = path.find_last_not_of('/', slash);
  return end == std::string::npos ? "/" : path.substr(0, end + 1);
}

std::string join(const std::string& directory, std::string_view name) {
  std::string path = directory;
  if (!path.empty() && path.back() != '/') path.push_back('/');
  path += name;
  return path;
}

}  // namespace polylog::fs
