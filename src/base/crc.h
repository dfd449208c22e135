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

// CRC-32 (IEEE 802.3, reflected 0xEDB88320, init and final xor 0xFFFFFFFF), as zlib, gzip and
// java.util.zip.CRC32 compute it. "123456789" -> CBF43926.
std::uint32_t crc32(std::span<const std::uint8_t> bytes);
std::uint32_t crc32_extend(std::uint32_t crc, std::span<const std::uint8_t> bytes);

}  // namespace polylog
