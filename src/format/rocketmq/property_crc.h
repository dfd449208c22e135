#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "bytes/slice.h"

// The checksum over a whole record in its last property (RocketMQ store format, "Property CRC";
// option enabledAppendPropCRC): `__CRC32#`, 0x01, ten digits, 0x02 are the record's last 20 bytes,
// and the CRC-32 & 0x7fffffff covers everything before them. The digits are decimal, the least
// significant first, filled with '0' on the right.
namespace polylog::format::rocketmq {

inline constexpr std::size_t property_crc_bytes = 20;

// Makes room at the end of a property text, to be filled by patch_property_crc() once the record
// has its place. Drops any such property the text had. too_large: over 32,767 bytes then.
Result<void> add_property_crc_room(std::string& properties);

// The same at the end of a text that ends in 0x02, or is empty, and has no such property. False,
// and nothing is added: it would not fit.
bool append_property_crc_room(std::string& properties);
bool has_property_crc_room(ByteView record);

// After patch_placement(). REQUIRES: a whole record whose properties have that room.
void patch_property_crc(MutableBytes record);

enum class PropertyCrc : std::uint8_t { absent, good, bad };
// Any bytes. bad: also when the digits are no number that could match.
PropertyCrc check_property_crc(ByteView record);

}  // namespace polylog::format::rocketmq
