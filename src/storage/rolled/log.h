#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "record/epochs.h"
#include "record/producers.h"
#include "storage/filelog/ballast.h"
#include "storage/filelog/retention.h"
#include "storage/filelog/sidecar.h"
#include "storage/rolled/segment.h"
#include "storage/store.h"

namespace polylog::storage {

class RolledLog;

// What all logs of one store share. Outlives them.
struct RolledContext {
  RolledContext(fs::FileSystem& fs_in, const Clock& clock_in, const StoreConfig& config,
                std::string_view ballast_name);

  fs::FileSystem& fs;
  const Clock& clock;
  FileCache files;
  std::unique_ptr<Sidecar> sidecar;
  // Makes `start` the log start of `log`; on disk when it returns, on a full one in the room of the
  // ballast.
  std::function<Result<void>(const RolledLog& log, std::int64_t start)> save_log_start;

  SegmentContext for_segments() { return {fs, clock, files}; }

  // Does what lets records be deleted, when there is no room for it a second time in that of the
  // ballast.
  Result<void> with_room(const std::function<Result<void>()>& task);
  void lay_ballast();  // if there is none and room is plenty

  const std::uint64_t scan_bytes_max;  // StoreConfig's
  // Bytes written into all logs since the last look at their recovery points (points.h).
  std::atomic<std::uint64_t> written_since_look{0};

 private:
  std::mutex ballast_mutex_;
  Ballast ballast_;
};

// One partition and its log where the two are the same thing: LogPosition is the next offset, and
// the data is a sequence of files of which only the last is written. Kafka's and RobustMQ's
// layouts are such logs; what a frame is, how a file is indexed and what else lies in the
// directory is the subclass's. One lock guards the state; a second one, always taken first, lets
// only one of sync round, retention, truncation and checkpoint run at a time.
class RolledLog : public PartitionLog, public Log, public std::enable_shared_from_this<RolledLog> {
 public:
  RolledLog(RolledContext& context, const FrameFormat& format, TopicPartition id, const Uuid& topic,
            std::string directory, const LogConfig& config);

  // How a log comes to be: as an empty one (its directory exists), or from what is on disk.
  // `metadata` names a file that is synced with the log's first round; it may be empty.
  Result<void> start_empty(const std::string& metadata);
  struct Evidence {
    const LogNote* note = nullptr;    // the sidecar's, when it may be believed
    bool clean = false;               // the last stop was orderly, ours or the original's
    std::int64_t recovery_point = 0;  // the original's checkpoint
    std::int64_t log_start = 0;
    LeaderEpoch announced = no_epoch;  // clients may have seen it, records of it or not
  };
  virtual Result<void> recover(const Evidence& evidence, Recovery& report) = 0;
  void all_synced();                            // what recovery or the clean stop wrote is on disk
  bool indexes_synced() const;                  // of all sealed segments
  void keep_for_sync(const std::string& path);  // with the next round
  // A sync of the store's root failed: if it covered this log's name, the log is lost to writers.
  void root_sync_failed();

  // PartitionLog
  OffsetRange offsets() const override;
  Result<Staged> append(Batch batch) override;
  Result<std::vector<Batch>> read(Offset from, ReadLimits limits) const override;
  Result<std::optional<TimedOffset>> offset_for_time(Timestamp at) const override;
  Result<std::optional<TimedOffset>> offset_of_max_timestamp() const override;
  Result<void> advance_start(Offset start) override;
  Offset offset_at(LogPosition position) const override { return Offset(position.value()); }
  Offset first_unstable() const override;
  EpochEnd end_of_epoch(LeaderEpoch epoch) const override;
  LeaderEpoch first_epoch() const override;
  ProducerState::Check check_producer(const BatchInfo& batch) const override;
  void expire_producers(Timestamp before) override;
  Producers producers() const override;
  std::uint64_t size_bytes() const override;
  void configure(const LogConfig& config) override;
  std::shared_ptr<Log> log() const override;

  // Log
  LogPosition end() const override;
  LogPosition durable_end() const override;
  LeaderEpoch epoch() const override;
  bool unclean() const override;
  Result<void> begin_epoch(LeaderEpoch epoch) override;
  Result<void> write_staged() override;
  Result<std::optional<DirtyLog>> dirty() override;
  void settled(const DirtyLog& done, bool synced) override;
  void write_noted() override;
  Result<void> truncate(LogPosition end) override;
  Result<LogChunk> read_chunk(LogPosition from, std::size_t bytes_max) const override;
  Result<LogPosition> append_chunk(const LogChunk& chunk) override;

  // For the store.
  const TopicPartition& id() const { return id_; }
  const Uuid& topic() const { return topic_; }
  const std::string& directory() const { return directory_; }
  LogConfig config() const;
  bool failed() const;
  // Deletes what retention allows below `visible`; readers that hold a segment keep it. What tells
  // where the log begins and ends, and its epoch, is on the disk before any file goes.
  Result<Retained> retain(Offset visible, Timestamp now);
  // Leaves the active file for a new one where it holds records and has been written to for longer
  // than segment.ms: a log that nobody appends to any more has its last file sealed too. Skipped
  // while a round or retention is at work on the log.
  Result<void> roll_by_age(Timestamp now);
  // Makes what the layout keeps of a log's progress durable when it is behind, and gives the
  // sidecar a recovery point if it can.
  Result<void> checkpoint();
  // How much of the log a start would have to read: what lies beyond its last recovery point.
  std::uint64_t bytes_to_scan() const;
  // Moves the recovery point to the end. False: there are writes that no sync has covered, and the
  // round that does brings the point.
  Result<bool> advance_point();
  // Clean stop, in two steps around one sync of the volume: everything to the files; then what
  // the sidecar may believe next time.
  Result<void> close_files();
  LogNote note() const;
  void begin_note(const std::string& name);  // gives the log an id in the sidecar
  void noted_anew(const LogNote& note);      // the sidecar was rewritten with it
  void end_note();

 protected:
  // Some bytes of the layout's own in front, then those of the batch.
  struct PlacedBytes {
    std::array<std::uint8_t, 64> head;
    std::size_t head_size = 0;
    Slice rest;
    ByteView head_view() const { return {head.data(), head_size}; }
    std::uint64_t size() const { return head_size + rest.size(); }
  };
  struct Sealing {
    std::shared_ptr<DataSegment> segment;
    std::int64_t end = 0;             // offset of what comes behind it
    std::vector<std::uint8_t> state;  // sealed_state() at that moment; empty: not to be saved
  };

  // --- what a layout decides; the log's lock is held unless a line says otherwise ---

  // A batch with its offsets and whatever else the layout owns in it.
  virtual PlacedBytes place(const Batch& batch, const BatchInfo& info) = 0;
  // May the active segment, of `size` bytes with what is staged, not take this batch? Asked after
  // the rules that all layouts share.
  virtual bool must_roll_for(const BatchInfo& batch, std::uint64_t size,
                             std::uint64_t bytes) const = 0;
  // A new, empty segment and its file. Sets directory_dirty_.
  virtual Result<std::shared_ptr<DataSegment>> make_segment(std::int64_t base) = 0;
  // Producer and transaction state of one batch, live and at recovery alike. An aborted
  // transaction goes into the index of `segment`, when there is one.
  virtual Result<void> note_state(const BatchInfo& batch, ByteView frame, DataSegment* segment) = 0;
  // The first batch of an epoch is about to be written, at `entry.start`.
  virtual Result<void> epoch_starts([[maybe_unused]] const EpochList::Entry& entry) { return {}; }
  virtual void epochs_changed() {}
  virtual std::vector<std::uint8_t> sealed_state() const { return {}; }

  // The lock is not held in these; they wait for the disk. Files to sync with the round are added.
  virtual Result<void> save_indexes(const std::shared_ptr<DataSegment>& segment,
                                    std::vector<fs::FilePtr>& files) = 0;
  virtual Result<void> save_sealed_state([[maybe_unused]] const Sealing& sealing,
                                         [[maybe_unused]] std::vector<fs::FilePtr>& files) {
    return {};
  }
  // Whether prepare_round() is wanted, again perhaps, before a round is captured: the lock is held.
  virtual bool wants_preparation() const { return false; }
  // What must go with, or before, the data of this round beyond the data itself.
  virtual Result<void> prepare_round([[maybe_unused]] DirtyLog& out) { return {}; }
  // What prepare_round() gave did not come into a round after all, or the round failed. The lock
  // is held.
  virtual void round_dropped() {}
  virtual void round_failed() {}
  virtual Result<void> save_progress() { return {}; }  // durable when it returns
  // Whether an empty file's name says where the log ends.
  virtual bool names_tell_bases() const = 0;
  virtual Result<void> write_closing_state() { return {}; }
  virtual void fill_point([[maybe_unused]] RecoveryPoint& point) const {}  // the lock is held

  // --- for layouts ---

  DataSegment& active() const { return *segments_.back(); }
  Result<void> check_usable() const;
  // Opens a new segment's data file and fills in what all layouts share; what is there already
  // belongs to no segment and is cut off.
  Result<void> begin_file(DataSegment& segment);
  // A failed sync of the directory covered every name in it, those of new segments too: final.
  Result<void> directory_synced(Result<void> outcome);
  std::shared_ptr<DataSegment> floor(std::int64_t offset) const;
  struct ReadPlan {
    std::shared_ptr<DataSegment> segment;
    std::uint64_t size;
  };
  std::vector<ReadPlan> plan_from(std::int64_t offset) const;  // takes the lock

  RolledContext& context_;
  const FrameFormat& format_;
  const TopicPartition id_;
  const Uuid topic_;
  const std::string directory_;

  std::mutex sync_mutex_;  // taken before the next two; guards saved_
  // Held from a change that the sidecar is told of until it is: it is told in the same order.
  std::mutex notes_mutex_;    // taken before mutex_
  mutable std::mutex mutex_;  // guards everything below
  LogConfig config_;
  std::vector<std::shared_ptr<DataSegment>> segments_;  // by base offset; the last one is active
  std::int64_t written_end_ = 0;
  std::int64_t durable_end_ = 0;
  std::int64_t start_ = 0;  // log start offset
  EpochList epochs_;
  ProducerState producers_;
  std::vector<Sealing> sealing_;
  bool failed_ = false;
  bool closed_ = false;
  bool directory_dirty_ = false;  // names in the partition directory
  std::atomic<std::uint32_t> sidecar_id_{0};  // settled() and configure() read it without a lock
  Sidecar::Extent facts_;  // that the next round covers

 private:
  friend class RolledRecovery;

  struct StagedBatch {
    PlacedBytes bytes;
    BatchInfo info;
    ProducerState::Undo undo;
  };
  struct Round {  // a sync round under way
    std::vector<std::pair<std::shared_ptr<DataSegment>, RoundFile>> files;
    std::vector<std::shared_ptr<DataSegment>> sealed;
    std::optional<RecoveryPoint> point;
    std::shared_ptr<DataSegment> indexed;  // whose index files it covers
    std::uint32_t entries = 0;             // lasting ones, in these
    Sidecar::Extent facts;
    bool root = false;
  };

  bool must_roll(const BatchInfo& batch, std::uint64_t bytes) const;
  Result<void> roll(std::int64_t base);
  Result<void> write_staged_locked();
  Result<void> announce_epochs();
  void drop_staged();
  void note_written(const BatchInfo& batch, ByteView head, ByteView rest);
  std::vector<std::shared_ptr<DataSegment>> unsaved_segments() const;
  Result<void> append_frames(ByteView frames);
  Result<void> cut_back(const std::shared_ptr<DataSegment>& segment, const fs::FilePtr& file,
                        std::uint64_t keep, std::int64_t end);
  Result<void> reload_active(const fs::FilePtr& file, std::uint64_t size, std::int64_t end);
  Result<void> replay(const std::shared_ptr<DataSegment>& segment);
  Result<std::uint64_t> cut_position(const DataSegment& segment, std::int64_t end) const;
  RecoveryPoint capture_point() const;
  bool all_durable() const;
  // Whether a power cut leaves the indexes of all sealed segments from this number on, those that
  // a round covers among them.
  bool indexes_covered(std::int64_t from, const Round& round) const;
  Result<bool> save_point();
  void note_point(const RecoveryPoint& point);  // notes_mutex_ is held, mutex_ is not
  void point_noted(const RecoveryPoint& point);
  // What retention is about to take. Segments behind the last one are made meanwhile.
  struct Expiry {
    std::size_t count = 0;  // so many segments from the front
    std::shared_ptr<DataSegment> last;
  };
  // Whether their producers are known without them. False: the next round's point will tell.
  Result<bool> keep_producers(const Expiry& expiry);
  std::optional<RecoveryPoint> capture_without(std::size_t count) const;
  std::uint64_t bytes_beyond(const RecoveryPoint& point) const;
  // Writes indexes and state of sealed segments; leaves for later what does not fit on disk.
  void save_sealed();
  void forget_saved(const DataSegment& segment);  // it is gone, or sealed no more
  Result<void> capture_round(Round& round, DirtyLog& out);
  std::shared_ptr<DataSegment> after(const DataSegment& segment) const;
  LeaderEpoch epoch_at(std::int64_t offset) const;
  Result<std::optional<Batch>> read_within(std::int64_t from, const ReadLimits& limits) const;
  Result<std::optional<TimedOffset>> find_in(const ReadPlan& plan, Timestamp at,
                                             std::int64_t log_start) const;
  RetainedFile retained(std::size_t index, Timestamp now) const;
  Expiry plan_expiry(Offset visible, Timestamp now);
  // So many of them may go now: those that nothing on the disk has to replace.
  Result<std::size_t> secure_expiry(std::size_t count);
  std::vector<std::shared_ptr<DataSegment>> drop_front(std::size_t count);
  Result<Retained> remove_segments(const std::vector<std::shared_ptr<DataSegment>>& segments);

  std::vector<StagedBatch> staged_;
  std::int64_t staged_end_ = 0;              // next offset append() gives
  LeaderEpoch epoch_ = no_epoch;             // what appends carry
  LeaderEpoch announced_before_ = no_epoch;  // by the runs before this one
  bool epochs_lost_ = false;                 // nothing is known of those before epochs_ begins
  std::vector<std::string> unsynced_;        // small files made with the partition
  struct Saved {
    std::shared_ptr<DataSegment> segment;
    std::vector<fs::FilePtr> files;
  };
  std::vector<Saved> saved_;  // what was sealed since the last round that was captured
  std::map<std::uint64_t, Round> rounds_;
  std::uint64_t next_ticket_ = 1;
  bool unclean_ = false;
  bool root_dirty_ = false;  // the partition directory's own name
  bool want_point_ = false;
  bool put_off_ = false;  // retention, by its last turn: sync_mutex_ guards it
  // Of the last point that the sidecar was told of; -1: there is none.
  std::int64_t point_base_ = -1, point_offset_ = -1;
  std::uint64_t beyond_point_ = 0;  // bytes that lie beyond it
};

}  // namespace polylog::storage
