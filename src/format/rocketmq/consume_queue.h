#pragma once

#include <array>
#include <cstdint>

#include "bytes/endian.h"
#include "bytes/slice.h"
#include "format/rocketmq/fields.h"

// Consume queue entries (RocketMQ store format, "Simple queue"): entry i of a queue stands at byte
// 20 i of a stream that is cut into files of equal size, each named by its first byte. Byte table:
// docs/formats/rocketmq-consumequeue.md.
namespace polylog::format::rocketmq {

inline constexpr std::size_t queue_entry_bytes = 20;
inline constexpr std::int64_t queue_entries_per_file_default = 300'000;

struct QueueEntry {
  std::int64_t physical_offset = 0;
  std::int32_t size = 0;       // TOTALSIZE of the record
  std::int64_t tags_code = 0;  // tag hash, or delivery time in the schedule topic
  bool operator==(const QueueEntry&) const = default;
  // The first entry that is not ends the queue. Filler counts as valid.
  bool valid() const { return physical_offset >= 0 && size > 0; }
  bool filler() const { return physical_offset == 0 && size == 0x7fffffff && tags_code == 0; }
  std::int64_t end() const { return physical_offset + size; }
};

inline constexpr std::array<Field, 3> queue_entry_fields{{
    {"physicalOffset", 0, 8},
    {"size", 8, 4},
    {"tagsCode", 12, 8},
}};
static_assert(contiguous(queue_entry_fields, queue_entry_bytes));

// Stands before the first entry of a queue whose older part was deleted; never to be served.
inline constexpr QueueEntry filler_entry{0, 0x7fffffff, 0};

inline void encode_entry(const QueueEntry& entry, std::uint8_t* out) {
  store_big(out, entry.physical_offset);
  store_big(out + 8, entry.size);
  store_big(out + 12, entry.tags_code);
}
// REQUIRES: queue_entry_bytes at `in`.
inline QueueEntry decode_entry(const std::uint8_t* in) {
  return {load_big<std::int64_t>(in), load_big<std::int32_t>(in + 8),
          load_big<std::int64_t>(in + 12)};
}

}  // namespace polylog::format::rocketmq
