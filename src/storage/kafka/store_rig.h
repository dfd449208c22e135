#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "format/kafka/records.h"
#include "fs/sim_file_system.h"
#include "storage/kafka/store.h"

// Test only: a Kafka store on a simulated disk, with the sync rounds done by hand.
namespace polylog::storage::kafka {

inline Batch make_batch(const std::vector<std::string>& values, ProducerStamp producer = {},
                        std::vector<std::int64_t> times = {},
                        format::kafka::Codec codec = format::kafka::Codec::none) {
  format::kafka::BatchOptions options;
  options.codec = codec;
  options.producer_id = producer.id;
  options.producer_epoch = producer.epoch;
  options.base_sequence = producer.first_sequence;
  format::kafka::BatchBuilder builder(options);
  for (std::size_t i = 0; i < values.size(); ++i) {
    Record record;
    record.timestamp = Timestamp(i < times.size() ? times[i] : 1000);
    record.value = as_bytes(values[i]);
    EXPECT_TRUE(builder.add(record));
  }
  Batch batch;
  batch.bytes = Slice::of(*builder.finish());
  batch.info = format::kafka::to_info(*format::kafka::parse_header(batch.bytes.view()));
  return batch;
}

class StoreRig {
 public:
  StoreRig() : clock(Timestamp(1'000'000)), disk(std::make_unique<fs::SimFileSystem>(&clock)) {
    config.directory = "/data/kafka";
    config.sidecar_directory = "/data/sidecar";
    config.cluster_id = *Uuid::parse("AAAAAAAAAAAAAAAAAAAAAg");
    log_config.index_interval_bytes = 64;
  }

  Result<void> open() {
    logs.clear();
    store.reset();
    POLYLOG_ASSIGN(opened, KafkaStore::open(*disk, clock, config));
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
        POLYLOG_TRY(format::kafka::for_each_batch(
            batch.bytes.view(), [&](const format::kafka::BatchHeader&, ByteView whole) {
              return format::kafka::for_each_record(whole, 1 << 20, [&](const Record& record) {
                if (record.offset >= at) values.emplace_back(as_text(*record.value));
                return true;
              });
            }));
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

}  // namespace polylog::storage::kafka
