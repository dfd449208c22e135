#include <algorithm>
#include <cstdint>

#include "base/assert.h"
#include "format/kafka/record_batch.h"
#include "format/kafka/records.h"

// The input is a piece of a `.log` file: scanned frame by frame, every sound batch read.

using namespace polylog;
using namespace polylog::format::kafka;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t output_max = 4 * 1024 * 1024;
  ByteView rest(data, size);
  parse_header(rest);
  while (!rest.empty()) {
    const FrameHead frame = next_frame(rest);
    if (frame.state != FrameState::complete && frame.state != FrameState::legacy) break;
    POLYLOG_ASSERT(frame.size >= 26 && frame.size <= rest.size());
    const ByteView batch = rest.first(static_cast<std::size_t>(frame.size));
    rest = rest.subspan(batch.size());
    if (frame.state == FrameState::legacy) continue;
    POLYLOG_ASSERT(parse_header(batch).has_value());
    POLYLOG_ASSERT(frame.first() <= frame.last());
    crc_matches(batch);
    to_info(frame.header);
    std::int64_t records = 0;
    const Result<void> read = for_each_record(batch, output_max, [&](const Record& record) {
      POLYLOG_ASSERT(record.offset >= frame.first() && record.offset <= frame.last());
      ++records;
      return true;
    });
    POLYLOG_ASSERT(!read || records == frame.header.records_count);
    if (frame.header.control()) parse_control(batch);
  }
  const Result<void> walked = for_each_batch(
      {data, size}, [](const BatchHeader&, ByteView) -> Result<void> { return {}; });
  static_cast<void>(walked);
  return 0;
}
