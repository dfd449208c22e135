#include <algorithm>
#include <cstdlib>

#include "journal/core.h"

namespace polylog::journal {
namespace {

// Of one write to the device. A round of a thousand 4 KiB batches fits: two writes are two waits.
constexpr std::size_t buffer_bytes = std::size_t{8} << 20;
constexpr std::size_t zeros_bytes = std::size_t{1} << 20;

std::uint64_t blocks_up(std::uint64_t bytes) {
  return (bytes + block_bytes - 1) / block_bytes * block_bytes;
}

}  // namespace

AlignedBuffer::AlignedBuffer(std::size_t capacity)
    : capacity_(capacity),
      bytes_(static_cast<std::uint8_t*>(std::aligned_alloc(block_bytes, capacity))) {
  POLYLOG_ASSERT(bytes_ != nullptr);
}

void AlignedBuffer::Free::operator()(std::uint8_t* bytes) const { std::free(bytes); }

JournalFile::JournalFile(fs::FilePtr file, bool direct, const Heads& heads)
    : file_(std::move(file)),
      direct_(direct),
      heads_(heads),
      last_epoch_(*std::max_element(heads.epochs.begin(), heads.epochs.end())) {
  for (std::size_t index = 0; index < area_count; ++index) {
    Area& area = areas_[index];
    area.epoch = heads.epochs[index];
    area.at = area_start(index, heads.area_bytes) + block_bytes;
    area.end = area_start(index, heads.area_bytes) + heads.area_bytes;
  }
}

Result<std::unique_ptr<JournalFile>> JournalFile::open(fs::FileSystem& fs, const std::string& path,
                                                       const Heads& heads) {
  auto file = fs.open_direct(path);
  const bool direct = file.has_value();
  if (!direct) {
    if (file.error().code != Errc::unsupported) return fail(file.error());
    file = fs.open(path, fs::OpenMode::write);
    if (!file) return fail(file.error());
  }
  return std::unique_ptr<JournalFile>(new JournalFile(std::move(*file), direct, heads));
}

Result<void> JournalFile::create(fs::FileSystem& fs, const std::string& path, std::uint64_t bytes) {
  Heads heads;
  heads.area_bytes = (bytes - block_bytes) / area_count / block_bytes * block_bytes;
  const std::uint64_t size = area_start(area_count, heads.area_bytes);
  const std::string draft = path + ".tmp";
  POLYLOG_ASSIGN(file, fs.open(draft, fs::OpenMode::create));
  POLYLOG_TRY(file->truncate(0));
  const std::vector<std::uint8_t> zeros(std::min<std::uint64_t>(size, zeros_bytes));
  for (std::uint64_t at = 0; at < size; at += zeros.size()) {
    const auto count = std::min<std::uint64_t>(zeros.size(), size - at);
    auto wrote = file->write(at, ByteView(zeros).first(static_cast<std::size_t>(count)));
    if (wrote) continue;
    file.reset();
    static_cast<void>(fs.remove(draft));  // gives the room back; the first error counts
    return wrote;
  }
  POLYLOG_TRY(file->write(0, ByteView(encode_file_head(heads.area_bytes))));
  // The time, because a record must not hold what would pass for entries of this journal.
  POLYLOG_ASSIGN(info, file->info());
  const auto epoch = static_cast<std::uint64_t>(std::max<std::int64_t>(info.modified_ns, 1));
  for (std::size_t area = 0; area < area_count; ++area) {
    POLYLOG_TRY(
        file->write(area_start(area, heads.area_bytes), ByteView(encode_area_head(epoch + area))));
  }
  POLYLOG_TRY(file->sync());
  POLYLOG_TRY(fs.rename(draft, path));
  return fs.sync_directory(fs::parent_of(path));
}

bool JournalFile::has_room(std::size_t index, std::size_t bytes) const {
  const Area& area = areas_[index];
  return bytes <= area.end - area.at && filled_ <= area.end - area.at - bytes;
}

bool JournalFile::fits_buffer(std::size_t bytes) const { return filled_ + bytes <= buffer_bytes; }

MutableBytes JournalFile::payload(std::size_t payload_bytes) {
  // Two blocks more: what fills the last one up.
  if (buffer_ == nullptr) {
    buffer_ = std::make_unique<AlignedBuffer>(buffer_bytes + 2 * block_bytes);
  }
  POLYLOG_ASSERT(filled_ + entry_head_bytes + payload_bytes <= buffer_->capacity());
  return {buffer_->data() + filled_ + entry_head_bytes, payload_bytes};
}

void JournalFile::add(std::size_t index, EntryKind kind, std::uint32_t generation,
                      std::uint64_t position, std::size_t payload_bytes) {
  Area& area = areas_[index];
  const MutableBytes whole{buffer_->data() + filled_, entry_head_bytes + payload_bytes};
  encode_entry_head(whole, {kind, filled_ == 0, area.epoch, area.sequence++, generation, position});
  filled_ += whole.size();
  area.begun = true;
}

Result<void> JournalFile::flush(std::size_t index) {
  if (filled_ == 0) return {};
  Area& area = areas_[index];
  std::uint64_t size = blocks_up(filled_);
  if (const std::uint64_t rest = size - filled_; rest > 0) {
    const bool last_block = area.at + size == area.end;
    std::uint64_t fill = rest;
    if (rest < entry_head_bytes && !last_block) fill += block_bytes;
    const MutableBytes blank{buffer_->data() + filled_, static_cast<std::size_t>(fill)};
    std::fill(blank.begin(), blank.end(), std::uint8_t{0});
    if (fill >= entry_head_bytes) {
      encode_entry_head(blank, {EntryKind::fill, false, area.epoch, area.sequence++, 0, 0});
    }
    size = filled_ + fill;
  }
  filled_ = 0;
  const ByteView bytes{buffer_->data(), static_cast<std::size_t>(size)};
  POLYLOG_TRY(write(area.at, bytes));
  area.at += size;
  bytes_written_ += size;
  return {};
}

Result<void> JournalFile::empty(std::size_t index) {
  const std::uint64_t epoch = last_epoch_ + 1;
  const std::vector<std::uint8_t> block = encode_area_head(epoch);
  std::copy(block.begin(), block.end(), head_.data());
  const std::uint64_t start = area_start(index, heads_.area_bytes);
  POLYLOG_TRY(write(start, ByteView(head_.data(), block.size())));
  last_epoch_ = epoch;
  Area& area = areas_[index];
  area = {epoch, start + block_bytes, area.end};
  return {};
}

Result<void> JournalFile::write(std::uint64_t position, ByteView bytes) {
  POLYLOG_TRY(file_->write(position, bytes));
  return direct_ ? Result<void>() : file_->sync();
}

}  // namespace polylog::journal
