#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "fs/file_system.h"
#include "storage/filelog/ordered_index.h"

namespace polylog::storage::segment {

// Where in a segment file a record lies, by offset and by time: sparse entries in an ordered
// index. Key layout: docs/formats/segment-index.md. Everything in it can be made again from the
// files, and each hit is confirmed by the frame it points at. Thread-safe; methods may wait for
// the disk.
class PositionIndex {
 public:
  // A frame that begins at `position` of the file and has `offset`; no record before it in the
  // file is later than `time_before`.
  struct Entry {
    std::int64_t offset = 0;
    std::uint64_t position = 0;
    Timestamp time_before = no_timestamp;
  };
  // How far the entries of a segment go, and what is known of the records up to there.
  struct Covered {
    std::uint64_t inode = 0;     // of the file: of another one they say nothing
    std::int64_t base = 0;       // offset of the segment's first record
    std::uint64_t position = 0;  // of the file
    std::int64_t next = 0;       // offset of the record that follows
    Timestamp max_timestamp = no_timestamp;
    std::int64_t max_timestamp_offset = -1;
    Timestamp first_timestamp = no_timestamp;
    bool operator==(const Covered&) const = default;
  };

  // `open_index` opens the ordered index in `directory`; `fs` outlives this object.
  PositionIndex(fs::FileSystem& fs, OpenOrderedIndex open_index, std::string directory);

  // Before first use: a store without shards needs no index. One that can't be read is removed and
  // begun anew, as `notes` then say. Where there is no room for it, it is kept in memory until
  // mend() finds some.
  Result<void> open(std::vector<std::string>& notes);
  // Opens it again after a failure, or when it had to be in memory. What was not on the disk is
  // lost to it: seeks there walk further, until the entries are made anew.
  Result<void> mend(std::vector<std::string>& notes);

  // `shard` is a shard's name, a zero byte and its topic's id.
  Result<void> save(const std::string& shard, std::int64_t number,
                    const std::vector<Entry>& entries, const Covered& covered);
  // The last entry at or below `offset`.
  Result<std::optional<Entry>> floor(const std::string& shard, std::int64_t number,
                                     std::int64_t offset) const;
  // The offset of the last entry before which no record is later than `at`.
  Result<std::optional<std::int64_t>> time_floor(const std::string& shard, std::int64_t number,
                                                 Timestamp at) const;
  Result<std::optional<Covered>> covered(const std::string& shard, std::int64_t number) const;

  // The next three never fail: while the index refuses, they are remembered for mend().

  // Forgets entries at or beyond `offset`, and all that say something of times beyond `time`.
  void cut(const std::string& shard, std::int64_t number, std::int64_t offset, Timestamp time);
  // Of files that are gone.
  void remove_segment(const std::string& shard, std::int64_t number);
  void remove_shard(const std::string& name);  // the name alone: of every topic that had it
  Result<void> sync();

 private:
  using Range = std::pair<std::string, std::string>;

  Result<std::shared_ptr<OrderedIndex>> usable() const;
  Result<std::shared_ptr<OrderedIndex>> open_or_begin_anew(std::vector<std::string>& notes);
  Result<void> write(const OrderedIndex::Changes& changes);
  void forget(const std::vector<Range>& ranges);

  fs::FileSystem& fs_;
  const OpenOrderedIndex open_index_;
  const std::string directory_;
  mutable std::mutex mutex_;             // guards the rest
  std::shared_ptr<OrderedIndex> index_;  // null: not open
  bool failed_ = false;                  // refuses everything until it is opened again
  bool in_memory_ = false;
  std::vector<Range> to_remove_;  // once it works again
};

}  // namespace polylog::storage::segment
