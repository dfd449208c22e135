#include "store_workload.h"

#include <algorithm>

#include "format/kafka/records.h"
#include "storage/kafka/store.h"

namespace polylog::crash {
namespace {

constexpr std::int64_t producer_id = 77;
constexpr int partitions = 3;

// Some have a key, of a few: there is more than one record of each, and many collide.
Batch make_batch(const std::vector<std::string>& values, const ProducerStamp& producer,
                 Timestamp now) {
  format::kafka::BatchOptions options;
  options.producer_id = producer.id;
  options.producer_epoch = producer.epoch;
  options.base_sequence = producer.first_sequence;
  format::kafka::BatchBuilder builder(options);
  for (const std::string& value : values) {
    Record record;
    record.timestamp = now;
    record.value = as_bytes(value);
    const std::string key = "k" + std::to_string(value.size() % 4);
    if (value.size() % 3 != 0) record.key = as_bytes(key);
    POLYLOG_ASSERT(builder.add(record));
  }
  Batch batch;
  batch.bytes = Slice::of(*builder.finish());
  batch.info = format::kafka::to_info(*format::kafka::parse_header(batch.bytes.view()));
  return batch;
}

storage::LogConfig log_config() {
  storage::LogConfig config;
  config.segment_bytes = 600;
  config.index_interval_bytes = 100;
  return config;
}

}  // namespace

WorkloadEngine kafka_engine() {
  WorkloadEngine engine;
  engine.open = &storage::kafka::KafkaStore::open;
  engine.config.directory = "/data/kafka";
  engine.config.sidecar_directory = "/data/sidecar";
  engine.config.cluster_id = *Uuid::parse("AAAAAAAAAAAAAAAAAAAAAg");
  engine.config.defaults = log_config();
  engine.config.scan_bytes_max = 1000;
  engine.to_native = [](Batch batch, const TopicPartition&) { return batch; };
  engine.to_kafka = [](std::vector<Batch> batches) {
    return Result<std::vector<Batch>>(std::move(batches));
  };
  return engine;
}

// With every second seed the journal is as small as it may be, and goes on in its other area after
// every other round.
StoreWorkload::StoreWorkload(WorkloadEngine engine, std::uint64_t seed)
    : engine_(std::move(engine)),
      journal_bytes_(seed % 2 == 0 ? journal::bytes_min : std::uint64_t{64} << 10),
      random_(seed) {}

Result<storage::Opened> StoreWorkload::open(fs::SimFileSystem& disk,
                                            std::unique_ptr<journal::Journal>& journal,
                                            bool switched_off) const {
  if (!engine_.journal) return engine_.open(disk, clock_, engine_.config);
  journal::Options options;
  options.root = "/data";
  options.directory = "/data/journal";
  options.bytes = journal_bytes_;
  options.witnesses = {"kafka/recovery-point-offset-checkpoint", "kafka/.kafka_cleanshutdown",
                       "rocketmq/checkpoint"};
  options.own_thread = false;
  if (switched_off) {
    POLYLOG_TRY(journal::Journal::recover_and_remove(disk, options));
    return engine_.open(disk, clock_, engine_.config);
  }
  POLYLOG_ASSIGN(opened, journal::Journal::open(disk, options));
  journal = std::move(opened);
  return engine_.open(journal->file_system(), clock_, engine_.config);
}

void StoreWorkload::run(fs::SimFileSystem& disk, int operations) {
  auto opened = open(disk, journal_, false);
  if (!opened) return;
  fs_ = journal_ != nullptr ? &journal_->file_system() : &disk;
  store_ = std::move(opened->store);
  for (int i = 0; i < operations && !disk.powered_off(); ++i) step();
}

TopicPartition StoreWorkload::pick() {
  return {"topic", static_cast<std::int32_t>(random_() % partitions)};
}

void StoreWorkload::step() {
  clock_.advance_ms(7);
  const TopicPartition id = pick();
  const std::uint64_t choice = random_() % 100;
  if (!live_.contains(id)) return create(id);
  const std::shared_ptr<storage::Log> log = live_[id].log->log();
  if (choice < 36) return append(id);
  if (choice < 52) return write(log);
  if (choice < 72) return sync(choice < 60);
  // Progress files and indexes may fail to be written: they are lower bounds, or made anew.
  if (choice < 74) return static_cast<void>(store_->checkpoint());
  if (choice < 76) return static_cast<void>(store_->advance_points());
  if (choice < 80) return static_cast<void>(store_->tend(clock_.now()));
  if (choice < 84) return advance(id);
  if (choice < 86) return retain(id);
  if (choice < 90) return begin_epoch(log, logs_[log.get()].epoch + 1);
  if (choice < 96) return truncate(log);
  return remove(id);
}

void StoreWorkload::create(const TopicPartition& id) {
  // A new topic id each time, as a broker would give: files of a removed topic are not this one's.
  // No two are one bit apart, which is taken for damage.
  Uuid topic;
  topic.bytes.fill(static_cast<std::uint8_t>(++topics_));
  Expected& expected = expected_[id];
  if (!expected.maybe_gone && expected.exists) return;  // a removal failed half-way: leave it
  expected.removed = false;
  const auto made = store_->create(id, topic, log_config());
  if (!made) {
    expected.maybe_gone = true;
    return;
  }
  expected = Expected();
  expected.topic = topic;
  Live live;
  live.log = *made;
  const std::shared_ptr<storage::Log> log = live.log->log();
  live_[id] = std::move(live);
  if (!store_->traits().shared_log) logs_[log.get()] = LiveLog();
  begin_epoch(log, std::max(logs_[log.get()].epoch, LeaderEpoch(0)));
  if (logs_[log.get()].epoch != no_epoch) return;
  expected.maybe_gone = true;  // made, perhaps, and never used
  live_.erase(id);
}

void StoreWorkload::begin_epoch(const std::shared_ptr<storage::Log>& log, LeaderEpoch epoch) {
  write(log);  // nothing may be staged
  LiveLog& state = logs_[log.get()];
  const bool begun = log->begin_epoch(epoch).has_value();
  state.epoch = begun ? epoch : state.epoch;
}

void StoreWorkload::append(const TopicPartition& id) {
  Live& live = live_[id];
  Expected& expected = expected_[id];
  std::vector<std::string> values;
  const auto count = static_cast<std::int32_t>(1 + random_() % 3);
  for (std::int32_t i = 0; i < count; ++i) {
    values.push_back("value-" + std::to_string(++counter_) + std::string(random_() % 60, '.'));
  }
  ProducerStamp producer;
  if (random_() % 2 == 0) {
    producer = {ProducerId(producer_id), 0, live.next_sequence, live.next_sequence + count - 1};
  }
  Batch batch = make_batch(values, producer, clock_.now());
  if (!live.failed &&
      live.log->check_producer(batch.info).verdict != ProducerState::Verdict::accept) {
    wrong_ = "a batch of the producer that is next in order is not accepted";
  }
  batch = engine_.to_native(std::move(batch), id);
  const auto staged = live.log->append(std::move(batch));
  note_written();  // append() may have rolled, which writes what was staged before
  if (!staged) {
    if (staged.error().code == Errc::unavailable) live.failed = true;
    if (staged.error().code != Errc::too_large) {
      // A write that failed while rolling dropped what was staged; a roll that failed did not.
      if (live.log->log()->write_staged()) note_written();
      nothing_staged(live.log->log().get());
    }
    resume_sequence(live, expected);
    return;
  }
  if (producer.id != no_producer) live.next_sequence += count;
  const std::int64_t first = staged->offsets.start.value();
  const auto sent = std::make_shared<const Sent>(Sent{first, values, producer});
  for (std::int32_t i = 0; i < count; ++i) {
    const std::string& value = values[static_cast<std::size_t>(i)];
    const Written written{value, producer, logs_[live.log->log().get()].epoch};
    expected.written[first + i][value] = sent;
    expected.maybe[first + i] = written;
    live.staged.push_back({first + i, written, staged->end});
  }
}

void StoreWorkload::note_written() {
  for (auto& [id, live] : live_) {
    Expected& expected = expected_[id];
    const std::int64_t end = live.log->offsets().end.value();
    std::vector<LogPosition>& ends = logs_[live.log->log().get()].ends;
    while (!live.staged.empty() && live.staged.front().offset < end) {
      expected.latest[live.staged.front().offset] = live.staged.front().written;
      ends.push_back(live.staged.front().end);
      live.staged.erase(live.staged.begin());
    }
    expected.end = std::max(expected.end, end);
  }
}

void StoreWorkload::nothing_staged(const storage::Log* log) {
  for (auto& [id, live] : live_) {
    if (live.log->log().get() != log || live.staged.empty()) continue;
    live.staged.clear();
    resume_sequence(live, expected_[id]);
  }
}

// The producer goes on behind its last batch that is in the log.
void StoreWorkload::resume_sequence(Live& live, const Expected& expected) {
  live.next_sequence = 0;
  for (const auto& [offset, item] : expected.latest) {
    if (item.producer.id != no_producer) live.next_sequence = item.producer.last_sequence + 1;
  }
}

void StoreWorkload::write(const std::shared_ptr<storage::Log>& log) {
  const bool wrote = log->write_staged().has_value();
  note_written();
  nothing_staged(log.get());
  if (wrote) return;
  for (auto& [id, live] : live_) {
    if (live.log->log() == log) resume_sequence(live, expected_[id]);
  }
}

// What a round that begins now makes durable of a partition, besides its records.
StoreWorkload::Promise StoreWorkload::promise_of(const TopicPartition& id) const {
  Promise promise;
  const Live& live = live_.at(id);
  promise.cut = expected_.at(id).cut;
  const LeaderEpoch latest = logs_.at(live.log->log().get()).epoch;
  for (LeaderEpoch epoch(0); epoch < latest; epoch += 1) {
    const EpochEnd end = live.log->end_of_epoch(epoch);
    // With a record behind it, it can't move any more.
    if (end.end.value() < live.log->offsets().end.value()) promise.epoch_ends[epoch] = end;
  }
  return promise;
}

void StoreWorkload::keep(const TopicPartition& id, const Promise& promise, LogPosition end) {
  Expected& expected = expected_[id];
  expected.exists = true;
  expected.acked_end = std::max(expected.acked_end, live_[id].log->offset_at(end).value());
  if (expected.acked_end > 0 && expected.latest.contains(expected.acked_end - 1)) {
    expected.epoch_min =
        std::max(expected.epoch_min, expected.latest[expected.acked_end - 1].epoch);
  }
  for (const auto& [epoch, epoch_end] : promise.epoch_ends) expected.epoch_ends[epoch] = epoch_end;
  for (const Expected::Cut& cut : promise.cut) {
    const auto& [offset, value] = cut;
    expected.written[offset].erase(value);
    const auto maybe = expected.maybe.find(offset);
    if (maybe != expected.maybe.end() && maybe->second.value == value) expected.maybe.erase(maybe);
    std::erase(expected.cut, cut);
  }
}

// One round over every log; with writes in between that the round must not claim to cover.
void StoreWorkload::sync(bool write_between) {
  std::map<TopicPartition, Promise> promises;
  std::vector<storage::DirtyLog> round;
  for (auto& [id, live] : live_) {
    promises[id] = promise_of(id);
    auto dirty = live.log->log()->dirty();
    if (dirty && *dirty) round.push_back(std::move(**dirty));
  }
  if (write_between) {
    append(live_.begin()->first);
    write(live_.begin()->second.log->log());
  }
  const Result<void> synced = bring_to_disk(round);
  for (const storage::DirtyLog& dirty : round) {
    dirty.log->settled(dirty, synced.has_value());
    for (auto& [id, live] : live_) {
      if (live.log->log() != dirty.log) continue;
      live.failed = live.failed || !synced;
      if (synced) keep(id, promises[id], dirty.end);
    }
  }
  for (const storage::DirtyLog& dirty : round) dirty.log->write_noted();
}

Result<void> StoreWorkload::bring_to_disk(const std::vector<storage::DirtyLog>& round) {
  std::vector<fs::FilePtr> covered;
  for (const storage::DirtyLog& dirty : round) {
    if (journal_ != nullptr && dirty.directories.empty()) {
      covered.insert(covered.end(), dirty.files.begin(), dirty.files.end());
      continue;
    }
    for (const fs::FilePtr& file : dirty.files) POLYLOG_TRY(file->sync());
    for (const std::string& directory : dirty.directories) {
      POLYLOG_TRY(fs_->sync_directory(directory));
    }
  }
  return covered.empty() ? Result<void>() : journal_->cover(covered);
}

// To a place that no reader has seen beyond: a whole number of appends, above the durable end.
void StoreWorkload::truncate(const std::shared_ptr<storage::Log>& log) {
  write(log);  // nothing may be staged
  LiveLog& state = logs_[log.get()];
  std::vector<LogPosition> ends{log->durable_end()};
  for (const LogPosition end : state.ends) {
    if (end > ends.front() && end <= log->end()) ends.push_back(end);
  }
  const LogPosition to = ends[random_() % ends.size()];
  const bool surely = log->truncate(to).has_value();
  half_cut_ = half_cut_ || !surely;
  std::erase_if(state.ends, [&](LogPosition end) { return end > to; });
  note_cut(log.get(), surely);
  // Where the epoch began may be gone: it begins here.
  begin_epoch(log, state.epoch);
}

void StoreWorkload::note_cut(const storage::Log* log, bool surely) {
  for (auto& [id, live] : live_) {
    if (live.log->log().get() != log) continue;
    Expected& expected = expected_[id];
    expected.end = live.log->offsets().end.value();
    if (expected.end < expected.acked_end) wrong_ = "a truncation took what had been shown";
    expected.latest.erase(expected.latest.lower_bound(expected.end), expected.latest.end());
    resume_sequence(live, expected);
    if (!surely) continue;
    for (auto at = expected.written.lower_bound(expected.end); at != expected.written.end(); ++at) {
      for (const auto& [value, sent] : at->second) expected.cut.emplace_back(at->first, value);
    }
  }
}

void StoreWorkload::remove(const TopicPartition& id) {
  const Uuid topic = expected_[id].topic;
  expected_[id].maybe_gone = true;
  const std::shared_ptr<storage::Log> log = live_[id].log->log();
  live_.erase(id);
  // Removal is acknowledged by its return; until then the partition may be there or not.
  if (store_->remove(id)) {
    expected_[id] = Expected();
    expected_[id].removed = true;
    removed_topics_.push_back(topic);
  }
  // In a shared log a removal writes what others had staged.
  if (!store_->traits().shared_log) return;
  note_written();
  if (log->write_staged()) note_written();
  nothing_staged(log.get());
}

void StoreWorkload::advance(const TopicPartition& id) {
  Expected& expected = expected_[id];
  if (expected.acked_end == 0) return;
  const auto to =
      static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(expected.acked_end + 1));
  expected.start_max = std::max(expected.start_max, to);
  if (live_[id].log->advance_start(Offset(to))) {
    expected.start_min = std::max(expected.start_min, to);
  }
}

void StoreWorkload::retain(const TopicPartition& id) {
  Expected& expected = expected_[id];
  // Only what lies below the log start may go: time and size have no limit here.
  if (store_->retain(id, Offset(expected.acked_end), clock_.now())) return;
}

}  // namespace polylog::crash
