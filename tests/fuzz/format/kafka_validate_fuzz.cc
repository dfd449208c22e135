#include <cstdint>
#include <vector>

#include "base/assert.h"
#include "format/kafka/records.h"
#include "format/kafka/validate.h"

// The first byte chooses the rules; the rest is the `records` field of a Produce request, with
// its checksum put right so that the fuzzer gets past it.

using namespace polylog;
using namespace polylog::format::kafka;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint8_t choice = data[0];
  std::vector<std::uint8_t> bytes(data + 1, data + size);
  if (bytes.size() >= header_bytes) {
    patch_crc(HeaderBytes(bytes.data(), header_bytes), ByteView(bytes).subspan(header_bytes));
  }
  ValidationRules rules;
  rules.now = Timestamp(1700000001000);
  rules.produce_version = 9;
  rules.output_max = 2 * 1024 * 1024;
  rules.compacted = (choice & 1) != 0;
  if ((choice & 2) != 0) rules.timestamp_type = TimestampType::log_append_time;
  rules.target = codec_of(choice >> 4);
  const Slice records = Slice::of(std::move(bytes));
  needs_pool(records.view(), rules);
  const auto judged = validate(records, rules);
  if (!judged) {
    POLYLOG_ASSERT(!judged.error().message.empty());
    return 0;
  }
  // What is accepted must be readable by everybody else, and say of itself what is true.
  const ByteView stored = judged->bytes.view();
  const auto header = parse_header(stored);
  POLYLOG_ASSERT(header && header->size() == stored.size() && crc_matches(stored));
  POLYLOG_ASSERT(header->records_count == judged->info.records);
  Timestamp max = no_timestamp;
  std::int32_t count = 0;
  const Result<void> read = for_each_record(stored, rules.output_max, [&](const Record& record) {
    max = std::max(max, record.timestamp);
    POLYLOG_ASSERT(record.offset == Offset(count));
    POLYLOG_ASSERT(record.key || !rules.compacted);
    ++count;
    return true;
  });
  POLYLOG_ASSERT(read && count == judged->info.records);
  POLYLOG_ASSERT(max == judged->info.max_timestamp);
  return 0;
}
