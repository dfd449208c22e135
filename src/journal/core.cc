#include "journal/core.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/assert.h"
#include "journal/noting_file_system.h"

namespace polylog::journal {
namespace {

// From here on the bytes are synced in their file: writing them twice costs more than a sync.
constexpr std::uint64_t journalled_bytes_max = std::uint64_t{256} << 10;
// One sync after the other up to here; more at once are a checkpoint.
constexpr std::size_t synced_singly_max = 8;
constexpr int settle_tries_max = 1000;
constexpr int journal_tries_max = 3;

// Of the entries that begin an area.
std::size_t front_room(const std::vector<std::string>& names) {
  std::size_t bytes = entry_head_bytes + encode_epoch(0).size();
  for (const std::string& name : names) {
    bytes += entry_head_bytes + encode_witness({name, Identity()}).size();
  }
  return bytes;
}

// Of all entries that cover the file. The file's lock is held.
std::uint64_t entries_bytes(const TrackedFile& state, const Dirt& dirt) {
  // A range may need two entries: it is less than twice what one holds.
  return dirt.bytes() + (1 + 2 * dirt.ranges().size()) * entry_head_bytes + state.path.size();
}

// A file that may not be found by its name after a crash, or was cut, can only be synced. The
// file's lock is held.
bool may_be_journalled(const TrackedFile& state, const Dirt& dirt) {
  return state.named && !state.synced_only && !dirt.needs_sync();
}

}  // namespace

Journal::Core::Core(fs::FileSystem& fs, const Options& options, std::unique_ptr<JournalFile> file,
                    std::unique_ptr<fs::Volume> volume, Replayed replayed)
    : disk_(fs),
      options_(options),
      root_(plain_path(options.root)),
      front_bytes_(front_room(options.witnesses)),
      replayed_(replayed),
      volume_(std::move(volume)),
      outer_(std::make_unique<NotingFileSystem>(*this)),
      file_(std::move(file)) {
  // The area emptied first is the older one, and is filled first.
  active_ = file_->area(0).epoch < file_->area(1).epoch ? 0 : 1;
  if (options_.own_thread) thread_ = std::thread([this] { loop(); });
}

Journal::Core::~Core() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

fs::FileSystem& Journal::Core::outer() { return *outer_; }

Journal::Counters Journal::Core::counters() const {
  const std::lock_guard lock(mutex_);
  Counters counters = counters_;
  counters.bytes = file_->bytes_written();
  return counters;
}

Result<void> Journal::Core::check() const {
  if (!failure_) return {};
  return fail(Errc::unavailable,
              "the journal failed and takes nothing until a restart: " + failure_->to_string());
}

Result<void> Journal::Core::final_failure(Result<void> outcome) {
  if (!outcome && !failure_) {
    failure_ = outcome.error();
    changed_.notify_all();
  }
  return outcome;
}

// ---------------------------------------------------------------------------------------- rounds

// What is written meanwhile may be more than what is counted here; see journal_file().
Journal::Core::Plan Journal::Core::plan(std::span<const fs::FilePtr> files) const {
  const std::uint64_t largest = std::min(journalled_bytes_max, file_->capacity() / 2);
  std::unordered_set<const TrackedFile*> known;
  Plan plan;
  for (const fs::FilePtr& file : files) {
    const auto* const noted = dynamic_cast<const NotedFile*>(file.get());
    POLYLOG_ASSERT(noted != nullptr);
    if (!known.insert(noted->state().get()).second) continue;
    Covered covered{noted->state(), noted->below()};
    const std::lock_guard lock(covered.state->mutex);
    const TrackedFile& state = *covered.state;
    if (state.removed) continue;
    const Dirt dirt = state.uncovered();
    if (dirt.empty() && state.named) continue;
    const std::uint64_t bytes = entries_bytes(state, dirt);
    covered.synced = !may_be_journalled(state, dirt) || dirt.bytes() >= largest ||
                     bytes + front_bytes_ > file_->capacity() || !below_root(state.path);
    if (covered.synced) {
      ++plan.syncs;
    } else {
      plan.bytes += bytes;
    }
    plan.files.push_back(std::move(covered));
  }
  return plan;
}

Result<void> Journal::Core::cover(std::span<const fs::FilePtr> files) {
  {
    Lock lock(mutex_);
    POLYLOG_TRY(check());
    Plan planned = plan(files);
    if (planned.files.empty()) return {};
    if (planned.syncs <= synced_singly_max && planned.bytes <= file_->capacity()) {
      return cover_all(lock, planned);
    }
  }
  return checkpoint();
}

Result<void> Journal::Core::cover_all(Lock& lock, Plan& plan) {
  Result<void> done;
  for (Covered& covered : plan.files) {
    done = covered.synced ? sync_file(lock, covered.state, *covered.file)
                          : journal_file(lock, covered);
    if (!done) break;
  }
  if (done) done = flush();
  bool journalled = false;
  for (const Covered& covered : plan.files) {
    if (covered.number == 0) continue;
    journalled = true;
    const std::lock_guard file_lock(covered.state->mutex);
    done ? covered.state->done(covered.number) : covered.state->put_back(covered.number);
  }
  if (done && journalled) ++counters_.rounds;
  return done;
}

// The lock stays held from the sync to the entry that settles the file: what would be journalled
// of it in between would be settled too.
Result<void> Journal::Core::sync_file(Lock& lock, const TrackedFilePtr& state, fs::File& file) {
  if (is_live(*state)) POLYLOG_TRY(make_room(lock, settled_bytes(*state)));
  std::uint64_t number = 0;
  bool named = false;
  std::string path;
  {
    const std::lock_guard file_lock(state->mutex);
    number = state->begin();
    named = state->named;
    path = state->path;
  }
  auto synced = file.sync();
  if (synced && !named) synced = outer_->sync_directory(fs::parent_of(path));
  const std::lock_guard file_lock(state->mutex);
  synced ? state->done(number) : state->put_back(number);
  if (!is_live(*state)) return synced;
  // Pages that look clean may be lost, those of journalled writes too: nothing may be emptied.
  if (!synced) return final_failure(std::move(synced));
  settle(state);
  return {};
}

Result<void> Journal::Core::journal_file(Lock& lock, Covered& covered) {
  for (int tries = 0; tries < journal_tries_max; ++tries) {
    std::uint64_t bytes = 0;
    {
      const std::lock_guard file_lock(covered.state->mutex);
      if (covered.state->removed) return {};
      const Dirt dirt = covered.state->uncovered();
      bytes = entries_bytes(*covered.state, dirt);
      const bool too_much =
          dirt.bytes() >= 2 * journalled_bytes_max || bytes + front_bytes_ > file_->capacity();
      if (!may_be_journalled(*covered.state, dirt) || too_much) break;
    }
    POLYLOG_TRY(make_room(lock, static_cast<std::size_t>(bytes)));
    POLYLOG_ASSIGN(added, add_writes(covered, static_cast<std::size_t>(bytes)));
    if (added) return {};
  }
  // It grows faster than it can be copied, or was cut.
  return sync_file(lock, covered.state, *covered.file);
}

// The file's lock is held.
Result<std::size_t> Journal::Core::read_written(const Covered& covered, std::uint64_t at,
                                                MutableBytes into) {
  const auto recent = covered.state->recent.bytes(at, into.size());
  if (!recent) return covered.file->read(at, into);
  std::copy(recent->begin(), recent->end(), into.begin());
  return into.size();
}

// False: there is more by now than `bytes` of entries hold, or it must be synced. Nobody writes to
// the file meanwhile.
Result<bool> Journal::Core::add_writes(Covered& covered, std::size_t bytes) {
  TrackedFile& state = *covered.state;
  const std::lock_guard file_lock(state.mutex);
  if (state.removed) return true;  // while room was made
  const Dirt dirt = state.uncovered();
  if (!may_be_journalled(state, dirt) || entries_bytes(state, dirt) > bytes) return false;
  name(state);
  TrackedFile::Entries& entries = state.entries[active_];
  for (const Range& range : dirt.ranges()) {
    for (std::uint64_t at = range.from; at < range.to;) {
      std::size_t part = std::min<std::uint64_t>(range.to - at, write_bytes_max);
      // The last entry of a range has its end mark, and something before it.
      if (const auto rest = range.to - at - part; rest > 0 && rest < block_bytes) {
        part -= block_bytes;
      }
      POLYLOG_ASSIGN(got, read_written(covered, at, file_->payload(part)));
      if (got > 0) {
        file_->add(active_, EntryKind::write, entries.generation, at, got);
        entries.live = true;
        entries.end = std::max(entries.end, at + got);
      }
      if (got < part) return false;  // shorter than what was written to it: it was cut
      at += part;
    }
  }
  covered.number = state.begin();
  return true;
}

Result<void> Journal::Core::sync(const TrackedFilePtr& state, fs::File& file) {
  {
    Lock lock(mutex_);
    if (is_live(*state)) {
      POLYLOG_TRY(check());
      POLYLOG_TRY(sync_file(lock, state, file));
      return flush();
    }
  }
  std::uint64_t number = 0;
  {
    const std::lock_guard file_lock(state->mutex);
    number = state->begin();
  }
  auto synced = file.sync();
  const Lock lock(mutex_);
  // By a round meanwhile, which may hold what stood there before.
  const bool live = is_live(*state);
  {
    const std::lock_guard file_lock(state->mutex);
    synced && !live ? state->done(number) : state->put_back(number);
  }
  return !synced && live ? final_failure(std::move(synced)) : synced;
}

// --------------------------------------------------------------------------------------- entries

bool Journal::Core::is_live(const TrackedFile& state, std::size_t area) const {
  const TrackedFile::Entries& entries = state.entries[area];
  return entries.live && entries.epoch == file_->area(area).epoch;
}

bool Journal::Core::is_live(const TrackedFile& state) const {
  return is_live(state, 0) || is_live(state, 1);
}

std::uint64_t Journal::Core::live_end(const TrackedFile& state) const {
  std::uint64_t end = 0;
  for (std::size_t area = 0; area < area_count; ++area) {
    if (is_live(state, area)) end = std::max(end, state.entries[area].end);
  }
  return end;
}

bool Journal::Core::any_live_below(const std::string& directory) {
  const std::string plain = plain_path(directory);
  for (const TrackedFilePtr& state : files_.all()) {
    if (!is_live(*state)) continue;
    const std::lock_guard file_lock(state->mutex);
    if (lies_below(state->path, plain)) return true;
  }
  return false;
}

bool Journal::Core::holds_entries() const { return file_->area(0).begun || file_->area(1).begun; }

Result<void> Journal::Core::make_room(Lock& lock, std::size_t bytes) {
  for (;;) {
    POLYLOG_TRY(check());
    const bool begun = file_->area(active_).begun;
    const std::size_t needed = bytes + (begun ? 0 : front_bytes_);
    if (file_->has_room(active_, needed)) {
      if (!file_->fits_buffer(needed)) {
        POLYLOG_TRY(flush());  // fills a block up, which takes room too
        continue;
      }
      if (!begun) begin_area();
      return {};
    }
    if (!begun) return fail(Errc::too_large, "more than an area of the journal holds");
    POLYLOG_TRY(flush());
    if (!full_) {
      go_on_in_other_area();
    } else if (options_.own_thread) {
      changed_.wait(lock, [this] { return !full_ || failure_; });
    } else {
      const std::uint64_t epoch = file_->area(1 - active_).epoch;
      POLYLOG_TRY(volume_synced(sync_volume()));
      POLYLOG_TRY(empty_full(epoch));
    }
  }
}

// REQUIRES: the other one is empty, and nothing waits in memory.
void Journal::Core::go_on_in_other_area() {
  active_ = 1 - active_;
  full_ = true;
  changed_.notify_all();
}

// What the other area holds, all of it acknowledged, must read while it counts. And nobody may
// replay into a directory on which another program has run since.
void Journal::Core::begin_area() {
  const JournalFile::Area& other = file_->area(1 - active_);
  if (other.begun) add(EntryKind::other, 0, other.sequence, encode_epoch(other.epoch));
  for (const std::string& name : options_.witnesses) {
    const Witness witness = witness_of(name, disk_.info(fs::join(options_.root, name)));
    add(EntryKind::witness, 0, 0, encode_witness(witness));
  }
}

Witness Journal::Core::witness_of(const std::string& name, const Result<fs::FileInfo>& info) const {
  Witness witness{name, std::nullopt};
  if (info) witness.identity = Identity{info->size, info->inode, info->modified_ns};
  return witness;
}

void Journal::Core::add(EntryKind kind, std::uint32_t generation, std::uint64_t position,
                        ByteView payload) {
  const MutableBytes into = file_->payload(payload.size());
  std::copy(payload.begin(), payload.end(), into.begin());
  file_->add(active_, kind, generation, position, payload.size());
}

void Journal::Core::name(TrackedFile& state) {
  TrackedFile::Entries& entries = state.entries[active_];
  const std::uint64_t epoch = file_->area(active_).epoch;
  if (entries.epoch == epoch) return;
  entries = {epoch, file_->next_generation(active_), false, 0};
  // A file elsewhere is never journalled.
  add(EntryKind::file, entries.generation, state.inode,
      as_bytes(below_root(state.path).value_or(state.path)));
}

std::size_t Journal::Core::settled_bytes(TrackedFile& state) {
  const std::lock_guard file_lock(state.mutex);
  return 2 * entry_head_bytes + state.path.size();
}

// The file's lock is held. It counts as settled when the entry is on the disk; nothing more is
// journalled of it before.
void Journal::Core::settle(const TrackedFilePtr& state) {
  name(*state);
  add(EntryKind::settled, state->entries[active_].generation, 0, {});
  settling_.push_back(state);
}

Result<void> Journal::Core::flush() {
  POLYLOG_TRY(check());
  POLYLOG_TRY(final_failure(file_->flush(active_)));
  for (const TrackedFilePtr& state : settling_) {
    for (TrackedFile::Entries& entries : state->entries) entries.live = false;
  }
  settling_.clear();
  return {};
}

// ----------------------------------------------------------------------------------------- names

Result<void> Journal::Core::when_settled(const std::function<bool()>& involved,
                                         const std::function<Result<void>(Lock&)>& task) {
  for (int tries = 0; tries < settle_tries_max; ++tries) {
    {
      Lock lock(mutex_);
      if (!involved()) return task(lock);
    }
    POLYLOG_TRY(checkpoint());
  }
  return fail(Errc::unavailable, "a file is written faster than the journal settles it");
}

Result<void> Journal::Core::truncate(const TrackedFilePtr& state, fs::File& file,
                                     std::uint64_t size) {
  const auto involved = [&] { return size < live_end(*state); };
  return when_settled(involved, [&](Lock&) {
    const std::lock_guard file_lock(state->mutex);
    auto cut = file.truncate(size);
    state->dirt.note_other();
    state->recent.forget();
    return cut;
  });
}

Result<void> Journal::Core::rename(const std::string& from, const std::string& to) {
  fs::FileInfo old_info, replaced;
  const auto live = [&](const std::string& path, fs::FileInfo& info) {
    const auto found = disk_.info(path);
    info = found ? *found : fs::FileInfo();
    if (!holds_entries() || !found) return false;
    if (found->directory) return any_live_below(path);
    const TrackedFilePtr state = files_.find(found->inode);
    return state != nullptr && is_live(*state);
  };
  const auto involved = [&] {
    const bool moved = live(from, old_info);
    return live(to, replaced) || moved;
  };
  return when_settled(involved, [&](Lock& lock) -> Result<void> {
    const TrackedFilePtr gone = replaced.inode != 0 && replaced.inode != old_info.inode
                                    ? files_.find(replaced.inode)
                                    : nullptr;
    // Also in a journal that holds nothing: the name may come back after a power cut.
    if (const auto name = as_witness(to)) {
      const auto witness = encode_witness(witness_of(*name, disk_.info(from)));
      POLYLOG_TRY(make_room(lock, entry_head_bytes + witness.size()));
      add(EntryKind::witness, 0, 0, witness);
      POLYLOG_TRY(flush());
    }
    POLYLOG_TRY(disk_.rename(from, to));
    files_.removed(gone);
    if (old_info.directory) {
      files_.directory_renamed(from, to);
    } else {
      files_.renamed(old_info.inode, to);
    }
    return {};
  });
}

Result<void> Journal::Core::remove(const std::string& path) {
  TrackedFilePtr state;
  const auto involved = [&] {
    const auto found = disk_.info(path);
    state = found ? files_.find(found->inode) : nullptr;
    return state != nullptr && is_live(*state);
  };
  return when_settled(involved, [&](Lock& lock) -> Result<void> {
    if (const auto name = as_witness(path)) {
      const auto witness = encode_witness({*name, std::nullopt});
      POLYLOG_TRY(make_room(lock, entry_head_bytes + witness.size()));
      add(EntryKind::witness, 0, 0, witness);
      POLYLOG_TRY(flush());
    }
    POLYLOG_TRY(disk_.remove(path));
    files_.removed(state);
    return {};
  });
}

std::optional<std::string> Journal::Core::below_root(const std::string& path) const {
  if (!lies_below(path, root_)) return std::nullopt;
  std::string inner = path.substr(root_.size());
  if (inner.starts_with('/')) inner.erase(0, 1);
  return is_inner_path(inner) ? std::optional(std::move(inner)) : std::nullopt;
}

std::optional<std::string> Journal::Core::as_witness(const std::string& path) const {
  auto inner = below_root(plain_path(path));
  const auto& names = options_.witnesses;
  const bool known = inner && std::find(names.begin(), names.end(), *inner) != names.end();
  return known ? inner : std::nullopt;
}

// ----------------------------------------------------------------------------------- checkpoints

Journal::Core::VolumeSync Journal::Core::sync_volume() {
  VolumeSync sync;
  for (const TrackedFilePtr& state : files_.all()) {
    const std::lock_guard file_lock(state->mutex);
    sync.files.push_back({state, state->begin(), !state->named});
  }
  sync.outcome = volume_->sync();
  return sync;
}

// What the active area holds of a file may be older than what was synced, and would come back over
// it: the next round has that again. The lock is held.
Result<void> Journal::Core::volume_synced(VolumeSync sync) {
  for (const VolumeSync::UnderWay& each : sync.files) {
    const bool again = !sync.outcome || is_live(*each.state, active_);
    const std::lock_guard file_lock(each.state->mutex);
    again ? each.state->put_back(each.number) : each.state->done(each.number);
    if (sync.outcome && each.unnamed) each.state->named = true;
  }
  return final_failure(std::move(sync.outcome));
}

// What the area held is in the files: they were synced after it was left. The lock is held.
Result<void> Journal::Core::empty_full(std::uint64_t epoch) {
  const std::size_t index = 1 - active_;
  if (!full_ || file_->area(index).epoch != epoch) return {};  // somebody else was quicker
  POLYLOG_TRY(final_failure(file_->empty(index)));
  full_ = false;
  ++counters_.checkpoints;
  files_.prune([this](const TrackedFile& state) { return is_live(state); });
  changed_.notify_all();
  return {};
}

Result<void> Journal::Core::checkpoint() {
  const std::lock_guard one_at_a_time(checkpoint_mutex_);
  for (bool last = false; !last;) {
    std::uint64_t epoch = 0;
    {
      const Lock lock(mutex_);
      POLYLOG_TRY(check());
      if (!full_) {
        last = true;
        if (file_->area(active_).begun) {
          POLYLOG_TRY(flush());
          go_on_in_other_area();
        }
      }
      epoch = file_->area(1 - active_).epoch;
    }
    VolumeSync synced = sync_volume();
    const Lock lock(mutex_);
    POLYLOG_TRY(volume_synced(std::move(synced)));
    POLYLOG_TRY(empty_full(epoch));
  }
  return {};
}

void Journal::Core::loop() {
  for (;;) {
    std::uint64_t epoch = 0;
    {
      Lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || (full_ && !failure_); });
      if (stopping_) return;
    }
    const std::lock_guard one_at_a_time(checkpoint_mutex_);
    {
      const Lock lock(mutex_);
      if (!full_ || failure_) continue;
      epoch = file_->area(1 - active_).epoch;
    }
    VolumeSync synced = sync_volume();
    const Lock lock(mutex_);
    // Whoever waits for room, and every round from now on, is told of a failure.
    if (volume_synced(std::move(synced))) static_cast<void>(empty_full(epoch));
  }
}

}  // namespace polylog::journal
