#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "broker/durability.h"
#include "format/kafka/records.h"
#include "fs/posix_file_system.h"
#include "journal/journal.h"
#include "storage/kafka/store.h"

// The Kafka engine in process, on a real disk: append, fetch, lookup, recovery, sync rounds.
//   engine_bench --benchmark_filter=Round
// Data goes to $POLYLOG_BENCH_DIR (default: a new directory under /var/tmp) and is removed.
namespace {

using namespace polylog;
using broker::run_sync_round;

class EngineBench {
 public:
  explicit EngineBench(bool journalled = false) {
    const char* const asked = std::getenv("POLYLOG_BENCH_DIR");
    std::string path = asked != nullptr ? asked : "/var/tmp/polylog-bench-XXXXXX";
    if (asked == nullptr) POLYLOG_ASSERT(mkdtemp(path.data()) != nullptr);
    root_ = path;
    config.directory = root_ + "/kafka";
    config.sidecar_directory = root_ + "/sidecar";
    config.cluster_id = *Uuid::parse("AAAAAAAAAAAAAAAAAAAAAg");
    if (journalled) {
      journal::Options options;
      options.root = root_;
      options.directory = root_ + "/journal";
      auto opened = journal::Journal::open(disk, options);
      POLYLOG_ASSERT(opened.has_value());
      journal = std::move(*opened);
    }
    volume = *files().open_volume(root_);
    open();
  }
  ~EngineBench() {
    store.reset();
    volume.reset();
    journal.reset();
    POLYLOG_ASSERT(fs::remove_tree(disk, root_));
  }

  void open() {
    store.reset();
    auto opened = storage::kafka::KafkaStore::open(files(), clock, config);
    POLYLOG_ASSERT(opened.has_value());
    store = std::move(opened->store);
    recovery = std::move(opened->recovery);
  }
  std::shared_ptr<storage::PartitionLog> partition(std::int32_t index) {
    const TopicPartition id{"bench", index};
    if (auto found = store->find(id)) return found;
    return *store->create(id, *Uuid::parse("AAAAAAAAAAAAAAAAAAAABA"), {});
  }

  fs::FileSystem& files() { return journal != nullptr ? journal->file_system() : disk; }

  fs::PosixFileSystem disk;
  std::unique_ptr<journal::Journal> journal;
  SystemClock clock;
  storage::StoreConfig config;
  std::unique_ptr<fs::Volume> volume;
  std::unique_ptr<storage::Store> store;
  storage::Recovery recovery;

 private:
  std::string root_;
};

Batch make_batch(std::size_t bytes) {
  format::kafka::BatchBuilder builder({});
  const std::string value(1024, 'v');
  for (std::size_t made = 0; made < bytes; made += value.size()) {
    Record record;
    record.timestamp = Timestamp(1'700'000'000'000);
    record.value = as_bytes(value).first(std::min(bytes - made, value.size()));
    POLYLOG_ASSERT(builder.add(record));
  }
  Batch batch;
  batch.bytes = Slice::of(*builder.finish());
  batch.info = format::kafka::to_info(*format::kafka::parse_header(batch.bytes.view()));
  return batch;
}

void Append(benchmark::State& state) {
  EngineBench bench;
  const Batch batch = make_batch(static_cast<std::size_t>(state.range(0)));
  const auto log = bench.partition(0);
  for (auto _ : state) {
    POLYLOG_ASSERT(log->append(batch));
    POLYLOG_ASSERT(log->log()->write_staged());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(batch.bytes.size()));
}
BENCHMARK(Append)->Arg(1024)->Arg(16 << 10)->Arg(128 << 10)->Arg(1000 << 10)->Iterations(2000);

void FetchWarm(benchmark::State& state) {
  EngineBench bench;
  const Batch batch = make_batch(16 << 10);
  const auto log = bench.partition(0);
  for (int i = 0; i < 4096; ++i) POLYLOG_ASSERT(log->append(batch));
  POLYLOG_ASSERT(log->log()->write_staged());
  storage::ReadLimits limits;
  limits.bytes_max = static_cast<std::size_t>(state.range(0));
  limits.end = log->offsets().end;
  limits.first_whole = true;
  Offset at(0);
  std::int64_t bytes = 0;
  for (auto _ : state) {
    const auto read = log->read(at, limits);
    POLYLOG_ASSERT(read.has_value());
    bytes += static_cast<std::int64_t>(read->front().bytes.size());
    at = read->front().info.last + 1;
    if (at == limits.end) at = Offset(0);
  }
  state.SetBytesProcessed(bytes);
}
BENCHMARK(FetchWarm)->Arg(64 << 10)->Arg(1 << 20);

void LookupByOffset(benchmark::State& state) {
  EngineBench bench;
  const Batch batch = make_batch(4 << 10);
  const auto log = bench.partition(0);
  for (int i = 0; i < 50'000; ++i) {
    POLYLOG_ASSERT(log->append(batch));
    if (i % 64 == 0) POLYLOG_ASSERT(log->log()->write_staged());
  }
  POLYLOG_ASSERT(log->log()->write_staged());
  run_sync_round(bench.disk, bench.volume.get(), {log->log()});
  POLYLOG_ASSERT(bench.store->checkpoint());
  storage::ReadLimits limits;
  limits.bytes_max = 1;
  limits.first_whole = true;
  limits.end = log->offsets().end;
  std::int64_t at = 7;
  for (auto _ : state) {
    at = (at * 7919 + 13) % limits.end.value();
    benchmark::DoNotOptimize(log->read(Offset(at), limits));
  }
}
BENCHMARK(LookupByOffset);

// One round that makes N partitions durable, one batch each, without and with the journal. The two
// take turns by blocks of rounds, on stores of their own. What the journal left to be synced later
// is synced between the blocks: a sync of the volume would otherwise do the other side's work.
class DurableRounds {
 public:
  DurableRounds(std::int32_t partitions, bool journalled, std::size_t batch_bytes)
      : bench_(journalled), batch_(make_batch(batch_bytes)), partitions_(partitions) {
    for (std::int32_t i = 0; i < partitions; ++i) logs_.push_back(bench_.partition(i)->log());
    // Twice: the first round has new names in it.
    run();
    run();
  }
  double run() {  // ms
    for (std::int32_t i = 0; i < partitions_; ++i) {
      POLYLOG_ASSERT(bench_.partition(i)->append(batch_));
      POLYLOG_ASSERT(bench_.partition(i)->log()->write_staged());
    }
    const auto start = std::chrono::steady_clock::now();
    const auto outcomes =
        broker::run_sync_round(bench_.files(), bench_.volume.get(), logs_, bench_.journal.get());
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    for (const auto& outcome : outcomes) POLYLOG_ASSERT(outcome.result);
    return took.count();
  }
  void settle() { POLYLOG_ASSERT(bench_.volume->sync()); }

 private:
  EngineBench bench_;
  const Batch batch_;
  const std::int32_t partitions_;
  std::vector<std::shared_ptr<storage::Log>> logs_;
};

double at_share(std::vector<double>& values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

constexpr int rounds_per_block = 40;

void DurableRound(benchmark::State& state) {
  const auto partitions = static_cast<std::int32_t>(state.range(0));
  const auto batch_bytes = static_cast<std::size_t>(state.range(1));
  DurableRounds synced(partitions, false, batch_bytes);
  DurableRounds journalled(partitions, true, batch_bytes);
  std::vector<double> without, with;
  for (auto _ : state) {
    for (int round = 0; round < rounds_per_block; ++round) without.push_back(synced.run());
    synced.settle();
    double total = 0;
    for (int round = 0; round < rounds_per_block; ++round) {
      total += with.emplace_back(journalled.run());
    }
    journalled.settle();
    state.SetIterationTime(total / rounds_per_block / 1000);
  }
  state.counters["synced_p50"] = at_share(without, 0.5);
  state.counters["synced_p90"] = at_share(without, 0.9);
  state.counters["journal_p50"] = at_share(with, 0.5);
  state.counters["journal_p90"] = at_share(with, 0.9);
  state.counters["journal_max"] = at_share(with, 1);
}
BENCHMARK(DurableRound)
    ->ArgsProduct({{1, 10, 100, 1000}, {4 << 10}})
    ->Args({1000, 512})
    ->Iterations(3)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

// Opening after a kill: N partitions of 1 MiB, everything noted but the last batch of each.
void Recover(benchmark::State& state) {
  EngineBench bench;
  const Batch batch = make_batch(64 << 10);
  std::vector<std::shared_ptr<storage::Log>> logs;
  for (std::int32_t i = 0; i < state.range(0); ++i) {
    const auto log = bench.partition(i);
    for (int n = 0; n < 16; ++n) POLYLOG_ASSERT(log->append(batch));
    POLYLOG_ASSERT(log->log()->write_staged());
    logs.push_back(log->log());
  }
  broker::run_sync_round(bench.disk, bench.volume.get(), logs);
  POLYLOG_ASSERT(bench.store->checkpoint());
  for (auto _ : state) {
    state.PauseTiming();
    for (std::int32_t i = 0; i < state.range(0); ++i) {
      POLYLOG_ASSERT(bench.partition(i)->append(batch));
      POLYLOG_ASSERT(bench.partition(i)->log()->write_staged());
    }
    state.ResumeTiming();
    bench.open();
  }
  state.counters["bytes_read"] = static_cast<double>(bench.recovery.bytes_scanned);
}
BENCHMARK(Recover)->Arg(1)->Arg(100)->Arg(1000)->Iterations(3)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
