#include "storage/rocketmq/queue_files.h"

#include <algorithm>

#include "format/rocketmq/names.h"

namespace polylog::storage::rocketmq {

namespace stored = format::rocketmq;
using stored::QueueEntry;

namespace {

constexpr auto entry_bytes = static_cast<std::int64_t>(stored::queue_entry_bytes);

std::vector<std::uint8_t> encode(const QueueEntry* entries, std::size_t count) {
  std::vector<std::uint8_t> bytes(count * stored::queue_entry_bytes);
  for (std::size_t i = 0; i < count; ++i) {
    stored::encode_entry(entries[i], bytes.data() + i * stored::queue_entry_bytes);
  }
  return bytes;
}

}  // namespace

std::string QueueFiles::path_of(std::int64_t file_base) const {
  return fs::join(directory_, stored::file_name(file_base));
}

std::int64_t QueueFiles::entries_per_file() const { return context_.file_bytes / entry_bytes; }

Result<std::vector<std::int64_t>> QueueFiles::list() const {
  std::vector<std::int64_t> bases;
  auto names = context_.fs.list(directory_);
  if (!names) {
    if (names.error().code == Errc::not_found) return bases;
    return fail(names.error());
  }
  for (const std::string& name : *names) {
    const auto base = stored::parse_file_name(name);
    if (!base || *base % context_.file_bytes != 0) {
      return fail(Errc::invalid, fs::join(directory_, name) + " is no consume queue file of " +
                                     std::to_string(context_.file_bytes) +
                                     " bytes (mappedFileSizeConsumeQueue)");
    }
    bases.push_back(*base);
  }
  std::sort(bases.begin(), bases.end());
  return bases;
}

Result<QueueFiles::Extent> QueueFiles::extent(bool ours) const {
  POLYLOG_ASSIGN(bases, list());
  Extent extent;
  for (std::size_t i = 0; i < bases.size(); ++i) {
    // Behind a hole they are of no use: the entries are made again from there on.
    if (i > 0 && bases[i] != bases[i - 1] + context_.file_bytes) break;
    POLYLOG_ASSIGN(info, context_.fs.info(path_of(bases[i])));
    if (info.size != static_cast<std::uint64_t>(context_.file_bytes)) {
      const bool too_short = info.size < static_cast<std::uint64_t>(context_.file_bytes);
      if (info.size == 0 || (ours && too_short)) break;
      return fail(Errc::invalid, path_of(bases[i]) + " has " + std::to_string(info.size) +
                                     " bytes, mappedFileSizeConsumeQueue is " +
                                     std::to_string(context_.file_bytes));
    }
    if (i == 0) extent.first = bases[0] / entry_bytes;
    extent.capacity = (bases[i] + context_.file_bytes) / entry_bytes;
  }
  return extent;
}

Result<std::vector<QueueEntry>> QueueFiles::read(std::int64_t from, std::size_t count,
                                                 bool wait) const {
  std::vector<QueueEntry> entries;
  std::vector<std::uint8_t> bytes;
  while (count > 0) {
    const std::int64_t file_base = from / entries_per_file() * entries_per_file() * entry_bytes;
    const std::int64_t at = from * entry_bytes - file_base;
    const auto here = std::min<std::size_t>(
        count, static_cast<std::size_t>((context_.file_bytes - at) / entry_bytes));
    auto file = context_.files.open(path_of(file_base));
    if (!file) {
      if (file.error().code == Errc::not_found) break;
      return fail(file.error());
    }
    bytes.resize(here * stored::queue_entry_bytes);
    POLYLOG_ASSIGN(got, (*file)->read(static_cast<std::uint64_t>(at), bytes, wait));
    if (got < bytes.size() && !wait) return fail(Errc::would_block, "queue not in memory");
    const std::size_t whole = got / stored::queue_entry_bytes;
    for (std::size_t i = 0; i < whole; ++i) {
      entries.push_back(stored::decode_entry(bytes.data() + i * stored::queue_entry_bytes));
    }
    if (whole < here) break;
    from += static_cast<std::int64_t>(here);
    count -= here;
  }
  return entries;
}

// Not synced: its names are as little the only copy of anything as what is in it, and there may be
// thousands. The checkpoint that relies on them syncs the volume.
Result<void> QueueFiles::make_directory() const {
  auto made = context_.fs.create_directory(directory_);
  if (!made && made.error().code == Errc::not_found) {
    POLYLOG_TRY(fs::create_directories(context_.fs, fs::parent_of(directory_)));
    made = context_.fs.create_directory(directory_);
  }
  return made || made.error().code == Errc::exists ? Result<void>() : made;
}

Result<fs::FilePtr> QueueFiles::file_for(std::int64_t file_base, std::int64_t filler_before) {
  const std::string path = path_of(file_base);
  if (made_) {
    if (auto known = context_.files.open(path)) {
      if (sized_ == file_base) return *known;
      POLYLOG_ASSIGN(info, (*known)->info());
      // One whose making failed half-way is made again.
      if (info.size == static_cast<std::uint64_t>(context_.file_bytes)) {
        sized_ = file_base;
        return *known;
      }
    }
  } else {
    POLYLOG_TRY(make_directory());
    made_ = true;
  }
  POLYLOG_ASSIGN(file, context_.fs.open(path, fs::OpenMode::create));
  POLYLOG_ASSIGN(info, file->info());
  if (info.size != static_cast<std::uint64_t>(context_.file_bytes)) {
    if (info.size > 0) POLYLOG_TRY(file->truncate(0));
    POLYLOG_TRY(file->truncate(static_cast<std::uint64_t>(context_.file_bytes)));
    if (filler_before > 0) {
      const std::vector<QueueEntry> filler(static_cast<std::size_t>(filler_before),
                                           stored::filler_entry);
      POLYLOG_TRY(file->write(0, encode(filler.data(), filler.size())));
    }
  }
  context_.files.adopt(path, file);
  sized_ = file_base;
  return file;
}

Result<void> QueueFiles::append(std::int64_t from, const std::vector<QueueEntry>& entries) {
  bool first = false;
  if (!made_) {
    POLYLOG_ASSIGN(bases, list());
    first = bases.empty();
  }
  for (std::size_t done = 0; done < entries.size();) {
    const std::int64_t index = from + static_cast<std::int64_t>(done);
    const std::int64_t file_first = index / entries_per_file() * entries_per_file();
    const auto here = std::min<std::size_t>(
        entries.size() - done, static_cast<std::size_t>(file_first + entries_per_file() - index));
    const std::int64_t filler = first && done == 0 ? index - file_first : 0;
    POLYLOG_ASSIGN(file, file_for(file_first * entry_bytes, filler));
    POLYLOG_TRY(file->write(static_cast<std::uint64_t>((index - file_first) * entry_bytes),
                            encode(entries.data() + done, here)));
    done += here;
  }
  return {};
}

Result<void> QueueFiles::begin_at(std::int64_t end) {
  const std::int64_t file_first = (end - 1) / entries_per_file() * entries_per_file();
  return file_for(file_first * entry_bytes, end - file_first).map([](const auto&) {});
}

Result<void> QueueFiles::cut(std::int64_t end) {
  sized_ = -1;
  POLYLOG_ASSIGN(bases, list());
  for (const std::int64_t base : bases) {
    const std::int64_t keep = end * entry_bytes - base;
    if (keep >= context_.file_bytes) continue;
    const std::string path = path_of(base);
    if (keep <= 0 && base != bases.front()) {
      context_.files.forget(path);
      POLYLOG_TRY(context_.fs.remove(path));
      continue;
    }
    POLYLOG_ASSIGN(file, context_.files.open(path));
    POLYLOG_TRY(file->truncate(static_cast<std::uint64_t>(std::max<std::int64_t>(keep, 0))));
    POLYLOG_TRY(file->truncate(static_cast<std::uint64_t>(context_.file_bytes)));
  }
  return {};
}

Result<void> QueueFiles::remove_below(std::int64_t start) {
  POLYLOG_ASSIGN(bases, list());
  for (std::size_t i = 0; i + 1 < bases.size(); ++i) {
    if (bases[i + 1] > start * entry_bytes) break;
    const std::string path = path_of(bases[i]);
    context_.files.forget(path);
    POLYLOG_TRY(context_.fs.remove(path));
  }
  return {};
}

Result<void> QueueFiles::remove_all() {
  POLYLOG_ASSIGN(bases, list());
  for (const std::int64_t base : bases) context_.files.forget(path_of(base));
  made_ = false;
  sized_ = -1;
  if (!fs::exists(context_.fs, directory_)) return {};
  return fs::remove_tree(context_.fs, directory_);
}

}  // namespace polylog::storage::rocketmq
