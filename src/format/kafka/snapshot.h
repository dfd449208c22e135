#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "bytes/slice.h"
#include "format/kafka/fields.h"
#include "record/producers.h"

// The `.snapshot` file: what a partition remembers of its producers (Kafka 4.3 log format,
// ".snapshot (producer state)"). Byte table: docs/formats/kafka-snapshot.md.
namespace polylog::format::kafka {

inline constexpr std::int16_t snapshot_version = 1;
inline constexpr std::size_t snapshot_header_bytes = 10;
inline constexpr std::size_t snapshot_entry_bytes = 46;
inline constexpr std::size_t snapshot_crc_covers_from = 6;

inline constexpr std::array<Field, 3> snapshot_header_fields{{
    {"version", 0, 2},
    {"crc", 2, 4},
    {"count", snapshot_crc_covers_from, 4},
}};
static_assert(contiguous(snapshot_header_fields, snapshot_header_bytes));

inline constexpr std::array<Field, 8> snapshot_entry_fields{{
    {"producerId", 0, 8},
    {"producerEpoch", 8, 2},
    {"lastSequence", 10, 4},
    {"lastOffset", 14, 8},
    {"offsetDelta", 22, 4},
    {"timestamp", 26, 8},
    {"coordinatorEpoch", 34, 4},
    {"currentTxnFirstOffset", 38, 8},
}};
static_assert(contiguous(snapshot_entry_fields, snapshot_entry_bytes));

// Of each producer only the last batch is stored, so a restart remembers one instead of five.
// Entries are sorted by producer id; readers must not rely on any order.
std::vector<std::uint8_t> encode_snapshot(const ProducerState& producers);

// unsupported: another version. corrupt: a wrong checksum or length, impossible numbers, a
// producer twice. Kafka deletes such a file and takes the next older one.
Result<ProducerState> decode_snapshot(ByteView bytes);

}  // namespace polylog::format::kafka
