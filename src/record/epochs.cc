#include "record/epochs.h"

#include <algorithm>

#include "base/assert.h"

namespace polylog {

EpochList::EpochList(std::vector<Entry> entries) : entries_(std::move(entries)) {
  for (std::size_t i = 1; i < entries_.size(); ++i) {
    POLYLOG_ASSERT(entries_[i - 1].epoch < entries_[i].epoch);
    POLYLOG_ASSERT(entries_[i - 1].start < entries_[i].start);
  }
}

bool EpochList::assign(LeaderEpoch epoch, LogPosition start) {
  if (!entries_.empty() && entries_.back().epoch == epoch && entries_.back().start <= start) {
    return false;
  }
  std::erase_if(entries_, [&](const Entry& entry) {
    return entry.epoch >= epoch || entry.start >= start;
  });
  entries_.push_back({epoch, start});
  return true;
}

bool EpochList::truncate_end(LogPosition end) {
  return std::erase_if(entries_, [&](const Entry& entry) { return entry.start >= end; }) > 0;
}

bool EpochList::truncate_start(LogPosition start) {
  const auto keep = std::find_if(entries_.begin(), entries_.end(),
                                 [&](const Entry& entry) { return entry.start > start; });
  if (keep == entries_.begin()) return false;
  Entry last = *std::prev(keep);
  if (std::prev(keep) == entries_.begin() && last.start == start) return false;
  last.start = start;
  entries_.erase(entries_.begin(), keep);
  entries_.insert(entries_.begin(), last);
  return true;
}

EpochEnd EpochList::end_of(LeaderEpoch epoch, LogPosition log_end) const {
  if (epoch == no_epoch || entries_.empty()) return {};
  if (epoch == entries_.back().epoch) return {epoch, log_end};
  if (epoch > entries_.back().epoch) return {};
  const auto next = std::find_if(entries_.begin(), entries_.end(),
                                 [&](const Entry& entry) { return entry.epoch > epoch; });
  if (next == entries_.begin()) return {epoch, next->start};
  return {std::prev(next)->epoch, next->start};
}

LeaderEpoch EpochList::at(LogPosition position) const {
  const auto next = std::find_if(entries_.begin(), entries_.end(),
                                 [&](const Entry& entry) { return entry.start > position; });
  return next == entries_.begin() ? no_epoch : std::prev(next)->epoch;
}

}  // namespace polylog
