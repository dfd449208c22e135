#include "storage/filelog/memory_index.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "base/crc.h"
#include "bytes/reader.h"
#include "bytes/writer.h"

namespace polylog::storage {
namespace {

constexpr std::size_t mark_bytes = 8 + 4;
constexpr std::size_t record_head_bytes = 4 + 4;
constexpr std::size_t file_bytes_max = std::size_t{1} << 30;

void put_text(ByteWriter& writer, const std::string& text) {
  writer.u32(static_cast<std::uint32_t>(text.size()));
  writer.text(text);
}

void put_pairs(ByteWriter& writer, const std::vector<std::pair<std::string, std::string>>& pairs) {
  writer.u32(static_cast<std::uint32_t>(pairs.size()));
  for (const auto& [first, second] : pairs) {
    put_text(writer, first);
    put_text(writer, second);
  }
}

std::string text_of(ByteReader& reader) { return std::string(reader.text(reader.u32())); }

std::vector<std::pair<std::string, std::string>> pairs_of(ByteReader& reader) {
  std::vector<std::pair<std::string, std::string>> pairs(reader.count(reader.u32(), 4 + 4));
  for (auto& [first, second] : pairs) {
    first = text_of(reader);
    second = text_of(reader);
  }
  return pairs;
}

std::vector<std::uint8_t> encode(const OrderedIndex::Changes& changes) {
  ByteWriter writer;
  put_pairs(writer, changes.removed_ranges);
  put_pairs(writer, changes.puts);
  return writer.take_bytes();
}

std::vector<std::uint8_t> encode_mark(std::uint64_t durable_end) {
  ByteWriter writer;
  writer.u64(durable_end);
  writer.u32(crc32c(writer.own_bytes()));
  return writer.take_bytes();
}

// Zero when the mark does not read: it is a lower bound, written in place and never synced.
std::uint64_t decode_mark(ByteView bytes) {
  ByteReader reader(bytes);
  const std::uint64_t durable_end = reader.u64();
  if (!reader.ok() || reader.u32() != crc32c(bytes.first(8)) || !reader.ok()) return 0;
  return durable_end;
}

class MemoryIndex final : public OrderedIndex {
 public:
  MemoryIndex(fs::FileSystem& fs, std::string directory, fs::FilePtr file,
              std::unique_ptr<fs::Lock> lock)
      : fs_(fs), directory_(std::move(directory)), file_(std::move(file)), lock_(std::move(lock)) {}

  Result<void> replay();

  Result<void> write(const Changes& changes) override;
  Result<std::optional<Entry>> floor(const std::string& key,
                                     const std::string& lowest) const override;
  Result<void> scan(const std::string& from, const std::string& to,
                    const std::function<bool(ByteView key, ByteView value)>& visit) const override;
  Result<void> sync() override;

 private:
  void apply(const Changes& changes);
  Result<void> settle_inherited();
  Result<void> sync_file();
  Result<void> check_usable() const;

  fs::FileSystem& fs_;
  const std::string directory_;
  const fs::FilePtr file_;
  const std::unique_ptr<fs::Lock> lock_;

  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, std::string> entries_;
  std::uint64_t end_ = mark_bytes;
  std::uint32_t crc_ = 0;  // of the last record
  bool settled_ = false;   // what was found at opening has been synced by us
  bool failed_ = false;
};

Result<void> MemoryIndex::check_usable() const {
  if (!failed_) return {};
  return fail(Errc::unavailable, directory_ + ": the index failed earlier");
}

void MemoryIndex::apply(const Changes& changes) {
  for (const auto& [from, to] : changes.removed_ranges) {
    if (from >= to) continue;
    entries_.erase(entries_.lower_bound(from), entries_.lower_bound(to));
  }
  for (const auto& [key, value] : changes.puts) entries_[key] = value;
}

Result<void> MemoryIndex::replay() {
  POLYLOG_ASSIGN(info, file_->info());
  if (info.size > file_bytes_max) return fail(Errc::too_large, directory_ + ": over 1 GiB");
  std::vector<std::uint8_t> content(static_cast<std::size_t>(info.size));
  POLYLOG_ASSIGN(count, file_->read(0, content));
  const ByteView bytes = ByteView(content).first(count);
  const std::uint64_t durable_end = decode_mark(bytes.first(std::min(count, mark_bytes)));
  while (end_ < count) {
    ByteReader reader(bytes.subspan(static_cast<std::size_t>(end_)));
    const std::uint32_t size = reader.u32();
    const std::uint32_t crc = reader.u32();
    const ByteView payload = reader.bytes(size);
    if (!reader.ok() || crc32c_extend(crc_, payload) != crc) break;
    ByteReader body(payload);
    Changes changes;
    changes.removed_ranges = pairs_of(body);
    changes.puts = pairs_of(body);
    if (!body.ok() || body.remaining() != 0) break;
    apply(changes);
    crc_ = crc;
    end_ += record_head_bytes + size;
  }
  if (end_ < durable_end) {
    return fail(Errc::corrupt, directory_ + ": the change at byte " + std::to_string(end_) +
                                   " does not read, " + std::to_string(durable_end) +
                                   " bytes were synced");
  }
  if (end_ < count) return file_->truncate(end_);
  return {};
}

Result<void> MemoryIndex::write(const Changes& changes) {
  const std::vector<std::uint8_t> payload = encode(changes);
  const std::scoped_lock guard(mutex_);
  POLYLOG_TRY(check_usable());
  if (changes.empty()) return {};
  const std::uint32_t crc = crc32c_extend(crc_, payload);
  ByteWriter head;
  head.u32(static_cast<std::uint32_t>(payload.size()));
  head.u32(crc);
  const std::array<ByteView, 2> parts{head.own_bytes(), payload};
  if (auto done = file_->write(end_, parts); !done) {
    failed_ = true;
    return done;
  }
  end_ += record_head_bytes + payload.size();
  crc_ = crc;
  apply(changes);
  return {};
}

Result<std::optional<OrderedIndex::Entry>> MemoryIndex::floor(const std::string& key,
                                                              const std::string& lowest) const {
  const std::scoped_lock guard(mutex_);
  POLYLOG_TRY(check_usable());
  auto at = entries_.upper_bound(key);
  if (at == entries_.begin() || (--at)->first < lowest) return std::nullopt;
  return Entry(*at);
}

// One entry under the lock at a time: `visit` may call the index.
Result<void> MemoryIndex::scan(
    const std::string& from, const std::string& to,
    const std::function<bool(ByteView key, ByteView value)>& visit) const {
  std::optional<Entry> entry;
  while (true) {
    {
      const std::scoped_lock guard(mutex_);
      POLYLOG_TRY(check_usable());
      const auto at = entry ? entries_.upper_bound(entry->first) : entries_.lower_bound(from);
      if (at == entries_.end() || at->first >= to) return {};
      entry = *at;
    }
    if (!visit(as_bytes(entry->first), as_bytes(entry->second))) return {};
  }
}

// What was found may look clean without being on the device: an earlier process's sync may have
// failed. Writing the same bytes again makes the next sync carry them; the names, too, may have
// been made by somebody who did not live to sync them.
Result<void> MemoryIndex::settle_inherited() {
  if (settled_) return {};
  std::vector<std::uint8_t> content(static_cast<std::size_t>(end_));
  POLYLOG_ASSIGN(count, file_->read(0, content));
  if (count > 0) POLYLOG_TRY(file_->write(0, ByteView(content).first(count)));
  POLYLOG_TRY(fs_.sync_directory(directory_));
  POLYLOG_TRY(fs_.sync_directory(fs::parent_of(directory_)));
  settled_ = true;
  return {};
}

Result<void> MemoryIndex::sync_file() {
  POLYLOG_TRY(settle_inherited());
  POLYLOG_TRY(file_->sync());
  return file_->write(0, encode_mark(end_));
}

Result<void> MemoryIndex::sync() {
  const std::scoped_lock guard(mutex_);
  POLYLOG_TRY(check_usable());
  auto done = sync_file();
  if (!done) failed_ = true;
  return done;
}

}  // namespace

Result<std::unique_ptr<OrderedIndex>> open_memory_index(fs::FileSystem& fs,
                                                        const std::string& directory) {
  POLYLOG_TRY(fs::create_directories(fs, directory));
  const std::string path = fs::join(directory, "changes");
  POLYLOG_ASSIGN(file, fs.open(path, fs::OpenMode::create));
  POLYLOG_ASSIGN(lock, fs.lock(path));
  auto index = std::make_unique<MemoryIndex>(fs, directory, std::move(file), std::move(lock));
  POLYLOG_TRY(index->replay());
  return index;
}

}  // namespace polylog::storage
