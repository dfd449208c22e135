#pragma once

#include <cstdint>
#include <optional>

#include "bytes/slice.h"

namespace polylog::cli {

// Murmur 2 with the seed of Kafka's Java client (Kafka 4.3, Utils.murmur2), which decides where
// all its keyed records go.
std::int32_t murmur2(ByteView bytes);

// Chooses partitions as Kafka's Java client does: by the key's hash, or one after the other for
// records without a key. Used by one thread.
class Partitioner {
 public:
  explicit Partitioner(std::int32_t partitions) : partitions_(partitions) {}
  std::int32_t choose(const std::optional<ByteView>& key);

 private:
  const std::int32_t partitions_;
  std::int32_t next_ = 0;
};

}  // namespace polylog::cli
