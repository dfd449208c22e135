#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/assert.h"
#include "base/clock.h"
#include "format/rocketmq/message.h"
#include "format/rocketmq/property_crc.h"
#include "fs/posix_file_system.h"
#include "storage/rocketmq/store.h"

// What many queues cost the shared log, in process and on a real disk: durable appends of 16
// messages of 1 KiB to N queues in turn, at most 2 MiB of them unacknowledged, with the store
// tended every second as the broker does. Every queue has got a record before the clock starts.
// Prints where the time of the syncing and of the tending thread goes.
//   shared_log_bench [seconds] [queues...]
// Data goes to $POLYLOG_BENCH_DIR (default: a new directory under /var/tmp) and is removed. The
// store keeps $POLYLOG_BENCH_OPEN_FILES descriptors (default: 1666, a broker's of 20,000).
namespace {

using namespace polylog;
using storage::rocketmq::RocketmqStore;

constexpr std::int32_t messages_per_batch = 16;
constexpr std::int64_t unacknowledged_max = 128;  // batches
constexpr std::int64_t batches_per_turn = 16;

double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

Slice make_batch(std::int32_t queue_id) {
  const std::vector<std::uint8_t> body(1024, 'b');
  std::string properties;
  POLYLOG_ASSERT(format::rocketmq::append_property_crc_room(properties));
  format::rocketmq::Message message;
  message.queue_id = queue_id;
  message.topic = "bench";
  message.body = body;
  message.properties = properties;
  std::vector<std::uint8_t> bytes;
  for (int i = 0; i < messages_per_batch; ++i) {
    POLYLOG_ASSERT(format::rocketmq::encode(message, bytes).has_value());
  }
  return Slice::of(std::move(bytes));
}

class Sample {
 public:
  Sample(const std::string& root, std::int32_t queues) : root_(root) {
    storage::StoreConfig config;
    config.directory = root_ + "/rocketmq";
    config.sidecar_directory = root_ + "/sidecar";
    const char* const asked = std::getenv("POLYLOG_BENCH_OPEN_FILES");
    config.open_files_max = asked == nullptr ? 1666 : static_cast<std::size_t>(std::atoll(asked));
    config.shared.index_enabled = false;
    auto opened = RocketmqStore::open(disk_, clock_, config);
    POLYLOG_ASSERT(opened.has_value());
    store_.reset(static_cast<RocketmqStore*>(opened->store.release()));
    for (std::int32_t i = 0; i < queues; ++i) {
      logs_.push_back(*store_->create({"bench", i}, *Uuid::parse("AAAAAAAAAAAAAAAAAAAABA"), {}));
      batches_.push_back(make_batch(i));
    }
    log_ = logs_.front()->log();
    POLYLOG_ASSERT(log_->begin_epoch(LeaderEpoch(0)).has_value());
    for (std::size_t i = 0; i < logs_.size(); ++i) {
      append(i);
      POLYLOG_ASSERT(log_->write_staged().has_value());
    }
    POLYLOG_ASSERT(store_->shared_log()->flush_entries().has_value());
    ::sync();
  }
  ~Sample() {
    log_.reset();
    logs_.clear();
    store_.reset();
    POLYLOG_ASSERT(fs::remove_tree(disk_, root_).has_value());
  }

  // Messages a second that were acknowledged.
  double run(double seconds) {
    const auto began = std::chrono::steady_clock::now();
    std::thread syncing([&] {
      while (!done_) sync();
    });
    std::thread tending([&] {
      while (!done_) {
        std::this_thread::sleep_for(std::chrono::seconds(1));
        tend();
      }
    });
    std::size_t next = 0;
    std::int64_t written = 0;
    while (seconds_since(began) < seconds) {
      const std::int64_t room = unacknowledged_max - (written - acknowledged_);
      if (room < batches_per_turn) {
        std::this_thread::yield();
        continue;
      }
      for (std::int64_t i = 0; i < batches_per_turn; ++i, ++next) append(next % logs_.size());
      POLYLOG_ASSERT(log_->write_staged().has_value());
      written += batches_per_turn;
      written_ = written;
    }
    const double rate = static_cast<double>(acknowledged_) * messages_per_batch / seconds;
    done_ = true;
    syncing.join();
    tending.join();
    return rate;
  }

  double dirty_s() const { return dirty_s_; }
  double dirty_max_s() const { return dirty_max_s_; }
  double syncing_s() const { return syncing_s_; }
  double flushing_s() const { return flushing_s_; }
  double checkpoint_s() const { return checkpoint_s_; }
  int checkpoints() const { return checkpoints_; }

 private:
  void append(std::size_t queue) {
    Batch batch;
    batch.format = BatchFormat::rocketmq;
    batch.info.records = messages_per_batch;
    batch.bytes = batches_[queue];
    POLYLOG_ASSERT(logs_[queue]->append(std::move(batch)).has_value());
  }
  void tend() {
    const auto at = std::chrono::steady_clock::now();
    POLYLOG_ASSERT(store_->shared_log()->flush_entries().has_value());
    POLYLOG_ASSERT(store_->shared_log()->prepare_next().has_value());
    flushing_s_ += seconds_since(at);
    if (!store_->shared_log()->wants_checkpoint()) return;
    const auto began = std::chrono::steady_clock::now();
    POLYLOG_ASSERT(store_->checkpoint().has_value());
    checkpoint_s_ += seconds_since(began);
    ++checkpoints_;
  }
  void sync() {
    const std::int64_t covered = written_;
    const auto asked = std::chrono::steady_clock::now();
    const auto dirty = log_->dirty();
    const double waited = seconds_since(asked);
    dirty_s_ += waited;
    dirty_max_s_ = std::max(dirty_max_s_, waited);
    POLYLOG_ASSERT(dirty.has_value());
    if (!*dirty) {
      acknowledged_ = covered;
      return std::this_thread::yield();
    }
    const auto began = std::chrono::steady_clock::now();
    for (const fs::FilePtr& file : (*dirty)->files) POLYLOG_ASSERT(file->sync().has_value());
    for (const std::string& path : (*dirty)->directories) {
      POLYLOG_ASSERT(disk_.sync_directory(path).has_value());
    }
    syncing_s_ += seconds_since(began);
    log_->settled(**dirty, true);
    log_->write_noted();
    acknowledged_ = covered;
  }

  const std::string root_;
  fs::PosixFileSystem disk_;
  SystemClock clock_;
  std::unique_ptr<RocketmqStore> store_;
  std::vector<std::shared_ptr<storage::PartitionLog>> logs_;
  std::vector<Slice> batches_;
  std::shared_ptr<storage::Log> log_;
  std::atomic<std::int64_t> written_ = 0, acknowledged_ = 0;  // batches
  std::atomic<bool> done_ = false;
  double dirty_s_ = 0, dirty_max_s_ = 0, syncing_s_ = 0, flushing_s_ = 0, checkpoint_s_ = 0;
  int checkpoints_ = 0;
};

std::string make_root() {
  const char* const asked = std::getenv("POLYLOG_BENCH_DIR");
  if (asked != nullptr) return std::string(asked) + "/shared-log";
  std::string path = "/var/tmp/polylog-bench-XXXXXX";
  POLYLOG_ASSERT(mkdtemp(path.data()) != nullptr);
  return path;
}

}  // namespace

int main(int count, char** arguments) {
  const double seconds = count > 1 ? std::atof(arguments[1]) : 10;
  std::vector<std::int32_t> queues;
  for (int i = 2; i < count; ++i) queues.push_back(std::atoi(arguments[i]));
  if (queues.empty()) queues = {1, 100, 1000, 10'000};
  std::printf(
      "queues  k msg/s  x first  sync s  dirty s  longest  flush s  checkpoints  their s\n");
  double first = 0;
  for (const std::int32_t n : queues) {
    Sample sample(make_root(), n);
    const double rate = sample.run(seconds);
    if (first == 0) first = rate;
    std::printf("%6d  %7.1f  %7.2f  %6.2f  %7.2f  %7.2f  %7.2f  %11d  %7.2f\n", n, rate / 1000,
                rate / first, sample.syncing_s(), sample.dirty_s(), sample.dirty_max_s(),
                sample.flushing_s(), sample.checkpoints(), sample.checkpoint_s());
    std::fflush(stdout);
  }
}
