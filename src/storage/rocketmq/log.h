#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "format/rocketmq/config_json.h"
#include "format/rocketmq/delay_levels.h"
#include "format/rocketmq/message.h"
#include "format/rocketmq/properties.h"
#include "record/epochs.h"
#include "storage/filelog/file_cache.h"
#include "storage/filelog/sidecar.h"
#include "storage/rocketmq/commit_log.h"
#include "storage/rocketmq/key_index.h"
#include "storage/rocketmq/queue.h"
#include "storage/store.h"

namespace polylog::storage::rocketmq {

// A topic's name in the layout: RocketMQ's own names stay as they are, all others are encoded.
Result<std::string> stored_name(const std::string& topic);

// Whether a record is as it was written: by the checksum over all of it where it has one, by that
// of its body and the sum of the block it lies in otherwise.
bool proves_itself(ByteView record, const format::rocketmq::Message& message, bool block_good);

// The commit log as the broker sees it: the one log that all partitions of the store share;
// LogPosition is a byte position. One lock guards it and all its queues. Before it may be taken the
// one that lets only one of flush, truncation, expiry, removal and checkpoint run at a time, and
// then the one of what is noted in the sidecar, which alone a sync round takes: a round that an
// acknowledgement waits for does not wait for thousands of queue files.
class SharedLog final : public Log, public std::enable_shared_from_this<SharedLog> {
 public:
  struct Setup {
    std::string directory;  // of the store
    std::string sidecar_directory;
    SharedLogConfig config;
    std::size_t open_files_max = 4096;
  };
  SharedLog(fs::FileSystem& fs, const Clock& clock, const Setup& setup);

  // Offsets that a queue may lack between two messages: each costs it an entry.
  static constexpr std::int64_t gap_entries_max = std::int64_t{1} << 24;

  // Log
  LogPosition end() const override;
  LogPosition durable_end() const override;
  LeaderEpoch epoch() const override;
  bool unclean() const override;
  Result<void> begin_epoch(LeaderEpoch epoch) override;
  Result<void> write_staged() override;
  Result<std::optional<DirtyLog>> dirty() override;
  void settled(const DirtyLog& done, bool synced) override;
  void write_noted() override { sidecar_->write_noted(); }
  Result<void> truncate(LogPosition end) override;
  Result<LogChunk> read_chunk(LogPosition from, std::size_t bytes_max) const override;
  // Queues go on at the offsets that the messages bring with them. invalid: a message at or below
  // its queue's end, or where it does not fit into the commit log file; too_large: so far above it
  // that the queue can't pass over what is missing.
  Result<LogPosition> append_chunk(const LogChunk& chunk) override;

  // For the queues.
  Result<Staged> stage(Queue& queue, const Batch& batch);
  fs::FileSystem& file_system() const { return fs_; }
  // One whole record's bytes, or a run of them, from one file. corrupt: they are not all there.
  // Any thread.
  Result<Slice> read_bytes(std::int64_t position, std::size_t bytes, bool wait,
                           bool& blocks_good) const;
  Result<void> read_into(std::int64_t position, MutableBytes into) const;

  // For the store.
  using Queues = std::map<TopicPartition, std::shared_ptr<Queue>>;
  std::shared_ptr<Queue> find(const TopicPartition& id) const;
  bool has_topic(std::string_view stored_topic) const;
  // A write has been under way for longer than a busy page cache explains. Any thread.
  bool stuck() const;
  Result<std::shared_ptr<Queue>> create(const TopicPartition& id, const QueueNote& note);
  Result<void> remove(const TopicPartition& id);
  std::vector<std::shared_ptr<Queue>> queues() const;
  // Entries that wait in memory go to their files. Waits for disk.
  Result<void> flush_entries();
  Result<void> prepare_next();
  // The whole record at `position`, if there is one that proves itself. Waits for disk.
  Result<std::optional<Slice>> record_at(std::int64_t position) const;
  // Calls f(Slice record, const Message&) -> bool for each message of `topic` that has `key`, or
  // it as its unique id, newest first, until it says false. Entries must be flushed.
  using OnMatch = std::function<bool(Slice, const format::rocketmq::Message&)>;
  Result<void> look_up(const std::string& topic, const std::string& key, Timestamp from,
                       Timestamp to, const OnMatch& f) const;
  Batch as_batch(Slice record, const format::rocketmq::Message& message) const;
  Result<Retained> expire_files(Timestamp now, bool forced);
  Result<void> checkpoint();
  Result<void> note_progress();  // everything is synced: a start may begin here
  // So much was written since the last one that a start would have long to read, or the sidecar
  // has fallen silent.
  bool wants_checkpoint() const;
  Result<void> close();
  // Lets go of the queues, which hold the log: the store's last word.
  void release();

 private:
  friend class Queue;
  friend class LogRecovery;
  friend class LostRecords;
  friend class StoreOpening;
  friend class RocketmqStore;

  struct StagedBatch {
    std::shared_ptr<Queue> queue;
    std::size_t from, to;  // in stage_
    ProducerState::Undo undo;
    std::int64_t records;
  };
  struct Round {  // a sync round under way
    std::vector<std::pair<CommitFilePtr, RoundFile>> files;
    Sidecar::Extent facts;  // as far as it covers them
  };
  Result<void> check_usable() const;
  Result<void> write_staged_locked();
  void drop_staged();
  Result<void> roll();
  Result<void> add_file(std::int64_t base);
  Result<void> undo_write(CommitFile& file, std::size_t bytes);
  void note_written(Queue& queue, CommitFile& file, ByteView frames);
  // Notes one message in its queue and in the key index: the same at append and at recovery.
  void dispatch(Queue& queue, const format::rocketmq::Message& message, std::size_t bytes,
                std::int64_t position);
  void list_pending(Queue& queue);
  // Takes the queue to the message's offset: where the queue has entries, those in between name
  // this message, so that RocketMQ, which does not compare offsets, serves it again rather than
  // nothing; where it has none, it begins there.
  void pass_over(Queue& queue, const format::rocketmq::Message& message, std::size_t bytes);
  // What the last message of a batch says of the batch's producer.
  static void note_producer(ProducerState& producers, const format::rocketmq::Message& message,
                            const format::rocketmq::ProducerPart& part);
  Result<std::size_t> check_chunk(ByteView bytes) const;
  Queue* find_queue(std::string_view stored_topic, std::int32_t queue_id) const;  // null: none
  // Of each queue: how many of its entries stay.
  using Cuts = std::vector<std::pair<std::shared_ptr<Queue>, std::int64_t>>;
  using Producers = std::map<TopicPartition, ProducerState>;
  Result<Producers> producers_at(LogPosition end, const Cuts& cuts) const;
  Result<void> erase_cut(CommitFile& file, std::uint64_t old_end,
                         const std::vector<CommitFilePtr>& gone);
  std::shared_ptr<Queue> queue_for(std::string_view stored_topic, std::int32_t queue_id);
  bool serves(const format::rocketmq::Message& message) const;
  std::shared_ptr<Queue> make_queue(const TopicPartition& id, std::string stored_topic,
                                    const QueueNote& note);
  std::string queue_directory(std::string_view stored_topic, std::int32_t queue_id) const;
  Result<void> write_topics();
  // What a round begun now covers; false: all is durable.
  bool capture_round(DirtyLog& out);
  void capture_files(DirtyLog& out, Round& round);
  void begin_round(DirtyLog& out, Round round);
  Result<void> flush_entries_locked();  // flush_mutex_ held
  void flushed(const std::vector<std::shared_ptr<Queue>>& queues,
               const std::vector<std::size_t>& counts);
  RecoveryPoint capture_point() const;
  // Of each queue that has entries: how many, and its producers' state.
  std::vector<std::uint8_t> encode_queues() const;
  Result<void> write_checkpoint(const RecoveryPoint& point);
  Result<void> save_progress();  // flush_mutex_ held
  SidecarState sidecar_state() const;
  Result<void> rewrite_sidecar(bool clean);  // sync_mutex_ held
  Result<void> secure_facts();
  Result<void> sync_volume();
  void fail_log();
  Result<void> raise_first_offsets();
  std::size_t expired_files(Timestamp now, bool forced) const;

  fs::FileSystem& fs_;
  const Clock& clock_;
  const Setup setup_;
  mutable FileCache files_;
  QueueFilesContext queue_files_;
  std::unique_ptr<Sidecar> sidecar_;
  format::rocketmq::DelayLevels delay_levels_ = format::rocketmq::DelayLevels::standard();

  std::atomic<std::int64_t> write_began_ns_{0};  // 0: none is under way

  std::mutex flush_mutex_;    // taken first
  std::mutex sync_mutex_;     // taken before settle_mutex_
  std::mutex settle_mutex_;   // taken before mutex_: rounds are reported in the order they end
  mutable std::mutex mutex_;  // guards everything below, and the queues
  CommitLog commit_log_;
  KeyIndexFiles index_;
  Queues queues_;
  std::unordered_map<std::string, std::unordered_map<std::int32_t, Queue*>> by_stored_name_;
  std::map<TopicPartition, QueueNote> removed_;
  std::vector<std::shared_ptr<Queue>> with_pending_;
  std::vector<std::uint8_t> stage_;  // whole records, placed
  std::vector<StagedBatch> staged_;
  std::int64_t staged_store_time_ = 0;
  std::int64_t last_store_time_ = 0;  // of the last record written
  std::int64_t written_end_ = 0;
  std::int64_t durable_end_ = 0;
  std::optional<RecoveryPoint> last_point_;  // where a start would begin to read
  std::uint64_t checkpoints_ = 1;            // begun so far, and one
  std::int64_t touched_queues_ = 0;          // whose files were written since the last one began
  EpochList epochs_;
  LeaderEpoch epoch_ = no_epoch;  // what appends carry
  LeaderEpoch announced_before_ = no_epoch;
  std::map<std::uint64_t, Round> rounds_;
  std::uint64_t next_ticket_ = 1;
  std::atomic<std::uint32_t> sidecar_id_{0};  // settled() reads it without a lock
  std::vector<FileIdentity> marks_;
  bool epochs_lost_ = false;  // nothing is known of those before epochs_ begins
  bool directory_dirty_ = false;
  bool facts_dirty_ = false;  // the sidecar has facts that no sync has covered
  // A write that nobody waited for took with it what others had staged.
  std::optional<Error> lost_;
  bool topics_dirty_ = false;            // config/topics.json is behind
  format::rocketmq::TopicTable topics_;  // as last read or written
  bool failed_ = false;
  bool closed_ = false;
  bool unclean_ = false;
};

}  // namespace polylog::storage::rocketmq
