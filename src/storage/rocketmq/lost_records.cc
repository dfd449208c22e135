#include "storage/rocketmq/lost_records.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "bytes/endian.h"
#include "format/rocketmq/names.h"
#include "format/rocketmq/property_crc.h"
#include "storage/rocketmq/resync.h"

namespace polylog::storage::rocketmq {

namespace stored = format::rocketmq;

namespace {

constexpr std::uint64_t chunk_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t piece_bytes_max = std::uint64_t{64} << 20;  // a larger one is no record
constexpr std::size_t entries_per_read = 512;
// With the shortest topic.
constexpr auto record_bytes_min = static_cast<std::int64_t>(stored::fixed_bytes_min) + 1;

bool has_magic(ByteView head) {
  const auto magic = load_big<std::uint32_t>(head.data() + stored::message_at::magic);
  return magic == stored::magic_v1 || magic == stored::magic_v2;
}

// By its magic or its own position: one of them may be what is damaged.
bool may_begin_record(ByteView head, std::int64_t position) {
  return head.size() >= record_head_bytes &&
         (has_magic(head) ||
          load_big<std::int64_t>(head.data() + stored::message_at::physical_offset) == position);
}

// Places in [from, to) where a record seems to begin.
Result<std::vector<std::uint64_t>> beginnings(const CommitFile& file, std::uint64_t from,
                                              std::uint64_t to) {
  std::vector<std::uint64_t> found;
  for (std::uint64_t at = from; at < to; at += chunk_bytes) {
    POLYLOG_ASSIGN(chunk, read_some(file, at, std::min(chunk_bytes + record_head_bytes, to - at)));
    const auto places = std::min<std::uint64_t>(chunk_bytes, chunk.size());
    for (std::uint64_t i = 0; i < places; ++i) {
      const ByteView rest = ByteView(chunk).subspan(static_cast<std::size_t>(i));
      const std::int64_t position = file.base + static_cast<std::int64_t>(at + i);
      if (may_begin_record(rest, position)) found.push_back(at + i);
    }
  }
  return found;
}

// Where the record at `at` ends: where its length says if another begins there, else at the next.
std::uint64_t end_of(std::uint64_t at, std::uint64_t to, ByteView head,
                     const std::vector<std::uint64_t>& starts) {
  const auto size = head.size() < 4 ? 0 : load_big<std::uint32_t>(head.data());
  const std::uint64_t end = at + size;
  if (size >= stored::fixed_bytes_min &&
      (end == to || std::binary_search(starts.begin(), starts.end(), end))) {
    return end;
  }
  const auto next = std::upper_bound(starts.begin(), starts.end(), at);
  return next == starts.end() ? to : *next;
}

// Whether one record stood there, going by what is left of its beginning.
bool is_one_record(ByteView head, const CommitFile& file, std::uint64_t at, std::uint64_t end) {
  return head.size() < record_head_bytes || load_big<std::uint32_t>(head.data()) == end - at ||
         may_begin_record(head, file.base + static_cast<std::int64_t>(at));
}

}  // namespace

Result<void> LostRecords::add(const CommitFile& file, std::uint64_t from, std::uint64_t to,
                              const OnMended& on_mended) {
  POLYLOG_ASSIGN(starts, beginnings(file, from, to));
  for (std::uint64_t at = from; at < to;) {
    POLYLOG_ASSIGN(head, read_some(file, at, std::min<std::uint64_t>(record_head_bytes, to - at)));
    const std::uint64_t end = end_of(at, to, head, starts);
    Piece piece;
    piece.position = file.base + static_cast<std::int64_t>(at);
    piece.end = file.base + static_cast<std::int64_t>(end);
    if (piece.bytes() >= record_bytes_min) {
      piece.one_record = is_one_record(head, file, at, end);
      if (end - at <= piece_bytes_max) {
        POLYLOG_ASSIGN(bytes, read_some(file, at, end - at));
        classify(bytes, piece, on_mended);
      }
      pieces_.push_back(piece);
    }
    at = end;
  }
  return {};
}

// What it was, from what is left of it.
void LostRecords::classify(ByteView bytes, Piece& piece, const OnMended& on_mended) {
  const auto mended = mend_one_bit(bytes);
  Result<stored::Message> message = stored::parse(mended ? ByteView(*mended) : bytes);
  if (!message || message->physical_offset != piece.position) return;
  if (!mended) {
    // The body's checksum fails: that it is the body which is damaged explains why the other one
    // does, too. Without the other one a sound body says nothing against the rest.
    const bool summed = stored::check_property_crc(bytes) != stored::PropertyCrc::absent;
    if (summed == stored::crc_matches(*message)) return;
  }
  if (in_no_queue(*message)) {
    piece.claimed = piece.bytes();
    return;
  }
  if (!stored::check_stored_topic(message->topic)) return;
  Queue* queue = log_.find_queue(message->topic, message->queue_id);
  if (queue == nullptr && mended) {
    queue = log_.queue_for(message->topic, message->queue_id).get();
  }
  if (queue == nullptr) return;
  const std::int64_t gap = message->queue_offset - queue->end_;
  const bool possible =
      mended ? gap <= SharedLog::gap_entries_max
             : gap >= 0 && gap <= std::max<std::int64_t>(piece.position - queue->last_end_, 0) /
                                      record_bytes_min;
  if (!possible) return;
  piece.claimed = piece.bytes();
  know(*queue, message->queue_offset, piece.end);
  if (mended) on_mended(*message);
}

// As recovery passes over records that read.
bool LostRecords::in_no_queue(const stored::Message& message) const {
  const std::int32_t transaction = message.sys_flag & stored::sys_flag::transaction_mask;
  if (transaction == stored::sys_flag::transaction_prepared ||
      transaction == stored::sys_flag::transaction_rollback) {
    return true;
  }
  const TopicPartition id{stored::from_stored_topic(message.topic), message.queue_id};
  const auto gone = log_.removed_.find(id);
  if (gone != log_.removed_.end() && message.physical_offset < gone->second.birth) return true;
  const Queue* const queue = log_.find_queue(message.topic, message.queue_id);
  return queue != nullptr && message.physical_offset < queue->note_.birth;
}

void LostRecords::know(Queue& queue, std::int64_t offset, std::int64_t position_end) {
  Known& known = known_[&queue];
  known.end = std::max(known.end, offset + 1);
  known.position_end = std::max(known.position_end, position_end);
}

void LostRecords::add_unbelievable(const stored::Message& message, std::size_t bytes,
                                   Queue* queue) {
  Piece piece;
  piece.position = message.physical_offset;
  piece.end = piece.position + static_cast<std::int64_t>(bytes);
  if (queue != nullptr) {
    piece.claimed = piece.bytes();
    know(*queue, queue->end_, piece.end);
  }
  pieces_.push_back(piece);
}

// ------------------------------------------------------------------------- what the queues say

bool LostRecords::take_entry(Queue& queue, std::int64_t offset, const Queue::Entry& entry) {
  if (!entry.valid() || entry.filler() || entry.physical_offset < queue.note_.birth) return false;
  auto piece = std::upper_bound(
      pieces_.begin(), pieces_.end(), entry.physical_offset,
      [](std::int64_t position, const Piece& other) { return position < other.position; });
  if (piece == pieces_.begin()) return false;
  --piece;
  if (entry.end() > piece->end) return false;
  piece->claimed += entry.size;
  know(queue, offset, entry.end());
  return true;
}

Result<void> LostRecords::ask_entries(Queue& queue, std::int64_t from) {
  if (empty()) return {};
  std::int64_t room = 0;
  for (const Piece& piece : pieces_) room += piece.bytes() / record_bytes_min;
  for (std::int64_t at = from;; at += static_cast<std::int64_t>(entries_per_read)) {
    POLYLOG_ASSIGN(entries, queue.files_.read(at, entries_per_read, true));
    bool some = false;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      take_entry(queue, at + static_cast<std::int64_t>(i), entries[i]);
      some = some || entries[i] != Queue::Entry();
    }
    if (entries.size() < entries_per_read || (!some && at - from > room)) return {};
  }
}

// How many queues may have lost records there, each so many at most: those with nothing behind it.
std::int64_t LostRecords::suspect(const Piece& piece, std::int64_t records) {
  std::int64_t suspects = 0;
  for (const auto& [id, queue] : log_.queues_) {
    if (queue->note_.birth >= piece.end || queue->last_end_ > piece.position) continue;
    Known& known = known_[queue.get()];
    if (known.position_end > piece.position) continue;
    known.end = std::max(known.end, queue->end_) + records;
    ++suspects;
  }
  return suspects;
}

Result<std::map<Queue*, std::int64_t>> LostRecords::ends(std::vector<std::string>& notes) {
  // The entries of those that a later record told of: what they claim is nobody else's.
  for (const Range& range : missing_) {
    for (std::int64_t at = range.from; at < range.to;) {
      const auto count = std::min<std::int64_t>(entries_per_read, range.to - at);
      POLYLOG_ASSIGN(entries, range.queue->files_.read(at, static_cast<std::size_t>(count), true));
      for (std::size_t i = 0; i < entries.size(); ++i) {
        take_entry(*range.queue, at + static_cast<std::int64_t>(i), entries[i]);
      }
      if (entries.empty()) break;
      at += static_cast<std::int64_t>(entries.size());
    }
  }
  for (const Piece& piece : pieces_) {
    const std::int64_t unclaimed = std::max<std::int64_t>(piece.bytes() - piece.claimed, 0);
    const bool one = piece.one_record && piece.claimed == 0;
    const std::int64_t records = one ? 1 : unclaimed / record_bytes_min;
    if (records == 0) continue;
    const std::int64_t suspects = suspect(piece, std::min(records, SharedLog::gap_entries_max));
    if (suspects == 0) continue;
    notes.push_back("whose record stood at position " + std::to_string(piece.position) +
                    " can't be told; the " + std::to_string(suspects) +
                    " queues that have nothing behind it pass over " + std::to_string(records) +
                    (records == 1 ? " offset" : " offsets"));
  }
  std::map<Queue*, std::int64_t> ends;
  for (const auto& [queue, known] : known_) ends[queue] = known.end;
  return ends;
}

}  // namespace polylog::storage::rocketmq
