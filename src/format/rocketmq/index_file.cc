#include "format/rocketmq/index_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <limits>

#include "base/assert.h"
#include "bytes/endian.h"

namespace polylog::format::rocketmq {
namespace {

constexpr std::int32_t int_max = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t long_max = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t name_digits = 17;

}  // namespace

void encode_index_header(const IndexHeader& header, std::uint8_t* out) {
  store_big(out, header.begin_timestamp);
  store_big(out + 8, header.end_timestamp);
  store_big(out + 16, header.begin_physical_offset);
  store_big(out + 24, header.end_physical_offset);
  store_big(out + 32, header.slots_used);
  store_big(out + 36, header.next_entry);
}

IndexHeader decode_index_header(const std::uint8_t* in) {
  IndexHeader header;
  header.begin_timestamp = load_big<std::int64_t>(in);
  header.end_timestamp = load_big<std::int64_t>(in + 8);
  header.begin_physical_offset = load_big<std::int64_t>(in + 16);
  header.end_physical_offset = load_big<std::int64_t>(in + 24);
  header.slots_used = load_big<std::int32_t>(in + 32);
  header.next_entry = load_big<std::int32_t>(in + 36);
  return header;
}

bool plausible(const IndexHeader& header, std::int32_t slots, std::int32_t entries) {
  return header.begin_timestamp >= 0 && header.end_timestamp >= 0 &&
         header.begin_physical_offset >= 0 && header.end_physical_offset >= 0 &&
         header.slots_used >= 0 && header.slots_used <= slots && header.next_entry >= 1 &&
         header.next_entry <= entries && header.slots_used < header.next_entry;
}

void encode_index_entry(const IndexEntry& entry, std::uint8_t* out) {
  store_big(out, entry.key_hash);
  store_big(out + 4, entry.physical_offset);
  store_big(out + 12, entry.seconds);
  store_big(out + 16, entry.previous);
}

IndexEntry decode_index_entry(const std::uint8_t* in) {
  IndexEntry entry;
  entry.key_hash = load_big<std::int32_t>(in);
  entry.physical_offset = load_big<std::int64_t>(in + 4);
  entry.seconds = load_big<std::int32_t>(in + 12);
  entry.previous = load_big<std::int32_t>(in + 16);
  return entry;
}

std::int32_t index_key_hash(std::string_view topic, std::string_view key) {
  const std::int32_t hash = java_hash_extend(java_hash_extend(java_hash(topic), "#"), key);
  // Java's abs() of the smallest int is itself; RocketMQ then takes 0.
  if (hash == std::numeric_limits<std::int32_t>::min()) return 0;
  return hash < 0 ? -hash : hash;
}

std::int32_t index_seconds(std::int64_t begin_timestamp, std::int64_t store_timestamp) {
  if (begin_timestamp <= 0 || store_timestamp <= begin_timestamp) return 0;
  return static_cast<std::int32_t>(
      std::min<std::int64_t>((store_timestamp - begin_timestamp) / 1000, int_max));
}

std::int64_t index_timestamp(std::int64_t begin_timestamp, std::int32_t seconds) {
  const std::int64_t more = std::int64_t{seconds} * 1000;
  return begin_timestamp > 0 && more > long_max - begin_timestamp ? long_max
                                                                  : begin_timestamp + more;
}

std::string index_file_name(std::int64_t created_ms) {
  POLYLOG_ASSERT(created_ms >= 0);
  const auto seconds = static_cast<std::time_t>(created_ms / 1000);
  std::tm local{};
  POLYLOG_ASSERT(localtime_r(&seconds, &local) != nullptr);
  return fmt::format("{:04}{:02}{:02}{:02}{:02}{:02}{:03}", local.tm_year + 1900, local.tm_mon + 1,
                     local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec, created_ms % 1000);
}

bool is_index_file_name(std::string_view name) {
  return name.size() == name_digits &&
         name.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace polylog::format::rocketmq
