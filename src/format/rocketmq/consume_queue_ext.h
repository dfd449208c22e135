#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/result.h"
#include "bytes/slice.h"
#include "format/rocketmq/fields.h"

// Units of a consume queue's extension files (RocketMQ store format, "Extension file"). An entry
// of the queue points to its unit through its tags code. Byte table:
// docs/formats/rocketmq-consumequeue-ext.md.
namespace polylog::format::rocketmq {

inline constexpr std::int64_t ext_file_bytes_default = 50'331'648;
inline constexpr std::size_t ext_unit_bytes_min = 20;
inline constexpr std::size_t ext_unit_bytes_max = 32'767;
inline constexpr std::size_t ext_tail_bytes = 4;  // never used by a unit: room for the end mark
inline constexpr std::int16_t ext_end_mark = -1;  // the next file begins

inline constexpr std::array<Field, 5> ext_unit_fields{{
    {"size", 0, 2},
    {"tagsCode", 2, 8},
    {"storeTimestamp", 10, 8},
    {"bitMapLength", 18, 2},
    {"bitMap", 20, 0},
}};
static_assert(contiguous(ext_unit_fields, ext_unit_bytes_min));

struct ExtUnit {
  std::int64_t tags_code = 0;
  std::int64_t store_timestamp = 0;  // ms
  ByteView bit_map;                  // points into what it was parsed from
  std::size_t size() const { return ext_unit_bytes_min + bit_map.size(); }
};

// Appends the unit. too_large: over 32,767 bytes.
Result<void> encode_ext_unit(const ExtUnit& unit, std::vector<std::uint8_t>& out);
// Parses the unit that begins `rest`, what is left of a file. Nothing: no unit follows in this
// file (the end mark, zeros, or too few bytes). corrupt otherwise.
Result<std::optional<ExtUnit>> parse_ext_unit(ByteView rest);
// Whether a unit of this size may be written where `remaining` bytes of the file are left.
constexpr bool ext_unit_fits(std::size_t unit_bytes, std::size_t remaining) {
  return unit_bytes + ext_tail_bytes <= remaining;
}

// A tags code is an address of a unit when it is below every hash.
inline constexpr std::int64_t ext_address_max =
    std::int64_t{std::numeric_limits<std::int32_t>::min()} - 1;
constexpr bool is_ext_address(std::int64_t tags_code) { return tags_code <= ext_address_max; }
// REQUIRES: position >= 0, and far below 2^63 as positions are.
constexpr std::int64_t to_ext_address(std::int64_t position) {
  return position + std::numeric_limits<std::int64_t>::min();
}
// REQUIRES: is_ext_address(tags_code).
constexpr std::int64_t from_ext_address(std::int64_t tags_code) {
  return tags_code - std::numeric_limits<std::int64_t>::min();
}

}  // namespace polylog::format::rocketmq
