#include "base/crc.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace polylog {

std::uint32_t crc32c_extend(std::uint32_t crc, std::span<const std::uint8_t> bytes) {
  // crc32_iscsi takes an int length and a non-const pointer it does not write through.
  constexpr std::size_t chunk_max = std::size_t{1} << 30;
  std::uint32_t state = ~crc;
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.size(), chunk_max);
    state = crc32_iscsi(const_cast<unsigned char*>(bytes.data()), static_cast<int>(size), state);
    bytes = bytes.subspan(size);
  }
  return ~state;
}

std::uint32_t crc32c(std::span<const std::uint8_t> bytes) { return crc32c_extend(0, bytes); }

std::uint32_t crc32_extend(std::uint32_t crc, std::span<const std::uint8_t> bytes) {
  // Inverts before and after by itself, unlike crc32_iscsi.
  return crc32_gzip_refl(crc, bytes.data(), bytes.size());
}

std::uint32_t crc32(std::span<const std::uint8_t> bytes) { return crc32_extend(0, bytes); }

}  // namespace polylog
