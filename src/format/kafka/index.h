#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "bytes/slice.h"
#include "format/kafka/fields.h"
#include "record/producers.h"

// The fixed entries of a segment's index files (Kafka 4.3 log format, ".index", ".timeindex",
// ".txnindex"). Byte tables: docs/formats/kafka-index.md, kafka-timeindex.md, kafka-txnindex.md.
namespace polylog::format::kafka {

// `.index`: where a batch begins. The offset is the batch's last one.
struct OffsetIndexEntry {
  static constexpr std::size_t bytes = 8;
  std::int32_t relative_offset = 0;  // offset - base offset of the segment
  std::int32_t position = 0;         // byte position in the `.log`
  bool operator==(const OffsetIndexEntry&) const = default;
};
inline constexpr std::array<Field, 2> offset_index_fields{{
    {"relativeOffset", 0, 4},
    {"position", 4, 4},
}};
static_assert(contiguous(offset_index_fields, OffsetIndexEntry::bytes));

// `.timeindex`: the largest timestamp so far, and the last offset of the batch that has it.
struct TimeIndexEntry {
  static constexpr std::size_t bytes = 12;
  std::int64_t timestamp = 0;        // ms since 1970
  std::int32_t relative_offset = 0;  // offset - base offset of the segment
  bool operator==(const TimeIndexEntry&) const = default;
};
inline constexpr std::array<Field, 2> time_index_fields{{
    {"timestamp", 0, 8},
    {"relativeOffset", 8, 4},
}};
static_assert(contiguous(time_index_fields, TimeIndexEntry::bytes));

// `.txnindex`: one aborted transaction, as AbortedTransaction.
inline constexpr std::size_t transaction_index_entry_bytes = 34;
inline constexpr std::int16_t transaction_index_version = 0;
inline constexpr std::array<Field, 5> transaction_index_fields{{
    {"version", 0, 2},
    {"producerId", 2, 8},
    {"firstOffset", 10, 8},
    {"lastOffset", 18, 8},
    {"lastStableOffset", 26, 8},
}};
static_assert(contiguous(transaction_index_fields, transaction_index_entry_bytes));

using OffsetIndexBytes = std::array<std::uint8_t, OffsetIndexEntry::bytes>;
using TimeIndexBytes = std::array<std::uint8_t, TimeIndexEntry::bytes>;
using TransactionIndexBytes = std::array<std::uint8_t, transaction_index_entry_bytes>;

OffsetIndexBytes encode(const OffsetIndexEntry& entry);
TimeIndexBytes encode(const TimeIndexEntry& entry);
TransactionIndexBytes encode(const AbortedTransaction& entry);

// REQUIRES: at least one entry's bytes. Any bytes are an entry; whether it makes sense is for
// the reader of the whole file.
OffsetIndexEntry decode_offset_index_entry(ByteView bytes);
TimeIndexEntry decode_time_index_entry(ByteView bytes);
// unsupported: an unknown version. corrupt: negative numbers, or a transaction that ends before
// it begins.
Result<AbortedTransaction> decode_transaction_index_entry(ByteView bytes);

}  // namespace polylog::format::kafka
