#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "format/rocketmq/consume_queue.h"
#include "format/rocketmq/message.h"
#include "record/producers.h"
#include "storage/filelog/sidecar.h"
#include "storage/rocketmq/born_times.h"
#include "storage/rocketmq/queue_files.h"
#include "storage/store.h"

namespace polylog::storage::rocketmq {

class SharedLog;

// One queue of one topic: where its messages stand in the commit log. Fields are guarded by the
// log's lock. Entries wait in memory until the next flush; from then on the files have them.
class Queue final : public PartitionLog, public std::enable_shared_from_this<Queue> {
 public:
  using Entry = format::rocketmq::QueueEntry;

  Queue(std::shared_ptr<SharedLog> log, TopicPartition id, std::string stored_topic,
        const QueueFilesContext& files, std::string directory, const QueueNote& note);

  // PartitionLog
  OffsetRange offsets() const override;
  Result<Staged> append(Batch batch) override;
  Result<std::vector<Batch>> read(Offset from, ReadLimits limits) const override;
  Result<std::optional<TimedOffset>> offset_for_time(Timestamp at) const override;
  Result<std::optional<TimedOffset>> offset_of_max_timestamp() const override;
  Result<void> advance_start(Offset start) override;
  Offset offset_at(LogPosition position) const override;
  Offset first_unstable() const override { return offsets().end; }
  EpochEnd end_of_epoch(LeaderEpoch epoch) const override;
  LeaderEpoch first_epoch() const override;
  ProducerState::Check check_producer(const BatchInfo& batch) const override;
  void expire_producers(Timestamp before) override;
  Producers producers() const override;
  std::uint64_t size_bytes() const override;
  std::uint64_t measured_bytes() const override;
  void configure(const LogConfig& config) override;
  std::shared_ptr<Log> log() const override;

  const TopicPartition& id() const { return id_; }
  const std::string& stored_topic() const { return stored_topic_; }
  const Uuid& topic() const { return note_.topic; }

  // Takes the end to `end`, for a queue that comes here with offsets of its own: one without
  // entries begins there, and has gaps from there on; of another the entries up to `end` name its
  // last message. On disk with the log's next checkpoint. out_of_range: below the end; too_large:
  // further than the log passes over.
  Result<void> advance_end(Offset end);

  // Entries [from, from + count) as far as they are written, from memory or the files.
  Result<std::vector<Entry>> entries(std::int64_t from, std::size_t count, bool wait) const;
  // The whole record at `offset`, which `entry` leads to, or led to once. Nothing: it does not
  // read, or there is none. Waits for disk.
  Result<std::optional<Slice>> record_of(std::int64_t offset, const Entry& entry) const;

  // Raises the log start past what the topic's retention allows, below `visible` only.
  Result<void> expire(Offset visible, Timestamp now);

  // Store-time lookups as RocketMQ has them (RocketMQ store format, "Read path"): the first entry
  // stored at or after `at`, the end when there is none; the last one stored at or before it, the
  // start when there is none. Equal times: the first, the last of them. Waits for disk.
  enum class Bound { lower, upper };
  Result<Offset> offset_by_store_time(Timestamp at, Bound bound) const;

 private:
  friend class SharedLog;
  friend class LogRecovery;
  friend class LostRecords;
  friend class StoreOpening;
  friend class RocketmqStore;

  struct Run;  // neighbouring records, to be read in one piece
  std::int64_t start_locked() const { return std::max(first_, note_.start); }
  bool begun() const { return positioned_ || end_ != first_ || !pending_.empty(); }
  // The entry for the record at end_; its file comes with the next flush.
  void add(const Entry& entry, std::int64_t born_ms);
  void cut_entries(std::int64_t end);  // memory only
  // A message of this queue that the log was found to have: that it reads and says so itself is
  // what makes it one, whatever led there. queue_search.cc.
  struct Fact {
    std::int64_t offset = 0, position = 0, end = 0;
    std::int64_t stored = 0;  // milliseconds
  };
  Result<std::optional<Fact>> fact_of(const Entry& entry) const;
  // Of the offsets in [low, high): `holds` holds for the messages below `low`, for none from `high`
  // on, and nothing can be said of those in between, which have no message that reads or no entry
  // that leads to it. `last` and `next` are the messages at their two ends, as far as met.
  struct Narrowed {
    std::int64_t low = 0, high = 0;
    std::optional<Fact> last, next;
  };
  struct LogWalk {  // as Walk, by position in the log
    std::function<void(const format::rocketmq::Message&)> on_record;
    std::function<void(std::int64_t from, std::int64_t to)> on_damage;
  };
  using Holds = std::function<bool(const Fact&)>;  // true for a prefix of the messages
  Result<Narrowed> narrow(std::int64_t low, std::int64_t high, const Holds& holds) const;
  Result<std::optional<Fact>> fact_between(std::int64_t low, std::int64_t high) const;
  Result<void> walk_log(std::int64_t from, std::int64_t to, const LogWalk& visit) const;
  Result<std::int64_t> count_in_log(const Narrowed& narrowed, std::int64_t position) const;
  // The record at `offset` whose entry leads elsewhere, if it and those at both sides of it read.
  // Waits for disk.
  Result<std::optional<Slice>> between_neighbours(std::int64_t offset) const;
  bool looked_for(std::int64_t offset) const;
  Result<std::int64_t> count_below(LogPosition position) const;
  Result<std::int64_t> first_from(std::int64_t low, std::int64_t high,
                                  std::int64_t log_start) const;
  Result<std::optional<std::int64_t>> born_at(std::int64_t offset, const Entry& entry) const;
  Result<std::optional<std::int64_t>> born_by_entry(std::int64_t offset, const Entry& entry) const;
  Result<std::optional<std::int64_t>> scan_block(std::int64_t from, std::int64_t to,
                                                 std::int64_t at_ms, std::int64_t& largest) const;
  Result<std::int64_t> largest_in(std::int64_t block, OffsetRange range) const;
  Result<Offset> first_within(std::uint64_t bytes) const;
  Result<std::optional<Batch>> read_run(const Run& run, const ReadLimits& limits) const;
  Result<void> read_parts(Run part, const ReadLimits& limits, std::vector<Batch>& batches) const;
  Result<void> drop_repeated(std::int64_t from, std::vector<Entry>& found, bool wait) const;
  Result<void> drop_oversized(std::vector<Entry>& found, bool wait) const;
  Result<void> add_missing(std::int64_t from, std::int64_t& to, const ReadLimits& limits,
                           std::vector<Batch>& batches) const;
  Result<std::vector<Run>> plan_runs(std::int64_t from, OffsetRange range, const ReadLimits& limits,
                                     std::int64_t& next) const;

  const std::shared_ptr<SharedLog> log_;
  const TopicPartition id_;
  const std::string stored_topic_;
  QueueNote note_;
  QueueFiles files_;
  std::vector<Entry> pending_;                 // [flushed_, end_)
  std::int64_t flushed_ = 0;                   // entries below are in the files
  std::int64_t end_ = 0;                       // next offset of what is written
  std::int64_t staged_end_ = 0;                // next offset append() gives
  std::int64_t first_ = 0;                     // first entry whose record the commit log still has
  std::int64_t last_end_ = 0;                  // position behind the last entry's record
  std::uint64_t added_ = 0, added_bytes_ = 0;  // entries since the start, and their records' sizes
  bool listed_ = false;                        // among the log's queues with entries to flush
  std::uint64_t touched_ = 0;                  // number of the checkpoint that covers its files
  bool removed_ = false;
  bool positioned_ = false;  // by advance_end(): where it begins is settled
  ProducerState producers_;
  mutable BornTimes born_times_;
  mutable std::set<std::int64_t> lost_;  // offsets whose records were looked for in vain
};

}  // namespace polylog::storage::rocketmq
