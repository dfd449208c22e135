#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "record/epochs.h"
#include "record/producers.h"
#include "storage/store.h"

// A store in memory whose partitions share one log, for the broker's tests. A position is a
// byte: each record takes `record_positions` of them, whoever's it is.
namespace polylog::broker {

struct FakeFile;

inline constexpr std::int64_t record_positions = 100;

// What the pool's threads note and a test reads meanwhile.
template <typename T>
class Noted {
 public:
  void add(T item) {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
  }
  std::vector<T> all() const {
    const std::lock_guard lock(mutex_);
    return items_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<T> items_;
};

class SharedFakeLog final : public storage::Log,
                            public std::enable_shared_from_this<SharedFakeLog> {
 public:
  struct Frame {
    TopicPartition id;
    Batch batch;
    LogPosition start, end;
  };
  // State, open to the tests.
  std::vector<Frame> written, staged;
  LogPosition durable{0};
  EpochList epochs;
  LeaderEpoch latest_epoch = no_epoch;
  bool failed = false;
  std::shared_ptr<FakeFile> file;
  int writes = 0;
  // What goes wrong next.
  std::optional<Errc> write_error;   // of the next write_staged(), once
  std::optional<Errc> append_drops;  // of the next append, with all that is staged
  std::optional<Errc> append_rolls;  // of the next append, once what is staged is written
  mutable std::mutex mutex;

  SharedFakeLog();
  LogPosition end() const override;
  LogPosition durable_end() const override;
  LeaderEpoch epoch() const override { return latest_epoch; }
  bool unclean() const override { return false; }
  Result<void> begin_epoch(LeaderEpoch epoch) override;
  Result<void> write_staged() override;
  Result<std::optional<storage::DirtyLog>> dirty() override;
  void settled(const storage::DirtyLog& done, bool synced) override;
  Result<void> truncate(LogPosition) override { return {}; }
  Result<storage::LogChunk> read_chunk(LogPosition, std::size_t) const override {
    return storage::LogChunk{};
  }
  Result<LogPosition> append_chunk(const storage::LogChunk&) override { return end(); }

  // Under the lock:
  LogPosition end_now() const;
  void write_all();
};

class SharedFakePartition final : public storage::PartitionLog {
 public:
  SharedFakePartition(TopicPartition id, std::shared_ptr<SharedFakeLog> log)
      : id_(std::move(id)), log_(std::move(log)) {}

  storage::LogConfig config;
  Offset start;
  mutable std::atomic<int> position_lookups = 0;  // how often offset_at() was asked

  OffsetRange offsets() const override;
  Result<storage::Staged> append(Batch batch) override;
  Result<std::vector<Batch>> read(Offset from, storage::ReadLimits limits) const override;
  Result<std::optional<storage::TimedOffset>> offset_for_time(Timestamp) const override {
    return std::nullopt;
  }
  Result<std::optional<storage::TimedOffset>> offset_of_max_timestamp() const override {
    return std::nullopt;
  }
  Result<void> advance_start(Offset to) override;
  Offset offset_at(LogPosition position) const override;
  Offset first_unstable() const override { return offsets().end; }
  EpochEnd end_of_epoch(LeaderEpoch epoch) const override;
  LeaderEpoch first_epoch() const override { return log_->latest_epoch; }
  ProducerState::Check check_producer(const BatchInfo& batch) const override {
    return producers_.check(batch);
  }
  void expire_producers(Timestamp) override {}
  std::uint64_t size_bytes() const override { return 0; }
  void configure(const storage::LogConfig& to) override { config = to; }
  std::shared_ptr<storage::Log> log() const override { return log_; }

 private:
  Offset end_in(const std::vector<SharedFakeLog::Frame>& frames, Offset end) const;

  const TopicPartition id_;
  const std::shared_ptr<SharedFakeLog> log_;
  ProducerState producers_;
};

// What survives a broker.
struct SharedFakeDisk {
  struct Queue {
    Uuid topic;  // zero: made by another broker
    std::shared_ptr<SharedFakePartition> partition;
  };
  storage::Traits traits{BatchFormat::kafka, true, false, false};
  std::shared_ptr<SharedFakeLog> log = std::make_shared<SharedFakeLog>();
  std::map<TopicPartition, Queue> queues;
  std::optional<Errc> create_error, tend_error;
  Noted<TopicPartition> retained;
  std::atomic<int> checkpoints = 0, closed = 0, tended = 0, tending = 0, tending_max = 0;
  std::function<void()> on_tend;  // on the pool's thread

  SharedFakePartition& add(const TopicPartition& id, const Uuid& topic = {});
};

class SharedFakeStore final : public storage::Store {
 public:
  explicit SharedFakeStore(SharedFakeDisk& disk) : disk_(disk) {}
  const storage::Traits& traits() const override { return disk_.traits; }
  Result<std::shared_ptr<storage::PartitionLog>> create(const TopicPartition& id,
                                                        const Uuid& topic,
                                                        const storage::LogConfig& c) override;
  std::shared_ptr<storage::PartitionLog> find(const TopicPartition& id) const override;
  std::vector<TopicPartition> partitions() const override;
  std::optional<Uuid> topic_id(const TopicPartition& id) const override;
  Result<void> remove(const TopicPartition& id) override;
  Result<storage::Retained> retain(const TopicPartition& id, Offset, Timestamp) override;
  Result<void> checkpoint() override;
  Result<void> tend(Timestamp now) override;
  Result<void> close() override;

 private:
  SharedFakeDisk& disk_;
  mutable std::mutex mutex_;
};

}  // namespace polylog::broker
