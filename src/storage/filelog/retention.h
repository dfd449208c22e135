#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"

namespace polylog::storage {

// One data file as retention sees it; `last_time` is when its newest record was made (or the
// file's modification time where records have none).
struct RetainedFile {
  std::uint64_t bytes = 0;
  std::int64_t end = 0;  // first offset of the next file (the log end for the active one)
  Timestamp last_time = no_timestamp;
  bool active = false;
};

struct RetentionRule {
  std::int64_t bytes = -1;    // keep at least this much; -1: no limit
  std::int64_t time_ms = -1;  // delete what is older; -1: no limit
  std::int64_t start = 0;     // everything below is deleted already for readers
  std::int64_t visible = 0;   // never delete what nobody could have read yet
};

// How many files from the front (oldest first) may go: Kafka's three passes, by start offset, by
// size and by time, each stopping at the first file that does not qualify. Pure.
std::size_t plan_retention(std::span<const RetainedFile> files, const RetentionRule& rule,
                           Timestamp now);

}  // namespace polylog::storage
