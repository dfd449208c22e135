#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/fifo.h"
#include "broker/async.h"
#include "broker/topic_config.h"
#include "broker/transcoder.h"
#include "broker/watermark.h"
#include "storage/store.h"

namespace polylog::broker {

class Partition;
class Broker;

enum class Acks { none, leader, all };
enum class Isolation { read_uncommitted, read_committed };

// Which staged batches failed writes took with them. After a failed write the same positions are
// given out again, so a waiter that comes late can't tell by its position alone: it brings the
// generation its batch was staged in.
class Generations {
 public:
  std::uint64_t current() const { return current_; }
  // Everything staged beyond `written` is gone.
  void end(LogPosition written);
  // False when the batch staged in `generation` that ends at `end` is gone (or so long ago that
  // nobody remembers).
  bool kept(std::uint64_t generation, LogPosition end) const;

 private:
  struct Ended {
    std::uint64_t first, last;  // generations, inclusive
    LogPosition written;        // what was written when they ended
  };
  static constexpr std::size_t remembered_max = 64;
  std::uint64_t current_ = 0;
  std::vector<Ended> ended_;
};

// A Log as the broker sees it: who waits for it, and what readers may see of it. One per
// partition in the kafka and segment layouts, one per store in the rocketmq layout. Reactor only.
struct LogState : std::enable_shared_from_this<LogState> {
  LogState(boost::asio::io_context& context, std::shared_ptr<storage::Log> log_in,
           bool shared_in = false);

  // Before an append: a log's first one since the start opens the epoch that was decided then.
  Result<void> begin_epoch();

  // Of a shared log, whose partitions are told by what passes and never one by one: an append
  // is noted here until the log is written up to `end`, and then, where its readers wait for
  // that, until it is durable.
  struct Passing {
    LogPosition end;
    Partition* partition;
    Offset offset_end;  // what the partition may show once `end` has passed
  };
  void note_staged(Partition& partition, const storage::Staged& staged);
  void note_written(Partition& partition, Offset offset_end);  // up to all that is written
  // Tells those whose appends lie below `written`; what is staged beyond is gone.
  void pass_written();
  void pass_durable();
  void forget(Partition& partition);  // it goes

  std::shared_ptr<storage::Log> log;
  const bool shared;
  Watermark written;  // LogPosition after write_staged()
  Watermark durable;  // LogPosition after a sync round
  LeaderEpoch epoch;  // the one appends carry: one more than the log had when it was opened
  Generations generations;
  LogPosition staged_end{0};  // of this turn's last append
  std::int64_t flush_interval_ms = 0;  // shortest that this turn's appends ask for; 0: none
  bool epoch_begun = false;
  bool staged = false;         // append() was called since the last write_staged()
  bool listed = false;         // among the logs that the end of this turn writes, once
  bool sync_wanted = false;    // by one of this turn's appends: their topic acknowledges syncs
  bool flush_pending = false;  // a timer will submit the log
  bool failed = false;         // a sync failed: writes are refused until restart
  Error failure;               // of the last write or sync that failed
  std::vector<Partition*> partitions;  // of a log that is not shared: the one it belongs to
  std::vector<Passing> unwritten;      // this turn's appends, in order
  Fifo<Passing> unsynced;              // in order
};

// One partition: the rules above its PartitionLog. Reactor only, except where the engine itself
// is thread-safe and a call is made through log() from the pool.
class Partition {
 public:
  Partition(Broker& broker, TopicPartition id, Uuid topic_id,
            std::shared_ptr<storage::PartitionLog> log, std::shared_ptr<LogState> state,
            std::shared_ptr<const TopicConfig> config, BatchFormat native = BatchFormat::kafka);
  ~Partition();
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;

  const TopicPartition& id() const { return id_; }
  const Uuid& topic_id() const { return topic_id_; }
  const TopicConfig& config() const { return *config_; }
  // Takes effect at once. The visible end never moves back: what was shown under a weaker flush
  // policy stays shown.
  void configure(std::shared_ptr<const TopicConfig> config);
  storage::PartitionLog& log() { return *log_; }
  const std::shared_ptr<storage::PartitionLog>& shared_log() { return log_; }
  LogState& log_state() { return *state_; }
  // What changes Kafka batches into those append() takes and read() returns; nothing when these
  // are Kafka's own.
  std::optional<Transcoder> transcoder() const;

  // The topic was deleted: appends and reads answer not_found, waiters are woken with it.
  void remove();
  bool removed() const { return removed_; }

  // Bounds, all exclusive ends. high_watermark is the visible end: as safe as promised.
  Offset log_start() const;
  Offset high_watermark() const;
  Offset last_stable() const;
  Offset visible_end(Isolation isolation) const;
  LeaderEpoch epoch() const;  // the one appends carry
  // As PartitionLog::end_of_epoch (`end` is an offset), and right for epoch() before its first
  // append too.
  EpochEnd end_of_epoch(LeaderEpoch epoch) const;

  // Stages a checked native batch. Its producer is judged first: a duplicate is answered with
  // the original offsets and position and nothing is written. unavailable: the log failed, or
  // the broker is stopping; not_found: deleted; otherwise the engine's error.
  struct Appended {
    ProducerState::Verdict verdict = ProducerState::Verdict::accept;  // accept or duplicate: good
    Offset base{-1};
    LogPosition end{0};
    Timestamp duplicate_timestamp = no_timestamp;
    std::uint64_t generation = 0;  // tells `end` from the same position after a failed write
  };
  Result<Appended> append(Batch batch);

  // Waits until `appended` is as safe as `acks` asks under the topic's flush policy. no_space,
  // io: it was not written, or its sync failed; unavailable: the log failed; not_found: the topic
  // was deleted; timed_out. May be called any time after the append.
  Async<Result<void>> acknowledged(Appended appended, Acks acks, std::int64_t deadline_ns);
  // The same for a caller that kept the position only: to be called in the turn of the append,
  // because a position can be given again after a failed write.
  Async<Result<void>> acknowledged(LogPosition end, Acks acks, std::int64_t deadline_ns);
  // True when acknowledged() would return at once and with success: saves the coroutine.
  bool is_acknowledged(const Appended& appended, Acks acks) const;

  // Below the visible end of the isolation level; limits.end is filled in here. Empty between
  // the visible end and the log end.
  Result<std::vector<Batch>> read(Offset from, storage::ReadLimits limits, Isolation isolation);

  // Fetchers waiting for more: raised whenever a visible bound or the log start moves, and when
  // the partition is removed.
  void subscribe(Signal* signal) { signals_.insert(signal); }
  void unsubscribe(Signal* signal) { signals_.erase(signal); }
  void notify();

  // Called after a write of the log, and after a sync round moved its durable end. Of a shared
  // log only when something of this partition passed, which now ends at `offset_end`.
  void wrote();
  void wrote(Offset offset_end);
  void synced();
  void synced(Offset offset_end);

 private:
  friend struct LogState;
  Broker& broker_;
  TopicPartition id_;
  Uuid topic_id_;
  std::shared_ptr<storage::PartitionLog> log_;
  std::shared_ptr<LogState> state_;
  std::shared_ptr<const TopicConfig> config_;
  Offset visible_floor_;  // shown under an earlier, weaker flush policy
  // Of a shared log: what has passed. A log of one's own knows it by its watermarks.
  Offset written_end_, durable_end_;
  std::uint32_t passing_ = 0;  // entries in the log's queues
  const BatchFormat native_;
  bool removed_ = false;
  std::set<Signal*> signals_;

  bool acknowledges_syncs() const { return config_->flush.kind == FlushPolicy::Kind::ack; }
  const Watermark& awaited(Acks acks) const;
};

}  // namespace polylog::broker
