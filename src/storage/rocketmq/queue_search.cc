#include <algorithm>
#include <utility>

#include "storage/rocketmq/log.h"
#include "storage/rocketmq/queue.h"
#include "storage/rocketmq/resync.h"

// Searches by halving. Entries have no checksum and lead into the log, where a wrong one may find
// anything: so what a search goes by is messages, and an entry is only the way to one.
namespace polylog::storage::rocketmq {

namespace stored = format::rocketmq;

namespace {

constexpr std::size_t entries_per_read = 256;
constexpr std::int64_t neighbours = 8;
constexpr std::size_t lost_max = 1024;
constexpr std::int64_t searched_bytes_max = std::int64_t{64} << 20;  // for one record

}  // namespace

Result<std::optional<Queue::Fact>> Queue::fact_of(const Entry& entry) const {
  if (!entry.valid() || entry.filler()) return std::optional<Fact>();
  auto record = log_->record_at(entry.physical_offset);
  if (!record) {
    // Not there, or not as it was.
    return record.error().code == Errc::corrupt ? Result<std::optional<Fact>>(std::nullopt)
                                                : fail(std::move(record).error());
  }
  if (!*record) return std::optional<Fact>();
  POLYLOG_ASSIGN(message, stored::parse((*record)->view()));
  if (message.queue_id != id_.partition || message.topic != stored_topic_) {
    return std::optional<Fact>();
  }
  const auto size = static_cast<std::int64_t>((*record)->size());
  return std::optional(Fact{message.queue_offset, message.physical_offset,
                            message.physical_offset + size, message.store_timestamp});
}

// Some message with an offset in [low, high), near the middle.
Result<std::optional<Queue::Fact>> Queue::fact_between(std::int64_t low, std::int64_t high) const {
  const std::int64_t middle = low + (high - low) / 2;
  std::int64_t asked = -1;  // neighbours without a message of their own name the same one
  const auto look = [&](const Entry& entry) -> Result<std::optional<Fact>> {
    if (entry.physical_offset == asked) return std::optional<Fact>();
    asked = entry.physical_offset;
    POLYLOG_ASSIGN(fact, fact_of(entry));
    const bool inside = fact && fact->offset >= low && fact->offset < high;
    return inside ? fact : std::optional<Fact>();
  };
  for (std::int64_t at = middle, step = 1; at < high; step = entries_per_read) {
    POLYLOG_ASSIGN(some, entries(at, static_cast<std::size_t>(std::min(step, high - at)), true));
    if (some.empty()) return fail(Errc::corrupt, files_.directory() + ": shorter than it was");
    for (const Entry& entry : some) {
      POLYLOG_ASSIGN(fact, look(entry));
      if (fact) return fact;
    }
    at += static_cast<std::int64_t>(some.size());
  }
  for (std::int64_t end = middle; end > low;) {
    const std::int64_t from = std::max(low, end - static_cast<std::int64_t>(entries_per_read));
    POLYLOG_ASSIGN(some, entries(from, static_cast<std::size_t>(end - from), true));
    for (auto entry = some.rbegin(); entry != some.rend(); ++entry) {
      POLYLOG_ASSIGN(fact, look(*entry));
      if (fact) return fact;
    }
    end = from;
  }
  return std::optional<Fact>();
}

Result<Queue::Narrowed> Queue::narrow(std::int64_t low, std::int64_t high,
                                      const Holds& holds) const {
  Narrowed narrowed{low, high, std::nullopt, std::nullopt};
  while (narrowed.low < narrowed.high) {
    POLYLOG_ASSIGN(fact, fact_between(narrowed.low, narrowed.high));
    if (!fact) break;
    if (holds(*fact)) {
      narrowed.low = fact->offset + 1;
      narrowed.last = fact;
    } else {
      narrowed.high = fact->offset;
      narrowed.next = fact;
    }
  }
  return narrowed;
}

Result<void> Queue::walk_log(std::int64_t from, std::int64_t to, const LogWalk& visit) const {
  std::vector<std::pair<CommitFilePtr, std::uint64_t>> files;  // and their ends
  std::int64_t file_bytes = 0;
  {
    const std::lock_guard lock(log_->mutex_);
    from = std::max({from, note_.birth, log_->commit_log_.start()});
    file_bytes = log_->commit_log_.file_bytes();
    for (const CommitFilePtr& file : log_->commit_log_.files()) {
      if (file->position() > from && file->base < to) files.emplace_back(file, file->end);
    }
  }
  for (const auto& [file, end] : files) {
    const std::int64_t base = file->base;
    const auto begin = static_cast<std::uint64_t>(std::max<std::int64_t>(from - base, 0));
    const auto stop = std::min(end, static_cast<std::uint64_t>(to - base));
    Walk here;
    here.on_record = [&](const stored::Message& message, std::size_t) { visit.on_record(message); };
    here.on_damage = [&](std::uint64_t begins, std::uint64_t ends) {
      visit.on_damage(base + static_cast<std::int64_t>(begins),
                      base + static_cast<std::int64_t>(ends));
    };
    POLYLOG_TRY(walk(*file, static_cast<std::uint64_t>(file_bytes), begin, stop, here));
  }
  return {};
}

// Of the offsets in between: those whose messages stand below `position`, going by the log itself.
// A message that is damaged there is known by its entry, which leads to the damage.
Result<std::int64_t> Queue::count_in_log(const Narrowed& narrowed, std::int64_t position) const {
  std::int64_t count = narrowed.low;
  std::vector<std::pair<std::int64_t, std::int64_t>> damage;
  LogWalk visit;
  visit.on_record = [&](const stored::Message& message) {
    const bool ours = message.queue_id == id_.partition && message.topic == stored_topic_;
    if (ours && message.queue_offset < narrowed.high) {
      count = std::max(count, message.queue_offset + 1);
    }
  };
  visit.on_damage = [&](std::int64_t from, std::int64_t to) { damage.emplace_back(from, to); };
  POLYLOG_TRY(walk_log(narrowed.last ? narrowed.last->end : 0,
                       narrowed.next ? std::min(position, narrowed.next->position) : position,
                       visit));
  for (std::int64_t at = count; at < narrowed.high;) {
    const auto want = std::min<std::int64_t>(entries_per_read, narrowed.high - at);
    POLYLOG_ASSIGN(some, entries(at, static_cast<std::size_t>(want), true));
    if (some.empty()) break;
    for (const Entry& entry : some) {
      // Offsets that were passed over name the message before them, at a queue's end.
      const bool repeats = narrowed.last && entry.physical_offset == narrowed.last->position;
      const bool damaged = std::any_of(damage.begin(), damage.end(), [&](const auto& span) {
        return entry.physical_offset >= span.first && entry.end() <= span.second;
      });
      ++at;
      if (entry.valid() && (repeats || damaged)) count = at;
    }
  }
  return count;
}

Result<std::optional<Slice>> Queue::record_of(std::int64_t offset, const Entry& entry) const {
  if (entry.valid() && !entry.filler()) {
    POLYLOG_ASSIGN(record, log_->record_at(entry.physical_offset));
    const auto message = record ? stored::parse(record->view()) : fail(Errc::not_found, "");
    const bool own = message && message->queue_offset == offset &&
                     message->queue_id == id_.partition && message->topic == stored_topic_;
    if (own) return record;
  }
  return between_neighbours(offset);
}

bool Queue::looked_for(std::int64_t offset) const {
  const std::lock_guard lock(log_->mutex_);
  return lost_.contains(offset);
}

Result<std::optional<Slice>> Queue::between_neighbours(std::int64_t offset) const {
  std::int64_t first = 0, end = 0, from = 0, to = 0;
  if (looked_for(offset)) return std::optional<Slice>();
  {
    const std::lock_guard lock(log_->mutex_);
    first = std::max(offset - 1, first_);
    end = std::min(offset + 2, end_);
    from = log_->commit_log_.start();
    to = log_->written_end_;
  }
  if (offset < first || offset >= end) return std::optional<Slice>();
  POLYLOG_ASSIGN(some, entries(first, static_cast<std::size_t>(end - first), true));
  std::int64_t found = -1;
  for (const Entry& entry : some) {
    const std::int64_t own = first++;
    POLYLOG_ASSIGN(fact, fact_of(entry));
    const bool leads_there = fact && fact->offset == own;
    if (own == offset) {
      if (leads_there) found = fact->position;  // it is its size that is wrong
    } else if (!leads_there) {
      return std::optional<Slice>();
    } else if (own < offset) {
      from = fact->end;
    } else {
      to = fact->position;
    }
  }
  if (found < 0 && to - from <= searched_bytes_max) {
    LogWalk visit;
    visit.on_record = [&](const stored::Message& message) {
      const bool ours = message.queue_id == id_.partition && message.topic == stored_topic_;
      if (ours && message.queue_offset == offset) found = message.physical_offset;
    };
    visit.on_damage = [](std::int64_t, std::int64_t) {};
    POLYLOG_TRY(walk_log(from, to, visit));
  }
  if (found >= 0) return log_->record_at(found);
  const std::lock_guard lock(log_->mutex_);
  if (lost_.size() >= lost_max) lost_.clear();
  lost_.insert(offset);
  return std::optional<Slice>();
}

Result<std::int64_t> Queue::count_below(LogPosition position) const {
  std::int64_t low = 0, high = 0;
  {
    const std::lock_guard lock(log_->mutex_);
    if (position.value() >= last_end_) return end_;
    const auto beyond = std::partition_point(
        pending_.begin(), pending_.end(),
        [&](const Entry& entry) { return entry.filler() || entry.end() <= position.value(); });
    if (beyond != pending_.begin()) return flushed_ + (beyond - pending_.begin());
    low = first_;
    high = flushed_;
  }
  POLYLOG_ASSIGN(narrowed, narrow(std::min(low, high), high,
                                  [&](const Fact& fact) { return fact.end <= position.value(); }));
  if (narrowed.low == narrowed.high) return narrowed.low;
  return count_in_log(narrowed, position.value());
}

// The first offset in [low, high) whose message stands at or beyond `log_start`. What stood below
// is gone, so there the entries' own word has to do: unless a message is found that contradicts it.
Result<std::int64_t> Queue::first_from(std::int64_t low, std::int64_t high,
                                       std::int64_t log_start) const {
  const auto gone = [&](const Entry& entry) {
    return entry.filler() || entry.physical_offset < log_start;
  };
  const std::int64_t lowest = low;
  for (;;) {
    const std::int64_t highest = high;
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      POLYLOG_ASSIGN(found, entries(middle, 1, true));
      if (found.empty()) return fail(Errc::corrupt, files_.directory() + ": shorter than it was");
      if (gone(found.front())) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    // One wrong entry may have led here. A message among those before is not gone.
    const std::int64_t from = std::max(lowest, low - neighbours);
    POLYLOG_ASSIGN(before, entries(from, static_cast<std::size_t>(low - from), true));
    std::optional<std::int64_t> there;
    for (std::size_t i = 0; i < before.size() && !there; ++i) {
      POLYLOG_ASSIGN(fact, fact_of(before[i]));
      if (fact && fact->offset == from + static_cast<std::int64_t>(i)) there = fact->offset;
    }
    if (there) {
      low = lowest;
      high = *there;
      continue;
    }
    // One that says it is there, and leads nowhere while those behind it are gone.
    const auto want = std::min(neighbours, highest - low);
    POLYLOG_ASSIGN(behind, entries(low, static_cast<std::size_t>(want), true));
    std::int64_t next = low;
    for (std::size_t i = 0; i < behind.size(); ++i) {
      if (gone(behind[i])) next = low + static_cast<std::int64_t>(i) + 1;
    }
    if (next == low) return low;
    POLYLOG_ASSIGN(fact, fact_of(behind.front()));
    if (fact) return low;
    low = next;
    high = highest;
  }
}

}  // namespace polylog::storage::rocketmq
