#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "format/kafka/records.h"
#include "storage/kafka/store.h"
#include "storage/rolled/store_rig.h"

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

class StoreRig : public RolledRig {
 public:
  StoreRig() {
    config.directory = "/data/kafka";
    config.cluster_id = *Uuid::parse("AAAAAAAAAAAAAAAAAAAAAg");
    log_config.index_interval_bytes = 64;
  }

  Result<Opened> open_store() override { return KafkaStore::open(*disk, clock, config); }

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
};

}  // namespace polylog::storage::kafka
