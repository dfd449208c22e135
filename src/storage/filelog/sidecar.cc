#include "storage/filelog/sidecar.h"

#include <algorithm>

#include "base/assert.h"
#include "base/crc.h"
#include "storage/filelog/sidecar_codec.h"

namespace polylog::storage {
namespace {

constexpr std::uint64_t file_bytes_max = std::uint64_t{4} << 30;
constexpr std::uint64_t rewrite_growth_bytes = std::uint64_t{64} << 20;

std::vector<std::uint8_t> frame(std::uint8_t type, ByteView payload) {
  ByteWriter writer;
  writer.u32(static_cast<std::uint32_t>(payload.size() + 1));
  writer.u32(crc32c_extend(crc32c(ByteView(&type, 1)), payload));
  writer.u8(type);
  writer.bytes(payload);
  return writer.take_bytes();
}

void encode_all(SidecarState& state, std::uint32_t& next_id, std::vector<std::uint8_t>& out) {
  const auto add = [&out](std::uint8_t type, ByteView payload) {
    const std::vector<std::uint8_t> bytes = frame(type, payload);
    out.insert(out.end(), bytes.begin(), bytes.end());
  };
  for (const FileIdentity& mark : state.marks) {
    add(sidecar_type::mark, encode_mark(mark));
  }
  for (auto& [name, note] : state.logs) {
    if (note.id == 0) note.id = next_id++;
    add(sidecar_type::begin_log, encode_begin_log(note.id, note.topic, name));
    if (note.config) add(sidecar_type::config, encode_config(note.id, *note.config));
    add(sidecar_type::epoch, encode_epoch(note.id, note.announced));
    std::vector<RoundFile> files;
    for (const auto& [base, file] : note.files) {
      files.push_back(
          {base, file.inode, file.sums.size(), 0, file.sums.blocks(), file.sums.tail()});
    }
    add(sidecar_type::round, encode_round(note.id, note.durable, files));
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
  std::size_t whole = 0;
  if (fs::exists(fs, path)) {
    POLYLOG_ASSIGN(bytes, fs::read_file(fs, path, file_bytes_max));
    whole = decode_sidecar(bytes, state);
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
  sidecar->size_ = whole;
  sidecar->rewritten_size_ = whole;
  if (auto cut = sidecar->file_->truncate(whole); !cut) sidecar->silent_ = true;
  if (whole == 0 && !sidecar->silent_) {
    const ByteView header = as_bytes(sidecar_magic);
    if (auto wrote = sidecar->file_->write(0, header); !wrote) {
      sidecar->silent_ = true;
    } else {
      sidecar->size_ = header.size();
    }
  }
  return sidecar;
}

bool Sidecar::append(std::uint8_t type, ByteView payload) {
  if (silent_) return false;
  const std::vector<std::uint8_t> bytes = frame(type, payload);
  if (auto wrote = file_->write(size_, bytes); !wrote) {
    // A gap would make later records lie; nothing more is said until a rewrite.
    silent_ = true;
    return false;
  }
  size_ += bytes.size();
  return true;
}

Result<void> Sidecar::append_synced(std::uint8_t type, ByteView payload) {
  const std::lock_guard lock(mutex_);
  if (!append(type, payload)) return fail(Errc::no_space, path_ + ": sidecar is not writable");
  if (auto synced = file_->sync(); !synced) {
    silent_ = true;
    return synced;
  }
  return fs_.sync_directory(fs::parent_of(path_));
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
  const std::lock_guard lock(mutex_);
  append(sidecar_type::round, encode_round(id, durable, files));
}

void Sidecar::sealed(std::uint32_t id, std::int64_t base, const FileIdentity& identity) {
  const std::lock_guard lock(mutex_);
  append(sidecar_type::sealed, encode_sealed(id, base, identity));
}

void Sidecar::files_dropped(std::uint32_t id, std::int64_t below_base) {
  const std::lock_guard lock(mutex_);
  append(sidecar_type::files_dropped, encode_files_dropped(id, below_base));
}

void Sidecar::recovery_point(std::uint32_t id, const RecoveryPoint& point) {
  const std::lock_guard lock(mutex_);
  append(sidecar_type::recovery_point, encode_recovery_point(id, point));
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

Result<void> Sidecar::mark(const FileIdentity& progress_file) {
  return append_synced(sidecar_type::mark, encode_mark(progress_file));
}

Result<void> Sidecar::cut(std::uint32_t id, std::int64_t base, std::uint64_t bytes,
                          LogPosition end) {
  return append_synced(sidecar_type::cut, encode_cut(id, base, bytes, end));
}

Result<void> Sidecar::rewrite(SidecarState& state) {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint8_t> bytes = to_vector(as_bytes(sidecar_magic));
  // Who writes under an id goes on doing so: it means the same log in the new file.
  std::uint32_t next_id = next_id_;
  encode_all(state, next_id, bytes);
  POLYLOG_TRY(fs::replace_file(fs_, path_, bytes));
  POLYLOG_ASSIGN(file, fs_.open(path_, fs::OpenMode::write));
  file_ = file;
  size_ = bytes.size();
  rewritten_size_ = size_;
  next_id_ = next_id;
  silent_ = false;
  return {};
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
  return silent_ || size_ > 2 * rewritten_size_ + rewrite_growth_bytes;
}

std::size_t decode_sidecar(ByteView bytes, SidecarState& state) {
  if (bytes.size() < sidecar_magic.size() ||
      as_text(bytes.first(sidecar_magic.size())) != sidecar_magic) {
    return 0;
  }
  state.found = true;
  SidecarDecoder decoder(state);
  std::size_t at = sidecar_magic.size();
  while (bytes.size() - at >= 9) {
    const std::uint32_t size = load_big<std::uint32_t>(bytes.data() + at);
    if (size < 1 || size > bytes.size() - at - 8) break;
    const ByteView body = bytes.subspan(at + 8, size);
    if (crc32c(body) != load_big<std::uint32_t>(bytes.data() + at + 4)) break;
    if (!decoder.apply(body[0], body.subspan(1))) break;
    at += 8 + size;
  }
  return at;
}

}  // namespace polylog::storage
