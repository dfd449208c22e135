#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/assert.h"
#include "format/segment/frame.h"
#include "format/segment/record.h"
#include "format/segment/record_rig.h"

// Segment frames and polylog's filling of them. The input is read twice: as a piece of a file, and
// as the parts of one frame (a byte with the length of the metadata, the metadata, the same for the
// protocol data, the data). What decodes must encode to an equal record.

using namespace polylog;
using namespace polylog::format::segment;

namespace {

void one_record(ByteView bytes) {
  const auto frame = parse_frame(bytes);
  if (!frame) {
    POLYLOG_ASSERT(!decode(bytes) && !decode_head(bytes) && !crc_matches(bytes));
    return;
  }
  POLYLOG_ASSERT(frame->size() == bytes.size());
  std::vector<std::uint8_t> again;
  POLYLOG_ASSERT(encode(*frame, again).has_value());
  POLYLOG_ASSERT(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
  const auto record = decode(bytes);
  const auto head = decode_head(bytes);
  if (crc_matches(bytes)) POLYLOG_ASSERT(is_ours(*frame));
  if (!record) return;
  POLYLOG_ASSERT(is_ours(*frame) && head.has_value());
  POLYLOG_ASSERT(head->offset == record->record.offset && head->producer == record->producer &&
                 head->shown_time == record->shown_time());
  BatchInfo info = to_info(*head);
  fold(info, *head);
  POLYLOG_ASSERT(info.records == 2);
  again.clear();
  POLYLOG_ASSERT(encode(*record, again).has_value());
  place(again, record->record.offset);
  POLYLOG_ASSERT(crc_matches(again));
  const auto back = decode(again);
  POLYLOG_ASSERT(back && rig::same(*back, *record));
}

void pieces(ByteView bytes) {
  (void)for_each_frame(bytes, [](ByteView frame) -> Result<void> {
    one_record(frame);
    return {};
  });
  one_record(bytes);
}

ByteView take_part(ByteView& bytes) {
  if (bytes.empty()) return {};
  const std::size_t size = std::min<std::size_t>(bytes[0], bytes.size() - 1);
  const ByteView part = bytes.subspan(1, size);
  bytes = bytes.subspan(1 + size);
  return part;
}

void parts(ByteView bytes) {
  Frame frame;
  frame.metadata = take_part(bytes);
  frame.protocol_data = take_part(bytes);
  frame.data = bytes;
  std::vector<std::uint8_t> whole;
  POLYLOG_ASSERT(encode(frame, whole).has_value());
  one_record(whole);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteView bytes(data, size);
  pieces(bytes);
  parts(bytes);
  return 0;
}
