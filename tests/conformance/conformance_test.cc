#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "format/kafka/records.h"
#include "format/transcode/transcode.h"
#include "fs/sim_file_system.h"
#include "model_store.h"
#include "storage/filelog/memory_index.h"
#include "storage/kafka/store.h"
#include "storage/rocketmq/store.h"
#include "storage/segment/store.h"

// What every engine promises, whatever its shape. The models go through the same suite: the
// interface is proved on a log per partition and on one shared log.
namespace polylog::conformance {
namespace {

using storage::DirtyLog;
using storage::Log;
using storage::LogConfig;
using storage::PartitionLog;
using storage::ReadLimits;
using storage::Store;
using Strings = std::vector<std::string>;

// One engine on a medium that survives it. The suite makes and compares Kafka batches; an engine
// whose own form is another turns them into it and back.
class Bench {
 public:
  virtual ~Bench() = default;
  virtual std::unique_ptr<Store> open() = 0;
  virtual void kill() {}             // the process died: all that was written is there
  virtual void lose_unsynced() = 0;  // the power went
  virtual Result<void> sync(const DirtyLog& dirty) = 0;
  virtual Batch to_native(Batch kafka, const TopicPartition&) { return kafka; }
  virtual Result<std::vector<Batch>> to_kafka(std::vector<Batch> native) { return native; }
};

class ModelBench final : public Bench {
 public:
  explicit ModelBench(Shape shape) : shape_(shape) {}
  std::unique_ptr<Store> open() override { return open_model(shape_, medium_); }
  void lose_unsynced() override { medium_->lose_unsynced(); }
  Result<void> sync(const DirtyLog&) override { return {}; }

 private:
  const Shape shape_;
  std::shared_ptr<ModelMedium> medium_ = std::make_shared<ModelMedium>();
};

// An engine on a simulated disk.
class DiskBench : public Bench {
 public:
  explicit DiskBench(storage::OpenStore factory) : factory_(factory) {
    config.sidecar_directory = "/data/sidecar";
    config.cluster_id = *Uuid::parse("AAAAAAAAAAAAAAAAAAAAAg");
  }
  std::unique_ptr<Store> open() override {
    auto opened = factory_(*disk_, clock_, config);
    EXPECT_TRUE(opened) << opened.error().to_string();
    return opened ? std::move(opened->store) : nullptr;
  }
  void kill() override { disk_ = disk_->crash_state({.mode = fs::CrashChoice::Mode::kill}); }
  void lose_unsynced() override {
    disk_ = disk_->crash_state({.mode = fs::CrashChoice::Mode::lose_all});
  }
  Result<void> sync(const DirtyLog& dirty) override {
    for (const fs::FilePtr& file : dirty.files) POLYLOG_TRY(file->sync());
    for (const std::string& path : dirty.directories) POLYLOG_TRY(disk_->sync_directory(path));
    return {};
  }

 protected:
  storage::StoreConfig config;

 private:
  const storage::OpenStore factory_;
  ManualClock clock_{Timestamp(1'000'000)};
  std::unique_ptr<fs::SimFileSystem> disk_ = std::make_unique<fs::SimFileSystem>();
};

class KafkaBench final : public DiskBench {
 public:
  KafkaBench() : DiskBench(&storage::kafka::KafkaStore::open) { config.directory = "/data/kafka"; }
};

// Everything small, so that all kinds of files roll within a test.
class RocketmqBench final : public DiskBench {
 public:
  RocketmqBench() : DiskBench(&storage::rocketmq::RocketmqStore::open) {
    config.directory = "/data/rocketmq";
    config.shared.commit_log_file_bytes = 1536;
    config.shared.queue_file_bytes = 100;
    config.shared.index_slots = 4;
    config.shared.index_entries = 7;
  }
  Batch to_native(Batch kafka, const TopicPartition& id) override {
    format::RocketmqTarget target;
    target.topic = *storage::rocketmq::stored_name(id.topic);
    target.queue_id = id.partition;
    auto native = format::kafka_to_rocketmq(kafka, target);
    EXPECT_TRUE(native) << native.error().to_string();
    return native ? std::move(*native) : Batch();
  }
  Result<std::vector<Batch>> to_kafka(std::vector<Batch> native) override {
    return format::rocketmq_to_kafka(native, {});
  }
};

class SegmentBench final : public DiskBench {
 public:
  SegmentBench() : DiskBench(&SegmentBench::open_store) { config.directory = "/data/segment"; }
  Batch to_native(Batch kafka, const TopicPartition&) override {
    auto native = format::kafka_to_segment(kafka, {});
    EXPECT_TRUE(native) << native.error().to_string();
    return native ? std::move(*native) : Batch();
  }
  Result<std::vector<Batch>> to_kafka(std::vector<Batch> native) override {
    return format::segment_to_kafka(native, {});
  }

 private:
  static Result<storage::Opened> open_store(fs::FileSystem& fs, const Clock& clock,
                                            const storage::StoreConfig& config) {
    return storage::segment::SegmentStore::open(
        fs, clock, config,
        [&fs](const std::string& directory) { return storage::open_memory_index(fs, directory); });
  }
};

struct Engine {
  std::string name;
  std::function<std::unique_ptr<Bench>()> make;
};

Batch make_batch(const Strings& values, ProducerStamp producer = {},
                 std::vector<std::int64_t> times = {}) {
  format::kafka::BatchOptions options;
  options.producer_id = producer.id;
  options.producer_epoch = producer.epoch;
  options.base_sequence = producer.first_sequence;
  format::kafka::BatchBuilder builder(options);
  for (std::size_t i = 0; i < values.size(); ++i) {
    Record record;
    record.timestamp = Timestamp(i < times.size() ? times[i] : 1000);
    record.value = as_bytes(values[i]);
    EXPECT_TRUE(builder.add(record));
  }
  Batch batch;
  batch.bytes = Slice::of(*builder.finish());
  batch.info = format::kafka::to_info(*format::kafka::parse_header(batch.bytes.view()));
  return batch;
}

class Conformance : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    store_.reset();  // before the disk it stands on
    ids_.clear();
    bench_ = GetParam().make();
    store_ = bench_->open();
  }
  void restart(bool clean) {
    if (clean) {
      ASSERT_TRUE(store_->close());
    }
    store_.reset();
    if (!clean) bench_->kill();
    store_ = bench_->open();
  }
  void power_cut() {
    store_.reset();
    bench_->lose_unsynced();
    store_ = bench_->open();
  }

  std::shared_ptr<PartitionLog> partition(const std::string& topic = "a", std::int32_t index = 0) {
    const TopicPartition id{topic, index};
    if (auto found = store_->find(id)) {
      ids_[found.get()] = id;
      return found;
    }
    Uuid topic_id;
    topic_id.bytes[0] = static_cast<std::uint8_t>(topic[0]);
    topic_id.bytes[1] = ++generation_;
    LogConfig config;
    config.segment_bytes = 700;
    config.index_interval_bytes = 100;
    auto made = store_->create(id, topic_id, config);
    EXPECT_TRUE(made) << made.error().to_string();
    ids_[made->get()] = id;
    return *made;
  }
  Result<storage::Staged> stage(PartitionLog& to, Batch batch) {
    return to.append(bench_->to_native(std::move(batch), ids_.at(&to)));
  }
  storage::Staged append(PartitionLog& to, Batch batch) {
    const auto staged = stage(to, std::move(batch));
    EXPECT_TRUE(staged) << staged.error().to_string();
    EXPECT_TRUE(to.log()->write_staged());
    return *staged;
  }
  storage::Staged append(PartitionLog& to, const Strings& values) {
    return append(to, make_batch(values));
  }
  void sync(PartitionLog& of, bool works = true) {
    auto dirty = of.log()->dirty();
    ASSERT_TRUE(dirty) << dirty.error().to_string();
    if (!*dirty) return;
    if (works) {
      ASSERT_TRUE(bench_->sync(**dirty));
    }
    of.log()->settled(**dirty, works);
    of.log()->write_noted();
  }
  static ReadLimits all(const PartitionLog& of) {
    ReadLimits limits;
    limits.bytes_max = 1 << 20;
    limits.end = of.offsets().end;
    limits.first_whole = true;
    return limits;
  }
  Strings read(const PartitionLog& from) {
    Strings values;
    for (Offset at = from.offsets().start; at < from.offsets().end;) {
      const auto batches = from.read(at, all(from));
      EXPECT_TRUE(batches) << batches.error().to_string();
      if (!batches || batches->empty()) break;
      const auto shown = bench_->to_kafka(*batches);
      EXPECT_TRUE(shown) << shown.error().to_string();
      if (!shown) break;
      for (const Batch& batch : *shown) {
        EXPECT_TRUE(format::kafka::for_each_batch(
            batch.bytes.view(), [&](const format::kafka::BatchHeader&, ByteView whole) {
              return format::kafka::for_each_record(whole, 1 << 20, [&](const Record& record) {
                if (record.offset >= at) values.emplace_back(as_text(*record.value));
                return true;
              });
            }));
        at = batch.info.last + 1;
      }
    }
    return values;
  }

  std::unique_ptr<Bench> bench_;
  std::unique_ptr<Store> store_;
  std::map<const PartitionLog*, TopicPartition> ids_;
  std::uint8_t generation_ = 0;
};

TEST_P(Conformance, offsets_are_consecutive_per_partition) {
  EXPECT_EQ(append(*partition("a"), {"1", "2"}).offsets, (OffsetRange{Offset(0), Offset(2)}));
  EXPECT_EQ(append(*partition("b"), {"x"}).offsets, (OffsetRange{Offset(0), Offset(1)}));
  EXPECT_EQ(append(*partition("a"), {"3"}).offsets, (OffsetRange{Offset(2), Offset(3)}));
  EXPECT_EQ(read(*partition("a")), (Strings{"1", "2", "3"}));
  EXPECT_EQ(read(*partition("b")), (Strings{"x"}));
}

TEST_P(Conformance, partitions_share_a_log_exactly_when_the_traits_say_so) {
  EXPECT_EQ(partition("a")->log() == partition("b")->log(), store_->traits().shared_log);
}

TEST_P(Conformance, staged_batches_appear_together_with_their_own_base_offsets) {
  const auto log = partition();
  ASSERT_TRUE(stage(*log, make_batch({"1", "2"})));
  const auto second = stage(*log, make_batch({"3"}));
  EXPECT_EQ(second->offsets, (OffsetRange{Offset(2), Offset(3)}));
  EXPECT_EQ(log->offsets().end, Offset(0));
  ASSERT_TRUE(log->log()->write_staged());
  EXPECT_EQ(log->log()->end(), second->end);
  const auto batches = *log->read(Offset(2), all(*log));
  ASSERT_FALSE(batches.empty());
  EXPECT_EQ(batches.front().info.first, Offset(2));
}

TEST_P(Conformance, a_log_position_is_turned_into_each_partitions_offset) {
  const auto a = partition("a"), b = partition("b");
  const auto first = append(*a, {"1", "2"});
  const auto other = append(*b, {"x"});
  const auto last = append(*a, {"3"});
  EXPECT_EQ(a->offset_at(first.end), Offset(2));
  EXPECT_EQ(a->offset_at(last.end), Offset(3));
  EXPECT_EQ(b->offset_at(other.end), Offset(1));
  if (store_->traits().shared_log) {
    EXPECT_EQ(b->offset_at(first.end), Offset(0));
    EXPECT_EQ(a->offset_at(other.end), Offset(2));
  }
}

// A reader must not be led past a record because there was no room for it.
TEST_P(Conformance, a_record_over_the_limit_ends_the_read_and_is_never_passed_over) {
  const auto log = partition();
  for (int i = 0; i < 6; ++i) {
    append(*log, {std::string(i % 4 < 2 ? 250U : 10U,
                              'v')});  // a file and an epoch begin with a small one
    if (i == 1) {
      ASSERT_TRUE(log->log()->begin_epoch(LeaderEpoch(log->log()->epoch().value() + 1)));
    }
  }
  ReadLimits limits = all(*log);
  limits.first_whole = false;
  limits.bytes_max = 200;
  for (const std::int64_t from : {0, 1, 4}) {
    const auto found = log->read(Offset(from), limits);
    ASSERT_TRUE(found) << found.error().to_string();
    EXPECT_TRUE(found->empty()) << "asked for " << from;
    limits.first_whole = true;
    const auto whole = log->read(Offset(from), limits);
    ASSERT_TRUE(whole && !whole->empty());
    EXPECT_EQ(whole->front().info.first, Offset(from));
    limits.first_whole = false;
  }
}

TEST_P(Conformance, reads_stay_within_their_limits_and_hand_out_whole_batches) {
  const auto log = partition();
  for (int i = 0; i < 6; ++i) append(*log, {std::string(80, 'v')});
  const std::size_t one = append(*log, {std::string(80, 'v')}).offsets.empty() ? 0 : [&] {
    ReadLimits limits = all(*log);
    limits.bytes_max = 1;
    return log->read(Offset(0), limits)->front().bytes.size();
  }();
  ReadLimits limits = all(*log);
  limits.bytes_max = 2 * one + one / 2;
  const auto two = *log->read(Offset(0), limits);
  EXPECT_EQ(two.back().info.last, Offset(1));
  limits.bytes_max = one / 2;
  EXPECT_EQ(log->read(Offset(3), limits)->back().info.last, Offset(3));
  limits.first_whole = false;
  EXPECT_TRUE(log->read(Offset(3), limits)->empty());
  limits = all(*log);
  limits.end = Offset(2);
  EXPECT_EQ(log->read(Offset(0), limits)->back().info.last, Offset(1));
  EXPECT_TRUE(log->read(Offset(2), limits)->empty());
  EXPECT_EQ(log->read(Offset(3), limits).error().code, Errc::out_of_range);
  EXPECT_EQ(log->read(Offset(-1), limits).error().code, Errc::out_of_range);
  limits = all(*log);
  limits.records_max = 1;
  EXPECT_EQ(log->read(Offset(4), limits)->back().info.last, Offset(4));
}

TEST_P(Conformance, a_read_may_begin_inside_a_batch_and_gets_its_frame_whole) {
  const auto log = partition();
  append(*log, {"1", "2", "3"});
  const auto batches = *log->read(Offset(1), all(*log));
  // A frame is the whole batch, or a single record where the layout knows no batches.
  const bool single = store_->traits().native != BatchFormat::kafka;  // a frame a record
  EXPECT_EQ(batches.front().info.first, Offset(single ? 1 : 0));
  EXPECT_EQ(batches.back().info.last, Offset(2));
}

TEST_P(Conformance, the_first_record_at_or_after_a_time_is_found) {
  const auto log = partition();
  append(*log, make_batch({"a", "b"}, {}, {20, 10}));
  append(*log, make_batch({"c"}, {}, {30}));
  EXPECT_EQ((*log->offset_for_time(Timestamp(5)))->offset, Offset(0));
  EXPECT_EQ((*log->offset_for_time(Timestamp(21)))->offset, Offset(2));
  EXPECT_FALSE(*log->offset_for_time(Timestamp(31)));
  EXPECT_EQ((*log->offset_of_max_timestamp())->timestamp, Timestamp(30));
  ASSERT_TRUE(log->advance_start(Offset(1)));
  EXPECT_EQ((*log->offset_for_time(Timestamp(5)))->offset, Offset(1));
}

TEST_P(Conformance, the_log_start_rises_and_stays) {
  const auto log = partition();
  append(*log, {"1"});
  append(*log, {"2"});
  sync(*log);
  ASSERT_TRUE(log->advance_start(Offset(1)));
  ASSERT_TRUE(log->advance_start(Offset(0)));
  EXPECT_EQ(log->offsets().start, Offset(1));
  EXPECT_EQ(log->advance_start(Offset(3)).error().code, Errc::out_of_range);
  EXPECT_EQ(log->read(Offset(0), all(*log)).error().code, Errc::out_of_range);
  power_cut();
  EXPECT_EQ(partition()->offsets(), (OffsetRange{Offset(1), Offset(2)}));
}

TEST_P(Conformance, durable_is_what_a_round_covered_and_not_more) {
  const auto log = partition();
  append(*log, {"1"});
  auto dirty = *log->log()->dirty();
  ASSERT_TRUE(dirty);
  const auto later = append(*log, {"2"});
  ASSERT_TRUE(bench_->sync(*dirty));
  log->log()->settled(*dirty, true);
  log->log()->write_noted();
  EXPECT_EQ(log->log()->durable_end(), dirty->end);
  EXPECT_LT(log->log()->durable_end(), later.end);
  sync(*log);
  EXPECT_EQ(log->log()->durable_end(), later.end);
  EXPECT_FALSE(*log->log()->dirty());
}

TEST_P(Conformance, after_a_failed_sync_nothing_is_written_and_reads_go_on) {
  const auto log = partition();
  append(*log, {"1"});
  sync(*log, false);
  EXPECT_EQ(stage(*log, make_batch({"2"})).error().code, Errc::unavailable);
  EXPECT_EQ(read(*log), (Strings{"1"}));
  EXPECT_FALSE(log->log()->dirty());
}

TEST_P(Conformance, what_was_synced_survives_a_power_cut_and_the_log_says_unclean) {
  append(*partition(), {"1"});
  sync(*partition());
  append(*partition(), {"2"});
  power_cut();
  EXPECT_EQ(read(*partition()), (Strings{"1"}));
  EXPECT_TRUE(partition()->log()->unclean());
  EXPECT_EQ(append(*partition(), {"3"}).offsets.start, Offset(1));
}

TEST_P(Conformance, a_restart_changes_nothing) {
  for (const bool clean : {true, false}) {
    append(*partition("a"), {"1"});
    append(*partition("b"), {"x", "y"});
    const Strings before = read(*partition("a"));
    sync(*partition("a"));
    sync(*partition("b"));
    restart(clean);
    EXPECT_EQ(partition("a")->log()->unclean(), !clean);
    EXPECT_EQ(read(*partition("a")), before);
    EXPECT_EQ(partition("a")->log()->durable_end(), partition("a")->log()->end());
  }
}

TEST_P(Conformance, duplicates_are_recognised_staged_written_and_after_a_restart) {
  using Verdict = ProducerState::Verdict;
  const Batch batch = make_batch({"1", "2"}, {ProducerId(5), 0, 0, 1});
  ASSERT_TRUE(stage(*partition(), batch));
  EXPECT_EQ(partition()->check_producer(batch.info).verdict, Verdict::duplicate);
  ASSERT_TRUE(partition()->log()->write_staged());
  sync(*partition());
  restart(false);
  const auto check = partition()->check_producer(batch.info);
  EXPECT_EQ(check.verdict, Verdict::duplicate);
  EXPECT_EQ(check.original, (OffsetRange{Offset(0), Offset(2)}));
  const Batch gap = make_batch({"5"}, {ProducerId(5), 0, 4, 4});
  EXPECT_EQ(partition()->check_producer(gap.info).verdict, Verdict::out_of_order_sequence);
}

TEST_P(Conformance, epochs_begin_end_and_are_fenced) {
  const auto log = partition();
  ASSERT_TRUE(log->log()->begin_epoch(LeaderEpoch(3)));
  append(*log, {"1", "2"});
  ASSERT_TRUE(log->log()->begin_epoch(LeaderEpoch(5)));
  append(*log, {"3"});
  EXPECT_EQ(log->log()->begin_epoch(LeaderEpoch(4)).error().code, Errc::fenced);
  EXPECT_EQ(log->end_of_epoch(LeaderEpoch(3)), (EpochEnd{LeaderEpoch(3), LogPosition(2)}));
  EXPECT_EQ(log->end_of_epoch(LeaderEpoch(4)), (EpochEnd{LeaderEpoch(3), LogPosition(2)}));
  EXPECT_EQ(log->end_of_epoch(LeaderEpoch(5)), (EpochEnd{LeaderEpoch(5), LogPosition(3)}));
  EXPECT_EQ(log->end_of_epoch(LeaderEpoch(6)), EpochEnd());
  sync(*log);
  restart(false);
  EXPECT_EQ(partition()->log()->epoch(), LeaderEpoch(5));
  EXPECT_EQ(partition()->end_of_epoch(LeaderEpoch(3)), (EpochEnd{LeaderEpoch(3), LogPosition(2)}));
}

TEST_P(Conformance, truncation_is_the_logs_and_cuts_every_partition_in_it) {
  const auto a = partition("a"), b = partition("b");
  append(*a, {"1"});
  const auto keep = append(*b, {"x"});
  append(*a, {"2"});
  append(*b, {"y"});
  ASSERT_TRUE(b->log()->truncate(keep.end));
  EXPECT_EQ(read(*b), (Strings{"x"}));
  EXPECT_EQ(read(*a), store_->traits().shared_log ? (Strings{"1"}) : (Strings{"1", "2"}));
  EXPECT_EQ(append(*b, {"z"}).offsets.start, Offset(1));
}

TEST_P(Conformance, chunks_carry_a_log_to_another_store) {
  for (int i = 0; i < 12; ++i) append(*partition(), {"value-" + std::to_string(i)});
  const auto other_bench = GetParam().make();
  const auto other = other_bench->open();
  const auto copy = *other->create({"a", 0}, *Uuid::parse("AAAAAAAAAAAAAAAAAAAABA"), LogConfig());
  const auto from = partition()->log();
  for (LogPosition at = copy->log()->end(); at < from->end();) {
    const auto chunk = from->read_chunk(at, 100);
    ASSERT_TRUE(chunk);
    ASSERT_GT(chunk->end, at);
    ASSERT_TRUE(copy->log()->append_chunk(*chunk));
    at = chunk->end;
  }
  EXPECT_EQ(copy->log()->end(), from->end());
  if (!store_->traits().shared_log) {
    EXPECT_EQ(read(*copy), read(*partition()));
  }
}

TEST_P(Conformance, a_removed_partition_is_gone_and_a_new_one_of_its_name_is_empty) {
  append(*partition("a"), {"1"});
  append(*partition("b"), {"x"});
  sync(*partition("a"));
  sync(*partition("b"));
  ASSERT_TRUE(store_->remove({"a", 0}));
  EXPECT_EQ(store_->find({"a", 0}), nullptr);
  EXPECT_EQ(store_->remove({"a", 0}).error().code, Errc::not_found);
  restart(false);
  EXPECT_EQ(store_->find({"a", 0}), nullptr);
  EXPECT_EQ(partition("a")->offsets(), (OffsetRange{Offset(0), Offset(0)}));
  EXPECT_EQ(read(*partition("b")), (Strings{"x"}));
}

// Random operations against a plain list of what should be there.
TEST_P(Conformance, random_operations_agree_with_a_plain_list) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SetUp();
    std::mt19937_64 random(seed);
    std::map<std::string, Strings> expected;
    for (int i = 0; i < 60; ++i) {
      const std::string topic = random() % 2 == 0 ? "a" : "b";
      const auto choice = random() % 10;
      if (choice < 6) {
        Strings values;
        for (std::uint64_t n = 0; n <= random() % 3; ++n)
          values.push_back(std::to_string(i * 10 + static_cast<int>(n)));
        append(*partition(topic), values);
        expected[topic].insert(expected[topic].end(), values.begin(), values.end());
      } else if (choice < 8) {
        sync(*partition(topic));
      } else if (choice < 9) {
        restart(random() % 2 == 0);
      } else if (random() % 2 == 0) {
        ASSERT_TRUE(store_->checkpoint());
      } else {
        ASSERT_TRUE(store_->tend(Timestamp(2'000'000)));
      }
      ASSERT_EQ(read(*partition(topic)), expected[topic]);
    }
  }
}

std::unique_ptr<Bench> separate_model() {
  return std::make_unique<ModelBench>(Shape::log_per_partition);
}
std::unique_ptr<Bench> shared_model() { return std::make_unique<ModelBench>(Shape::shared_log); }
std::unique_ptr<Bench> kafka_engine() { return std::make_unique<KafkaBench>(); }
std::unique_ptr<Bench> rocketmq_engine() { return std::make_unique<RocketmqBench>(); }
std::unique_ptr<Bench> segment_engine() { return std::make_unique<SegmentBench>(); }

INSTANTIATE_TEST_SUITE_P(Engines, Conformance,
                         ::testing::Values(Engine{"model_log_per_partition", separate_model},
                                           Engine{"model_shared_log", shared_model},
                                           Engine{"kafka", kafka_engine},
                                           Engine{"rocketmq", rocketmq_engine},
                                           Engine{"segment", segment_engine}),
                         [](const auto& engine) { return engine.param.name; });

}  // namespace
}  // namespace polylog::conformance
