#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "bytes/slice.h"
#include "format/rocketmq/fields.h"
#include "format/rocketmq/properties.h"

// Index files (RocketMQ store format, "Index files"): a hash table from keys to physical offsets,
// chained through its entries, newest first. Header, then slots, then entries; entry 0 is never
// used. Byte tables: docs/formats/rocketmq-index.md.
namespace polylog::format::rocketmq {

inline constexpr std::size_t index_header_bytes = 40;
inline constexpr std::size_t index_slot_bytes = 4;
inline constexpr std::size_t index_entry_bytes = 20;
inline constexpr std::int32_t index_slots_default = 5'000'000;     // maxHashSlotNum
inline constexpr std::int32_t index_entries_default = 20'000'000;  // maxIndexNum

struct IndexHeader {
  std::int64_t begin_timestamp = 0;  // ms, store time of the first entry's record
  std::int64_t end_timestamp = 0;
  std::int64_t begin_physical_offset = 0;
  std::int64_t end_physical_offset = 0;
  std::int32_t slots_used = 0;
  std::int32_t next_entry = 1;  // number of the next entry; full when it is maxIndexNum
  bool operator==(const IndexHeader&) const = default;
};
inline constexpr std::array<Field, 6> index_header_fields{{
    {"beginTimestamp", 0, 8},
    {"endTimestamp", 8, 8},
    {"beginPhysicalOffset", 16, 8},
    {"endPhysicalOffset", 24, 8},
    {"slotsUsed", 32, 4},
    {"nextEntry", 36, 4},
}};
static_assert(contiguous(index_header_fields, index_header_bytes));

struct IndexEntry {
  std::int32_t key_hash = 0;
  std::int64_t physical_offset = 0;
  std::int32_t seconds = 0;   // since the file's begin_timestamp
  std::int32_t previous = 0;  // number of the next older entry of the slot; 0 = none
  bool operator==(const IndexEntry&) const = default;
};
inline constexpr std::array<Field, 4> index_entry_fields{{
    {"keyHash", 0, 4},
    {"physicalOffset", 4, 8},
    {"seconds", 12, 4},
    {"previous", 16, 4},
}};
static_assert(contiguous(index_entry_fields, index_entry_bytes));

void encode_index_header(const IndexHeader& header, std::uint8_t* out);
// REQUIRES: index_header_bytes at `in`. Any bytes are a header; plausible() judges it.
IndexHeader decode_index_header(const std::uint8_t* in);
// Nothing negative, entry numbers within the file.
bool plausible(const IndexHeader& header, std::int32_t slots, std::int32_t entries);

void encode_index_entry(const IndexEntry& entry, std::uint8_t* out);
// REQUIRES: index_entry_bytes at `in`.
IndexEntry decode_index_entry(const std::uint8_t* in);

// Places in a file of so many slots. REQUIRES: nothing negative.
constexpr std::uint64_t index_slot_at(std::int32_t slot) {
  return index_header_bytes + index_slot_bytes * static_cast<std::uint64_t>(slot);
}
constexpr std::uint64_t index_entry_at(std::int32_t slots, std::int32_t number) {
  return index_slot_at(slots) + index_entry_bytes * static_cast<std::uint64_t>(number);
}
constexpr std::uint64_t index_file_bytes(std::int32_t slots, std::int32_t entries) {
  return index_entry_at(slots, entries);
}
static_assert(index_file_bytes(index_slots_default, index_entries_default) == 420'000'040);

// The text that is hashed is topic, '#', key. Never negative.
std::int32_t index_key_hash(std::string_view topic, std::string_view key);
constexpr std::int32_t index_slot_of(std::int32_t key_hash, std::int32_t slots) {
  return key_hash % slots;
}
// What a slot's content is worth: an entry number of this file, or 0.
constexpr std::int32_t index_previous(std::int32_t slot_value, std::int32_t next_entry) {
  return slot_value > 0 && slot_value <= next_entry ? slot_value : 0;
}
// Whole seconds from the file's beginning, cut to 0..2^31-1; 0 when it has no beginning yet.
std::int32_t index_seconds(std::int64_t begin_timestamp, std::int64_t store_timestamp);
// A second or so off, since the seconds are whole. Saturates.
std::int64_t index_timestamp(std::int64_t begin_timestamp, std::int32_t seconds);

// Calls f(std::string_view key) for each key a message is found by: UNIQ_KEY first, then each word
// of KEYS. Messages of rollback type have no keys; that is for the caller to know.
template <typename F>
void for_each_key(std::string_view properties, F&& f) {
  if (const auto unique = find_property(properties, property::unique_key)) f(*unique);
  std::string_view words = find_property(properties, property::keys).value_or(std::string_view());
  while (!words.empty()) {
    const std::size_t end = words.find(' ');
    if (end != 0) f(words.substr(0, end));
    words = end == std::string_view::npos ? std::string_view() : words.substr(end + 1);
  }
}

// Name of a file made now: local time, yyyyMMddHHmmssSSS. Names order the files, so the caller
// sees to it that a new one is above the last. REQUIRES: created_ms >= 0, before the year 10000.
std::string index_file_name(std::int64_t created_ms);
bool is_index_file_name(std::string_view name);  // 17 digits

}  // namespace polylog::format::rocketmq
