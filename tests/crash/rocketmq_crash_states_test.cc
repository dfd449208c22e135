#include "crash_states.h"
#include "format/transcode/transcode.h"
#include "shared_log_check.h"
#include "storage/rocketmq/store.h"

// Every legal crash state of random workloads over the shared commit log.
namespace polylog::crash {
namespace {

WorkloadEngine rocketmq_engine() {
  WorkloadEngine engine = kafka_engine();
  engine.open = &storage::rocketmq::RocketmqStore::open;
  engine.config.directory = "/data/rocketmq";
  engine.config.shared.commit_log_file_bytes = 1536;
  engine.config.shared.queue_file_bytes = 100;  // five entries
  engine.config.shared.index_slots = 4;
  engine.config.shared.index_entries = 7;
  engine.to_native = [](Batch batch, const TopicPartition& id) {
    format::RocketmqTarget target;
    target.topic = id.topic;
    target.queue_id = id.partition;
    auto native = format::kafka_to_rocketmq(batch, target);
    POLYLOG_ASSERT(native.has_value());
    return std::move(*native);
  };
  engine.to_kafka = [](std::vector<Batch> batches) {
    return format::rocketmq_to_kafka(batches, {});
  };
  engine.check_layout = [config = engine.config](fs::FileSystem& disk, storage::Store& store) {
    return check_shared_log(disk, store, config);
  };
  return engine;
}

TEST(RocketmqCrashStates, no_acknowledged_record_is_lost_and_no_shown_offset_changes) {
  check_crash_states(rocketmq_engine());
}

TEST(RocketmqCrashStates, every_call_site_fails_once_without_loss) {
  check_single_faults(rocketmq_engine());
}

TEST(RocketmqCrashStates, hold_with_the_journal) {
  check_crash_states(with_journal(rocketmq_engine()));
}

TEST(RocketmqCrashStates, every_call_site_fails_once_without_loss_with_the_journal) {
  check_single_faults(with_journal(rocketmq_engine()));
}

}  // namespace
}  // namespace polylog::crash
