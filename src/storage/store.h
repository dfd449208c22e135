#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "fs/file_system.h"
#include "record/batch.h"
#include "record/epochs.h"
#include "record/log_config.h"
#include "record/producers.h"

// All the broker sees of a disk layout.
//
// The partition is not the log. Flush, truncation, epochs and "durable" belong to a Log at a
// LogPosition; append, read, time lookup and offsets belong to a PartitionLog. In the kafka and
// segment layouts each partition has a log of its own (LogPosition = next offset); in the
// rocketmq layout all partitions of a store share one (LogPosition = byte position).
//
// Engines are synchronous and never sync: what must reach the disk is handed out through
// Log::dirty() and synced by the broker's Durability, the only owner of syncs. Every method may
// be called from any thread: each log has one lock, held for patch-and-copy and one write.
namespace polylog::storage {

enum class Layout { kafka, rocketmq, segment };

// What one layout can express. Constant per engine.
struct Traits {
  BatchFormat native;    // the only format append() accepts and read() returns
  bool shared_log;       // true: many partitions, one log
  bool control_records;  // transaction markers can occupy offsets
  bool compaction;
};

struct Staged {
  OffsetRange offsets;
  LogPosition end;  // acknowledgements wait until the log is written/durable up to here
};

struct ReadLimits {
  std::size_t bytes_max = 0;
  std::size_t records_max = SIZE_MAX;
  Offset end;                // nothing at or beyond this offset: the visible end
  bool first_whole = false;  // the first batch may exceed bytes_max, so it can always be read
  bool wait = true;          // false: Errc::would_block instead of reading from the device
};

struct TimedOffset {
  Timestamp timestamp;
  Offset offset;
  LeaderEpoch epoch = no_epoch;
  bool operator==(const TimedOffset&) const = default;
};

class Log;

// What one sync round must bring to the disk for one log, captured at one moment.
struct DirtyLog {
  std::shared_ptr<Log> log;
  LogPosition end;                       // durable once all below is synced
  std::vector<fs::FilePtr> files;        // content
  std::vector<std::string> directories;  // names; inner before outer
  std::uint64_t ticket = 0;              // the engine's own, handed back to settled()
};

struct LogChunk {
  LogPosition start, end;  // whole frames, [start, end)
  Slice bytes;
};

// One logical queue: Kafka partition, RocketMQ queue, RobustMQ shard.
class PartitionLog {
 public:
  virtual ~PartitionLog() = default;

  // [log start, log end): end is the end of what write_staged() has written.
  virtual OffsetRange offsets() const = 0;

  // REQUIRES: batch.format is native, checked and complete (see the format's validate).
  // Gives offsets, patches the fields the layout owns, stages; all or nothing. Nothing is visible
  // before the log's write_staged() succeeded. May roll, which writes what is staged first: when
  // that fails the staged batches are dropped, as by a failed write_staged(). invalid: not
  // appendable here; too_large: over a segment; no_space, io: rolling failed; unavailable: the log
  // failed before.
  virtual Result<Staged> append(Batch batch) = 0;

  // Whole native batches in offset order, adjacent ones merged into one Batch; empty at the end.
  // The first may begin below `from`. out_of_range: outside [log start, limits.end] — limits.end
  // itself reads as empty. corrupt: damage at `from`; the error names the range to skip.
  virtual Result<std::vector<Batch>> read(Offset from, ReadLimits limits) const = 0;

  // First record in offset order with timestamp >= `at` and offset >= log start. Waits for disk.
  virtual Result<std::optional<TimedOffset>> offset_for_time(Timestamp at) const = 0;
  // The first record that has the partition's largest timestamp. Waits for disk.
  virtual Result<std::optional<TimedOffset>> offset_of_max_timestamp() const = 0;

  // DeleteRecords: raises the log start; never lowers it. On disk when it returns: waits.
  // out_of_range: beyond the end.
  virtual Result<void> advance_start(Offset start) = 0;

  // End of this partition's records below `position` of its log; identity unless shared_log.
  virtual Offset offset_at(LogPosition position) const = 0;

  // First offset of the earliest open transaction, or the end when none is open.
  virtual Offset first_unstable() const = 0;

  // Where an epoch ends in this partition: `end` is an offset.
  virtual EpochEnd end_of_epoch(LeaderEpoch epoch) const = 0;
  virtual LeaderEpoch first_epoch() const = 0;  // of the record at log start; no_epoch if none

  // Judges a batch against what the partition remembers of its producer (staged ones included).
  virtual ProducerState::Check check_producer(const BatchInfo& batch) const = 0;
  virtual void expire_producers(Timestamp before) = 0;
  // What it remembers of each (staged batches included).
  using Producers = std::unordered_map<ProducerId, ProducerState::Entry>;
  virtual Producers producers() const { return {}; }

  virtual std::uint64_t size_bytes() const = 0;  // of its data; an estimate in a shared log
  // The same, closer where size_bytes() is an estimate. Waits for disk.
  virtual std::uint64_t measured_bytes() const { return size_bytes(); }
  virtual void configure(const LogConfig& config) = 0;
  virtual std::shared_ptr<Log> log() const = 0;
};

// One physically ordered sequence: the unit that is flushed, replicated, fenced, truncated.
class Log {
 public:
  virtual ~Log() = default;

  virtual LogPosition end() const = 0;          // of what is written
  virtual LogPosition durable_end() const = 0;  // of what a sync has covered
  virtual LeaderEpoch epoch() const = 0;        // latest begun; no_epoch if none
  // True when the last stop was not clean: the broker begins a new epoch before it appends.
  virtual bool unclean() const = 0;

  // Appends from here on carry `epoch`. REQUIRES: not below epoch().
  virtual Result<void> begin_epoch(LeaderEpoch epoch) = 0;

  // One gathered write for all that append() staged since the last one. On an error the file is
  // back at its old end and everything staged is dropped, producer changes included.
  virtual Result<void> write_staged() = 0;

  // What a sync must cover now, or nothing when all is durable. Called on a thread that may
  // wait: sealed segments write their indexes here. no_space, would_block: nothing was taken, try
  // again later; any other error is final for the log.
  virtual Result<std::optional<DirtyLog>> dirty() = 0;
  // The round that covered `done` ended. After a failure the log refuses work until restart.
  virtual void settled(const DirtyLog& done, bool synced) = 0;
  // To be called after settled(), once all logs of the round are: writes what they noted about it
  // beside the data, for all logs of the store at once.
  virtual void write_noted() {}

  // Drops everything at and beyond `end`, whole frames only. Never below what readers saw.
  virtual Result<void> truncate(LogPosition end) = 0;

  // Replication copies bytes: whole frames from `from`, at most `bytes_max` unless one is larger.
  virtual Result<LogChunk> read_chunk(LogPosition from, std::size_t bytes_max) const = 0;
  virtual Result<LogPosition> append_chunk(const LogChunk& chunk) = 0;
};

// Optional facility: aborted transactions for readers that filter.
class TransactionIndex {
 public:
  virtual ~TransactionIndex() = default;
  // Those overlapping [from, to), in the order of their markers; may hold more than needed.
  virtual Result<std::vector<AbortedTransaction>> aborted(const PartitionLog& partition,
                                                          OffsetRange range) const = 0;
};

// Optional facility: finds records by a key or id that their producer gave them.
class KeyIndex {
 public:
  struct KeyQuery {
    std::string topic;
    std::string key;  // a key, or the producer's unique id of the message
    Timestamp from{0};                // stored within [from, to]
    Timestamp to{INT64_MAX};
    std::size_t records_max = 32;     // matches, not candidates
  };
  struct Found {
    TopicPartition partition;
    Batch record;  // one native frame
  };
  virtual ~KeyIndex() = default;
  // Newest first. Waits for disk.
  virtual Result<std::vector<Found>> find_by_key(const KeyQuery& query) const = 0;
};

struct Retained {
  std::uint64_t segments_removed = 0;
  std::uint64_t bytes_removed = 0;
};

// One data directory in one layout.
class Store {
 public:
  virtual ~Store() = default;

  virtual const Traits& traits() const = 0;
  virtual std::string directory() const { return {}; }
  // Makes an empty partition; durable with the first sync round of its log. Waits for disk.
  virtual Result<std::shared_ptr<PartitionLog>> create(const TopicPartition& id, const Uuid& topic,
                                                       const LogConfig& config) = 0;
  virtual std::shared_ptr<PartitionLog> find(const TopicPartition& id) const = 0;
  virtual std::vector<TopicPartition> partitions() const = 0;
  virtual std::optional<Uuid> topic_id(const TopicPartition& id) const = 0;
  // The partition is gone when this returns, after a crash too. Waits for disk.
  virtual Result<void> remove(const TopicPartition& id) = 0;

  // Deletes what retention allows, below `visible` only. Waits for disk.
  virtual Result<Retained> retain(const TopicPartition& id, Offset visible, Timestamp now) = 0;

  // Writes the layout's periodic progress files (kafka: the root checkpoints) and the sidecar's
  // recovery checkpoint. Waits for disk.
  virtual Result<void> checkpoint() = 0;

  // Between checkpoints: whether so much was written that recovery points should be looked after.
  // Any thread; never waits.
  virtual bool points_due() const { return false; }
  // Looks after them, so that what a start has to read stays bounded however much is written:
  // takes the points that lie furthest behind, and returns those logs whose point comes with the
  // next sync round that covers them. One call at a time. Waits for disk.
  virtual std::vector<std::shared_ptr<Log>> advance_points() { return {}; }

  // Work about once a second: index entries that wait in memory go to their files, the next file
  // is made ready, whole files expire. One call at a time. Waits for disk.
  virtual Result<void> tend([[maybe_unused]] Timestamp now) { return {}; }

  // A clean stop: everything synced, every progress file written, the clean mark last. No
  // method may be called afterwards. A store destroyed without close() is an unclean stop.
  virtual Result<void> close() = 0;

  virtual const TransactionIndex* transactions() const { return nullptr; }
  virtual const KeyIndex* key_index() const { return nullptr; }
};

// What opening found out. Logged by the caller, line by line.
struct Recovery {
  bool clean = false;
  std::uint64_t partitions = 0;
  std::uint64_t bytes_scanned = 0;
  std::uint64_t bytes_truncated = 0;  // torn tails, above the durable end
  std::uint64_t indexes_rebuilt = 0;
  std::vector<std::string> notes;  // quarantined damage, foreign directories, void sidecars
};

// What only a layout with one shared log acts on; named after RocketMQ's settings.
struct SharedLogConfig {
  std::int64_t commit_log_file_bytes = 1073741824;   // mappedFileSizeCommitLog
  std::int64_t queue_file_bytes = 6'000'000;         // mappedFileSizeConsumeQueue
  std::int64_t body_bytes_max = 4'194'304;           // maxMessageSize
  std::int64_t reserved_ms = 72LL * 3600 * 1000;     // fileReservedTime
  std::vector<int> delete_hours = {4};               // deleteWhen, local time
  int disk_ratio_max = 75;                           // diskMaxUsedSpaceRatio, percent
  int disk_ratio_forced = 85;                        // diskSpaceCleanForciblyRatio
  bool forced_deletion = false;                      // cleanFileForciblyEnable
  bool index_enabled = true;                         // messageIndexEnable
  std::int32_t index_slots = 5'000'000;              // maxHashSlotNum
  std::int32_t index_entries = 20'000'000;           // maxIndexNum
  std::int64_t queue_flush_interval_ms = 1000;       // flushIntervalConsumeQueue
  int files_ahead = 1;                               // commit log files made ready ahead
  std::string delay_levels =                         // messageDelayLevel
      "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h";
  std::string store_host = "127.0.0.1:10911";        // address and port in message ids
};

// What the segment layout needs from above: who may write a partition's next segment is decided
// by the metadata service, the broker asks it. Thread-safe.
class SegmentGrants {
 public:
  virtual ~SegmentGrants() = default;
  // May segment `number` of the partition begin at `start`, the one before it being sealed there?
  // Asked ahead where waiting is allowed, and, when a file is full before there was an answer, by
  // the append itself: it answers at once. would_block: not decided yet. Any other error: refused.
  virtual Result<void> grant(const TopicPartition& id, std::int64_t number, Offset start) = 0;
};

struct StoreConfig {
  std::string directory;          // the layout's own: DATA/kafka
  std::string sidecar_directory;  // DATA/sidecar
  std::int32_t node_id = 1;
  Uuid cluster_id;
  std::size_t open_files_max = 4096;  // descriptors the store may keep for itself
  LogConfig defaults;                 // for directories found without settings
  std::size_t recovery_threads = 1;   // that open() may use
  // Of logs of their own: what is written beyond their recovery points, and a start has to read,
  // comes to about so much at most.
  std::uint64_t scan_bytes_max = std::uint64_t{128} << 20;
  SharedLogConfig shared;
  SegmentGrants* segment_grants = nullptr;  // not owned; null: every segment is granted
  // For what is found out after opening, as Recovery::notes; from any thread. May be empty.
  std::function<void(const std::string& line)> report;
};

struct Opened {
  std::unique_ptr<Store> store;
  Recovery recovery;
};

// Opening is recovering: no store exists that has not been recovered. The factory that names
// the engines is in main.cc.
using OpenStore = Result<Opened> (*)(fs::FileSystem&, const Clock&, const StoreConfig&);

}  // namespace polylog::storage
