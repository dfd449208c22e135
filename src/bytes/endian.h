#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace polylog {

// Loads and stores at any alignment in an explicit byte order. Network bytes are never cast to
// structs.
template <std::integral T>
T load_big(const std::uint8_t* at) {
  std::make_unsigned_t<T> value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<std::make_unsigned_t<T>>((static_cast<std::uint64_t>(value) << 8) | at[i]);
  }
  return static_cast<T>(value);
}

template <std::integral T>
void store_big(std::uint8_t* at, T value) {
  auto bits = static_cast<std::make_unsigned_t<T>>(value);
  for (std::size_t i = sizeof(T); i-- > 0;) {
    at[i] = static_cast<std::uint8_t>(bits);
    bits = static_cast<std::make_unsigned_t<T>>(static_cast<std::uint64_t>(bits) >> 8);
  }
}

template <std::integral T>
T load_little(const std::uint8_t* at) {
  std::make_unsigned_t<T> value = 0;
  for (std::size_t i = sizeof(T); i-- > 0;) {
    value = static_cast<std::make_unsigned_t<T>>((static_cast<std::uint64_t>(value) << 8) | at[i]);
  }
  return static_cast<T>(value);
}

}  // namespace polylog
