#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cli/dump_report.h"
#include "format/segment/frame.h"
#include "format/segment/record.h"
#include "format/segment/robustmq.h"

namespace polylog::cli {

// One frame of a segment file, read and judged, and how it is shown. Views point into the frame.
class FrameShown {
 public:
  // corrupt: its lengths do not add up. What is wrong with the filling is damage() instead.
  static Result<FrameShown> read(ByteView frame);

  Offset offset() const { return frame_.offset; }
  // Nothing: all is well. Else what of the filling does not read or has a wrong checksum.
  const std::string& damage() const { return damage_; }
  bool of_robustmq() const { return robustmq_ != nullptr; }
  // Of an idempotent producer's batch; nothing for records of none.
  std::optional<format::segment::ProducerPart> producer() const;

  // One line or object; with `records` also key, value and headers, or a message's properties.
  void show(std::uint64_t position, bool records, DumpReport& report) const;

 private:
  void read_filling(ByteView bytes);
  std::string person_line(std::uint64_t position) const;
  void show_object(std::uint64_t position, DumpReport& report) const;
  void show_record(DumpReport& report) const;

  format::segment::Frame frame_;
  bool ours_ = false;                                    // neither ours nor RobustMQ's: unknown
  std::optional<format::segment::StoredRecord> stored_;  // nothing: it does not read
  std::string damage_;
  // Of polylog's filling.
  std::uint32_t crc_ = 0;
  bool crc_ok_ = false;
  // Of RobustMQ's; `stored_` points into it.
  std::unique_ptr<const format::segment::RobustmqRecord> robustmq_;
};

// Whether a whole frame is one of those that are read, checksum included.
bool is_sound_frame(ByteView frame);

}  // namespace polylog::cli
