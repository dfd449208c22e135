#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "broker/durability.h"
#include "broker/transcoder.h"
#include "format/kafka/records.h"
#include "fs/posix_file_system.h"
#include "storage/kafka/store.h"
#include "storage/rocketmq/store.h"
#include "storage/rocksdb/index.h"
#include "storage/segment/store.h"

// The three layouts side by side, in process: Kafka's record batches go in and come out, with the
// conversion that the broker does; the kafka layout needs none.
//   layouts_bench [ROUNDS [MIB [FOLDER]]]     5, 128 (of values a store), a new one in /var/tmp
// One partition, batches of 64 KiB without keys, one thread, one write per batch. The layouts take
// turns within a round; the table has the medians. What is read is compared with what was written:
// exit status 1 if anything differs.
namespace {

using namespace polylog;
using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t batch_value_bytes = 64 << 10;
constexpr std::int64_t batch_interval_ms = 10;  // between the times of two batches
constexpr Timestamp first_time{1'700'000'000'000};
constexpr int offset_lookups = 20'000;
constexpr int time_lookups = 2000;  // each is up to a thousand reads in the rocketmq layout
constexpr int tail_reads = 1000;
// Less than what makes the kafka and segment layouts take a recovery point by themselves, 16 MiB.
constexpr std::size_t tail_mib = 8;
constexpr int batches_per_tend = 1024;  // 64 MiB: the broker tends about once a second
const TopicPartition partition_id{"bench", 0};

constexpr std::array<std::string_view, 3> layout_names = {"kafka", "rocketmq", "segment"};

Result<storage::Opened> open_layout(std::size_t layout, fs::FileSystem& fs, const Clock& clock,
                                    const storage::StoreConfig& config) {
  if (layout == 0) return storage::kafka::KafkaStore::open(fs, clock, config);
  if (layout == 1) return storage::rocketmq::RocketmqStore::open(fs, clock, config);
  return storage::segment::SegmentStore::open(
      fs, clock, config,
      [&fs](const std::string& directory) { return storage::open_rocksdb_index(fs, directory); });
}

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

void must(const Result<void>& done) {
  if (done) return;
  std::fprintf(stderr, "%s\n", done.error().to_string().c_str());
  std::exit(2);
}

template <typename T>
T must(Result<T> made) {
  if (!made) must(Result<void>(fail(made.error())));
  return *std::move(made);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Batches as a producer sends them, each with one time for its records.
class Load {
 public:
  Load(std::size_t record_bytes, std::size_t mib)
      : record_bytes_(record_bytes),
        per_batch_(static_cast<std::int64_t>(batch_value_bytes / record_bytes)) {
    std::mt19937_64 random(11);
    std::string value(record_bytes, '\0');
    const std::size_t count = (mib << 20) / batch_value_bytes;
    for (std::size_t n = 0; n < count; ++n) {
      format::kafka::BatchBuilder builder({});
      for (std::int64_t i = 0; i < per_batch_; ++i) {
        for (char& c : value) c = static_cast<char>(random() >> 56);
        Record record;
        record.timestamp = time_of(n);
        record.value = as_bytes(value);
        must(builder.add(record));
      }
      Batch batch;
      batch.bytes = Slice::of(must(builder.finish()));
      batch.info = format::kafka::to_info(must(format::kafka::parse_header(batch.bytes.view())));
      batches_.push_back(std::move(batch));
    }
  }

  static Timestamp time_of(std::size_t batch) {
    return first_time + static_cast<std::int64_t>(batch) * batch_interval_ms;
  }
  std::size_t record_bytes() const { return record_bytes_; }
  std::int64_t records_per_batch() const { return per_batch_; }
  const std::vector<Batch>& batches() const { return batches_; }
  std::int64_t records() const { return per_batch_ * static_cast<std::int64_t>(batches_.size()); }

 private:
  const std::size_t record_bytes_;
  const std::int64_t per_batch_;
  std::vector<Batch> batches_;
};

// One store in one layout, with one partition.
class Bench {
 public:
  Bench(std::size_t layout, const std::string& folder) : layout_(layout), clock_(first_time) {
    config_.directory = folder + "/" + std::string(layout_names[layout]);
    config_.sidecar_directory = folder + "/sidecar";
    config_.cluster_id = *Uuid::parse("AAAAAAAAAAAAAAAAAAAAAg");
    volume_ = must(disk_.open_volume(folder));
    const auto start = SteadyClock::now();
    auto opened = must(open_layout(layout_, disk_, clock_, config_));
    opened_in_s = seconds_since(start);
    store_ = std::move(opened.store);
    recovery = std::move(opened.recovery);
    log_ = store_->find(partition_id);
    if (log_ == nullptr) {
      log_ = must(store_->create(partition_id, *Uuid::parse("AAAAAAAAAAAAAAAAAAAABA"), {}));
    }
  }

  void append(const Batch& batch, Timestamp now) {
    clock_.jump_wall_to(now);
    must(log_->append(layout_ == 0 ? batch : must(transcoder().to_native(batch, {}))));
    must(log_->log()->write_staged());
  }
  void tend() { must(store_->tend(clock_.now())); }
  void sync() {
    for (const auto& outcome : broker::run_sync_round(disk_, volume_.get(), {log_->log()})) {
      must(outcome.result);
    }
  }
  void checkpoint() { must(store_->checkpoint()); }
  void close() {
    log_.reset();
    must(store_->close());
    store_.reset();
  }

  Offset end() const { return log_->offsets().end; }
  // Kafka batches from `from` on.
  std::vector<Batch> read(Offset from, std::size_t bytes_max) const {
    storage::ReadLimits limits;
    limits.bytes_max = bytes_max;
    limits.first_whole = true;
    limits.end = end();
    auto batches = must(log_->read(from, limits));
    return layout_ == 0 ? batches : must(transcoder().from_native(batches));
  }
  std::optional<storage::TimedOffset> find(Timestamp at) const {
    return must(log_->offset_for_time(at));
  }

  storage::Recovery recovery;
  double opened_in_s = 0;

 private:
  // As the broker makes it for each batch.
  broker::Transcoder transcoder() const {
    format::SegmentTarget segment;
    segment.append_time = clock_.now();
    format::RocketmqTarget rocketmq;
    rocketmq.topic = partition_id.topic;
    rocketmq.queue_id = partition_id.partition;
    return {store_->traits().native, std::move(rocketmq), segment, false};
  }

  const std::size_t layout_;
  fs::PosixFileSystem disk_;
  ManualClock clock_;
  storage::StoreConfig config_;
  std::unique_ptr<fs::Volume> volume_;
  std::unique_ptr<storage::Store> store_;
  std::shared_ptr<storage::PartitionLog> log_;
};

enum Metric {
  append_rate,
  tail_rate,
  catch_up_rate,
  offset_p50,
  offset_p99,
  time_p50,
  time_p99,
  disk_bytes,
  recovery_time,
  recovery_bytes,
  metrics_end
};
struct MetricText {
  const char* name;
  int decimals;
};
constexpr std::array<MetricText, metrics_end> metric_texts = {{
    {"append, k records/s", 0},
    {"read at the tail, k records/s", 0},
    {"read from the start, k records/s", 0},
    {"look-up by offset, p50 us", 1},
    {"look-up by offset, p99 us", 1},
    {"look-up by time, p50 us", 1},
    {"look-up by time, p99 us", 1},
    {"bytes on disk a record", 1},
    {"start after a kill, ms", 1},
    {"start after a kill, MiB read", 1},
}};
using Figures = std::array<std::vector<double>, metrics_end>;

std::size_t wrong = 0;

void check(bool right, const char* what) {
  if (right) return;
  if (++wrong < 10) std::fprintf(stderr, "wrong: %s\n", what);
}

std::int64_t records_of(const std::vector<Batch>& batches) {
  std::int64_t records = 0;
  for (const Batch& batch : batches) {
    records += batch.info.last - batch.info.first + 1;
  }
  return records;
}

// Everything but the last batches, which the tail read appends.
void measure_append(Bench& bench, const Load& load, Figures& figures) {
  const auto start = SteadyClock::now();
  const std::size_t count = load.batches().size() - tail_reads;
  for (std::size_t n = 0; n < count; ++n) {
    bench.append(load.batches()[n], Load::time_of(n));
    if ((n + 1) % batches_per_tend == 0) bench.tend();
  }
  figures[append_rate].push_back(static_cast<double>(count) *
                                 static_cast<double>(load.records_per_batch()) / 1e3 /
                                 seconds_since(start));
}

void measure_tail(Bench& bench, const Load& load, Figures& figures) {
  double taken = 0;
  std::int64_t records = 0;
  for (std::size_t n = load.batches().size() - tail_reads; n < load.batches().size(); ++n) {
    const Offset at = bench.end();
    bench.append(load.batches()[n], Load::time_of(n));
    const auto start = SteadyClock::now();
    const auto read = bench.read(at, 1 << 20);
    taken += seconds_since(start);
    check(!read.empty() && read.front().info.first == at && records_of(read) > 0, "a tail read");
    records += records_of(read);
  }
  check(records == load.records_per_batch() * tail_reads, "what was read at the tail");
  figures[tail_rate].push_back(static_cast<double>(records) / 1e3 / taken);
}

void measure_catch_up(const Bench& bench, const Load& load, Figures& figures) {
  const auto start = SteadyClock::now();
  std::int64_t records = 0;
  for (Offset at(0); at < bench.end();) {
    const auto read = bench.read(at, 1 << 20);
    if (read.empty()) break;
    records += records_of(read);
    at = read.back().info.last + 1;
  }
  figures[catch_up_rate].push_back(static_cast<double>(records) / 1e3 / seconds_since(start));
  check(records == load.records(), "what was read from the start");
}

void add_quantiles(std::vector<double>& micros, Metric p50, Figures& figures) {
  std::sort(micros.begin(), micros.end());
  figures[p50].push_back(micros[micros.size() / 2]);
  figures[p50 + 1].push_back(micros[micros.size() * 99 / 100]);
}

void measure_lookups(const Bench& bench, const Load& load, Figures& figures) {
  std::mt19937_64 random(7);
  std::vector<double> micros;
  for (int i = 0; i < offset_lookups; ++i) {
    const Offset at(
        static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(load.records())));
    const auto start = SteadyClock::now();
    const auto read = bench.read(at, 1);
    micros.push_back(seconds_since(start) * 1e6);
    check(!read.empty() && read.front().info.first <= at && at <= read.front().info.last,
          "a look-up by offset");
  }
  add_quantiles(micros, offset_p50, figures);
  micros.clear();
  for (int i = 0; i < time_lookups; ++i) {
    const std::size_t batch = random() % load.batches().size();
    const auto start = SteadyClock::now();
    const auto found = bench.find(Load::time_of(batch));
    micros.push_back(seconds_since(start) * 1e6);
    check(found && found->timestamp == Load::time_of(batch) &&
              found->offset.value() == static_cast<std::int64_t>(batch) * load.records_per_batch(),
          "a look-up by time");
  }
  add_quantiles(micros, time_p50, figures);
}

// Blocks that are really taken: files that reserve room ahead are larger than that.
double bytes_below(const std::string& folder) {
  double bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    struct stat info{};
    if (lstat(entry.path().c_str(), &info) == 0) bytes += static_cast<double>(info.st_blocks) * 512;
  }
  return bytes;
}

// In a process of its own, which then dies by kill -9: the tail is on the disk, no checkpoint
// knows of it.
int write_and_die(std::size_t layout, std::size_t record_bytes, const std::string& folder) {
  const Load load(record_bytes, tail_mib);
  Bench bench(layout, folder);
  for (std::size_t n = 0; n < load.batches().size(); ++n) {
    bench.append(load.batches()[n], first_time + 3'600'000 + static_cast<std::int64_t>(n));
  }
  bench.sync();
  return raise(SIGKILL);
}

void measure_recovery(std::size_t layout, const Load& load, const std::string& folder,
                      Figures& figures) {
  const std::string layout_text = std::to_string(layout);
  const std::string bytes_text = std::to_string(load.record_bytes());
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "layouts_bench", "--write-and-die", layout_text.c_str(),
          bytes_text.c_str(), folder.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  POLYLOG_ASSERT(child > 0 && waitpid(child, &status, 0) == child);
  check(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "the writer's end");
  const Bench bench(layout, folder);
  figures[recovery_time].push_back(bench.opened_in_s * 1e3);
  figures[recovery_bytes].push_back(static_cast<double>(bench.recovery.bytes_scanned) / (1 << 20));
  const auto tail = static_cast<std::int64_t>((tail_mib << 20) / batch_value_bytes);
  check(bench.end().value() == load.records() + tail * load.records_per_batch(),
        "the end after the kill");
}

void measure(std::size_t layout, const Load& load, const std::string& folder, Figures& figures) {
  must(fs::PosixFileSystem().create_directory(folder));
  {
    Bench bench(layout, folder);
    measure_append(bench, load, figures);
    measure_tail(bench, load, figures);
    bench.tend();
    bench.sync();
    bench.checkpoint();
    measure_catch_up(bench, load, figures);
    measure_lookups(bench, load, figures);
    bench.close();
  }
  figures[disk_bytes].push_back(bytes_below(folder) / static_cast<double>(load.records()));
  measure_recovery(layout, load, folder, figures);
  std::filesystem::remove_all(folder);
}

void print_table(std::size_t record_bytes, const std::array<Figures, 3>& figures) {
  std::printf("\nrecords of %zu B %31s %10s %14s\n", record_bytes, "kafka", "rocketmq", "segment");
  for (std::size_t metric = 0; metric < metrics_end; ++metric) {
    const int decimals = metric_texts[metric].decimals;
    std::printf("%-34s", metric_texts[metric].name);
    const double kafka = median(figures[0][metric]);
    std::printf(" %12.*f", decimals, kafka);
    for (std::size_t layout = 1; layout < layout_names.size(); ++layout) {
      const double value = median(figures[layout][metric]);
      std::printf(" %10.*f", decimals, value);
      if (kafka > 0) {
        std::printf(" x%-5.2f", value / kafka);
      } else {
        std::printf(" %6s", "");
      }
    }
    std::printf("\n");
  }
}

std::size_t number_of(const char* text, std::size_t least) {
  std::size_t value = 0;
  const std::string_view digits(text);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc() && end == digits.data() + digits.size() && value >= least) return value;
  std::fprintf(stderr, "layouts_bench: %s: a number from %zu on is wanted\n", text, least);
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 5 && std::string_view(argv[1]) == "--write-and-die") {
    return write_and_die(number_of(argv[2], 0), number_of(argv[3], 1), argv[4]);
  }
  const std::size_t rounds = argc > 1 ? number_of(argv[1], 1) : 5;
  const std::size_t mib = argc > 2 ? number_of(argv[2], 96) : 128;
  std::string folder = std::string(argc > 3 ? argv[3] : "/var/tmp") + "/polylog-bench-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    std::perror(folder.c_str());
    return 2;
  }
  std::map<std::size_t, std::array<Figures, 3>> figures;
  const auto start = SteadyClock::now();
  for (const std::size_t record_bytes : {100U, 1024U}) {
    const Load load(record_bytes, mib);
    for (std::size_t round = 0; round < rounds; ++round) {
      for (std::size_t turn = 0; turn < layout_names.size(); ++turn) {
        const std::size_t layout = (round + turn) % layout_names.size();
        measure(layout, load, folder + "/store", figures[record_bytes][layout]);
      }
    }
  }
  std::filesystem::remove_all(folder);
  std::printf("%zu rounds, %zu MiB of values a store, %zu MiB more before the kill, %.0f s\n",
              rounds, mib, tail_mib, seconds_since(start));
  for (const auto& [record_bytes, of_layouts] : figures) print_table(record_bytes, of_layouts);
  if (wrong > 0) std::printf("\n%zu wrong answers\n", wrong);
  return wrong == 0 ? 0 : 1;
}
