#include "format/kafka/cluster_metadata.h"

#include <algorithm>
#include <cstdint>

#include "base/assert.h"

// Values of records in a row, each behind its length in two bytes. What they come to has no topic
// twice, and no transaction that is half done.

using namespace polylog;
using namespace polylog::format::kafka;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ByteView rest(data, size);
  ClusterMetadata metadata;
  while (rest.size() >= 2) {
    const std::size_t length = std::min<std::size_t>(
        static_cast<std::size_t>(rest[0]) << 8 | rest[1], rest.size() - 2);
    const auto record = decode_metadata_record(rest.subspan(2, length));
    if (!record || !metadata.apply(*record)) break;
    rest = rest.subspan(2 + length);
  }
  metadata.finish();
  for (const auto& [name, topic] : metadata.topics()) POLYLOG_ASSERT(topic.partitions >= 0);
  for (const auto& [of, limits] : metadata.quotas()) POLYLOG_ASSERT(!limits.empty());
  for (const auto& [of, settings] : metadata.settings()) POLYLOG_ASSERT(!settings.empty());
  return 0;
}
