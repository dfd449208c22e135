#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "bytes/slice.h"

// An ordered map of small keys and values on disk, for positions that can be made again from the
// data they point into. RocksDB stands behind it (storage/rocksdb/index.h); a fake for tests loses
// what was not synced (memory_index.h).
namespace polylog::storage {

// Thread-safe. Every method may wait for the disk. Keys are ordered as unsigned bytes.
//
// Nothing written is durable before sync() returned; after a crash the index holds the synced
// changes and possibly a prefix, in order of write(), of those after them. What a caller finds is
// a hint: it confirms each hit by what lies there.
//
// An error of write() or sync() is final, want of space included: a change that came after a lost
// one would break the order. The index then answers unavailable to everything until it is opened
// again. Dropping the index syncs nothing.
class OrderedIndex {
 public:
  using Entry = std::pair<std::string, std::string>;  // key, value

  // Changes that are applied in order and all together.
  struct Changes {
    std::vector<Entry> puts;
    std::vector<std::pair<std::string, std::string>> removed_ranges;  // [from, to), before the puts
    bool empty() const { return puts.empty() && removed_ranges.empty(); }
  };

  virtual ~OrderedIndex() = default;

  virtual Result<void> write(const Changes& changes) = 0;
  // The entry with the greatest key <= `key` and >= `lowest`.
  virtual Result<std::optional<Entry>> floor(const std::string& key,
                                             const std::string& lowest) const = 0;
  // Entries of [from, to) in order, until `visit` says false. Entries written meanwhile may be
  // missing. The views hold during the call of `visit`.
  virtual Result<void> scan(
      const std::string& from, const std::string& to,
      const std::function<bool(ByteView key, ByteView value)>& visit) const = 0;
  // Everything written before is on disk when it returns.
  virtual Result<void> sync() = 0;
};

// Opens the index in a directory, making it when missing. corrupt: it can't be read; the caller
// may remove the directory and build it again. no_space: the disk is too full to open it; nothing
// of it was lost. locked: somebody has it open.
using OpenOrderedIndex =
    std::function<Result<std::unique_ptr<OrderedIndex>>(const std::string& directory)>;

}  // namespace polylog::storage
