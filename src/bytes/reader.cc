#include "bytes/reader.h"

namespace polylog {

std::uint64_t ByteReader::groups(int bits_max) {
  std::uint64_t value = 0;
  const std::size_t start = at_;
  for (int shift = 0; shift < bits_max; shift += 7) {
    const std::uint8_t byte = u8();
    if (!ok_) break;
    const std::uint64_t group = byte & 0x7f;
    if (bits_max - shift < 7 && (group >> (bits_max - shift)) != 0) break;
    value |= group << shift;
    if ((byte & 0x80) == 0) return value;
  }
  at_ = start;
  ok_ = false;
  return 0;
}

std::int32_t ByteReader::varint() {
  const auto raw = static_cast<std::uint32_t>(groups(32));
  return static_cast<std::int32_t>((raw >> 1) ^ (~(raw & 1) + 1));
}

std::int64_t ByteReader::varlong() {
  const std::uint64_t raw = groups(64);
  return static_cast<std::int64_t>((raw >> 1) ^ (~(raw & 1) + 1));
}

std::uint32_t ByteReader::unsigned_varint() { return static_cast<std::uint32_t>(groups(32)); }

std::size_t ByteReader::count(std::int64_t claimed, std::size_t element_bytes_min) {
  POLYLOG_ASSERT(element_bytes_min > 0);
  if (!ok_ || claimed < 0 ||
      static_cast<std::uint64_t>(claimed) > remaining() / element_bytes_min) {
    ok_ = false;
    return 0;
  }
  return static_cast<std::size_t>(claimed);
}

}  // namespace polylog
