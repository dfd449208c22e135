#include "broker/groups/replay.h"

#include <algorithm>
#include <utility>

#include "format/kafka/consumer_group_records.h"
#include "format/kafka/records.h"

namespace polylog::broker::groups {
namespace {

namespace stored = format::kafka;

constexpr std::size_t portion_bytes = std::size_t{1} << 20;
constexpr std::int64_t steps_by_one = 1024;

// Where to look for the next batch that reads, `failed` offsets after the damage began: one by
// one first, as damage is most often a single batch, then in longer strides.
std::int64_t stride(std::int64_t failed) { return failed < steps_by_one ? 1 : failed; }

// The records of one batch. A marker becomes one entry without a key.
Result<void> take_batch(const stored::BatchHeader& header, ByteView batch, std::size_t bytes_max,
                        std::vector<LogPortion::Entry>& out) {
  LogPortion::Entry entry;
  if (header.transactional()) entry.transaction = header.producer_id;
  if (header.control()) {
    POLYLOG_ASSIGN(control, stored::parse_control(batch));
    if (!control.is_end_transaction()) return {};
    entry.kind = control.type == stored::ControlType::commit ? LogPortion::Kind::commit
                                                             : LogPortion::Kind::abort;
    out.push_back(std::move(entry));
    return {};
  }
  const std::size_t before = out.size();
  const auto note = [&](const Record& record) {
    if (!record.key) return true;  // no group's
    LogPortion::Entry& its = out.emplace_back(entry);
    its.key = to_vector(*record.key);
    its.timestamp_ms = record.timestamp.value();
    if (record.value) its.value = to_vector(*record.value);
    return true;
  };
  Result<void> read = stored::for_each_record(batch, bytes_max, note);
  if (!read) out.resize(before);  // all of a batch, or nothing
  return read;
}

std::string at(Offset offset) { return "offset " + std::to_string(offset.value()); }

}  // namespace

LogPortion read_portion(const storage::PartitionLog& log, Offset from, Offset end,
                        std::size_t decompressed_bytes_max) {
  LogPortion portion;
  portion.next = from;
  storage::ReadLimits limits;
  limits.bytes_max = portion_bytes;
  limits.end = end;
  limits.first_whole = true;
  Result<std::vector<Batch>> batches = log.read(from, limits);
  if (!batches && batches.error().code == Errc::corrupt) {
    portion.notes.push_back(batches.error().to_string());
    for (std::int64_t failed = 1; !batches && batches.error().code == Errc::corrupt;) {
      portion.next = std::min(from + failed, end);
      if (portion.next == end) return portion;
      batches = log.read(portion.next, limits);
      failed += stride(failed);
    }
  }
  if (!batches) {
    portion.read = fail(std::move(batches).error());
    return portion;
  }
  if (batches->empty()) portion.next = end;
  for (const Batch& batch : *batches) {
    portion.bytes += batch.bytes.size();
    portion.next = batch.info.last + 1;
    const auto take = [&](const stored::BatchHeader& header, ByteView whole) -> Result<void> {
      const Result<void> taken = take_batch(header, whole, decompressed_bytes_max, portion.entries);
      if (!taken) portion.notes.push_back(at(header.base_offset) + ": " + taken.error().context);
      return {};
    };
    if (const auto walked = stored::for_each_batch(batch.bytes.view(), take); !walked) {
      portion.notes.push_back(at(batch.info.first) + ": " + walked.error().context);
    }
  }
  return portion;
}

std::vector<std::string> Replay::take(LogPortion portion) {
  std::vector<std::string> notes;
  const auto apply_noted = [&](const Entry& entry) {
    if (const Result<void> applied = apply(entry); !applied) {
      notes.push_back(applied.error().to_string());
    }
  };
  for (Entry& entry : portion.entries) {
    if (entry.kind == LogPortion::Kind::record) {
      if (entry.transaction == no_producer) {
        apply_noted(entry);
      } else {
        transactions_[entry.transaction].push_back(std::move(entry));
      }
      continue;
    }
    auto ended = transactions_.extract(entry.transaction);
    if (ended.empty() || entry.kind == LogPortion::Kind::abort) continue;
    for (const Entry& its : ended.mapped()) apply_noted(its);
  }
  return notes;
}

Result<void> Replay::apply(const Entry& entry) {
  POLYLOG_ASSIGN(type, stored::group_key_type(entry.key));
  switch (type) {
    case stored::offset_commit_key_oldest:
    case stored::offset_commit_key: return apply_offset(entry);
    case stored::group_metadata_key: return apply_classic(entry);
    default: break;
  }
  if (stored::is_consumer_group_key(entry.key)) return apply_consumer(entry);
  return {};
}

Replay::Loaded& Replay::at(const std::string& group) {
  const auto it = groups_.find(group);
  if (it != groups_.end()) return it->second;
  return groups_.emplace(group, Loaded{std::nullopt, nullptr, GroupOffsets(group)}).first->second;
}

Result<void> Replay::apply_offset(const Entry& entry) {
  POLYLOG_ASSIGN(key, stored::decode_offset_commit_key(entry.key));
  GroupOffsets& offsets = at(key.group).offsets;
  if (!entry.value) {
    offsets.replay_erase(key.partition.topic, key.partition.partition);
    return {};
  }
  POLYLOG_ASSIGN(value, stored::decode_offset_commit(*entry.value));
  CommittedOffset offset;
  offset.offset = value.offset;
  offset.leader_epoch = value.leader_epoch.value();
  offset.metadata = std::move(value.metadata);
  offset.committed_ms = value.committed.value();
  if (value.expires) offset.expires_ms = value.expires->value();
  offset.topic_id = value.topic_id;
  offsets.replay(key.partition.topic, key.partition.partition, std::move(offset));
  return {};
}

Result<void> Replay::apply_classic(const Entry& entry) {
  POLYLOG_ASSIGN(group, stored::decode_group_metadata_key(entry.key));
  if (!entry.value) {
    at(group).classic.reset();
    return {};
  }
  POLYLOG_ASSIGN(metadata, stored::decode_group_metadata(*entry.value));
  at(group).classic = std::move(metadata);
  return {};
}

Result<void> Replay::apply_consumer(const Entry& entry) {
  POLYLOG_ASSIGN(key, stored::decode_consumer_group_key(entry.key));
  Loaded& loaded = at(key.group);
  if (!loaded.consumer) {
    if (!entry.value) return {};
    loaded.consumer = std::make_unique<ConsumerGroup>(key.group, limits_, rebalances_);
  }
  std::optional<ByteView> value;
  if (entry.value) value = ByteView(*entry.value);
  POLYLOG_TRY(loaded.consumer->replay(key, value, entry.timestamp_ms));
  if (key.record == stored::ConsumerGroupRecord::group_epoch && !entry.value) {
    loaded.consumer.reset();
  }
  return {};
}

Replay::Groups Replay::finish() {
  std::erase_if(groups_, [](const auto& entry) { return entry.second.empty(); });
  return std::move(groups_);
}

}  // namespace polylog::broker::groups
