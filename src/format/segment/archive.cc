#include "format/segment/archive.h"

#include <algorithm>

namespace polylog::format::segment {
namespace {

// Bytes of the character that begins `text`, 0 if none does (RFC 3629).
std::size_t character_bytes(ByteView text) {
  const std::uint8_t first = text[0];
  if (first < 0x80) return 1;
  const std::size_t size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  const std::uint8_t second_min = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const std::uint8_t second_max = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (text[1] < second_min || text[1] > second_max) return 0;
  for (std::size_t i = 2; i < size; ++i) {
    if ((text[i] & 0xc0) != 0x80) return 0;
  }
  return size;
}

bool is_utf8(ByteView text) {
  while (!text.empty()) {
    const std::size_t size = character_bytes(text);
    if (size == 0) return false;
    text = text.subspan(size);
  }
  return true;
}

}  // namespace

std::size_t ArchiveReader::follow(std::size_t at, std::size_t from, std::size_t size) {
  const std::int64_t distance = number<std::int32_t>(at);
  const std::int64_t target = static_cast<std::int64_t>(from) + distance;
  followed_ += size;
  if (target < 0 || followed_ > bytes_.size()) ok_ = false;
  return fits(static_cast<std::size_t>(target), size) ? static_cast<std::size_t>(target) : 0;
}

std::string_view ArchiveReader::string(std::size_t at) {
  constexpr std::uint8_t filler = 0xff;
  if (!fits(at, string_bytes)) return {};
  ByteView text = bytes_.subspan(at, inline_bytes_max);
  if ((text[0] & 0xc0) != 0x80) {
    const auto end = std::find(text.begin(), text.end(), filler);
    text = text.first(static_cast<std::size_t>(end - text.begin()));
  } else {
    const auto raw = number<std::uint32_t>(at);
    const std::size_t size = (raw & 0x3f) | ((raw & ~std::uint32_t{0xff}) >> 2);
    const std::size_t target = follow(at + 4, at, size);
    text = ok_ ? bytes_.subspan(target, size) : ByteView();
  }
  if (!is_utf8(text)) ok_ = false;
  return ok_ ? as_text(text) : std::string_view();
}

std::optional<ArchiveReader::Elements> ArchiveReader::optional_vector(std::size_t at,
                                                                      std::size_t element_bytes) {
  if (!fits(at, optional_vector_bytes)) return std::nullopt;
  const auto present = number<std::uint8_t>(at);
  if (present > 1) ok_ = false;
  if (!ok_ || present == 0) return std::nullopt;
  const std::size_t pointer_at = at + 4;
  const std::size_t count = number<std::uint32_t>(pointer_at + 4);
  if (count > bytes_.size() / element_bytes) ok_ = false;
  const std::size_t target = ok_ ? follow(pointer_at, pointer_at, count * element_bytes) : 0;
  if (!ok_) return std::nullopt;
  return Elements{target, count};
}

std::optional<ByteView> ArchiveReader::optional_bytes(std::size_t at) {
  const std::optional<Elements> elements = optional_vector(at, 1);
  if (!elements) return std::nullopt;
  return bytes_.subspan(elements->at, elements->count);
}

}  // namespace polylog::format::segment
