#include "crash_states.h"
#include "format/transcode/transcode.h"
#include "storage/filelog/memory_index.h"
#include "storage/rocksdb/index.h"
#include "storage/segment/store.h"

// Every legal crash state of random workloads over segments of neutral records.
namespace polylog::crash {
namespace {

// The position index is the one that loses what was not synced.
Result<storage::Opened> open_with_fake_index(fs::FileSystem& fs, const Clock& clock,
                                             const storage::StoreConfig& config) {
  return storage::segment::SegmentStore::open(
      fs, clock, config,
      [&fs](const std::string& directory) { return storage::open_memory_index(fs, directory); });
}

// And the real one, all of whose files are on the simulated disk too.
Result<storage::Opened> open_with_rocksdb(fs::FileSystem& fs, const Clock& clock,
                                          const storage::StoreConfig& config) {
  return storage::segment::SegmentStore::open(
      fs, clock, config,
      [&fs](const std::string& directory) { return storage::open_rocksdb_index(fs, directory); });
}

WorkloadEngine segment_engine(storage::OpenStore open) {
  WorkloadEngine engine = kafka_engine();
  engine.open = open;
  engine.config.directory = "/data/segment";
  engine.to_native = [](Batch batch, const TopicPartition&) {
    auto native = format::kafka_to_segment(batch, {});
    POLYLOG_ASSERT(native.has_value());
    return std::move(*native);
  };
  engine.to_kafka = [](std::vector<Batch> batches) {
    return format::segment_to_kafka(batches, {});
  };
  return engine;
}

TEST(SegmentCrashStates, no_acknowledged_record_is_lost_and_no_shown_offset_changes) {
  check_crash_states(segment_engine(&open_with_fake_index));
}

TEST(SegmentCrashStates, every_call_site_fails_once_without_loss) {
  check_single_faults(segment_engine(&open_with_fake_index));
}

TEST(SegmentCrashStates, hold_with_the_journal) {
  check_crash_states(with_journal(segment_engine(&open_with_fake_index)));
}

TEST(SegmentCrashStates, every_call_site_fails_once_without_loss_with_the_journal) {
  check_single_faults(with_journal(segment_engine(&open_with_fake_index)));
}

TEST(SegmentCrashStates, hold_with_the_index_in_rocksdb) {
  check_crash_states(segment_engine(&open_with_rocksdb), 600);
  check_crash_states(with_journal(segment_engine(&open_with_rocksdb)), 300);
}

}  // namespace
}  // namespace polylog::crash
