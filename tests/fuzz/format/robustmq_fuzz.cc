#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/assert.h"
#include "format/segment/frame.h"
#include "format/segment/record.h"
#include "format/segment/record_rig.h"
#include "format/segment/robustmq.h"

// Frames as RobustMQ fills them. The input is read twice: as a piece of a file, and as the parts of
// one frame (two bytes with the length of the archive, the archive, the JSON), whose offset and
// checksum are made to fit. What is read must be writable as a record of ours.

using namespace polylog;
using namespace polylog::format::segment;

namespace {

void one_record(ByteView bytes) {
  const auto record = decode_robustmq(bytes);
  if (!record) return;
  const StoredRecord ours = to_stored(*record);
  POLYLOG_ASSERT(ours.record.value && ours.append_time == ours.record.timestamp);
  std::vector<std::uint8_t> again;
  POLYLOG_ASSERT(encode(ours, again).has_value());
  place(again, ours.record.offset);
  const auto back = decode(again);
  POLYLOG_ASSERT(back && rig::same(*back, ours));
}

void parts(ByteView bytes) {
  if (bytes.size() < 2) return;
  const std::size_t length = bytes[0] * 256U + bytes[1];
  bytes = bytes.subspan(2);
  std::vector<std::uint8_t> archive = to_vector(bytes.first(std::min(length, bytes.size())));
  const auto zero_field = [&](std::size_t index) {
    const auto& field = robustmq_root_fields[index];
    const std::size_t at = archive.size() - robustmq_root_bytes + field.at;
    std::fill_n(archive.begin() + static_cast<std::ptrdiff_t>(at), field.size, std::uint8_t{0});
  };
  if (archive.size() >= robustmq_root_bytes) {
    zero_field(0);
    zero_field(robustmq_root_fields.size() - 1);  // the CRC-32 of no data
  }
  std::vector<std::uint8_t> whole;
  const Frame frame{Offset(0), archive, bytes.subspan(archive.size()), {}};
  POLYLOG_ASSERT(encode(frame, whole).has_value());
  one_record(whole);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteView bytes(data, size);
  (void)for_each_frame(bytes, [](ByteView frame) -> Result<void> {
    one_record(frame);
    return {};
  });
  one_record(bytes);
  parts(bytes);
  return 0;
}
