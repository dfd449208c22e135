#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "format/segment/record.h"
#include "storage/filelog/memory_index.h"
#include "storage/rolled/store_rig.h"
#include "storage/segment/store.h"

// Test only: a segment store on a simulated disk, with the sync rounds done by hand.
namespace polylog::storage::segment {

inline Batch make_batch(const std::vector<std::string>& values, ProducerStamp producer = {},
                        const std::vector<std::int64_t>& times = {}) {
  std::vector<std::uint8_t> frames;
  Batch batch;
  batch.format = BatchFormat::segment;
  for (std::size_t i = 0; i < values.size(); ++i) {
    format::segment::StoredRecord stored;
    stored.record.timestamp = Timestamp(i < times.size() ? times[i] : 1000);
    stored.record.value = as_bytes(values[i]);
    if (producer.id != no_producer) {
      stored.producer = {producer.id, producer.epoch, producer.first_sequence,
                         static_cast<std::int32_t>(i), static_cast<std::int32_t>(values.size())};
    }
    EXPECT_TRUE(format::segment::encode(stored, frames));
    batch.info.max_timestamp = std::max(batch.info.max_timestamp, stored.record.timestamp);
  }
  batch.info.records = static_cast<std::int32_t>(values.size());
  batch.info.last = Offset(batch.info.records - 1);
  batch.info.producer = producer;
  if (producer.id != no_producer) {
    batch.info.producer.last_sequence = producer.first_sequence + batch.info.records - 1;
  }
  batch.bytes = Slice::of(std::move(frames));
  return batch;
}

class StoreRig : public RolledRig {
 public:
  StoreRig() { config.directory = "/data/segment"; }

  Result<Opened> open_store() override {
    const auto open_index = [this](const std::string& directory) {
      return open_memory_index(*disk, directory);
    };
    return SegmentStore::open(*disk, clock, config, open_index);
  }

  using RolledRig::append;
  static Result<Staged> append(PartitionLog& to, const std::vector<std::string>& values) {
    return append(to, make_batch(values));
  }

  static Result<std::vector<std::string>> read_all(const PartitionLog& from) {
    std::vector<std::string> values;
    const OffsetRange range = from.offsets();
    ReadLimits limits;
    limits.bytes_max = 1 << 20;
    limits.end = range.end;
    limits.first_whole = true;
    for (Offset at = range.start; at < range.end;) {
      POLYLOG_ASSIGN(batches, from.read(at, limits));
      if (batches.empty()) break;
      for (const Batch& batch : batches) {
        const auto keep = [&](ByteView frame) -> Result<void> {
          POLYLOG_ASSIGN(stored, format::segment::decode(frame));
          if (stored.record.offset >= at) values.emplace_back(as_text(*stored.record.value));
          return {};
        };
        POLYLOG_TRY(format::segment::for_each_frame(batch.bytes.view(), keep));
        at = batch.info.last + 1;
      }
    }
    return values;
  }
};

}  // namespace polylog::storage::segment
