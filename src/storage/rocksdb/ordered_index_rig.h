#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "fs/file_system.h"
#include "storage/filelog/memory_index.h"
#include "storage/rocksdb/index.h"

namespace polylog::storage {

using Entries = std::map<std::string, std::string>;

// One of the things that stand behind OrderedIndex.
struct IndexKind {
  std::string name;
  std::function<Result<std::unique_ptr<OrderedIndex>>(fs::FileSystem&, const std::string&)> open;
};

// Buffers so small that a few hundred changes go to tables before anybody syncs.
inline IndexKind rocksdb_kind(std::uint64_t write_buffer_bytes) {
  RocksdbIndexOptions options;
  options.write_buffer_bytes = write_buffer_bytes;
  options.ballast_bytes = 0;
  return {"rocksdb", [options](fs::FileSystem& fs, const std::string& directory) {
            return open_rocksdb_index(fs, directory, options);
          }};
}
inline IndexKind memory_kind() { return {"memory", open_memory_index}; }

inline void apply(Entries& entries, const OrderedIndex::Changes& changes) {
  for (const auto& [from, to] : changes.removed_ranges) {
    if (from < to) entries.erase(entries.lower_bound(from), entries.lower_bound(to));
  }
  for (const auto& [key, value] : changes.puts) entries[key] = value;
}

// Everything with a key below \xff.
inline Result<Entries> contents(const OrderedIndex& index) {
  Entries entries;
  POLYLOG_TRY(index.scan("", "\xff", [&](ByteView key, ByteView value) {
    entries.emplace(as_text(key), as_text(value));
    return true;
  }));
  return entries;
}

inline std::string random_key(std::mt19937_64& random) {
  std::string key = "shard-" + std::to_string(random() % 3) + "/";
  for (int shift = 24; shift >= 0; shift -= 8) {
    key.push_back(static_cast<char>((random() % 5) << (shift == 0 ? 5 : 0)));
  }
  return key;
}

inline OrderedIndex::Changes random_changes(std::mt19937_64& random, std::size_t puts_max,
                                            std::size_t value_bytes) {
  OrderedIndex::Changes changes;
  if (random() % 6 == 0)
    changes.removed_ranges.emplace_back(random_key(random), random_key(random));
  for (std::size_t i = random() % (puts_max + 1); i > 0; --i) {
    std::string value = std::to_string(random());
    value.resize(value_bytes, '.');
    changes.puts.emplace_back(random_key(random), std::move(value));
  }
  return changes;
}

}  // namespace polylog::storage
