#include "journal/journal.h"

#include <utility>

#include "journal/core.h"
#include "journal/noting_file_system.h"

namespace polylog::journal {
namespace {

constexpr const char* file_name = "polylog.journal";

// What an earlier run left, if anything.
struct Found {
  Heads heads;
  Replayed replayed;
};

// no_space is for a journal that there is no room for, which a broker may go on without. It must
// not go on without what an earlier one holds.
Error never_no_space(Error error) {
  if (error.code == Errc::no_space) error.code = Errc::io;
  return error;
}

Result<std::optional<Found>> find_and_replay(fs::FileSystem& fs, const Options& options) {
  const std::string hint =
      ". It may hold acknowledged records that are nowhere else. After a kill without a power cut "
      "the files have them all; to go on with what the files have, remove it";
  const std::string path = journal_path(options.directory);
  auto file = fs.open(path, fs::OpenMode::read);
  if (!file) {
    if (file.error().code == Errc::not_found) return std::optional<Found>();
    return fail(file.error());
  }
  const auto heads = read_heads(**file);
  if (!heads) {
    return fail(heads.error().code, path + ": " + heads.error().context + hint);
  }
  const auto replayed = replay(fs, options.root, **file, *heads, path);
  if (!replayed) {
    Error error = never_no_space(replayed.error());
    if (error.code == Errc::corrupt) error.context += hint;
    return fail(std::move(error));
  }
  return std::optional(Found{*heads, *replayed});
}

std::uint64_t area_bytes_of(std::uint64_t bytes) {
  return (bytes - block_bytes) / area_count / block_bytes * block_bytes;
}

}  // namespace

std::string journal_path(const std::string& directory) { return fs::join(directory, file_name); }

Result<bool> holds_writes(fs::FileSystem& fs, const std::string& directory) {
  const auto file = fs.open(journal_path(directory), fs::OpenMode::read);
  if (!file) {
    return file.error().code == Errc::not_found ? Result<bool>(false) : fail(file.error());
  }
  POLYLOG_ASSIGN(heads, read_heads(**file));
  POLYLOG_ASSIGN(damage, find_damage(**file, heads));
  if (damage) return true;
  for (const std::size_t area : heads.in_order()) {
    EntryReader reader(**file, heads, area);
    for (;;) {
      POLYLOG_ASSIGN(entry, reader.next());
      if (!entry) break;
      if (entry->kind == EntryKind::write) return true;
    }
  }
  return false;
}

Result<std::unique_ptr<Journal>> Journal::open(fs::FileSystem& fs, const Options& options) {
  POLYLOG_ASSERT(options.bytes >= bytes_min);
  const std::string path = journal_path(options.directory);
  POLYLOG_TRY(fs::create_directories(fs, options.directory));
  POLYLOG_ASSIGN(volume, fs.open_volume(options.root));
  POLYLOG_ASSIGN(found, find_and_replay(fs, options));
  if (found && found->heads.area_bytes != area_bytes_of(options.bytes)) {
    POLYLOG_TRY(fs.remove(path));
    POLYLOG_TRY(fs.sync_directory(options.directory));
  }
  if (!found || found->heads.area_bytes != area_bytes_of(options.bytes)) {
    POLYLOG_TRY(JournalFile::create(fs, path, options.bytes));
  }
  Heads heads;
  {
    POLYLOG_ASSIGN(file, fs.open(path, fs::OpenMode::read));
    POLYLOG_ASSIGN(read, read_heads(*file));
    heads = read;
  }
  POLYLOG_ASSIGN(file, JournalFile::open(fs, path, heads));
  // Torn entries, never acknowledged, may lie there too: none of them may come to stand behind a
  // new one. The older area first, so that none of its entries outlives a later one.
  for (const std::size_t area : heads.in_order()) {
    if (auto emptied = file->empty(area); !emptied) return fail(never_no_space(emptied.error()));
  }
  return std::unique_ptr<Journal>(new Journal(std::make_unique<Core>(
      fs, options, std::move(file), std::move(volume), found ? found->replayed : Replayed())));
}

Result<Replayed> Journal::recover_and_remove(fs::FileSystem& fs, const Options& options) {
  POLYLOG_ASSIGN(found, find_and_replay(fs, options));
  if (!found) return Replayed();
  POLYLOG_TRY(fs.remove(journal_path(options.directory)));
  POLYLOG_TRY(fs.sync_directory(options.directory));
  return found->replayed;
}

Journal::Journal(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Journal::~Journal() = default;

fs::FileSystem& Journal::file_system() { return core_->outer(); }
Result<void> Journal::cover(std::span<const fs::FilePtr> files) { return core_->cover(files); }
Result<void> Journal::checkpoint() { return core_->checkpoint(); }
Result<void> Journal::close() { return core_->checkpoint(); }
const Replayed& Journal::replayed() const { return core_->replayed(); }
Journal::Counters Journal::counters() const { return core_->counters(); }

}  // namespace polylog::journal
