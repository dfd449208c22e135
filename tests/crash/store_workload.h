#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "fs/sim_file_system.h"
#include "journal/journal.h"
#include "storage/store.h"

// A random workload over one store on a simulated disk, with a model of what was promised: what
// is acknowledged must be there after any crash, and what readers could see must never change.
namespace polylog::crash {

// What one append() carried.
struct Sent {
  std::int64_t first = 0;  // offset of the first value
  std::vector<std::string> values;
  ProducerStamp producer;
};

struct Written {
  std::string value;
  ProducerStamp producer;
  LeaderEpoch epoch;
};

// What is known of one partition from outside.
struct Expected {
  using Cut = std::pair<std::int64_t, std::string>;  // offset, value

  Uuid topic;
  // offset -> values that were staged there and may be there -> what they came with
  std::map<std::int64_t, std::map<std::string, std::shared_ptr<const Sent>>> written;
  std::map<std::int64_t, Written> latest;      // offset -> what is there now
  std::map<std::int64_t, Written> maybe;       // offset -> what was staged there last
  std::map<LeaderEpoch, EpochEnd> epoch_ends;  // of epochs that are over, durable
  LeaderEpoch epoch_min = no_epoch;            // the latest one that an acknowledged record has
  std::vector<Cut> cut;        // truncated; may come back until a sync round covers the truncation
  std::int64_t acked_end = 0;  // durable: shown to readers
  std::int64_t end = 0;        // written
  std::int64_t start_min = 0;  // the log start acknowledged
  std::int64_t start_max = 0;  // the log start asked for, acknowledged or not
  bool exists = false;         // creation acknowledged by a first round
  bool maybe_gone = false;     // a removal was begun
  bool removed = false;        // a removal was acknowledged, and nothing was begun since
};

// The engine a workload runs on. Batches are made and compared in Kafka's form.
struct WorkloadEngine {
  storage::OpenStore open = nullptr;
  storage::StoreConfig config;
  // Identity where the engine's own form is Kafka's.
  std::function<Batch(Batch kafka, const TopicPartition& id)> to_native;
  std::function<Result<std::vector<Batch>>(std::vector<Batch> native)> to_kafka;
  // What the layout's files must say of an open store, whatever happened before; says what is
  // wrong. Empty: the layout has no such check.
  std::function<std::string(fs::FileSystem& disk, storage::Store& store)> check_layout;
  bool journal = false;  // rounds go into a journal, in both areas of which few of them fit
};
WorkloadEngine kafka_engine();

class StoreWorkload {
 public:
  StoreWorkload(WorkloadEngine engine, std::uint64_t seed);

  // Opens a store on `disk` and runs `operations` random operations, stopping early when the
  // power goes. Errors of single operations are part of the workload.
  void run(fs::SimFileSystem& disk, int operations);

  // Opens the store again on a crashed disk and checks every promise; with `go_on` also that it
  // takes new records and finds them. `killed`: the power did not go, so that all that was written
  // is there. Returns what is wrong, or an empty string.
  std::string check(fs::SimFileSystem& disk, bool go_on, bool killed = false);

 private:
  struct Staged {
    std::int64_t offset;
    Written written;
    LogPosition end;  // of the whole append
  };
  struct Live {
    std::shared_ptr<storage::PartitionLog> log;
    std::int32_t next_sequence = 0;
    std::vector<Staged> staged;
    bool failed = false;
  };
  struct LiveLog {
    LeaderEpoch epoch = no_epoch;
    std::vector<LogPosition> ends;  // of what was written: where it may be truncated
  };
  // What a sync round promises once it has succeeded.
  struct Promise {
    std::map<LeaderEpoch, EpochEnd> epoch_ends;
    std::vector<Expected::Cut> cut;
  };
  using Records = std::map<std::int64_t, std::pair<std::string, LeaderEpoch>>;

  void step();
  void create(const TopicPartition& id);
  void append(const TopicPartition& id);
  static void resume_sequence(Live& live, const Expected& expected);
  // What the logs say is written is no longer merely staged.
  void note_written();
  // Nothing of `log` is staged any more: a write took it, or failed and dropped it.
  void nothing_staged(const storage::Log* log);
  void write(const std::shared_ptr<storage::Log>& log);
  void begin_epoch(const std::shared_ptr<storage::Log>& log, LeaderEpoch epoch);
  void sync(bool write_between);
  Result<void> bring_to_disk(const std::vector<storage::DirtyLog>& round);
  // Opens the journal, if there is to be one, and the store on top of it. `switched_off`: an engine
  // with a journal goes on without one.
  Result<storage::Opened> open(fs::SimFileSystem& disk, std::unique_ptr<journal::Journal>& journal,
                               bool switched_off) const;
  Promise promise_of(const TopicPartition& id) const;
  void keep(const TopicPartition& id, const Promise& promise, LogPosition end);
  void truncate(const std::shared_ptr<storage::Log>& log);
  void note_cut(const storage::Log* log, bool surely);
  void remove(const TopicPartition& id);
  void advance(const TopicPartition& id);
  void retain(const TopicPartition& id);
  TopicPartition pick();

  std::string check_partitions(storage::Store& store, bool killed) const;
  std::string check_partition(storage::Store& store, const TopicPartition& id,
                              const Expected& expected) const;
  std::string check_records(const storage::PartitionLog& log, const Expected& expected) const;
  static std::string check_record(std::int64_t at, const Records& records,
                                  const Expected& expected);
  static std::string check_whole(std::int64_t at, const Records& records, std::int64_t start,
                                 const Expected& expected);
  static std::string check_next(const storage::PartitionLog& log, const Records& records,
                                const Expected& expected);
  static std::string check_epochs(const storage::PartitionLog& log, const Expected& expected);
  Result<Records> read_all(const storage::PartitionLog& log) const;
  static std::size_t newer_batches(const Expected& expected, std::int64_t offset);
  static std::string check_producers(const storage::PartitionLog& log, const Expected& expected);
  std::string go_on(storage::Store& store) const;
  std::string append_one(storage::PartitionLog& log, const TopicPartition& id) const;

  const WorkloadEngine engine_;
  const std::uint64_t journal_bytes_;
  std::mt19937_64 random_;
  int checks_ = 0;
  bool half_cut_ = false;  // a truncation failed: nobody knows where the log ends
  ManualClock clock_{Timestamp(1'000'000)};
  fs::FileSystem* fs_ = nullptr;               // what the store is on
  std::unique_ptr<journal::Journal> journal_;  // outlives the store
  std::unique_ptr<storage::Store> store_;
  std::map<TopicPartition, Live> live_;
  std::map<const storage::Log*, LiveLog> logs_;
  std::map<TopicPartition, Expected> expected_;
  std::vector<Uuid> removed_topics_;
  std::string wrong_;  // found while it ran
  int counter_ = 0;
  int topics_ = 0;
};

}  // namespace polylog::crash
