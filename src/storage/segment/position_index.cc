#include "storage/segment/position_index.h"

#include <map>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "bytes/reader.h"
#include "bytes/writer.h"

namespace polylog::storage::segment {
namespace {

// Behind the shard's name and a zero byte, which no name has: the segment's number, then one of
// these, then what the entries of that kind are ordered by. All numbers are big-endian, signed
// ones with their sign bit turned, so that bytes and numbers have one order.
constexpr std::uint8_t covered_kind = 'c';
constexpr std::uint8_t offset_kind = 'o';
constexpr std::uint8_t time_kind = 't';

std::uint64_t ordered(std::int64_t value) {
  return static_cast<std::uint64_t>(value) ^ (std::uint64_t{1} << 63);
}

std::string text_of(ByteWriter& writer) {
  const std::vector<std::uint8_t> bytes = writer.take_bytes();
  return std::string(as_text(bytes));
}

std::string shard_key(const std::string& shard, char end) { return shard + end; }

std::string segment_key(const std::string& shard, std::int64_t number) {
  ByteWriter writer;
  writer.bytes(as_bytes(shard));
  writer.u8(0);
  writer.u32(static_cast<std::uint32_t>(number));
  return text_of(writer);
}

std::string kind_key(const std::string& shard, std::int64_t number, std::uint8_t kind) {
  return segment_key(shard, number) + static_cast<char>(kind);
}

std::string number_key(const std::string& shard, std::int64_t number, std::uint8_t kind,
                       std::uint64_t value) {
  ByteWriter writer;
  writer.bytes(as_bytes(kind_key(shard, number, kind)));
  writer.u64(value);
  return text_of(writer);
}

std::string encode_covered(const PositionIndex::Covered& covered) {
  ByteWriter writer;
  writer.u64(covered.inode);
  writer.i64(covered.base);
  writer.u64(covered.position);
  writer.i64(covered.next);
  writer.i64(covered.max_timestamp.value());
  writer.i64(covered.max_timestamp_offset);
  writer.i64(covered.first_timestamp.value());
  return text_of(writer);
}

// Serves as the index when there is no room for one on the disk.
class VolatileIndex final : public OrderedIndex {
 public:
  Result<void> write(const Changes& changes) override {
    const std::unique_lock lock(mutex_);
    for (const auto& [from, to] : changes.removed_ranges) {
      entries_.erase(entries_.lower_bound(from), entries_.lower_bound(to));
    }
    for (const auto& [key, value] : changes.puts) entries_[key] = value;
    return {};
  }
  Result<std::optional<Entry>> floor(const std::string& key,
                                     const std::string& lowest) const override {
    const std::shared_lock lock(mutex_);
    const auto beyond = entries_.upper_bound(key);
    if (beyond == entries_.begin()) return std::optional<Entry>();
    const auto found = std::prev(beyond);
    if (found->first < lowest) return std::optional<Entry>();
    return std::optional<Entry>(*found);
  }
  Result<void> scan(const std::string& from, const std::string& to,
                    const std::function<bool(ByteView, ByteView)>& visit) const override {
    const std::shared_lock lock(mutex_);
    for (auto i = entries_.lower_bound(from); i != entries_.end() && i->first < to; ++i) {
      if (!visit(as_bytes(i->first), as_bytes(i->second))) break;
    }
    return {};
  }
  Result<void> sync() override { return {}; }

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::string, std::string> entries_;
};

}  // namespace

PositionIndex::PositionIndex(fs::FileSystem& fs, OpenOrderedIndex open_index, std::string directory)
    : fs_(fs), open_index_(std::move(open_index)), directory_(std::move(directory)) {}

Result<std::shared_ptr<OrderedIndex>> PositionIndex::open_or_begin_anew(
    std::vector<std::string>& notes) {
  auto opened = open_index_(directory_);
  if (!opened && opened.error().code == Errc::corrupt) {
    notes.push_back(directory_ + " does not read and is made anew: " + opened.error().context);
    POLYLOG_TRY(fs::remove_tree(fs_, directory_));
    opened = open_index_(directory_);
  }
  if (!opened) return fail(opened.error());
  return std::shared_ptr<OrderedIndex>(std::move(*opened));
}

Result<void> PositionIndex::open(std::vector<std::string>& notes) {
  const std::lock_guard lock(mutex_);
  if (index_ != nullptr) return {};
  auto opened = open_or_begin_anew(notes);
  in_memory_ = !opened && opened.error().code == Errc::no_space;
  if (in_memory_) {
    notes.push_back(directory_ + ": no room for the index; it is kept in memory until there is");
    opened = std::make_shared<VolatileIndex>();
  }
  if (!opened) return fail(opened.error());
  index_ = std::move(*opened);
  return {};
}

Result<void> PositionIndex::mend(std::vector<std::string>& notes) {
  const std::lock_guard lock(mutex_);
  if (index_ == nullptr || (!failed_ && !in_memory_)) return {};
  if (failed_)
    index_ = std::make_shared<VolatileIndex>();  // the old one first lets go of its files
  failed_ = false;
  in_memory_ = true;
  POLYLOG_ASSIGN(opened, open_or_begin_anew(notes));
  OrderedIndex::Changes changes;
  changes.removed_ranges = to_remove_;
  // What was noted meanwhile.
  POLYLOG_TRY(index_->scan("", "\xff\xff", [&](ByteView key, ByteView value) {
    changes.puts.emplace_back(as_text(key), as_text(value));
    return true;
  }));
  POLYLOG_TRY(opened->write(changes));
  to_remove_.clear();
  index_ = std::move(opened);
  in_memory_ = false;
  return {};
}

Result<std::shared_ptr<OrderedIndex>> PositionIndex::usable() const {
  const std::lock_guard lock(mutex_);
  if (index_ != nullptr && !failed_) return index_;
  return fail(Errc::unavailable, directory_ + (failed_ ? " failed" : " is not open"));
}

Result<void> PositionIndex::write(const OrderedIndex::Changes& changes) {
  POLYLOG_ASSIGN(index, usable());
  auto wrote = index->write(changes);
  const std::lock_guard lock(mutex_);
  if (!wrote && index == index_) failed_ = true;
  return wrote;
}

Result<void> PositionIndex::sync() {
  {
    const std::lock_guard lock(mutex_);
    if (index_ == nullptr) return {};  // a store without shards
  }
  POLYLOG_ASSIGN(index, usable());
  auto synced = index->sync();
  const std::lock_guard lock(mutex_);
  if (!synced && index == index_) failed_ = true;
  return synced;
}

Result<void> PositionIndex::save(const std::string& shard, std::int64_t number,
                                 const std::vector<Entry>& entries, const Covered& covered) {
  OrderedIndex::Changes changes;
  for (const Entry& entry : entries) {
    ByteWriter position;
    position.u64(entry.position);
    changes.puts.emplace_back(number_key(shard, number, offset_kind, ordered(entry.offset)),
                              text_of(position));
    // Of several entries before which the same time was the latest the last one is kept: it
    // leaves the least to scan.
    ByteWriter offset;
    offset.i64(entry.offset);
    changes.puts.emplace_back(
        number_key(shard, number, time_kind, ordered(entry.time_before.value())), text_of(offset));
  }
  changes.puts.emplace_back(kind_key(shard, number, covered_kind), encode_covered(covered));
  return write(changes);
}

Result<std::optional<PositionIndex::Entry>> PositionIndex::floor(const std::string& shard,
                                                                 std::int64_t number,
                                                                 std::int64_t offset) const {
  const std::string lowest = kind_key(shard, number, offset_kind);
  POLYLOG_ASSIGN(index, usable());
  POLYLOG_ASSIGN(found,
                 index->floor(number_key(shard, number, offset_kind, ordered(offset)), lowest));
  if (!found) return std::optional<Entry>();
  ByteReader key(as_bytes(found->first).subspan(lowest.size()));
  ByteReader value(as_bytes(found->second));
  Entry entry;
  entry.offset = static_cast<std::int64_t>(ordered(static_cast<std::int64_t>(key.u64())));
  entry.position = value.u64();
  if (!key.ok() || !value.ok()) return std::optional<Entry>();
  return std::optional(entry);
}

Result<std::optional<std::int64_t>> PositionIndex::time_floor(const std::string& shard,
                                                              std::int64_t number,
                                                              Timestamp at) const {
  POLYLOG_ASSIGN(index, usable());
  POLYLOG_ASSIGN(found, index->floor(number_key(shard, number, time_kind, ordered(at.value())),
                                     kind_key(shard, number, time_kind)));
  if (!found) return std::optional<std::int64_t>();
  ByteReader value(as_bytes(found->second));
  const std::int64_t offset = value.i64();
  return value.ok() ? std::optional(offset) : std::nullopt;
}

Result<std::optional<PositionIndex::Covered>> PositionIndex::covered(const std::string& shard,
                                                                     std::int64_t number) const {
  const std::string key = kind_key(shard, number, covered_kind);
  POLYLOG_ASSIGN(index, usable());
  POLYLOG_ASSIGN(found, index->floor(key, key));
  if (!found) return std::optional<Covered>();
  ByteReader reader(as_bytes(found->second));
  Covered covered;
  covered.inode = reader.u64();
  covered.base = reader.i64();
  covered.position = reader.u64();
  covered.next = reader.i64();
  covered.max_timestamp = Timestamp(reader.i64());
  covered.max_timestamp_offset = reader.i64();
  covered.first_timestamp = Timestamp(reader.i64());
  if (!reader.ok() || reader.remaining() > 0) return std::optional<Covered>();
  return std::optional(covered);
}

void PositionIndex::cut(const std::string& shard, std::int64_t number, std::int64_t offset,
                        Timestamp time) {
  forget({{number_key(shard, number, offset_kind, ordered(offset)),
           kind_key(shard, number, offset_kind + 1)},
          {number_key(shard, number, time_kind, ordered(time.value())),
           kind_key(shard, number, time_kind + 1)}});
}

void PositionIndex::remove_segment(const std::string& shard, std::int64_t number) {
  forget({{segment_key(shard, number), segment_key(shard, number + 1)}});
}

void PositionIndex::remove_shard(const std::string& shard) {
  forget({{shard_key(shard, '\0'), shard_key(shard, '\1')}});
}

void PositionIndex::forget(const std::vector<Range>& ranges) {
  OrderedIndex::Changes changes;
  changes.removed_ranges = ranges;
  const std::lock_guard lock(mutex_);
  if (index_ == nullptr) return;
  if (!failed_) failed_ = !index_->write(changes);
  // One that is in memory, or failed, does not have what mend() will find on the disk.
  if (failed_ || in_memory_) to_remove_.insert(to_remove_.end(), ranges.begin(), ranges.end());
}

}  // namespace polylog::storage::segment
