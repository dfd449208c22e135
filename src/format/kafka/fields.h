#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace polylog::format::kafka {

// One fixed field of a binary layout. The tables made of these are what docs/formats/ prints;
// a test compares the two.
struct Field {
  std::string_view name;
  std::size_t at;
  std::size_t size;
};

// True when the fields follow each other without a gap and end at `total`.
template <std::size_t N>
constexpr bool contiguous(const std::array<Field, N>& fields, std::size_t total) {
  std::size_t at = 0;
  for (const Field& field : fields) {
    if (field.at != at) return false;
    at += field.size;
  }
  return at == total;
}

}  // namespace polylog::format::kafka
