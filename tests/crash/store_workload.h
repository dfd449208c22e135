#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "fs/sim_file_system.h"
#include "storage/store.h"

// A random workload over one store on a simulated disk, with a model of what was promised: what
// is acknowledged must be there after any crash, and what readers could see must never change.
namespace polylog::crash {

struct Written {
  std::string value;
  ProducerStamp producer;
};

// What is known of one partition from outside.
struct Expected {
  Uuid topic;
  std::map<std::int64_t, std::set<std::string>> written;  // offset -> values ever staged there
  std::map<std::int64_t, Written> latest;                 // offset -> what is there now
  std::map<std::int64_t, Written> maybe;                  // offset -> what was staged there last
  std::int64_t acked_end = 0;                             // durable: shown to readers
  std::int64_t end = 0;                                   // written
  std::int64_t start_min = 0;                             // the log start acknowledged
  std::int64_t start_max = 0;  // the log start asked for, acknowledged or not
  bool exists = false;         // creation acknowledged by a first round
  bool maybe_gone = false;     // a removal was begun
};

// The engine a workload runs on. Batches are made and compared in Kafka's form.
struct WorkloadEngine {
  storage::OpenStore open = nullptr;
  storage::StoreConfig config;
  // Identity where the engine's own form is Kafka's.
  std::function<Batch(Batch kafka, const TopicPartition& id)> to_native;
  std::function<Result<std::vector<Batch>>(std::vector<Batch> native)> to_kafka;
};
WorkloadEngine kafka_engine();

class StoreWorkload {
 public:
  StoreWorkload(WorkloadEngine engine, std::uint64_t seed);

  // Opens a store on `disk` and runs `operations` random operations, stopping early when the
  // power goes. Errors of single operations are part of the workload.
  void run(fs::SimFileSystem& disk, int operations);

  // Opens the store again on a crashed disk and checks every promise. Returns what is wrong, or
  // an empty string.
  std::string check(fs::SimFileSystem& disk);

 private:
  struct Live {
    std::shared_ptr<storage::PartitionLog> log;
    std::int32_t next_sequence = 0;
    std::vector<std::pair<std::int64_t, Written>> staged;
    bool failed = false;
  };

  void step();
  void create(const TopicPartition& id);
  void append(const TopicPartition& id);
  static void resume_sequence(Live& live, const Expected& expected);
  // What the logs say is written is no longer merely staged.
  void note_written();
  // Nothing of `log` is staged any more: a write took it, or failed and dropped it.
  void nothing_staged(const storage::Log* log);
  void write(const TopicPartition& id);
  void sync(bool write_between);
  void remove(const TopicPartition& id);
  void advance(const TopicPartition& id);
  void retain(const TopicPartition& id);
  TopicPartition pick();
  std::string check_partition(storage::Store& store, const TopicPartition& id,
                              const Expected& expected);
  std::string check_records(const storage::PartitionLog& log, const Expected& expected);
  Result<std::map<std::int64_t, std::string>> read_all(const storage::PartitionLog& log) const;
  static std::size_t newer_batches(const Expected& expected, std::int64_t offset);
  std::string check_producers(const storage::PartitionLog& log, const Expected& expected);

  const WorkloadEngine engine_;
  std::mt19937_64 random_;
  ManualClock clock_{Timestamp(1'000'000)};
  fs::SimFileSystem* disk_ = nullptr;
  std::unique_ptr<storage::Store> store_;
  std::map<TopicPartition, Live> live_;
  std::map<TopicPartition, Expected> expected_;
  int counter_ = 0;
  int topics_ = 0;
};

}  // namespace polylog::crash
