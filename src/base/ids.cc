#include "base/ids.h"

#include <algorithm>
#include <random>

namespace polylog {
namespace {

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::size_t text_size = 22;  // 16 bytes in 6-bit groups, the last one half empty

}  // namespace

std::string Uuid::to_string() const {
  std::string text;
  text.reserve(text_size);
  std::uint32_t window = 0;
  int bits = 0;
  for (const std::uint8_t byte : bytes) {
    window = (window << 8) | byte;
    bits += 8;
    while (bits >= 6) {
      bits -= 6;
      text.push_back(alphabet[(window >> bits) & 63]);
    }
  }
  text.push_back(alphabet[(window << (6 - bits)) & 63]);
  return text;
}

Result<Uuid> Uuid::parse(std::string_view text) {
  if (text.size() != text_size) {
    return fail(Errc::invalid, "an id has 22 characters, not " + std::to_string(text.size()));
  }
  Uuid id;
  std::uint32_t window = 0;
  int bits = 0;
  std::size_t at = 0;
  for (const char c : text) {
    const std::size_t digit = alphabet.find(c);
    if (digit == std::string_view::npos) return fail(Errc::invalid, "not a base64url character");
    window = (window << 6) | static_cast<std::uint32_t>(digit);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      id.bytes[at++] = static_cast<std::uint8_t>(window >> bits);
    }
  }
  if ((window & ((1U << bits) - 1)) != 0) {
    return fail(Errc::invalid, "stray bits after the last byte of an id");
  }
  return id;
}

Uuid Uuid::random() {
  thread_local std::mt19937_64 generator{[] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }()};
  constexpr Uuid one{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
  for (;;) {
    Uuid id;
    for (std::size_t i = 0; i < id.bytes.size(); i += 8) {
      const std::uint64_t word = generator();
      for (std::size_t j = 0; j < 8; ++j) {
        id.bytes[i + j] = static_cast<std::uint8_t>(word >> (8 * j));
      }
    }
    id.bytes[6] = static_cast<std::uint8_t>((id.bytes[6] & 0x0f) | 0x40);  // RFC 4122 version 4
    id.bytes[8] = static_cast<std::uint8_t>((id.bytes[8] & 0x3f) | 0x80);
    if (!id.is_zero() && id != one && id.to_string().front() != '-') return id;
  }
}

}  // namespace polylog
