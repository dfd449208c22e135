#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "format/segment/record.h"
#include "fs/sim_file_system.h"
#include "storage/filelog/memory_index.h"
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

class StoreRig {
 public:
  StoreRig() : clock(Timestamp(1'000'000)), disk(std::make_unique<fs::SimFileSystem>(&clock)) {
    config.directory = "/data/segment";
    config.sidecar_directory = "/data/sidecar";
  }

  Result<void> open() {
    logs.clear();
    store.reset();
    const auto open_index = [this](const std::string& directory) {
      return open_memory_index(*disk, directory);
    };
    POLYLOG_ASSIGN(opened, SegmentStore::open(*disk, clock, config, open_index));
    store = std::move(opened.store);
    recovery = std::move(opened.recovery);
    return {};
  }
  // The process dies; the disk is as `choice` says.
  Result<void> crash(const fs::CrashChoice& choice) {
    auto next = disk->crash_state(choice);
    logs.clear();
    store.reset();
    disk = std::move(next);
    return open();
  }
  Result<void> kill() { return crash({.mode = fs::CrashChoice::Mode::kill}); }

  std::shared_ptr<PartitionLog> log(const std::string& topic = "t", std::int32_t partition = 0) {
    const TopicPartition id{topic, partition};
    if (auto found = store->find(id)) return found;
    auto made = store->create(id, *Uuid::parse("AAAAAAAAAAAAAAAAAAAABA"), log_config);
    EXPECT_TRUE(made) << made.error().to_string();
    return *made;
  }

  Result<Staged> append(PartitionLog& to, Batch batch) {
    POLYLOG_ASSIGN(staged, to.append(std::move(batch)));
    POLYLOG_TRY(to.log()->write_staged());
    return staged;
  }
  Result<Staged> append(PartitionLog& to, const std::vector<std::string>& values) {
    return append(to, make_batch(values));
  }

  // One sync round of one log.
  Result<void> sync(PartitionLog& of) {
    const std::shared_ptr<Log> log = of.log();
    POLYLOG_ASSIGN(dirty, log->dirty());
    if (!dirty) return {};
    Result<void> synced;
    for (const fs::FilePtr& file : dirty->files) {
      if (synced) synced = file->sync();
    }
    for (const std::string& directory : dirty->directories) {
      if (synced) synced = disk->sync_directory(directory);
    }
    log->settled(*dirty, synced.has_value());
    return synced;
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

  ManualClock clock;
  std::unique_ptr<fs::SimFileSystem> disk;
  StoreConfig config;
  LogConfig log_config;
  std::unique_ptr<Store> store;
  Recovery recovery;
  std::vector<std::shared_ptr<PartitionLog>> logs;
};

}  // namespace polylog::storage::segment
