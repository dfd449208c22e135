#include "store_workload.h"

#include "format/kafka/records.h"
#include "storage/kafka/store.h"

namespace polylog::crash {
namespace {

constexpr std::int64_t producer_id = 77;
constexpr int partitions = 3;

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
  engine.to_native = [](Batch batch, const TopicPartition&) { return batch; };
  engine.to_kafka = [](std::vector<Batch> batches) {
    return Result<std::vector<Batch>>(std::move(batches));
  };
  return engine;
}

// All records from the log start on, as (offset, value).
Result<std::map<std::int64_t, std::string>> StoreWorkload::read_all(
    const storage::PartitionLog& log) const {
  std::map<std::int64_t, std::string> records;
  const OffsetRange range = log.offsets();
  storage::ReadLimits limits;
  limits.bytes_max = 4096;
  limits.end = range.end;
  limits.first_whole = true;
  for (Offset at = range.start; at < range.end;) {
    POLYLOG_ASSIGN(batches, log.read(at, limits));
    if (batches.empty()) break;
    POLYLOG_ASSIGN(shown, engine_.to_kafka(std::move(batches)));
    for (const Batch& batch : shown) {
      POLYLOG_TRY(format::kafka::for_each_batch(
          batch.bytes.view(), [&](const format::kafka::BatchHeader&, ByteView whole) {
            return format::kafka::for_each_record(whole, 1 << 20, [&](const Record& record) {
              if (record.offset >= range.start) {
                records[record.offset.value()] = std::string(as_text(*record.value));
              }
              return true;
            });
          }));
      at = batch.info.last + 1;
    }
  }
  return records;
}

StoreWorkload::StoreWorkload(WorkloadEngine engine, std::uint64_t seed)
    : engine_(std::move(engine)), random_(seed) {}

void StoreWorkload::run(fs::SimFileSystem& disk, int operations) {
  disk_ = &disk;
  auto opened = engine_.open(disk, clock_, engine_.config);
  if (!opened) return;
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
  if (choice < 40) return append(id);
  if (choice < 60) return write(id);
  if (choice < 85) return sync(choice < 70);
  if (choice < 90) {
    // Progress files may fail to be written: they are lower bounds.
    if (auto done = store_->checkpoint(); !done) return;
    return;
  }
  if (choice < 94) return advance(id);
  if (choice < 98) return retain(id);
  return remove(id);
}

void StoreWorkload::create(const TopicPartition& id) {
  // A new topic id each time, as a broker would give: files of a removed topic are not this one's.
  Uuid topic;
  topic.bytes[0] = 1;
  topic.bytes[15] = static_cast<std::uint8_t>(++topics_);
  Expected& expected = expected_[id];
  if (!expected.maybe_gone && expected.exists) return;  // a removal failed half-way: leave it
  const auto made = store_->create(id, topic, log_config());
  if (!made) {
    expected.maybe_gone = true;
    return;
  }
  expected = Expected();
  expected.topic = topic;
  Live live;
  live.log = *made;
  if (!live.log->log()->begin_epoch(LeaderEpoch(0))) {
    expected.maybe_gone = true;  // made, perhaps, and never used
    return;
  }
  live_[id] = std::move(live);
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
  Batch batch = engine_.to_native(make_batch(values, producer, clock_.now()), id);
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
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int64_t offset = staged->offsets.start.value() + i;
    const std::string& value = values[static_cast<std::size_t>(i)];
    expected.written[offset].insert(value);
    live.staged.push_back({offset, Written{value, producer}});
    expected.maybe[offset] = Written{value, producer};
  }
}

void StoreWorkload::note_written() {
  for (auto& [id, live] : live_) {
    Expected& expected = expected_[id];
    const std::int64_t end = live.log->offsets().end.value();
    while (!live.staged.empty() && live.staged.front().first < end) {
      expected.latest[live.staged.front().first] = live.staged.front().second;
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

void StoreWorkload::write(const TopicPartition& id) {
  const std::shared_ptr<storage::Log> log = live_[id].log->log();
  const auto wrote = log->write_staged();
  note_written();
  if (!wrote) resume_sequence(live_[id], expected_[id]);
  nothing_staged(log.get());
}

// One round over every log; with writes in between that the round must not claim to cover.
void StoreWorkload::sync(bool write_between) {
  std::vector<storage::DirtyLog> round;
  for (auto& [id, live] : live_) {
    auto dirty = live.log->log()->dirty();
    if (dirty && *dirty) round.push_back(std::move(**dirty));
  }
  if (write_between) {
    append(live_.begin()->first);
    write(live_.begin()->first);
  }
  Result<void> synced;
  for (const storage::DirtyLog& dirty : round) {
    for (const fs::FilePtr& file : dirty.files) {
      if (synced) synced = file->sync();
    }
    for (const std::string& directory : dirty.directories) {
      if (synced) synced = disk_->sync_directory(directory);
    }
  }
  for (const storage::DirtyLog& dirty : round) {
    dirty.log->settled(dirty, synced.has_value());
    for (auto& [id, live] : live_) {
      if (live.log->log() != dirty.log) continue;
      if (!synced) {
        live.failed = true;
        continue;
      }
      Expected& expected = expected_[id];
      expected.exists = true;
      expected.acked_end = std::max(expected.acked_end, live.log->offset_at(dirty.end).value());
    }
  }
}

void StoreWorkload::remove(const TopicPartition& id) {
  expected_[id].maybe_gone = true;
  const std::shared_ptr<storage::Log> log = live_[id].log->log();
  live_.erase(id);
  // Removal is acknowledged by its return; until then the partition may be there or not.
  if (store_->remove(id)) expected_[id] = Expected();
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

std::string StoreWorkload::check(fs::SimFileSystem& disk) {
  live_.clear();
  store_.reset();
  auto opened = engine_.open(disk, clock_, engine_.config);
  if (!opened) return "does not open: " + opened.error().to_string();
  for (const auto& [id, expected] : expected_) {
    std::string wrong = check_partition(*opened->store, id, expected);
    if (!wrong.empty()) {
      for (const std::string& note : opened->recovery.notes) wrong += "\n  note: " + note;
      return id.topic + "-" + std::to_string(id.partition) + ": " + wrong;
    }
  }
  return {};
}

std::string StoreWorkload::check_partition(storage::Store& store, const TopicPartition& id,
                                           const Expected& expected) {
  const auto log = store.find(id);
  if (log == nullptr) {
    return expected.exists && !expected.maybe_gone ? "gone" : std::string();
  }
  if (store.topic_id(id) != expected.topic) {
    return expected.exists && !expected.maybe_gone ? "another topic's files" : std::string();
  }
  const OffsetRange range = log->offsets();
  if (range.end.value() < expected.acked_end && !expected.maybe_gone) {
    return "ends at " + std::to_string(range.end.value()) + ", acknowledged up to " +
           std::to_string(expected.acked_end);
  }
  if (range.start.value() < expected.start_min && !expected.maybe_gone) {
    return "starts at " + std::to_string(range.start.value()) + ", deleted up to " +
           std::to_string(expected.start_min);
  }
  if (range.start.value() > expected.start_max) {
    return "starts at " + std::to_string(range.start.value()) + ", nobody asked for more than " +
           std::to_string(expected.start_max);
  }
  std::string wrong = check_records(*log, expected);
  if (wrong.empty() && !expected.maybe_gone) wrong = check_producers(*log, expected);
  return wrong;
}

std::string StoreWorkload::check_records(const storage::PartitionLog& log,
                                         const Expected& expected) {
  const auto records = read_all(log);
  if (!records) return "does not read: " + records.error().to_string();
  for (std::int64_t at = log.offsets().start.value(); at < log.offsets().end.value(); ++at) {
    const auto record = records->find(at);
    if (record == records->end()) {
      // Above what was acknowledged a hole may be left where a lost write was.
      if (at >= expected.acked_end) continue;
      return "nothing at offset " + std::to_string(at);
    }
    if (at < expected.acked_end) {
      const auto latest = expected.latest.find(at);
      if (latest == expected.latest.end() || latest->second.value != record->second) {
        return "offset " + std::to_string(at) + " was shown and holds another record now";
      }
    } else if (const auto ever = expected.written.find(at);
               ever == expected.written.end() || !ever->second.contains(record->second)) {
      return "offset " + std::to_string(at) + " holds what nobody wrote there";
    }
  }
  return {};
}

// Batches of the producer that may be in the log behind `offset`.
std::size_t StoreWorkload::newer_batches(const Expected& expected, std::int64_t offset) {
  std::set<std::int32_t> sequences;
  for (auto item = expected.maybe.upper_bound(offset); item != expected.maybe.end(); ++item) {
    if (item->second.producer.id == no_producer) continue;
    sequences.insert(item->second.producer.first_sequence);
  }
  return sequences.size();
}

std::string StoreWorkload::check_producers(const storage::PartitionLog& log,
                                           const Expected& expected) {
  // The last acknowledged batch of the producer must be recognised when it is sent again, as
  // long as its records are there.
  const auto last_acked = expected.latest.lower_bound(expected.acked_end);
  for (auto item = std::make_reverse_iterator(last_acked); item != expected.latest.rend(); ++item) {
    const ProducerStamp& stamp = item->second.producer;
    if (stamp.id == no_producer) continue;
    if (item->first < log.offsets().start.value()) return {};
    if (newer_batches(expected, item->first) >= ProducerState::batches_kept) return {};
    BatchInfo again;
    again.producer = stamp;
    const auto verdict = log.check_producer(again);
    if (verdict.verdict != ProducerState::Verdict::duplicate ||
        verdict.original.end.value() != item->first + 1) {
      return "the batch ending at offset " + std::to_string(item->first) +
             " is not recognised as a duplicate";
    }
    return {};
  }
  return {};
}

}  // namespace polylog::crash
