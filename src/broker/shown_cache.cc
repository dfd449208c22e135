#include "broker/shown_cache.h"

#include "broker/transcoder.h"

namespace polylog::broker {

const std::vector<Batch>* ShownCache::find(const Place& place, const storage::ReadLimits& limits) {
  const auto found = by_place_.find(place);
  if (found == by_place_.end()) return nullptr;
  const auto entry = found->second;
  const Offset last = entry->batches.back().info.last;
  if (last >= limits.end) return nullptr;
  // A reader that waits for more must not be held up by what it was given before.
  const bool all_there_was = last + 1 >= entry->end;
  if (all_there_was ? limits.end > entry->end : limits.bytes_max > entry->bytes_max) {
    return nullptr;
  }
  const bool whole = limits.first_whole && entry->batches.size() == 1;
  if (entry->bytes > limits.bytes_max && !whole) return nullptr;
  entries_.splice(entries_.begin(), entries_, entry);
  ++hits_;
  return &entry->batches;
}

void ShownCache::put(const Place& place, const storage::ReadLimits& limits,
                     const std::vector<Batch>& batches) {
  const std::size_t bytes = total_bytes(batches);
  if (bytes == 0 || bytes > bytes_max_ / 2) return;
  const auto known = by_place_.find(place);
  if (known != by_place_.end()) drop(known->second);
  while (bytes_ + bytes > bytes_max_) drop(std::prev(entries_.end()));
  entries_.push_front({place, batches, bytes, limits.end, limits.bytes_max});
  by_place_.emplace(place, entries_.begin());
  bytes_ += bytes;
}

void ShownCache::drop(std::list<Entry>::iterator entry) {
  bytes_ -= entry->bytes;
  by_place_.erase(entry->place);
  entries_.erase(entry);
}

}  // namespace polylog::broker
