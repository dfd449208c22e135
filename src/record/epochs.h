#pragma once

#include <optional>
#include <vector>

#include "base/ids.h"

namespace polylog {

// Where a leader epoch ends: what OffsetForLeaderEpoch answers. Undefined is (-1, -1).
struct EpochEnd {
  LeaderEpoch epoch = no_epoch;
  LogPosition end{-1};
  bool operator==(const EpochEnd&) const = default;
};

// Ordered list of (epoch, first position written under it); both rise strictly. A pure value:
// the engine places it on disk (kafka: leader-epoch-checkpoint, else the sidecar).
class EpochList {
 public:
  struct Entry {
    LeaderEpoch epoch;
    LogPosition start;
    bool operator==(const Entry&) const = default;
  };

  EpochList() = default;
  // REQUIRES: strictly rising.
  explicit EpochList(std::vector<Entry> entries);

  const std::vector<Entry>& entries() const { return entries_; }
  LeaderEpoch latest() const { return entries_.empty() ? no_epoch : entries_.back().epoch; }

  // No-op if the last entry has this epoch and starts at or below `start`; otherwise entries
  // with an equal or later epoch or start go first. Returns whether the list changed.
  bool assign(LeaderEpoch epoch, LogPosition start);
  // Drops entries that start at or beyond `end`. Returns whether the list changed.
  bool truncate_end(LogPosition end);
  // Drops entries below `start`, keeping the last of them with its start raised to `start`.
  bool truncate_start(LogPosition start);
  // End of the greatest epoch <= `epoch`; `log_end` is the end of the latest one.
  EpochEnd end_of(LeaderEpoch epoch, LogPosition log_end) const;
  // The epoch a position was written under; no_epoch below the first entry.
  LeaderEpoch at(LogPosition position) const;

 private:
  std::vector<Entry> entries_;
};

}  // namespace polylog
