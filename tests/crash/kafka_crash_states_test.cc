#include "crash_states.h"
#include "format/kafka/names.h"
#include "format/kafka/snapshot.h"

// Every legal crash state of random workloads over the Kafka engine.
namespace polylog::crash {
namespace {

// Kafka, too, starts on what is left: no snapshot is there that does not read.
std::string check_snapshots(fs::FileSystem& disk, const std::string& directory) {
  const auto names = disk.list(directory);
  if (!names) return directory + " does not list: " + names.error().to_string();
  for (const std::string& name : *names) {
    const auto file = format::kafka::parse_segment_file_name(name);
    if (!file || !*file || (*file)->file != format::kafka::SegmentFile::snapshot) continue;
    const auto bytes = fs::read_file(disk, fs::join(directory, name), 1 << 20);
    if (!bytes) return name + " does not read: " + bytes.error().to_string();
    if (const auto read = format::kafka::decode_snapshot(*bytes); !read) {
      return fs::join(directory, name) + ": " + read.error().to_string();
    }
  }
  return {};
}

WorkloadEngine checked_kafka_engine() {
  WorkloadEngine engine = kafka_engine();
  engine.check_layout = [root = engine.config.directory](fs::FileSystem& disk,
                                                         storage::Store& store) {
    for (const TopicPartition& id : store.partitions()) {
      const std::string directory =
          fs::join(root, format::kafka::partition_directory_name(id));
      if (std::string wrong = check_snapshots(disk, directory); !wrong.empty()) return wrong;
    }
    return std::string();
  };
  return engine;
}

TEST(KafkaCrashStates, no_acknowledged_record_is_lost_and_no_shown_offset_changes) {
  check_crash_states(checked_kafka_engine());
}

TEST(KafkaCrashStates, every_call_site_fails_once_without_loss) {
  check_single_faults(checked_kafka_engine());
}

TEST(KafkaCrashStates, hold_with_the_journal) {
  check_crash_states(with_journal(checked_kafka_engine()));
}

TEST(KafkaCrashStates, every_call_site_fails_once_without_loss_with_the_journal) {
  check_single_faults(with_journal(checked_kafka_engine()));
}

}  // namespace
}  // namespace polylog::crash
