#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "record/epochs.h"
#include "record/producers.h"
#include "storage/filelog/sidecar.h"
#include "storage/kafka/segment.h"
#include "storage/store.h"

namespace polylog::storage::kafka {

class KafkaLog;

// What all logs of one store share. Outlives them.
struct StoreContext {
  StoreContext(fs::FileSystem& fs_in, const Clock& clock_in, std::size_t open_files_max)
      : fs(fs_in), clock(clock_in), files(fs_in, open_files_max) {}

  fs::FileSystem& fs;
  const Clock& clock;
  FileCache files;
  std::unique_ptr<Sidecar> sidecar;
  // Writes the store's log-start-offset-checkpoint, with `start` for `log`; on disk when it
  // returns.
  std::function<Result<void>(const KafkaLog& log, std::int64_t start)> save_log_start;

  // Logs that made progress since their last recovery point; once they come to 16 MiB together
  // each gets a new one, so that a start reads only what lies beyond.
  void progressed(const std::shared_ptr<KafkaLog>& log, std::uint64_t bytes);
  std::vector<std::shared_ptr<KafkaLog>> take_progressed();

 private:
  std::mutex mutex_;
  std::set<std::shared_ptr<KafkaLog>> progressed_;
  std::uint64_t progressed_bytes_ = 0;
};

// One partition in Kafka's layout, and its log: here the two are the same thing and
// LogPosition is the next offset. One lock guards the state; a second one, always taken first,
// lets only one of sync round, retention, truncation and checkpoint run at a time.
class KafkaLog final : public PartitionLog,
                       public Log,
                       public std::enable_shared_from_this<KafkaLog> {
 public:
  KafkaLog(StoreContext& context, TopicPartition id, const Uuid& topic, std::string directory,
           const LogConfig& config);

  // How a log comes to be: as an empty one (its directory exists), or from what is on disk.
  // `metadata` names a file that is synced with the log's first round.
  Result<void> start_empty(const std::string& metadata);
  struct Evidence {
    const LogNote* note = nullptr;     // the sidecar's, when it may be believed
    bool clean = false;                // the last stop was orderly, ours or Kafka's
    std::int64_t recovery_point = 0;   // Kafka's checkpoint
    std::int64_t log_start = 0;        // Kafka's checkpoint
    LeaderEpoch announced = no_epoch;  // clients may have seen it, records of it or not
  };
  Result<void> recover(const Evidence& evidence, Recovery& report);
  void all_synced();                            // what recovery or the clean stop wrote is on disk
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
  Result<void> truncate(LogPosition end) override;
  Result<LogChunk> read_chunk(LogPosition from, std::size_t bytes_max) const override;
  Result<LogPosition> append_chunk(const LogChunk& chunk) override;

  // For the store.
  const TopicPartition& id() const { return id_; }
  const Uuid& topic() const { return topic_; }
  const std::string& directory() const { return directory_; }
  bool failed() const;
  Result<std::vector<AbortedTransaction>> aborted(OffsetRange range) const;
  // First half of retention: drops segments from the log (readers that hold one keep it) and
  // returns them; their files go once the new log start is on disk.
  std::vector<std::shared_ptr<Segment>> take_expired(Offset visible, Timestamp now);
  Result<Retained> remove_segments(const std::vector<std::shared_ptr<Segment>>& segments);
  // Start offset for log-start-offset-checkpoint, or nullopt when the first file name tells it.
  std::optional<std::int64_t> start_checkpoint() const;
  std::int64_t recovery_checkpoint() const;  // never beyond a segment whose indexes are unsaved
  // Writes the epoch file when it is behind, gives the sidecar a recovery point if it can.
  Result<void> checkpoint();
  // Clean stop, in two steps around one sync of the volume: everything to the files; then what
  // the sidecar may believe next time.
  Result<void> close_files();
  void note_closed();
  LogNote note() const;
  void begin_note();  // gives the log an id in the sidecar
  void use_note_id(std::uint32_t id);
  void end_note();

 private:
  friend class LogRecovery;

  struct StagedBatch {
    std::array<std::uint8_t, format::kafka::header_bytes> head;
    Slice rest;
    BatchInfo info;
    ProducerState::Undo undo;
    std::uint64_t bytes() const { return head.size() + rest.size(); }
  };
  struct Sealing {
    std::shared_ptr<Segment> segment;
    std::int64_t snapshot_offset;
    std::vector<std::uint8_t> snapshot;
  };
  struct Round {  // a sync round under way
    std::vector<std::pair<std::shared_ptr<Segment>, RoundFile>> files;
    std::vector<std::shared_ptr<Segment>> sealed;
    std::optional<RecoveryPoint> point;
    bool directory = false, root = false;
  };

  Segment& active() const { return *segments_.back(); }
  Result<void> check_usable() const;
  bool must_roll(const BatchInfo& batch, std::uint64_t bytes) const;
  Result<void> roll(std::int64_t base);
  Result<std::shared_ptr<Segment>> make_segment(std::int64_t base);
  Result<void> write_staged_locked();
  void drop_staged();
  void note_written(const BatchInfo& batch, ByteView head, ByteView rest);
  // Producer and transaction state of one batch, live and at recovery alike.
  // An aborted transaction goes into the index of `segment`, when there is one.
  Result<void> note_state(const BatchInfo& batch, ByteView whole, Segment* segment);
  std::string snapshot_path(std::int64_t offset) const;
  Result<void> write_epochs_file(const std::string& text);
  Result<void> directory_synced(Result<void> outcome);
  Result<void> refresh_epochs_file(std::vector<fs::FilePtr>& files);
  std::vector<std::shared_ptr<Segment>> unsaved_segments() const;
  Result<void> reload_active(const fs::FilePtr& file, std::uint64_t size, std::int64_t end);
  RecoveryPoint capture_point() const;
  // Writes indexes and snapshots of sealed segments; leaves for later what does not fit on disk.
  void save_sealed(std::vector<fs::FilePtr>& files, std::vector<std::shared_ptr<Segment>>& sealed);
  Result<void> save_indexes(const std::shared_ptr<Segment>& segment,
                            std::vector<fs::FilePtr>& files);
  Result<void> capture_round(Round& round, DirtyLog& out);
  std::shared_ptr<Segment> floor(std::int64_t offset) const;
  std::shared_ptr<Segment> after(const Segment& segment) const;
  struct ReadPlan {
    std::shared_ptr<Segment> segment;
    std::uint64_t size;
  };
  std::vector<ReadPlan> plan_from(std::int64_t offset) const;
  Result<std::optional<TimedOffset>> find_in(const ReadPlan& plan, Timestamp at,
                                             std::int64_t log_start) const;

  StoreContext& context_;
  const TopicPartition id_;
  const Uuid topic_;
  const std::string directory_;

  std::mutex sync_mutex_;     // taken before mutex_
  mutable std::mutex mutex_;  // guards everything below
  LogConfig config_;
  std::vector<std::shared_ptr<Segment>> segments_;  // by base offset; the last one is active
  std::vector<StagedBatch> staged_;
  std::int64_t staged_end_ = 0;  // next offset append() gives
  std::int64_t written_end_ = 0;
  std::int64_t durable_end_ = 0;
  std::int64_t start_ = 0;  // log start offset
  EpochList epochs_;
  LeaderEpoch epoch_ = no_epoch;             // what appends carry
  LeaderEpoch announced_before_ = no_epoch;  // by the runs before this one
  ProducerState producers_;
  std::vector<Sealing> sealing_;
  std::vector<std::string> unsynced_;  // small files made with the partition
  std::map<std::uint64_t, Round> rounds_;
  std::uint64_t next_ticket_ = 1;
  std::uint32_t sidecar_id_ = 0;
  bool failed_ = false;
  bool closed_ = false;
  bool unclean_ = false;
  bool directory_dirty_ = false;  // names in the partition directory
  bool root_dirty_ = false;       // the partition directory's own name
  bool epochs_dirty_ = false;     // leader-epoch-checkpoint is behind
  bool want_point_ = false;
};

}  // namespace polylog::storage::kafka
