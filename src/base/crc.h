#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace polylog {

// CRC-32C (Castagnoli, reflected 0x82F63B78, init and final xor 0xFFFFFFFF), as Kafka's record
// batches use it. "123456789" -> E3069283. Vector folding through ISA-L.
std::uint32_t crc32c(std::span<const std::uint8_t> bytes);

// Continues a checksum: crc32c_extend(crc32c(a), b) == crc32c(a + b).
std::uint32_t crc32c_extend(std::uint32_t crc, std::span<const std::uint8_t> bytes);

}  // namespace polylog
