#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace polylog {

// Loads and stores at any alignment in an explicit byte order. Network bytes are never cast to
// structs.
namespace endian_detail {

template <std::unsigned_integral T>
T reversed(T value) {
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
  if constexpr (sizeof(T) == 1) return value;
}

// g++ 12 leaves a loop over the bytes as it is; a copy and a swap are two instructions.
template <std::integral T>
T load(const std::uint8_t* at, std::endian order) {
  std::make_unsigned_t<T> value;
  std::memcpy(&value, at, sizeof(value));
  return static_cast<T>(order == std::endian::native ? value : reversed(value));
}

}  // namespace endian_detail

template <std::integral T>
T load_big(const std::uint8_t* at) {
  return endian_detail::load<T>(at, std::endian::big);
}

template <std::integral T>
void store_big(std::uint8_t* at, T value) {
  auto bits = static_cast<std::make_unsigned_t<T>>(value);
  if (std::endian::native != std::endian::big) bits = endian_detail::reversed(bits);
  std::memcpy(at, &bits, sizeof(bits));
}

template <std::integral T>
T load_little(const std::uint8_t* at) {
  return endian_detail::load<T>(at, std::endian::little);
}

}  // namespace polylog
