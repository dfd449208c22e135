#include <algorithm>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "bytes/endian.h"
#include "format/rocketmq/batch_body.h"
#include "format/rocketmq/delay_levels.h"
#include "format/rocketmq/index_file.h"
#include "format/rocketmq/message.h"
#include "format/rocketmq/properties.h"
#include "format/rocketmq/property_crc.h"

// Commit log records, their property texts and the batch bodies clients send: what parses must
// encode to the same bytes.

using namespace polylog;
using namespace polylog::format::rocketmq;

namespace {

constexpr std::size_t record_prefix_bytes = 8;

void properties(std::string_view text) {
  std::string again;
  for_each_property(text, [&](std::string_view name, std::string_view value) {
    POLYLOG_ASSERT(!name.empty() && !value.empty());
    const auto found = find_property(text, name);
    POLYLOG_ASSERT(found && !found->empty());
    (void)is_reserved(name);
    // A value may hold the separator of names; such a one can be read and not be written.
    const bool clean = value.find('\x01') == std::string_view::npos;
    POLYLOG_ASSERT(add_property(again, name, value).has_value() == clean);
    return true;
  });
  for (const auto name : {property::tags, property::keys, property::unique_key}) {
    if (const auto value = find_property(again, name)) {
      POLYLOG_ASSERT(find_property(text, name).has_value());
    }
  }
  for_each_key(text, [](std::string_view key) { POLYLOG_ASSERT(!key.empty()); });
  POLYLOG_ASSERT(index_key_hash(text, text) >= 0);
  if (const auto part = parse_producer_part(text)) POLYLOG_ASSERT(to_text(*part) == text);
  if (const auto id = parse_offset_message_id(text)) {
    const std::string upper = offset_message_id(id->store_host, id->physical_offset);
    POLYLOG_ASSERT(upper.size() == text.size());
  }
  POLYLOG_ASSERT(
      java_hash_extend(java_hash(text), "#") ==
      static_cast<std::int32_t>(31U * static_cast<std::uint32_t>(java_hash(text)) + '#'));
}

void one_message(ByteView record, const Message& message) {
  static const DelayLevels levels = DelayLevels::standard();
  POLYLOG_ASSERT(message.size() == record.size());
  (void)entry_tags_code(message, levels);
  (void)check_property_crc(record);
  properties(message.properties);
  std::vector<std::uint8_t> again;
  if (!encode(message, again)) return;  // a topic too long to be written
  POLYLOG_ASSERT(again.size() == record.size());
  if (crc_matches(message)) POLYLOG_ASSERT(std::equal(again.begin(), again.end(), record.begin()));
  patch_placement(again, {1, 2, 3});
  const auto patched = parse(again);
  POLYLOG_ASSERT(patched && patched->queue_offset == 1 && patched->physical_offset == 2 &&
                 patched->store_timestamp == 3 && patched->body.size() == message.body.size());
}

// Makes the first bytes those of a record of this size, so that the rest gets looked at.
void as_record(ByteView bytes) {
  if (bytes.size() < record_prefix_bytes) return;
  std::vector<std::uint8_t> record = to_vector(bytes);
  store_big(record.data(), static_cast<std::int32_t>(record.size()));
  for (const std::uint32_t magic : {magic_v1, magic_v2}) {
    store_big(record.data() + message_at::magic, magic);
    if (const auto message = parse(record)) one_message(record, *message);
  }
}

void batch(ByteView bytes) {
  std::vector<std::uint8_t> again;
  std::size_t read = 0;
  const auto done = for_each_batch_item(bytes, [&](const BatchItem& item) -> Result<void> {
    read += item.size();
    return append_batch_item(item, again);
  });
  POLYLOG_ASSERT(!done || (read == bytes.size() && again.size() == read));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteView bytes(data, size);
  (void)for_each_message(bytes, [](ByteView record, const Message& message) -> Result<void> {
    one_message(record, message);
    return {};
  });
  (void)next_frame(bytes, bytes.size());
  as_record(bytes);
  properties(as_text(bytes));
  batch(bytes);
  std::string text(as_text(bytes));
  if (add_property_crc_room(text)) POLYLOG_ASSERT(text.size() >= property_crc_bytes);
  return 0;
}
