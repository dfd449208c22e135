#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "format/segment/record.h"
#include "format/transcode/transcode.h"

namespace polylog::format {

// Writes records as segment frames, one behind the other.
class SegmentWriter {
 public:
  explicit SegmentWriter(const SegmentTarget& target) : target_(target) {}

  void reserve(std::size_t bytes) { out_.reserve(bytes); }
  // too_large, invalid: as segment::encode, and over the target's limit; the context names the
  // record.
  Result<void> write(const segment::StoredRecord& record);
  // The largest that readers are shown.
  Timestamp max_timestamp() const { return max_timestamp_; }
  std::vector<std::uint8_t> take() { return std::move(out_); }

 private:
  const SegmentTarget& target_;
  std::vector<std::uint8_t> out_;
  std::int64_t record_number_ = 0;
  Timestamp max_timestamp_ = no_timestamp;
};

}  // namespace polylog::format
