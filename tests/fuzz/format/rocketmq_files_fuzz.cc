#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "format/rocketmq/checkpoint.h"
#include "format/rocketmq/config_json.h"
#include "format/rocketmq/consume_queue.h"
#include "format/rocketmq/consume_queue_ext.h"
#include "format/rocketmq/delay_levels.h"
#include "format/rocketmq/index_file.h"
#include "format/rocketmq/names.h"

// The files and names beside the commit log: what parses must come out the same when it is written
// and parsed again.

using namespace polylog;
using namespace polylog::format::rocketmq;

namespace {

// Fractions (written as 1.5E0) in members that are only carried along may change in their last
// digit.
bool has_fractions(std::string_view text) {
  for (std::size_t at = text.find('E'); at != std::string_view::npos; at = text.find('E', at + 1)) {
    if (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9') return true;
  }
  return false;
}

template <typename T>
void table(std::string_view text, Result<T> (*parse)(std::string_view),
           std::string (*format)(const T&)) {
  const Result<T> parsed = parse(text);
  if (!parsed) return;
  const std::string formatted = format(*parsed);
  const Result<T> again = parse(formatted);
  POLYLOG_ASSERT(again && (*again == *parsed || has_fractions(formatted)));
}

void tables(std::string_view text) {
  table(text, parse_topics, format_topics);
  table(text, parse_subscription_groups, format_subscription_groups);
  table(text, parse_consumer_offsets, format_consumer_offsets);
  table(text, parse_delay_offsets, format_delay_offsets);
}

void texts(std::string_view text) {
  if (const auto position = parse_file_name(text)) POLYLOG_ASSERT(file_name(*position) == text);
  if (const auto stored = to_stored_topic(text)) {
    POLYLOG_ASSERT(check_stored_topic(*stored));
    POLYLOG_ASSERT(from_stored_topic(*stored) == text || is_internal_topic(*stored));
  }
  const std::string name = from_stored_topic(text);
  if (name != text) POLYLOG_ASSERT(to_stored_topic(name).value() == text);
  if (const auto levels = DelayLevels::parse(text)) {
    POLYLOG_ASSERT(levels->clamp(levels->level_max() + 1) == levels->level_max());
    POLYLOG_ASSERT(levels->delivery_time(1, 0) >= 0);
  }
}

void units(ByteView bytes) {
  while (!bytes.empty()) {
    const auto unit = parse_ext_unit(bytes);
    if (!unit || !*unit) return;
    std::vector<std::uint8_t> again;
    POLYLOG_ASSERT(encode_ext_unit(**unit, again));
    POLYLOG_ASSERT(std::equal(again.begin(), again.end(), bytes.begin()));
    bytes = bytes.subspan((*unit)->size());
  }
}

void binaries(ByteView bytes) {
  if (const auto checkpoint = decode_checkpoint(bytes); checkpoint && !bytes.empty()) {
    const auto again = encode_checkpoint(*checkpoint);
    POLYLOG_ASSERT(std::equal(again.begin(), again.begin() + checkpoint_used_bytes, bytes.begin()));
    POLYLOG_ASSERT(recovery_timestamp(*checkpoint, true) >= 0);
  }
  if (bytes.size() >= index_header_bytes) {
    const IndexHeader header = decode_index_header(bytes.data());
    std::array<std::uint8_t, index_header_bytes> again;
    encode_index_header(header, again.data());
    POLYLOG_ASSERT(std::equal(again.begin(), again.end(), bytes.begin()));
    (void)plausible(header, index_slots_default, index_entries_default);
    (void)index_seconds(header.begin_timestamp, header.end_timestamp);
  }
  if (bytes.size() >= index_entry_bytes) {
    std::array<std::uint8_t, index_entry_bytes> again;
    encode_index_entry(decode_index_entry(bytes.data()), again.data());
    POLYLOG_ASSERT(std::equal(again.begin(), again.end(), bytes.begin()));
  }
  if (bytes.size() >= queue_entry_bytes) {
    std::array<std::uint8_t, queue_entry_bytes> again;
    encode_entry(decode_entry(bytes.data()), again.data());
    POLYLOG_ASSERT(std::equal(again.begin(), again.end(), bytes.begin()));
  }
  units(bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteView bytes(data, size);
  tables(as_text(bytes));
  texts(as_text(bytes));
  binaries(bytes);
  return 0;
}
