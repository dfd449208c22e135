#include "storage/filelog/sidecar_codec.h"

#include <algorithm>
#include <limits>

#include "bytes/reader.h"

namespace polylog::storage {
namespace {

void write_identity(ByteWriter& writer, const FileIdentity& identity) {
  writer.u64(identity.size);
  writer.u64(identity.inode);
  writer.i64(identity.modified_ns);
}

FileIdentity read_identity(ByteReader& reader) {
  FileIdentity identity;
  identity.size = reader.u64();
  identity.inode = reader.u64();
  identity.modified_ns = reader.i64();
  return identity;
}

void write_config(ByteWriter& writer, const LogConfig& config) {
  for (const std::int64_t value :
       {config.segment_bytes, config.segment_ms, config.segment_jitter_ms,
        config.segment_index_bytes, config.index_interval_bytes, config.retention_bytes,
        config.retention_ms, config.file_delete_delay_ms}) {
    writer.i64(value);
  }
  writer.u8(config.retention_suspended ? 1 : 0);
}

LogConfig read_config(ByteReader& reader) {
  LogConfig config;
  for (std::int64_t* const value :
       {&config.segment_bytes, &config.segment_ms, &config.segment_jitter_ms,
        &config.segment_index_bytes, &config.index_interval_bytes, &config.retention_bytes,
        &config.retention_ms, &config.file_delete_delay_ms}) {
    *value = reader.i64();
  }
  config.retention_suspended = reader.u8() != 0;
  return config;
}

constexpr std::size_t block_entry_bytes = 8;
constexpr std::size_t epoch_entry_bytes = 12;

// Adds what a round says about one file; false when blocks are missing in between.
bool merge(FileNote& note, const RoundFile& file) {
  if (note.inode != file.inode) note = FileNote();  // another file has taken its place
  if (file.durable_bytes < note.sums.size()) return true;  // an older round, written late
  if (!note.sums.restore(file.first_block, file.blocks, file.tail, file.durable_bytes)) {
    return false;
  }
  note.inode = file.inode;
  note.sealed.reset();
  return true;
}

}  // namespace

std::vector<std::uint8_t> encode_begin_log(std::uint32_t id, const Uuid& topic,
                                           std::string_view name) {
  ByteWriter writer;
  writer.u32(id);
  writer.bytes(topic.bytes);
  writer.u16(static_cast<std::uint16_t>(name.size()));
  writer.text(name);
  return writer.take_bytes();
}

std::vector<std::uint8_t> encode_end_log(std::uint32_t id) {
  ByteWriter writer;
  writer.u32(id);
  return writer.take_bytes();
}

std::vector<std::uint8_t> encode_round(std::uint32_t id, LogPosition durable,
                                       const std::vector<RoundFile>& files) {
  ByteWriter writer;
  std::size_t bytes = 16;
  for (const RoundFile& file : files) bytes += 40 + 8 * file.blocks.size();
  writer.reserve(bytes);
  writer.u32(id);
  writer.i64(durable.value());
  writer.u32(static_cast<std::uint32_t>(files.size()));
  for (const RoundFile& file : files) {
    writer.i64(file.base);
    writer.u64(file.inode);
    writer.u64(file.durable_bytes);
    writer.u32(file.first_block);
    writer.u32(static_cast<std::uint32_t>(file.blocks.size()));
    for (const BlockSums::Block& block : file.blocks) {
      writer.u32(block.crc);
      writer.u32(block.first_frame);
    }
    writer.u32(file.tail.crc);
    writer.u32(file.tail.first_frame);
  }
  return writer.take_bytes();
}

std::vector<std::uint8_t> encode_sealed(std::uint32_t id, std::int64_t base,
                                        const FileIdentity& identity) {
  ByteWriter writer;
  writer.u32(id);
  writer.i64(base);
  write_identity(writer, identity);
  return writer.take_bytes();
}

std::vector<std::uint8_t> encode_files_dropped(std::uint32_t id, std::int64_t below_base) {
  ByteWriter writer;
  writer.u32(id);
  writer.i64(below_base);
  return writer.take_bytes();
}

std::vector<std::uint8_t> encode_recovery_point(std::uint32_t id, const RecoveryPoint& point) {
  ByteWriter writer;
  writer.u32(id);
  writer.i64(point.base);
  writer.u64(point.position);
  writer.i64(point.offset);
  writer.u32(point.index_entries);
  writer.u32(point.time_entries);
  writer.i64(point.max_timestamp.value());
  writer.i64(point.max_timestamp_offset);
  writer.i64(point.first_timestamp.value());
  writer.u32(static_cast<std::uint32_t>(point.epochs.size()));
  for (const EpochList::Entry& entry : point.epochs) {
    writer.i32(entry.epoch.value());
    writer.i64(entry.start.value());
  }
  writer.u32(static_cast<std::uint32_t>(point.producers.size()));
  writer.bytes(point.producers);
  return writer.take_bytes();
}

std::vector<std::uint8_t> encode_config(std::uint32_t id, const LogConfig& config) {
  ByteWriter writer;
  writer.u32(id);
  write_config(writer, config);
  return writer.take_bytes();
}

std::vector<std::uint8_t> encode_epoch(std::uint32_t id, LeaderEpoch announced,
                                       bool epochs_lost) {
  ByteWriter writer;
  writer.u32(id);
  writer.i32(announced.value());
  writer.u8(epochs_lost ? 1 : 0);
  return writer.take_bytes();
}

std::vector<std::uint8_t> encode_mark(const FileIdentity& identity) {
  ByteWriter writer;
  write_identity(writer, identity);
  return writer.take_bytes();
}

std::vector<std::uint8_t> encode_cut(std::uint32_t id, std::int64_t base, std::uint64_t bytes,
                                     LogPosition end) {
  ByteWriter writer;
  writer.u32(id);
  writer.i64(base);
  writer.u64(bytes);
  writer.i64(end.value());
  return writer.take_bytes();
}

std::vector<std::uint8_t> encode_epoch_start(std::uint32_t id, const EpochList::Entry& entry) {
  ByteWriter writer;
  writer.u32(id);
  writer.i32(entry.epoch.value());
  writer.i64(entry.start.value());
  return writer.take_bytes();
}

std::vector<std::uint8_t> encode_queue(const TopicPartition& id, const QueueNote& note) {
  ByteWriter writer;
  writer.u16(static_cast<std::uint16_t>(id.topic.size()));
  writer.text(id.topic);
  writer.i32(id.partition);
  writer.bytes(note.topic.bytes);
  writer.i64(note.birth);
  writer.i64(note.start);
  writer.u8(note.removed ? 1 : 0);
  write_config(writer, note.config);
  return writer.take_bytes();
}

LogNote* SidecarDecoder::find(std::uint32_t id) {
  const auto name = names_.find(id);
  if (name == names_.end()) return nullptr;
  const auto note = state_.logs.find(name->second);
  if (note == state_.logs.end() || note->second.id != id) return nullptr;
  return &note->second;
}

void SidecarDecoder::lost(std::uint32_t facts) {
  state_.clean = false;
  for (auto& [name, note] : state_.logs) {
    // One may have been a cut, another the beginning of an epoch.
    note.files.clear();
    note.recovery.reset();
    note.epochs.clear();
    note.epochs_lost = true;
    const std::int64_t announced = std::int64_t{note.announced.value()} + facts;
    note.announced = LeaderEpoch(static_cast<std::int32_t>(
        std::min<std::int64_t>(announced, std::numeric_limits<std::int32_t>::max() - 1)));
  }
}

bool SidecarDecoder::apply(std::uint8_t type, ByteView payload) {
  state_.clean = type == sidecar_type::clean_stop;
  switch (type) {
    case sidecar_type::begin_log: return apply_begin_log(payload);
    case sidecar_type::round: return apply_round(payload);
    case sidecar_type::recovery_point: return apply_recovery_point(payload);
    case sidecar_type::config: return apply_config(payload);
    case sidecar_type::cut: return apply_cut(payload);
    case sidecar_type::epoch: return apply_epoch(payload);
    case sidecar_type::epoch_start: return apply_epoch_start(payload);
    case sidecar_type::queue: return apply_queue(payload);
    case sidecar_type::sealed:
    case sidecar_type::files_dropped:
    case sidecar_type::end_log:
    case sidecar_type::mark: return apply_small(type, payload);
    case sidecar_type::clean_stop: return payload.empty();
    default: return false;
  }
}

bool SidecarDecoder::apply_begin_log(ByteView payload) {
  ByteReader reader(payload);
  LogNote note;
  note.id = reader.u32();
  const ByteView topic = reader.bytes(note.topic.bytes.size());
  const std::string name(reader.text(reader.u16()));
  if (!reader.ok()) return false;
  std::copy(topic.begin(), topic.end(), note.topic.bytes.begin());
  names_[note.id] = name;
  state_.logs[name] = std::move(note);
  return true;
}

bool SidecarDecoder::apply_round(ByteView payload) {
  ByteReader reader(payload);
  const std::uint32_t id = reader.u32();
  const LogPosition durable(reader.i64());
  const std::size_t files = reader.count(reader.u32(), 40);
  LogNote* const note = find(id);
  for (std::size_t i = 0; i < files && reader.ok(); ++i) {
    RoundFile file;
    file.base = reader.i64();
    file.inode = reader.u64();
    file.durable_bytes = reader.u64();
    file.first_block = reader.u32();
    const std::size_t blocks = reader.count(reader.u32(), block_entry_bytes);
    file.blocks.resize(blocks);
    for (BlockSums::Block& block : file.blocks) {
      block.crc = reader.u32();
      block.first_frame = reader.u32();
    }
    file.tail.crc = reader.u32();
    file.tail.first_frame = reader.u32();
    if (!reader.ok()) return false;
    if (note == nullptr) continue;
    // A power cut may have taken the round before. What was durable of a file is so still: it gets
    // shorter with a `cut` alone. One of whose beginning nothing is known has no note.
    const auto known = note->files.try_emplace(file.base).first;
    if (!merge(known->second, file) && known->second.inode != file.inode) note->files.erase(known);
  }
  if (!reader.ok()) return false;
  if (note != nullptr) note->durable = std::max(note->durable, durable);
  return true;
}

bool SidecarDecoder::apply_recovery_point(ByteView payload) {
  ByteReader reader(payload);
  const std::uint32_t id = reader.u32();
  RecoveryPoint point;
  point.base = reader.i64();
  point.position = reader.u64();
  point.offset = reader.i64();
  point.index_entries = reader.u32();
  point.time_entries = reader.u32();
  point.max_timestamp = Timestamp(reader.i64());
  point.max_timestamp_offset = reader.i64();
  point.first_timestamp = Timestamp(reader.i64());
  const std::size_t epochs = reader.count(reader.u32(), epoch_entry_bytes);
  for (std::size_t i = 0; i < epochs; ++i) {
    const LeaderEpoch epoch(reader.i32());
    const LogPosition start(reader.i64());
    if (!point.epochs.empty() &&
        (point.epochs.back().epoch >= epoch || point.epochs.back().start >= start)) {
      return false;
    }
    point.epochs.push_back({epoch, start});
  }
  point.producers = to_vector(reader.bytes(reader.u32()));
  if (!reader.ok()) return false;
  LogNote* const note = find(id);
  if (note == nullptr) return true;
  // The round it rests on may be one that a power cut took; an older point is of more use then.
  const auto file = note->files.find(point.base);
  const bool founded = file != note->files.end() && file->second.sums.size() >= point.position;
  if (founded || !note->recovery) note->recovery = std::move(point);
  return true;
}

bool SidecarDecoder::apply_config(ByteView payload) {
  ByteReader reader(payload);
  const std::uint32_t id = reader.u32();
  const LogConfig config = read_config(reader);
  if (!reader.ok()) return false;
  if (LogNote* const note = find(id)) note->config = config;
  return true;
}

bool SidecarDecoder::apply_epoch(ByteView payload) {
  ByteReader reader(payload);
  const std::uint32_t id = reader.u32();
  const LeaderEpoch announced(reader.i32());
  const bool lost = reader.ok() && reader.remaining() > 0 && reader.u8() != 0;
  if (!reader.ok()) return false;
  if (LogNote* const note = find(id)) {
    note->announced = std::max(note->announced, announced);
    note->epochs_lost = note->epochs_lost || lost;
  }
  return true;
}

bool SidecarDecoder::apply_epoch_start(ByteView payload) {
  ByteReader reader(payload);
  const std::uint32_t id = reader.u32();
  EpochList::Entry entry;
  entry.epoch = LeaderEpoch(reader.i32());
  entry.start = LogPosition(reader.i64());
  if (!reader.ok()) return false;
  if (LogNote* const note = find(id)) {
    EpochList epochs(std::move(note->epochs));
    epochs.assign(entry.epoch, entry.start);
    note->epochs = epochs.entries();
  }
  return true;
}

bool SidecarDecoder::apply_queue(ByteView payload) {
  ByteReader reader(payload);
  TopicPartition id;
  id.topic = std::string(reader.text(reader.u16()));
  id.partition = reader.i32();
  QueueNote note;
  const ByteView topic = reader.bytes(note.topic.bytes.size());
  note.birth = reader.i64();
  note.start = reader.i64();
  note.removed = reader.u8() != 0;
  note.config = read_config(reader);
  if (!reader.ok()) return false;
  std::copy(topic.begin(), topic.end(), note.topic.bytes.begin());
  state_.queues[std::move(id)] = note;
  return true;
}

bool SidecarDecoder::apply_cut(ByteView payload) {
  ByteReader reader(payload);
  const std::uint32_t id = reader.u32();
  const std::int64_t base = reader.i64();
  const std::uint64_t bytes = reader.u64();
  const LogPosition end(reader.i64());
  if (!reader.ok()) return false;
  LogNote* const note = find(id);
  if (note == nullptr) return true;
  note->durable = std::min(note->durable, end);
  note->files.erase(note->files.upper_bound(base), note->files.end());
  // The sums of a shortened file can't be computed from those of the longer one.
  const auto file = note->files.find(base);
  if (file != note->files.end() && file->second.sums.size() > bytes) note->files.erase(file);
  if (note->recovery && note->recovery->offset > end.value()) note->recovery.reset();
  std::erase_if(note->epochs, [end](const auto& entry) { return entry.start >= end; });
  return true;
}

bool SidecarDecoder::apply_small(std::uint8_t type, ByteView payload) {
  ByteReader reader(payload);
  if (type == sidecar_type::mark) {
    const FileIdentity identity = read_identity(reader);
    if (!reader.ok()) return false;
    state_.marks.push_back(identity);
    if (state_.marks.size() > 2) state_.marks.erase(state_.marks.begin());
    return true;
  }
  const std::uint32_t id = reader.u32();
  LogNote* const note = find(id);
  if (type == sidecar_type::end_log) {
    if (!reader.ok()) return false;
    if (note != nullptr) state_.logs.erase(names_[id]);
    names_.erase(id);
    return true;
  }
  const std::int64_t base = reader.i64();
  if (type == sidecar_type::files_dropped) {
    if (!reader.ok()) return false;
    if (note != nullptr) note->files.erase(note->files.begin(), note->files.lower_bound(base));
    return true;
  }
  const FileIdentity identity = read_identity(reader);
  if (!reader.ok()) return false;
  if (note != nullptr) {
    const auto file = note->files.find(base);
    if (file != note->files.end()) file->second.sealed = identity;
  }
  return true;
}

}  // namespace polylog::storage
