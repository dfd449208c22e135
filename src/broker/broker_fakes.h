#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "broker/broker.h"
#include "broker/shared_fakes.h"

// A store, a catalogue and a file system in memory for the broker's tests. They forget nothing by
// themselves: what a crash leaves is decided by Power, which refuses every change from a chosen
// one on; a second broker is then opened on the same FakeDisk.
namespace polylog::broker {

// Lets through so many changes to catalogue and store, then none.
struct Power {
  std::atomic<int> changes_left = INT32_MAX;
  Result<void> change() {
    if (changes_left <= 0) return fail(Errc::io, "no power");
    --changes_left;
    return {};
  }
};

struct FakeFile final : fs::File {
  std::optional<Errc> sync_error;
  std::function<void()> on_sync;
  int syncs = 0;

  Result<std::size_t> read(std::uint64_t, MutableBytes, bool) const override { return 0; }
  Result<void> write(std::uint64_t, std::span<const ByteView>) override { return {}; }
  Result<void> sync() override;
  void start_writeback(std::uint64_t, std::uint64_t) override {}
  Result<void> truncate(std::uint64_t) override { return {}; }
  Result<fs::FileInfo> info() const override { return fs::FileInfo{}; }
};

struct FakeVolume final : fs::Volume {
  explicit FakeVolume(int& syncs_in, std::optional<Errc>& error_in)
      : syncs(syncs_in), error(error_in) {}
  int& syncs;
  std::optional<Errc>& error;
  Result<void> sync() override {
    ++syncs;
    if (error) return fail(*error, "syncfs");
    return {};
  }
};

// Only directories can be synced here.
struct FakeFileSystem final : fs::FileSystem {
  std::map<std::string, int> directory_syncs;
  std::map<std::string, Errc> directory_errors;
  int volume_syncs = 0;
  std::optional<Errc> volume_error;

  std::unique_ptr<fs::Volume> volume() {
    return std::make_unique<FakeVolume>(volume_syncs, volume_error);
  }

  Result<fs::FilePtr> open(const std::string&, fs::OpenMode) override { return no(); }
  Result<fs::FileInfo> info(const std::string&) const override { return no(); }
  Result<std::vector<std::string>> list(const std::string&) const override { return no(); }
  Result<void> create_directory(const std::string&) override { return no(); }
  Result<void> rename(const std::string&, const std::string&) override { return no(); }
  Result<void> remove(const std::string&) override { return no(); }
  Result<void> remove_directory(const std::string&) override { return no(); }
  Result<void> sync_directory(const std::string& path) override;
  Result<void> set_modified(const std::string&, Timestamp) override { return no(); }
  Result<std::unique_ptr<fs::Lock>> lock(const std::string&) override { return no(); }
  Result<std::unique_ptr<fs::Volume>> open_volume(const std::string&) override { return volume(); }
  Result<std::uint64_t> free_bytes(const std::string&) const override { return no(); }
  Result<std::uint64_t> total_bytes(const std::string&) const override { return no(); }

 private:
  static tl::unexpected<Error> no() { return fail(Errc::unsupported, "fake"); }
};

// A log of its own per partition; positions are offsets.
class FakeLog : public storage::Log, public std::enable_shared_from_this<FakeLog> {
 public:
  // State, open to the tests.
  LogPosition written{0}, durable{0}, start{0};
  LeaderEpoch latest_epoch = no_epoch;
  EpochList epochs;  // of its records
  bool was_unclean = false;
  bool failed = false;
  bool start_dirty = false;
  std::vector<Batch> batches, staged;
  std::vector<ProducerState::Undo> undos;
  ProducerState producers;
  std::shared_ptr<FakeFile> file = std::make_shared<FakeFile>();
  std::vector<std::string> directories;
  int writes = 0;
  std::vector<std::pair<LeaderEpoch, LogPosition>> epochs_begun;
  // What goes wrong next.
  std::optional<Errc> write_error;  // of the next write_staged(), once
  std::optional<Errc> dirty_error;  // of every dirty()
  std::optional<Errc> append_error;
  std::optional<Errc> append_drops;  // as append_error, once, and all that is staged with it
  mutable std::mutex mutex;

  LogPosition end() const override;
  LogPosition durable_end() const override;
  LeaderEpoch epoch() const override { return latest_epoch; }
  bool unclean() const override { return was_unclean; }
  Result<void> begin_epoch(LeaderEpoch epoch) override;
  void drop_staged();  // under the lock
  Result<void> write_staged() override;
  Result<std::optional<storage::DirtyLog>> dirty() override;
  void settled(const storage::DirtyLog& done, bool synced) override;
  Result<void> truncate(LogPosition) override { return {}; }
  Result<storage::LogChunk> read_chunk(LogPosition, std::size_t) const override {
    return storage::LogChunk{};
  }
  Result<LogPosition> append_chunk(const storage::LogChunk&) override { return written; }
};

class FakePartition final : public storage::PartitionLog {
 public:
  std::shared_ptr<FakeLog> fake = std::make_shared<FakeLog>();
  storage::LogConfig config;
  std::optional<Offset> unstable;
  Timestamp expired_before = no_timestamp;

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
  Offset offset_at(LogPosition position) const override { return Offset(position.value()); }
  Offset first_unstable() const override { return unstable.value_or(offsets().end); }
  EpochEnd end_of_epoch(LeaderEpoch epoch) const override {
    return fake->epochs.end_of(epoch, fake->end());
  }
  LeaderEpoch first_epoch() const override { return fake->latest_epoch; }
  ProducerState::Check check_producer(const BatchInfo& batch) const override {
    return fake->producers.check(batch);
  }
  void expire_producers(Timestamp before) override { expired_before = before; }
  Producers producers() const override { return fake->producers.entries(); }
  std::uint64_t size_bytes() const override { return 0; }
  void configure(const storage::LogConfig& to) override { config = to; }
  std::shared_ptr<storage::Log> log() const override { return fake; }
};

// What survives a broker: directories with their topic ids, and catalogue rows.
struct FakeDisk {
  struct Directory {
    Uuid topic;
    std::shared_ptr<FakePartition> partition;
  };
  Power power;
  std::map<TopicPartition, Directory> directories;
  std::unique_ptr<SharedFakeDisk> shared;  // of the rocketmq layout; null: not in this build
  std::map<std::string, meta::TopicRecord> rows;
  std::int64_t next_producer_id = 0;
  // Failures that are no crash.
  std::optional<Errc> create_error;
  meta::ScopedConfigs scoped;
  meta::Quotas quotas;
  std::optional<Errc> remove_error;
  bool remove_forgets = false;  // a failed removal has taken the partition out of the store
  std::optional<Errc> catalog_error;
  std::int32_t create_error_from = 0;  // partitions below are made
  int reservations = 0, checkpoints = 0, closed = 0;
  std::atomic<int> tended = 0;
  std::atomic<bool> points_due = false;
  std::vector<std::shared_ptr<storage::Log>> behind;  // what one advance_points() answers
  std::atomic<int> advanced = 0;
  Noted<std::pair<TopicPartition, Offset>> retained;
  std::function<void()> on_create;  // on the pool thread

  FakePartition& add(const TopicPartition& id, const Uuid& topic);
};

class FakeStore final : public storage::Store {
 public:
  explicit FakeStore(FakeDisk& disk) : disk_(disk) {}
  const storage::Traits& traits() const override;
  std::string directory() const override { return "/data/kafka"; }
  Result<std::shared_ptr<storage::PartitionLog>> create(const TopicPartition& id,
                                                        const Uuid& topic,
                                                        const storage::LogConfig& c) override;
  std::shared_ptr<storage::PartitionLog> find(const TopicPartition& id) const override;
  std::vector<TopicPartition> partitions() const override;
  std::optional<Uuid> topic_id(const TopicPartition& id) const override;
  Result<void> remove(const TopicPartition& id) override;
  Result<storage::Retained> retain(const TopicPartition& id, Offset visible, Timestamp) override;
  Result<void> checkpoint() override;
  bool points_due() const override { return disk_.points_due; }
  std::vector<std::shared_ptr<storage::Log>> advance_points() override;
  Result<void> tend(Timestamp) override {
    ++disk_.tended;
    return {};
  }
  Result<void> close() override;

 private:
  FakeDisk& disk_;
  mutable std::mutex mutex_;
};

class FakeCatalog final : public meta::Catalog {
 public:
  explicit FakeCatalog(FakeDisk& disk) : disk_(disk) {}
  Uuid cluster_id() const override;
  Result<std::vector<meta::TopicRecord>> topics() const override;
  Result<void> create_topic(const meta::TopicRecord& topic) override;
  Result<void> delete_topic(const std::string& name) override;
  Result<void> set_configs(const std::string& name,
                           const std::map<std::string, std::string>& configs) override;
  Result<void> set_partitions(const std::string& name, std::int32_t partitions) override;
  Result<meta::ScopedConfigs> scoped_configs() const override { return disk_.scoped; }
  Result<void> set_scoped_configs(const meta::ConfigScope& scope,
                                  const std::map<std::string, std::string>& configs) override;
  Result<meta::Quotas> quotas() const override { return disk_.quotas; }
  Result<void> change_quotas(const std::vector<meta::QuotaChange>& changes) override;
  Result<meta::ProducerIdBlock> reserve_producer_ids(std::int64_t count) override;

 private:
  Result<void> change();
  FakeDisk& disk_;
  mutable std::mutex mutex_;
};

// A coroutine on its way: result() is empty until it has ended.
template <typename T>
class Pending {
 public:
  Pending(Reactor& reactor, Async<T> task) : reactor_(&reactor) {
    boost::asio::co_spawn(reactor.context(), std::move(task),
                          [result = result_](std::exception_ptr error, T value) {
                            if (error) std::rethrow_exception(error);
                            result->emplace(std::move(value));
                          });
  }
  bool done() const { return result_->has_value(); }
  // Runs the reactor until it has ended.
  T get() {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done() && std::chrono::steady_clock::now() < give_up) {
      reactor_->context().run_one_for(std::chrono::milliseconds(100));
    }
    EXPECT_TRUE(done()) << "the coroutine never ended";
    return done() ? **result_ : T();
  }

 private:
  Reactor* reactor_;
  std::shared_ptr<std::optional<T>> result_ = std::make_shared<std::optional<T>>();
};

// A broker on a FakeDisk whose syncs happen when the test says so.
class World {
 public:
  explicit World(FakeDisk& disk, Settings settings_in = {});
  ~World();

  Broker& broker() { return *broker_; }
  SimulatedDurability& durability() { return *durability_; }
  template <typename T>
  Pending<T> start(Async<T> task) {
    return Pending<T>(reactor, std::move(task));
  }
  template <typename T>
  T wait(Async<T> task) {
    return start(std::move(task)).get();
  }
  void turn() { reactor.context().poll(); }  // all that is ready
  template <typename Condition>
  void run_until(Condition condition) {  // which may do something
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up) << "it never came to that";
      reactor.context().run_one_for(std::chrono::milliseconds(10));
    }
  }
  // One sync round and what follows from it.
  void sync_round() {
    turn();
    durability_->run_round();
    turn();
  }
  std::shared_ptr<Partition> make(const std::string& topic,
                                  std::map<std::string, std::string> configs = {},
                                  std::int32_t partitions = 1);
  FakeLog& log_of(const TopicPartition& id) { return *disk.directories.at(id).partition->fake; }

  FakeDisk& disk;
  Settings settings;
  FakeFileSystem fs;
  ManualClock clock{Timestamp(1'700'000'000'000)};
  Reactor reactor;
  Pool pool{reactor, 2};
  std::vector<std::string> notes;    // of load()
  std::vector<std::string> reports;  // of the background

 private:
  SimulatedDurability* durability_ = nullptr;
  std::unique_ptr<Broker> broker_;
};

// A batch of `records` records, from an idempotent producer when `producer` is not negative.
Batch batch_of(std::int32_t records, std::int64_t producer = -1, std::int32_t sequence = 0);

inline constexpr std::int64_t forever = INT64_MAX;

}  // namespace polylog::broker
