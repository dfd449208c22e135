#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace polylog::format::kafka {

// Zigzag base-128 integers of the record encoding (Kafka log format, "Varints"), for the loops
// that visit every record: nearly all values there take one byte, and ByteReader's sticky
// checks would dominate. Same rules as ByteReader: at most 5 (10) groups, no bit beyond 32 (64),
// minimal length not required.
template <typename Signed, typename Unsigned>
[[gnu::noinline]] bool read_zigzag(const std::uint8_t*& at, const std::uint8_t* end,
                                   Signed& value) {
  constexpr int bits = std::numeric_limits<Unsigned>::digits;
  const std::uint8_t* next = at;
  Unsigned raw = 0;
  for (int shift = 0; shift < bits; shift += 7) {
    if (next == end) return false;
    const std::uint8_t byte = *next++;
    const Unsigned group = byte & 0x7f;
    if (bits - shift < 7 && (group >> (bits - shift)) != 0) return false;
    raw |= group << shift;
    if (byte < 0x80) {
      value = static_cast<Signed>((raw >> 1) ^ (~(raw & 1) + 1));
      at = next;
      return true;
    }
  }
  return false;
}

// One or two bytes hold nearly every value of a record; the rest takes the loop.
template <typename Signed, typename Unsigned>
inline bool read_short_zigzag(const std::uint8_t*& at, const std::uint8_t* end, Signed& value) {
  Unsigned raw = 0;
  if (at != end && at[0] < 0x80) [[likely]] {
    raw = at[0];
    at += 1;
  } else if (end - at >= 2 && at[1] < 0x80) {
    raw = (at[0] & 0x7fU) | (static_cast<Unsigned>(at[1]) << 7);
    at += 2;
  } else {
    return read_zigzag<Signed, Unsigned>(at, end, value);
  }
  value = static_cast<Signed>((raw >> 1) ^ (~(raw & 1) + 1));
  return true;
}

// Moves `at` past the integer; on failure (cut short, too long) `at` stays.
inline bool read_varint(const std::uint8_t*& at, const std::uint8_t* end, std::int32_t& value) {
  return read_short_zigzag<std::int32_t, std::uint32_t>(at, end, value);
}

inline bool read_varlong(const std::uint8_t*& at, const std::uint8_t* end, std::int64_t& value) {
  return read_short_zigzag<std::int64_t, std::uint64_t>(at, end, value);
}

// Bytes the integer takes in minimal form.
inline std::size_t varlong_size(std::int64_t value) {
  auto raw = (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
  std::size_t size = 1;
  while (raw >= 0x80) {
    raw >>= 7;
    ++size;
  }
  return size;
}
inline std::size_t varint_size(std::int32_t value) { return varlong_size(value); }

// Writes the minimal form at `at` and returns the place behind it. A 32-bit value has the same
// bytes as a varint and as a varlong.
inline std::uint8_t* write_varlong(std::uint8_t* at, std::int64_t value) {
  auto raw = (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
  while (raw >= 0x80) {
    *at++ = static_cast<std::uint8_t>(raw | 0x80);
    raw >>= 7;
  }
  *at++ = static_cast<std::uint8_t>(raw);
  return at;
}

}  // namespace polylog::format::kafka
