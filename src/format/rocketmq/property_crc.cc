#include "format/rocketmq/property_crc.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/assert.h"
#include "base/crc.h"
#include "format/rocketmq/message.h"
#include "format/rocketmq/properties.h"

namespace polylog::format::rocketmq {
namespace {

constexpr std::size_t digit_count = 10;
constexpr std::size_t digits_at = property::crc32.size() + 1;
static_assert(digits_at + digit_count + 1 == property_crc_bytes);

using Digits = std::array<char, digit_count>;

Digits digits_of(std::uint32_t crc) {
  Digits digits;
  for (char& digit : digits) {
    digit = static_cast<char>('0' + crc % 10);
    crc /= 10;
  }
  return digits;
}

bool has_room(std::string_view tail) {
  return tail.size() == property_crc_bytes && tail.starts_with(property::crc32) &&
         tail[digits_at - 1] == '\x01' && tail.back() == '\x02';
}

std::string without_crc(std::string_view properties) {
  std::string kept;
  for_each_property(properties, [&](std::string_view name, std::string_view value) {
    if (name == property::crc32) return true;
    kept.append(name) += '\x01';
    kept.append(value) += '\x02';
    return true;
  });
  return kept;
}

}  // namespace

Result<void> add_property_crc_room(std::string& properties) {
  std::string text =
      find_property(properties, property::crc32) ? without_crc(properties) : properties;
  if (!text.empty() && text.back() != '\x02') text += '\x02';
  text.append(property::crc32) += '\x01';
  text.append(digit_count, '0') += '\x02';
  if (text.size() > properties_bytes_max) {
    return fail(Errc::too_large,
                "the properties take at most 32767 bytes with their checksum, "
                "not " +
                    std::to_string(text.size()));
  }
  properties = std::move(text);
  return {};
}

bool append_property_crc_room(std::string& properties) {
  static constexpr std::string_view room =
      "__CRC32#\x01"
      "0000000000\x02";
  static_assert(room.size() == property_crc_bytes);
  if (properties.size() + room.size() > properties_bytes_max) return false;
  properties += room;
  return true;
}

bool has_property_crc_room(ByteView record) {
  return record.size() >= fixed_bytes_min + property_crc_bytes &&
         has_room(as_text(record.last(property_crc_bytes)));
}

void patch_property_crc(MutableBytes record) {
  POLYLOG_ASSERT(record.size() >= fixed_bytes_min + property_crc_bytes);
  const std::size_t covered = record.size() - property_crc_bytes;
  POLYLOG_ASSERT(has_room(as_text(record.subspan(covered))));
  const Digits digits = digits_of(body_crc(record.first(covered)));
  std::copy(digits.begin(), digits.end(),
            record.begin() + static_cast<std::ptrdiff_t>(covered + digits_at));
}

PropertyCrc check_property_crc(ByteView record) {
  if (record.size() < fixed_bytes_min + property_crc_bytes) return PropertyCrc::absent;
  const std::size_t covered = record.size() - property_crc_bytes;
  const std::string_view tail = as_text(record.subspan(covered));
  if (!has_room(tail)) return PropertyCrc::absent;
  const Digits digits = digits_of(body_crc(record.first(covered)));
  const std::string_view stored = tail.substr(digits_at, digit_count);
  return stored == std::string_view(digits.data(), digits.size()) ? PropertyCrc::good
                                                                  : PropertyCrc::bad;
}

}  // namespace polylog::format::rocketmq
