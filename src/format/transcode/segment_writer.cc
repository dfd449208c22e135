#include "format/transcode/segment_writer.h"

#include <algorithm>
#include <string>

namespace polylog::format {

Result<void> SegmentWriter::write(const segment::StoredRecord& record) {
  const std::size_t start = out_.size();
  if (Result<void> encoded = segment::encode(record, out_); !encoded) {
    encoded.error().context =
        "record " + std::to_string(record_number_) + ": " + encoded.error().context;
    return fail(std::move(encoded).error());
  }
  const std::size_t size = out_.size() - start;
  if (size > target_.record_bytes_max) {
    return fail(Errc::too_large, "record " + std::to_string(record_number_) + ": a frame of " +
                                     std::to_string(size) + " bytes; the limit is " +
                                     std::to_string(target_.record_bytes_max));
  }
  if (target_.placed) segment::place({out_.data() + start, size}, record.record.offset);
  max_timestamp_ = std::max(max_timestamp_, record.shown_time());
  ++record_number_;
  return {};
}

}  // namespace polylog::format
