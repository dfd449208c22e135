#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "format/kafka/record_batch.h"
#include "format/rocketmq/message.h"
#include "record/batch.h"
#include "storage/store.h"

// The layouts' stored forms, side by side: what a frame is, and how a batch of one becomes batches
// of another. Pure.
namespace polylog::convert {

BatchFormat format_of(storage::Layout layout);

// What a partition's records need to know of their surroundings when their form changes.
struct Surroundings {
  std::string topic;
  std::int32_t partition = 0;
  bool log_append_time = false;  // the topic's message.timestamp.type
  format::rocketmq::Host store_host;
  std::size_t body_bytes_max = format::rocketmq::body_bytes_max_default;
};

// `batches` are in offset order. The result may stop short of their end; it never skips a record.
// Offsets are the records' own. The errors are those of format/transcode and name the offset of
// the batch.
Result<std::vector<Batch>> change(const std::vector<Batch>& batches, BatchFormat to,
                                  const Surroundings& surroundings);

// One frame of a native batch: the unit that is never divided.
struct FrameView {
  ByteView bytes;
  Offset first, last;
  std::int32_t records = 1;
  ProducerId producer = no_producer;
};
// Calls f(const FrameView&) -> Result<void> for each. corrupt: not whole frames.
using OnFrame = std::function<Result<void>(const FrameView&)>;
Result<void> for_each_frame(BatchFormat format, ByteView bytes, const OnFrame& f);

// The frame as it compares between two stores of one layout: without what says where in the store
// it lies. corrupt: it does not parse.
Result<std::vector<std::uint8_t>> comparable(BatchFormat format, ByteView frame);

}  // namespace polylog::convert
