#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <vector>

#include "base/ids.h"
#include "record/batch.h"
#include "storage/store.h"

namespace polylog::broker {

// Records that were just changed into Kafka's form, so that many readers at one place of a
// partition cost one change. Holds a bounded number of bytes, those asked for last. Reactor only.
class ShownCache {
 public:
  explicit ShownCache(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  struct Place {
    Uuid topic;
    std::int32_t partition = 0;
    Offset from;                   // where the read began
    bool log_append_time = false;  // how the topic shows times
    auto operator<=>(const Place&) const = default;
  };
  // What a read within `limits` would give: all that is visible, or what was read under limits
  // no tighter than these. Null: not known.
  const std::vector<Batch>* find(const Place& place, const storage::ReadLimits& limits);
  // `limits` are those of the read. Nothing is kept of an empty answer, or of one that would fill
  // the cache.
  void put(const Place& place, const storage::ReadLimits& limits,
           const std::vector<Batch>& batches);

  std::size_t bytes() const { return bytes_; }
  std::uint64_t hits() const { return hits_; }

 private:
  struct Entry {
    Place place;
    std::vector<Batch> batches;
    std::size_t bytes = 0;
    Offset end;  // what was visible then
    std::size_t bytes_max = 0;
  };
  void drop(std::list<Entry>::iterator entry);

  const std::size_t bytes_max_;
  std::list<Entry> entries_;  // asked for last in front
  std::map<Place, std::list<Entry>::iterator> by_place_;
  std::size_t bytes_ = 0;
  std::uint64_t hits_ = 0;
};

}  // namespace polylog::broker
