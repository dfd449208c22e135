#include "format/rocketmq/consume_queue_ext.h"

#include <algorithm>

#include "bytes/endian.h"

namespace polylog::format::rocketmq {

Result<void> encode_ext_unit(const ExtUnit& unit, std::vector<std::uint8_t>& out) {
  if (unit.size() > ext_unit_bytes_max) {
    return fail(Errc::too_large,
                "an extension unit takes at most 32767 bytes, not " + std::to_string(unit.size()));
  }
  const std::size_t start = out.size();
  out.resize(start + unit.size());
  std::uint8_t* at = out.data() + start;
  store_big(at, static_cast<std::int16_t>(unit.size()));
  store_big(at + 2, unit.tags_code);
  store_big(at + 10, unit.store_timestamp);
  store_big(at + 18, static_cast<std::int16_t>(unit.bit_map.size()));
  std::copy(unit.bit_map.begin(), unit.bit_map.end(), at + ext_unit_bytes_min);
  return {};
}

Result<std::optional<ExtUnit>> parse_ext_unit(ByteView rest) {
  if (rest.size() < ext_tail_bytes) return std::nullopt;
  const auto size = load_big<std::int16_t>(rest.data());
  if (size == 0 || size == ext_end_mark) return std::nullopt;
  if (size < static_cast<std::int16_t>(ext_unit_bytes_min)) {
    return fail(Errc::corrupt, "extension unit: impossible size " + std::to_string(size));
  }
  if (static_cast<std::size_t>(size) > rest.size()) {
    return fail(Errc::corrupt, "extension unit: longer than what is left of the file");
  }
  const auto bit_map_size = load_big<std::int16_t>(rest.data() + 18);
  if (bit_map_size != size - static_cast<std::int16_t>(ext_unit_bytes_min)) {
    return fail(Errc::corrupt, "extension unit: size and bit map length contradict each other");
  }
  ExtUnit unit;
  unit.tags_code = load_big<std::int64_t>(rest.data() + 2);
  unit.store_timestamp = load_big<std::int64_t>(rest.data() + 10);
  unit.bit_map = rest.subspan(ext_unit_bytes_min, static_cast<std::size_t>(bit_map_size));
  return unit;
}

}  // namespace polylog::format::rocketmq
