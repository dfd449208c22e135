#include "storage/filelog/sidecar.h"

#include <algorithm>
#include <utility>

#include "storage/filelog/sidecar_codec.h"

namespace polylog::storage {
namespace {

constexpr std::uint64_t file_bytes_max = std::uint64_t{4} << 30;
constexpr std::uint64_t rewrite_growth_bytes = std::uint64_t{64} << 20;

// Whether who notes such a record is told when it is not noted.
bool refused(std::uint8_t type) {
  return type == sidecar_type::epoch_start || type == sidecar_type::queue ||
         type == sidecar_type::mark || type == sidecar_type::cut;
}

// What reading a file found out about the file itself.
struct Tail {
  int version = 0;
  std::uint64_t end = 0;  // of the last whole record
  std::uint32_t facts = 0;
  bool gaps = false;
};

class FileDecoder {
 public:
  FileDecoder(ByteView file, SidecarState& state)
      : file_(file), state_(state), reader_(file), decoder_(state), durable_(reader_.durable()) {}

  Tail run() {
    tail_.version = reader_.version();
    tail_.end = reader_.begin();
    state_.found = tail_.version > 0;
    if (!state_.found) return tail_;
    for (SidecarReader all(file_); const auto record = all.next();) {
      durable_ = std::max(durable_, record->durable);
    }
    if (reader_.head_damaged() && durable_ > 0) damaged("its head does not read", 0);
    while (const auto record = reader_.next()) take(*record);
    look_behind();
    return tail_;
  }

 private:
  void damaged(const std::string& what, std::uint32_t facts) {
    std::string line = what;
    if (facts > 0) {
      decoder_.lost(facts);
      line += "; " + std::to_string(facts) +
              " fact(s) or more are lost: leader epochs noted before are unknown, a log start "
              "may be lower than it was";
    }
    state_.damage.push_back(std::move(line));
  }

  std::string bytes_from(std::uint64_t from, std::uint64_t to) const {
    return "bytes " + std::to_string(from) + " to " + std::to_string(to) + " do not read";
  }

  void take(const SidecarRecord& record) {
    const std::uint64_t before = std::exchange(tail_.end, record.position + record.bytes);
    const bool gap = record.position > before;
    tail_.gaps = tail_.gaps || gap;
    std::uint32_t lost = 0;
    const bool fact = tail_.version > 1 && is_fact(record.type);
    if (tail_.version > 1) {
      if (fact && record.facts <= tail_.facts) return missed_copy(record, before);
      lost = record.facts - std::min(record.facts, tail_.facts + (fact ? 1 : 0));
      tail_.facts = std::max(tail_.facts, record.facts);
    }
    // Above what was durable a gap is what a power cut left, and nothing relies on what stood
    // there.
    if (gap && before < durable_) damaged(bytes_from(before, record.position), lost);
    const bool second =
        record.type == last_type_ && record.payload.size() == last_payload_.size() &&
        std::equal(record.payload.begin(), record.payload.end(), last_payload_.begin());
    last_bytes_ = sidecar_copies(record.type) > 1 && !second ? record.bytes : 0;
    last_type_ = record.type;
    last_payload_ = record.payload;
    if (decoder_.apply(record.type, record.payload)) return;
    damaged("record of type " + std::to_string(record.type) + " at byte " +
                std::to_string(record.position) + " is not understood",
            1);
  }

  // The second copy of a fact; or the one that is left, seen already.
  void missed_copy(const SidecarRecord& record, std::uint64_t before) {
    last_bytes_ = 0;
    if (record.position > before && before < durable_) {
      damaged(bytes_from(before, record.position), 0);
    }
  }

  // Behind the last whole record.
  void look_behind() {
    if (tail_.end >= file_.size() || tail_.end >= durable_) return;
    const bool copy = file_.size() - tail_.end <= last_bytes_;
    damaged(bytes_from(tail_.end, file_.size()), copy ? 0 : 1);
  }

  const ByteView file_;
  SidecarState& state_;
  SidecarReader reader_;
  SidecarDecoder decoder_;
  std::uint64_t durable_;
  Tail tail_;
  std::uint64_t last_bytes_ = 0;  // of the last record, if its second copy comes next
  std::uint8_t last_type_ = 0;
  ByteView last_payload_;
};

void encode_all(const SidecarState& state, SidecarFrames& frames) {
  const auto add = [&frames](std::uint8_t type, ByteView payload) { frames.add(type, payload); };
  for (const FileIdentity& mark : state.marks) {
    add(sidecar_type::mark, encode_mark(mark));
  }
  for (const auto& [name, note] : state.logs) {
    add(sidecar_type::begin_log, encode_begin_log(note.id, note.topic, name));
    if (note.config) add(sidecar_type::config, encode_config(note.id, *note.config));
    add(sidecar_type::epoch, encode_epoch(note.id, note.announced, note.epochs_lost));
    add(sidecar_type::round, encode_round(note.id, note.durable, {}));
    // Each for itself: one record that does not read costs the sums of one file.
    for (const auto& [base, file] : note.files) {
      const RoundFile all{base, file.inode,         file.sums.size(),
                          0,    file.sums.blocks(), file.sums.tail()};
      add(sidecar_type::round, encode_round(note.id, note.durable, {all}));
    }
    for (const auto& [base, file] : note.files) {
      if (file.sealed) add(sidecar_type::sealed, encode_sealed(note.id, base, *file.sealed));
    }
    for (const EpochList::Entry& entry : note.epochs) {
      add(sidecar_type::epoch_start, encode_epoch_start(note.id, entry));
    }
    if (note.recovery) {
      add(sidecar_type::recovery_point, encode_recovery_point(note.id, *note.recovery));
    }
  }
  for (const auto& [id, note] : state.queues) add(sidecar_type::queue, encode_queue(id, note));
  if (state.clean) add(sidecar_type::clean_stop, {});
}

}  // namespace

Result<std::unique_ptr<Sidecar>> Sidecar::open(fs::FileSystem& fs, const std::string& path,
                                               SidecarState& state) {
  std::unique_ptr<Sidecar> sidecar(new Sidecar(fs, path));
  Tail tail;
  if (fs::exists(fs, path)) {
    POLYLOG_ASSIGN(bytes, fs::read_file(fs, path, file_bytes_max));
    tail = FileDecoder(bytes, state).run();
    for (const auto& [name, note] : state.logs) {
      sidecar->next_id_ = std::max(sidecar->next_id_, note.id + 1);
    }
  }
  auto file = fs.open(path, fs::OpenMode::create);
  if (!file) {
    if (file.error().code != Errc::no_space) return fail(file.error());
    sidecar->silent_ = true;
    return sidecar;
  }
  sidecar->file_ = *file;
  sidecar->size_ = tail.end;
  sidecar->facts_ = tail.facts;
  sidecar->rewritten_size_ = tail.end;
  // Of another version, or with a hole in it: nothing is written behind that.
  if (tail.version == 1 || tail.gaps || !state.damage.empty()) {
    sidecar->silent_ = true;
  } else if (tail.version == 0) {
    sidecar->silent_ = !sidecar->begin_file();
  } else if (auto cut = sidecar->file_->truncate(tail.end); !cut) {
    sidecar->silent_ = true;
  }
  return sidecar;
}

bool Sidecar::begin_file() {
  const std::vector<std::uint8_t> head = encode_sidecar_head(0);
  if (!file_->truncate(0) || !file_->write(0, head)) return false;
  size_ = rewritten_size_ = head.size();
  return true;
}

bool Sidecar::append(std::uint8_t type, ByteView payload) {
  write_pending();
  // A point that rests on a round which was left out can't be used, and would take the place of one
  // that can.
  const bool unfounded = missed_ && type == sidecar_type::recovery_point;
  bool wrote = false;
  if (!silent_ && !unfounded) {
    SidecarFrames frames(size_, facts_, durable_);
    frames.add(type, payload);
    // Later records would rely on a fact that nobody was told of.
    wrote = write_frames(frames, is_fact(type) && !refused(type));
  }
  // A fact that is not in the file was refused, and must not turn up in the next one.
  if (noted_ && (wrote || !refused(type))) noted_->push_back({type, to_vector(payload)});
  return wrote;
}

bool Sidecar::write_frames(const SidecarFrames& frames, bool silenced_by_failure) {
  if (auto wrote = file_->write(size_, frames.bytes()); !wrote) {
    missed_ = true;
    const bool as_before = wrote.error().code == Errc::no_space && file_->truncate(size_);
    silent_ = !as_before || silenced_by_failure;
    return false;
  }
  size_ = frames.end();
  facts_ = frames.facts();
  return true;
}

void Sidecar::write_pending() {
  if (!pending_) return;
  if (!silent_) write_frames(*pending_, false);
  pending_.reset();
}

Result<void> Sidecar::append_synced(std::uint8_t type, ByteView payload) {
  Extent extent;
  {
    const std::lock_guard lock(mutex_);
    if (!append(type, payload)) return fail(Errc::no_space, path_ + ": sidecar is not writable");
    extent = {file_, size_};
  }
  if (auto synced = extent.file->sync(); !synced) {
    const std::lock_guard lock(mutex_);
    silent_ = silent_ || file_ == extent.file;
    return synced;
  }
  POLYLOG_TRY(fs_.sync_directory(fs::parent_of(path_)));
  covered(extent);
  return {};
}

std::uint32_t Sidecar::begin_log(const std::string& name, const Uuid& topic) {
  const std::lock_guard lock(mutex_);
  const std::uint32_t id = next_id_++;
  append(sidecar_type::begin_log, encode_begin_log(id, topic, name));
  return id;
}

void Sidecar::end_log(std::uint32_t id) {
  const std::lock_guard lock(mutex_);
  append(sidecar_type::end_log, encode_end_log(id));
}

void Sidecar::round(std::uint32_t id, LogPosition durable, const std::vector<RoundFile>& files) {
  const std::vector<std::uint8_t> payload = encode_round(id, durable, files);
  const std::lock_guard lock(mutex_);
  if (noted_) noted_->push_back({sidecar_type::round, payload});
  if (silent_) return;
  if (!pending_) pending_.emplace(size_, facts_, durable_);
  pending_->add(sidecar_type::round, payload);
}

void Sidecar::write_noted() {
  const std::lock_guard lock(mutex_);
  write_pending();
}

void Sidecar::sealed(std::uint32_t id, std::int64_t base, const FileIdentity& identity) {
  const std::lock_guard lock(mutex_);
  append(sidecar_type::sealed, encode_sealed(id, base, identity));
}

void Sidecar::files_dropped(std::uint32_t id, std::int64_t below_base) {
  const std::lock_guard lock(mutex_);
  append(sidecar_type::files_dropped, encode_files_dropped(id, below_base));
}

bool Sidecar::recovery_point(std::uint32_t id, const RecoveryPoint& point) {
  const std::lock_guard lock(mutex_);
  return append(sidecar_type::recovery_point, encode_recovery_point(id, point));
}

void Sidecar::config(std::uint32_t id, const LogConfig& config) {
  const std::lock_guard lock(mutex_);
  append(sidecar_type::config, encode_config(id, config));
}

void Sidecar::clean_stop() {
  const std::lock_guard lock(mutex_);
  append(sidecar_type::clean_stop, {});
}

Result<void> Sidecar::epoch_start(std::uint32_t id, const EpochList::Entry& entry) {
  const std::lock_guard lock(mutex_);
  if (append(sidecar_type::epoch_start, encode_epoch_start(id, entry))) return {};
  return fail(Errc::no_space, path_ + ": sidecar is not writable");
}

Result<void> Sidecar::queue(const TopicPartition& id, const QueueNote& note) {
  const std::lock_guard lock(mutex_);
  if (append(sidecar_type::queue, encode_queue(id, note))) return {};
  return fail(Errc::no_space, path_ + ": sidecar is not writable");
}

Result<void> Sidecar::queue_synced(const TopicPartition& id, const QueueNote& note) {
  return append_synced(sidecar_type::queue, encode_queue(id, note));
}

fs::FilePtr Sidecar::file() const {
  const std::lock_guard lock(mutex_);
  return file_;
}

Sidecar::Extent Sidecar::extent() const {
  const std::lock_guard lock(mutex_);
  return {file_, size_};
}

void Sidecar::covered(const Extent& extent) {
  const std::lock_guard lock(mutex_);
  if (extent.file == file_) durable_ = std::max(durable_, extent.end);
}

Result<void> Sidecar::mark(const FileIdentity& progress_file) {
  return append_synced(sidecar_type::mark, encode_mark(progress_file));
}

Result<void> Sidecar::recovery_point_synced(std::uint32_t id, const RecoveryPoint& point) {
  return append_synced(sidecar_type::recovery_point, encode_recovery_point(id, point));
}

Result<void> Sidecar::cut(std::uint32_t id, std::int64_t base, std::uint64_t bytes,
                          LogPosition end) {
  return append_synced(sidecar_type::cut, encode_cut(id, base, bytes, end));
}

void Sidecar::begin_rewrite() {
  const std::lock_guard lock(mutex_);
  write_pending();
  noted_.emplace();
}

Result<void> Sidecar::rewrite(SidecarState& state) {
  const std::lock_guard turn(rewrite_mutex_);
  {
    const std::lock_guard lock(mutex_);
    write_pending();
    if (!noted_) noted_.emplace();
    // Who writes under an id goes on doing so: it means the same log in the new file.
    for (auto& [name, note] : state.logs) {
      if (note.id == 0) note.id = next_id_++;
    }
  }
  keep_points(state);
  auto done = write_anew(state);
  const std::lock_guard lock(mutex_);
  noted_.reset();
  return done;
}

// What a log has in the file as it is; what makes a point void meanwhile is noted again behind it.
void Sidecar::keep_points(SidecarState& state) const {
  const auto lacks_point = [](const auto& log) {
    return !log.second.recovery && !log.second.files.empty();
  };
  if (std::none_of(state.logs.begin(), state.logs.end(), lacks_point)) return;
  const auto bytes = fs::read_file(fs_, path_, file_bytes_max);
  if (!bytes) return;  // a longer scan, that is all
  SidecarState before;
  FileDecoder(*bytes, before).run();
  for (auto& log : state.logs) {
    if (!lacks_point(log)) continue;
    const auto known = before.logs.find(log.first);
    if (known == before.logs.end() || known->second.id != log.second.id) continue;
    log.second.recovery = std::move(known->second.recovery);
  }
}

Result<void> Sidecar::write_anew(const SidecarState& state) {
  SidecarFrames frames(sidecar_head_bytes, 0, 0);
  encode_all(state, frames);
  Draft draft{nullptr, frames.end(), frames.end(), frames.facts()};
  std::vector<std::uint8_t> bytes = encode_sidecar_head(draft.rewritten);
  bytes.insert(bytes.end(), frames.bytes().begin(), frames.bytes().end());
  const std::string path = path_ + ".tmp";
  const auto place = [&]() -> Result<void> {
    POLYLOG_ASSIGN(file, fs_.open(path, fs::OpenMode::create));
    draft.file = file;
    POLYLOG_TRY(file->truncate(0));
    POLYLOG_TRY(file->write(0, bytes));
    for (bool placed = false; !placed;) {
      POLYLOG_TRY(file->sync());
      POLYLOG_ASSIGN(there, take_place(draft));
      placed = there;
    }
    return {};
  };
  if (auto placed = place(); !placed) {
    // Gives the room back on a full disk; the first error is the one to report.
    static_cast<void>(fs_.remove(path));
    return placed;
  }
  auto synced = fs_.sync_directory(fs::parent_of(path_));
  // Which of the two files a start will find is not known, then.
  if (!synced) silence();
  return synced;
}

// Adds what was noted while the draft was written; once there is no fact among it that must be on
// the disk first, the draft is the file. Who notes something waits for a write at most.
Result<bool> Sidecar::take_place(Draft& draft) {
  const std::lock_guard lock(mutex_);
  const std::vector<Note> notes = std::exchange(*noted_, {});
  SidecarFrames frames(draft.end, draft.facts, draft.end);
  bool facts = false;
  for (const Note& note : notes) {
    frames.add(note.type, note.payload);
    facts = facts || is_fact(note.type);
  }
  if (!notes.empty()) POLYLOG_TRY(draft.file->write(draft.end, frames.bytes()));
  const std::uint64_t durable = std::exchange(draft.end, frames.end());
  draft.facts = frames.facts();
  if (facts) return false;
  POLYLOG_TRY(fs_.rename(path_ + ".tmp", path_));
  file_ = draft.file;
  size_ = draft.end;
  durable_ = durable;
  facts_ = draft.facts;
  rewritten_size_ = draft.rewritten;
  silent_ = missed_ = false;
  noted_.reset();
  pending_.reset();  // it was among the notes
  return true;
}

void Sidecar::silence() {
  const std::lock_guard lock(mutex_);
  silent_ = true;
}

bool Sidecar::silent() const {
  const std::lock_guard lock(mutex_);
  return silent_;
}

bool Sidecar::wants_rewrite() const {
  const std::lock_guard lock(mutex_);
  return silent_ || missed_ || size_ > 2 * rewritten_size_ + rewrite_growth_bytes;
}

std::size_t decode_sidecar(ByteView bytes, SidecarState& state) {
  return static_cast<std::size_t>(FileDecoder(bytes, state).run().end);
}

}  // namespace polylog::storage
