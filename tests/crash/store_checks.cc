#include <algorithm>
#include <iterator>

#include "format/kafka/records.h"
#include "store_workload.h"

// What must hold of a store after any crash.
namespace polylog::crash {
namespace {

constexpr std::int64_t producer_id = 77, other_producer = 78;

Batch one_batch(const std::vector<std::string>& values, Timestamp now) {
  format::kafka::BatchOptions options;
  options.producer_id = ProducerId(other_producer);
  options.producer_epoch = 0;
  options.base_sequence = 0;
  format::kafka::BatchBuilder builder(options);
  for (const std::string& value : values) {
    Record record;
    record.timestamp = now;
    record.key = as_bytes("k1");
    record.value = as_bytes(value);
    POLYLOG_ASSERT(builder.add(record));
  }
  Batch batch;
  batch.bytes = Slice::of(*builder.finish());
  batch.info = format::kafka::to_info(*format::kafka::parse_header(batch.bytes.view()));
  return batch;
}

}  // namespace

// All records from the log start on.
Result<StoreWorkload::Records> StoreWorkload::read_all(const storage::PartitionLog& log) const {
  Records records;
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
          batch.bytes.view(), [&](const format::kafka::BatchHeader& header, ByteView whole) {
            return format::kafka::for_each_record(whole, 1 << 20, [&](const Record& record) {
              if (record.offset >= range.start) {
                records[record.offset.value()] = {std::string(as_text(*record.value)),
                                                  header.leader_epoch};
              }
              return true;
            });
          }));
      at = batch.info.last + 1;
    }
  }
  return records;
}

std::string StoreWorkload::check(fs::SimFileSystem& disk, bool go_on, bool killed) {
  live_.clear();
  logs_.clear();
  store_.reset();
  journal_.reset();
  if (!wrong_.empty()) return "while it ran: " + wrong_;
  std::unique_ptr<journal::Journal> journal;
  auto opened = open(disk, journal, ++checks_ % 3 == 0);
  if (!opened) return "does not open: " + opened.error().to_string();
  storage::Store& store = *opened->store;
  std::string wrong = check_partitions(store, killed);
  if (wrong.empty() && engine_.check_layout) wrong = engine_.check_layout(disk, store);
  if (wrong.empty() && go_on) {
    wrong = this->go_on(store);
    if (wrong.empty() && engine_.check_layout) wrong = engine_.check_layout(disk, store);
    if (!wrong.empty()) wrong = "after going on: " + wrong;
  }
  if (wrong.empty()) return {};
  for (const std::string& note : opened->recovery.notes) wrong += "\n  note: " + note;
  return wrong;
}

std::string StoreWorkload::check_partitions(storage::Store& store, bool killed) const {
  for (const auto& [id, promised] : expected_) {
    Expected expected = promised;
    if (killed && !half_cut_) expected.acked_end = std::max(expected.acked_end, expected.end);
    const std::string wrong = check_partition(store, id, expected);
    if (!wrong.empty()) return id.topic + "-" + std::to_string(id.partition) + ": " + wrong;
  }
  return {};
}

std::string StoreWorkload::check_partition(storage::Store& store, const TopicPartition& id,
                                           const Expected& expected) const {
  const auto log = store.find(id);
  const bool wanted = expected.exists && !expected.maybe_gone;
  if (log == nullptr) return wanted ? "gone" : std::string();
  if (expected.removed) return "was removed and is back";
  const auto topic = store.topic_id(id);
  if (std::count(removed_topics_.begin(), removed_topics_.end(), topic) > 0) {
    return "its topic was removed and is back";
  }
  if (topic != expected.topic) return wanted ? "another topic's files" : std::string();
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
  if (expected.maybe_gone) return wrong;
  if (wrong.empty()) wrong = check_epochs(*log, expected);
  if (wrong.empty()) wrong = check_producers(*log, expected);
  return wrong;
}

std::string StoreWorkload::check_records(const storage::PartitionLog& log,
                                         const Expected& expected) const {
  const auto records = read_all(log);
  if (!records) return "does not read: " + records.error().to_string();
  const std::int64_t start = log.offsets().start.value();
  for (std::int64_t at = start; at < log.offsets().end.value(); ++at) {
    std::string wrong = check_record(at, *records, expected);
    if (wrong.empty()) wrong = check_whole(at, *records, start, expected);
    if (!wrong.empty()) return "offset " + std::to_string(at) + wrong;
  }
  return check_next(log, *records, expected);
}

// The producer may go on behind its last batch that is there, and no batch that is not there is
// taken for a duplicate.
std::string StoreWorkload::check_next(const storage::PartitionLog& log, const Records& records,
                                      const Expected& expected) {
  BatchInfo next;
  next.producer = {ProducerId(producer_id), 0, 0, 0};
  bool known = false;
  for (const auto& [at, record] : records) {
    const ProducerStamp& stamp = expected.written.at(at).at(record.first)->producer;
    if (stamp.id == no_producer) continue;
    next.producer.first_sequence = next.producer.last_sequence = stamp.last_sequence + 1;
    known = true;
  }
  if (!known && log.offsets().start > Offset(0)) return {};  // its last batch may have been deleted
  const bool accepted = log.check_producer(next).verdict == ProducerState::Verdict::accept;
  return accepted ? std::string()
                  : "the producer's batch from sequence " +
                        std::to_string(next.producer.first_sequence) + " on is not accepted";
}

std::string StoreWorkload::check_record(std::int64_t at, const Records& records,
                                        const Expected& expected) {
  const auto record = records.find(at);
  if (record == records.end()) {
    // Above what was acknowledged a hole may be left where a lost write was.
    return at >= expected.acked_end ? std::string() : " holds nothing";
  }
  const auto& [value, epoch] = record->second;
  if (at < expected.acked_end) {
    const auto latest = expected.latest.find(at);
    if (latest == expected.latest.end() || latest->second.value != value) {
      return " was shown and holds another record now";
    }
    if (latest->second.epoch != epoch) {
      return " was written in epoch " + std::to_string(latest->second.epoch.value()) +
             " and says " + std::to_string(epoch.value());
    }
    return {};
  }
  const auto ever = expected.written.find(at);
  if (ever == expected.written.end() || !ever->second.contains(value)) {
    return " holds what nobody wrote there, or what was truncated: " + value;
  }
  return {};
}

// A batch of an idempotent producer is there as a whole or not at all.
std::string StoreWorkload::check_whole(std::int64_t at, const Records& records, std::int64_t start,
                                       const Expected& expected) {
  const auto record = records.find(at);
  if (record == records.end()) return {};
  const auto sent = expected.written.at(at).at(record->second.first);
  if (sent->producer.id == no_producer) return {};
  for (std::size_t i = 0; i < sent->values.size(); ++i) {
    const std::int64_t offset = sent->first + static_cast<std::int64_t>(i);
    const auto other = records.find(offset);
    const bool there = other != records.end() && other->second.first == sent->values[i];
    if (offset >= start && !there) return " is of a batch that is only partly there";
  }
  return {};
}

std::string StoreWorkload::check_epochs(const storage::PartitionLog& log,
                                        const Expected& expected) {
  if (log.log()->epoch() < expected.epoch_min) {
    return "the epoch went back from " + std::to_string(expected.epoch_min.value()) + " to " +
           std::to_string(log.log()->epoch().value());
  }
  for (const auto& [epoch, end] : expected.epoch_ends) {
    if (end.end.value() <= log.offsets().start.value()) continue;
    const EpochEnd now = log.end_of_epoch(epoch);
    if (now == end) continue;
    return "epoch " + std::to_string(epoch.value()) + " ended with " +
           std::to_string(end.epoch.value()) + " at " + std::to_string(end.end.value()) +
           " and now with " + std::to_string(now.epoch.value()) + " at " +
           std::to_string(now.end.value());
  }
  return {};
}

// Batches of the producer that may be in the log behind `offset`.
std::size_t StoreWorkload::newer_batches(const Expected& expected, std::int64_t offset) {
  std::vector<std::int32_t> sequences;
  for (auto item = expected.maybe.upper_bound(offset); item != expected.maybe.end(); ++item) {
    if (item->second.producer.id == no_producer) continue;
    const std::int32_t first = item->second.producer.first_sequence;
    if (std::count(sequences.begin(), sequences.end(), first) == 0) sequences.push_back(first);
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

// As the broker does after a start: a new epoch, then new records, which must be found where they
// were put.
std::string StoreWorkload::go_on(storage::Store& store) const {
  for (const TopicPartition& id : store.partitions()) {
    const auto log = store.find(id);
    if (auto begun = log->log()->begin_epoch(log->log()->epoch() + 1); !begun) {
      return "no new epoch: " + begun.error().to_string();
    }
    const std::string wrong = append_one(*log, id);
    if (!wrong.empty()) return id.topic + "-" + std::to_string(id.partition) + wrong;
  }
  return {};
}

std::string StoreWorkload::append_one(storage::PartitionLog& log, const TopicPartition& id) const {
  const std::vector<std::string> values{"one more", "and another"};
  const std::int64_t end = log.offsets().end.value();
  const auto staged = log.append(engine_.to_native(one_batch(values, clock_.now()), id));
  if (!staged) return ": nothing can be appended: " + staged.error().to_string();
  if (auto wrote = log.log()->write_staged(); !wrote) {
    return ": nothing can be written: " + wrote.error().to_string();
  }
  if (staged->offsets.start.value() != end) return ": a new record does not come behind the last";
  const auto records = read_all(log);
  if (!records) return ": does not read: " + records.error().to_string();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto record = records->find(end + static_cast<std::int64_t>(i));
    if (record == records->end() || record->second.first != values[i] ||
        record->second.second != log.log()->epoch()) {
      return ": a new record is not found where it was put";
    }
  }
  return {};
}

}  // namespace polylog::crash
